"""What is resampled: runs; blocks, where variants were measured one at a time, because runs of one block share a start of the server."""

from collections.abc import Callable, Iterable, Sequence

from sensorbench.analysis.intervals import MIN_RUNS
from sensorbench.results import ComparisonResult, RunResult

# Gives for the number of a run that of its unit.
UnitOf = Callable[[int], int]


def each_run(repeat: int) -> int:
    """Each run is a unit of its own."""
    return repeat


def unit_of(result: ComparisonResult) -> UnitOf:
    """The units of a comparison's runs."""
    blocks = result.manifest.plan.one_at_a_time
    if blocks is None:
        return each_run
    rounds = blocks.rounds(result.manifest.plan.workload["repetitions"])
    by_repeat = {repeat: number for number, repeats in enumerate(rounds, start=1) for repeat in repeats}
    return by_repeat.__getitem__


def units_of(runs: Sequence[RunResult], unit: UnitOf) -> list[int]:
    """The unit of each run, numbered from 0 without gaps."""
    known = [unit(run.manifest.repetition) for run in runs]
    places = {number: place for place, number in enumerate(sorted(set(known)))}
    return [places[number] for number in known]


def too_few_blocks(result: ComparisonResult, variants: Iterable[str]) -> str | None:
    """Why nothing is judged of variants that were measured one at a time; None if that may be, or all servers were up."""
    if result.manifest.plan.one_at_a_time is None:
        return None
    unit = unit_of(result)
    measured = {variant.id for variant in result.manifest.variants if not variant.only_loads}
    counts = [
        len({unit(run.manifest.repetition) for run in result.runs[variant] if run.state == "complete"})
        for variant in variants
        if variant in measured and result.runs[variant]
    ]
    if not counts or min(counts) >= MIN_RUNS:
        return None
    per_block = result.manifest.plan.one_at_a_time.repetitions_per_block
    return (
        f"{min(counts)} {'block' if min(counts) == 1 else 'blocks'} of a variant, which say nothing of how starts of its server differ; a verdict needs "
        f"{MIN_RUNS} (--repetitions {MIN_RUNS * per_block})"
    )
