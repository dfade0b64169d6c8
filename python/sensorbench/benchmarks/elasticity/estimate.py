"""What changes of clusters under load would do. Clusters are too dear to be started for a pilot."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sensorbench.benchmarks.elasticity.spec import ElasticitySpec
from sensorbench.results.estimate import Estimate, PartEstimate, VariantEstimate
from sensorbench.runner import arithmetic_estimate, place_of

# Of a request in a closed loop, whose answers nobody knows before they come: a node of the lab reads an article about as fast.
ASSUMED_RESPONSE_S = 0.002


def estimate_elasticity(
    title: str,
    scenarios: Mapping[str, Sequence[Sequence[ElasticitySpec]]],
    scale: float,
    out: Path,
    expected_s: Mapping[str, float] | None = None,
) -> Estimate:
    """What is done to each cluster, by arithmetic. Nothing is started, and no cluster of a user's is touched.

    Args:
        title: of the whole.
        scenarios: by name, for each repetition, what is asked of each target.
        scale: share of the dataset that is loaded.
        out: folder of the results.
        expected_s: how long each scenario takes with starting, loading and joining (s), where that is known; else the least is given.

    """
    parts = [_part(name, turns) for name, turns in scenarios.items()]
    if expected_s is not None:
        parts = [part.model_copy(update={"time_s": expected_s[part.name]}) for part in parts]
    specs = [spec for turns in scenarios.values() for turn in turns for spec in turn]
    lengths = specs[0].lengths
    steps = [
        f"load the articles, then hold the load for {lengths.warmup_s:g} s",
        f"{lengths.before} measurements of {specs[0].load.executions} sets before the change",
        *(
            f"{f'{name}: ' if name else ''}change: {change.title}"
            for name, turns in scenarios.items()
            for change in turns[0][0].changes
        ),
        f"measure until {lengths.after} measurements are stable, for at most {lengths.max_s:g} s after each change",
    ]
    longest_s = lengths.max_s * sum(len(spec.changes) for spec in specs)
    time_is = (
        f"the time is a minimum: warm-up, the fewest measurements ({_how_measured(specs[0])}), and how long nodes are away. Waiting for "
        f"stability takes at most {longest_s / 60:.0f} min more. Starting nodes, loading, and nodes that join or leave come on top"
    )
    if expected_s is not None:
        time_is = (
            "the time is by arithmetic, with starting, loading and joining as they took on a machine with two cores; waiting for stability "
            "can take longer"
        )
    notes = [
        time_is,
        "no cluster is started by a dry run, so that disk and memory are not known",
    ]
    time_s = sum(part.time_s or 0.0 for part in parts)
    return arithmetic_estimate(title, "elasticity", parts, out, steps=steps, scale=scale, time_s=time_s, notes=notes)


def _part(name: str, turns: Sequence[Sequence[ElasticitySpec]]) -> PartEstimate:
    """One scenario."""
    articles = turns[0][0].dataset.describe()
    variants = [_variant(spec, articles.readings * spec.copies, len(turns)) for spec in turns[0]]
    return PartEstimate(
        name=name,
        data=articles.title,
        readings=articles.readings,
        variants=variants,
        order=[[spec.target.label for spec in (turn if number % 2 == 0 else turn[::-1])] for number, turn in enumerate(turns)],
        time_s=sum((variant.run_s or 0.0) * variant.repetitions for variant in variants),
    )


def _measurement_s(spec: ElasticitySpec) -> float:
    """How long a measurement takes (s): at the rate of an open loop, else at an assumed response time."""
    requests = spec.load.requests_per_set(spec.load.threads_per_node) * spec.load.executions
    per_node = spec.load.rate_per_node or spec.load.threads_per_node / ASSUMED_RESPONSE_S
    return requests / per_node


def _how_measured(spec: ElasticitySpec) -> str:
    how = "at the rate" if spec.load.rate_per_node else f"if a request takes {1000 * ASSUMED_RESPONSE_S:g} ms, which is assumed"
    return f"{_measurement_s(spec):.3g} s each {how}"


def _run_s(spec: ElasticitySpec) -> float:
    """How long a run takes at least (s)."""
    measurements = spec.lengths.before + spec.lengths.after * len(spec.changes)
    return spec.lengths.warmup_s + measurements * _measurement_s(spec) + sum(change.min_s for change in spec.changes)


def _variant(spec: ElasticitySpec, articles: int, repetitions: int) -> VariantEstimate:
    nodes = spec.commands.nodes if spec.commands else spec.target.nodes or 1
    of_a_set = spec.load.requests_per_set(nodes * spec.load.threads_per_node)
    sets = (spec.lengths.before + spec.lengths.after * len(spec.changes)) * spec.load.executions
    return VariantEstimate(
        variant=spec.target.label,
        place=place_of(spec.target),
        rows=articles,
        operations=round(of_a_set * sets * spec.operations_per_request),
        repetitions=repetitions,
        run_s=_run_s(spec),
    )
