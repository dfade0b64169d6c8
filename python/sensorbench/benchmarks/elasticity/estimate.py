"""What changes of clusters under load would do. Clusters are too dear to be started for a pilot."""

from collections.abc import Sequence
from pathlib import Path

from sensorbench.benchmarks.elasticity.spec import ElasticitySpec
from sensorbench.results.estimate import Estimate, PartEstimate, VariantEstimate
from sensorbench.runner import arithmetic_estimate, place_of


def estimate_elasticity(title: str, turns: Sequence[Sequence[ElasticitySpec]], scale: float, out: Path) -> Estimate:
    """What is done to each cluster, by arithmetic. Nothing is started, and no cluster of a user's is touched.

    Args:
        title: of the whole.
        turns: for each repetition, what is asked of each target.
        scale: share of the dataset that is loaded.
        out: folder of the results.

    """
    first = turns[0]
    articles = first[0].dataset.describe()
    part = PartEstimate(
        name="",
        data=articles.title,
        readings=articles.readings,
        variants=[_variant(spec, articles.readings, len(turns)) for spec in first],
        order=[[spec.target.label for spec in (turn if number % 2 == 0 else turn[::-1])] for number, turn in enumerate(turns)],
        prepare_s=None,
        reference_s=None,
        time_s=None,
    )
    lengths = first[0].lengths
    steps = [
        f"load the articles, then hold the load for {lengths.warmup_s:g} s",
        f"{lengths.before} measurements of {first[0].load.executions} sets before the change",
        *(f"change: {change.title}" for change in first[0].changes),
        f"measure until {lengths.after} measurements are stable, for at most {lengths.max_s:g} s after each change",
    ]
    notes = [
        "no cluster is started by a dry run, so that time, disk and memory are not known; operations are the fewest that there can be"
    ]
    return arithmetic_estimate(title, "elasticity", [part], out, steps=steps, scale=scale, notes=notes)


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
        load_s=None,
        run_s=None,
        disk_bytes=None,
        memory_bytes=None,
    )
