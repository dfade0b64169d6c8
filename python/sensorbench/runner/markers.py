"""The markers of one run of a variant: which readings they are, and who watches them."""

from sensorbench._engine import Target
from sensorbench.runner.comparison import Comparison
from sensorbench.runner.freshness import Freshness, FreshnessWatch, MarkerPlace, freshness_plan, marker_rows
from sensorbench.runner.lengths import seconds, seconds_or_none
from sensorbench.runner.plan import Parameters, columns_of, planned_operation
from sensorbench.runner.streams import marker_write
from sensorbench.runner.variants import Variant
from sensorbench.runner.workload import Workload
from sensorbench.schemas import Operations


def watch_markers(
    target: Target, comparison: Comparison, variant: Variant, parameters: Parameters, freshness: Freshness, run: int
) -> FreshnessWatch:
    """Connects, and writes the first marker of a run.

    Args:
        target: of the variant, with its data loaded.
        comparison: what is measured.
        variant: which variant.
        parameters: where the write of markers has its own from.
        freshness: what is wanted.
        run: number of the run, from 0.

    Raises:
        UsageError: if no markers can be made.

    """
    workload = variant.workload(comparison.workload)
    write = str(marker_write(comparison))
    operation = comparison.operations.operation[write]
    question = str(operation.read_by)
    candidates, numbers = columns_of(operation, parameters)
    duration_s = seconds(workload.duration) + seconds_or_none(workload.warmup) if workload.duration else None
    place = MarkerPlace(
        _readings_between(workload, comparison.operations, write, parameters) / freshness.rate,
        run,
        workload.repetitions,
        (workload.operations or 0) * run,
    )
    starts = {name: (number["start"], number["step"]) for name, number in numbers.items()}
    rows = marker_rows(operation, candidates, starts, freshness.markers_of(duration_s), place)
    made, read = (
        planned_operation(name, comparison.operations.operation[name], variant.schema, ()) for name in (write, question)
    )
    return FreshnessWatch(target, freshness_plan(freshness, made, read, rows, seconds(workload.timeout)), rows)


def _readings_between(workload: Workload, operations: Operations, write: str, parameters: Parameters) -> float:
    """By how many steps of its times the load advances in a second, where its rate is known; else 0."""
    rate = workload.schedule.rate
    if rate is None or write not in workload.mix:
        return 0.0
    for name in operations.operation[write].parameter_sources:
        per = operations.parameter_source[name].per
        if per is not None:
            # Its numbers are counted for each row of another source, by the writes alone.
            rows: int = parameters.tables[per].num_rows
            return rate * workload.mix[write] / sum(workload.mix.values()) / rows
    return rate
