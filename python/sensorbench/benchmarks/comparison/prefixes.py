"""Variants whose runs ended by time did a prefix of the same operations: they are compared on what both have done."""

from collections.abc import Mapping, Sequence

import numpy as np

from sensorbench.analysis.sample import Floats, Sample
from sensorbench.benchmarks.comparison.samples import sample_before
from sensorbench.benchmarks.comparison.units import UnitOf, each_run, units_of
from sensorbench.results import ComparisonResult, RunResult
from sensorbench.results.engine_plan import is_shared
from sensorbench.results.latencies import is_held_whole, is_logged_whole, logged_latencies
from sensorbench.results.manifest import VariantManifest
from sensorbench.results.summary.envelope import Caveat


def prefixes_of(result: ComparisonResult, runs: Mapping[str, Sequence[RunResult]]) -> dict[str, tuple[int, int]]:
    """The variants that did fewer operations in some run than were planned: the fewest of their runs, and the planned."""
    workload = result.manifest.plan.workload
    operations = workload["operations"]
    if operations is None or workload["duration"] is None:
        return {}
    found = {}
    for variant in result.manifest.variants:
        planned = _planned(variant, operations, workload["mix"])
        done = [phase.started for run in runs[variant.id] for phase in run.manifest.measured]
        if done and min(done) < planned:
            found[variant.id] = (min(done), planned)
    return found


def _planned(variant: VariantManifest, operations: int, mix: Mapping[str, float]) -> int:
    """How many of the operations the variant was to execute: its share of those that it can answer."""
    known = variant.operations
    answered = sum(weight for name, weight in mix.items() if known is None or name.partition(".")[0] in known)
    return max(1, round(operations * variant.operations_share * answered / sum(mix.values())))


def prefix_caveats(prefixes: Mapping[str, tuple[int, int]]) -> list[Caveat]:
    """What readers must know of variants that did a prefix."""
    return [
        Caveat(
            kind="prefix",
            text=f"Its runs ended by time: it did the first {done:,} of {planned:,} operations, so that its intervals are wider. Verdicts of rankings "
            "compare it on the operations that both variants have done; claims and its own figures are of all that each has done.",
            action="Give more time by --budget or --max-variant-time, or name fewer variants.",
            variant=variant,
        )
        for variant, (done, planned) in prefixes.items()
    ]


def common_samples(
    runs: Sequence[RunResult], others: Sequence[RunResult], operation: str, unit: UnitOf = each_run
) -> tuple[Sample, Sample] | None:
    """The latencies of one kind of operation in two variants, of those operations alone that both have done in runs with the same number. None
    where not every operation was logged, some runs have none in common, or long ones were shared by load generators. `unit` says which runs are resampled together.
    """
    by_repetition = {run.manifest.repetition: run for run in others}
    pairs = [(run, by_repetition[run.manifest.repetition]) for run in runs if run.manifest.repetition in by_repetition]
    if not pairs or not all(is_logged_whole(run) for pair in pairs for run in pair):
        return None
    units = units_of([run for run, _ in pairs], unit)
    if not all(is_held_whole(run) for pair in pairs for run in pair):
        if any(is_shared(run.manifest.plan) for pair in pairs for run in pair):
            return None
        # Of runs that ended by time, each has done the operations before a number.
        ends = [min(run.operation_count for run in pair) for pair in pairs]
        samples = [sample_before([pair[side] for pair in pairs], operation, units, ends) for side in (0, 1)]
        return (samples[0], samples[1]) if samples[0] is not None and samples[1] is not None else None
    kept: tuple[list[Floats], list[Floats]] = ([], [])
    for pair in pairs:
        logged = [logged_latencies(run, operation) for run in pair]
        common = np.intersect1d(logged[0][0], logged[1][0])
        if not len(common):
            return None
        for side, (numbers, latencies) in zip(kept, logged, strict=True):
            side.append(latencies[np.isin(numbers, common)])
    return Sample.of_runs(kept[0], units=units), Sample.of_runs(kept[1], units=units)
