"""What a workload with a delivery, with markers of freshness, or with retention needs of its operations and of the schemas of its variants."""

from dataclasses import replace
from typing import get_args

from sensorbench.errors import UsageError
from sensorbench.runner.comparison import Comparison
from sensorbench.runner.plan import planned_operations
from sensorbench.runner.retention import microseconds, pace_of, step_us, time_to_live_s
from sensorbench.runner.variants import Variant
from sensorbench.schemas import Operations
from sensorbench.schemas.engine_types import DriverStatement
from sensorbench.schemas.retention import retention_statements
from sensorbench.schemas.schema_file import DuplicateRule

# A time to live counts in whole seconds.
_MIN_TTL_S = 5


def streamed_writes(operations: Operations, names: list[str]) -> list[str]:
    """Of some operations, the writes whose readings can be distinguished and read again."""
    return [name for name in names if operations.operation[name].read_by is not None]


def marker_write(comparison: Comparison) -> str | None:
    """The write that markers are made by: the first one of the mix that can be read again, else the first one that there is; None if there is none."""
    known = streamed_writes(comparison.operations, list(comparison.operations.operation))
    in_the_mix = [name for name in known if name in comparison.workload.mix]
    return next(iter([*in_the_mix, *known]), None)


def check_stream(comparison: Comparison) -> None:
    """Raises UsageError if readings cannot be delivered, accounted for or marked as the workload wants it."""
    workload, operations = comparison.workload, comparison.operations
    if workload.delivery is not None:
        writes = streamed_writes(operations, list(workload.mix))
        if not writes:
            raise UsageError(
                f"workload.delivery: no operation of the mix ({', '.join(workload.mix)}) is a write with key and read_by in "
                f"{comparison.operations_name}, by which its readings are delivered and found again"
            )
        for variant in comparison.variants:
            _check_variant(variant, operations, writes, sends_again=workload.delivery.sends_again)
    if workload.freshness is not None:
        write = marker_write(comparison)
        if write is None:
            raise UsageError(
                f"workload.freshness: {comparison.operations_name} has no write with key and read_by, by which markers are written and read"
            )
        for variant in comparison.variants:
            for name in (write, str(operations.operation[write].read_by)):
                _check_can(variant, name, "workload.freshness")
            readings = variant.schema.readings_of(write, operations.operation[write])
            if not variant.only_loads and readings > 1:
                raise UsageError(
                    f"workload.freshness: {variant.id} writes {readings} readings by each {write}, and a marker is a single one; expected "
                    "parameters of the schema with which it writes one, such as parameters = { batch = 1 }"
                )


def retained_write(comparison: Comparison) -> str:
    """The write whose readings expire. Raises UsageError if it is not one."""
    writes = streamed_writes(comparison.operations, planned_operations(comparison.operations, comparison.workload))
    if len(writes) != 1:
        raise UsageError(
            f"workload.retention: expected one write with key and read_by in the mix, whose readings expire; {comparison.operations_name} "
            f"has {', '.join(writes) or 'none'} among {', '.join(comparison.workload.mix)}"
        )
    return writes[0]


def accelerated(comparison: Comparison) -> Comparison:
    """The comparison with times of readings that advance as fast as its retention wants; as it was where it wants none.

    Raises:
        UsageError: if the times of the write cannot be set.

    """
    retention, operations = comparison.workload.retention, comparison.operations
    if retention is None:
        return comparison
    write = operations.operation[retained_write(comparison)]
    value_types = {write.parameters[name] for name in write.parameters if name not in write.key}
    if retention.rollup is not None and value_types != {"double"}:
        raise UsageError("workload.retention.rollup: expected a write of one double besides its key, which is rolled up")
    found = [
        (name, source)
        for name in write.parameter_sources
        if write.time in (source := operations.parameter_source[name]).numbers and source.per is None
    ]
    if not found:
        raise UsageError(
            f"workload.retention: the times of {retained_write(comparison)} are not numbers that all series have in common and that are used once "
            "each, so that they cannot advance faster"
        )
    ((name, source),) = found
    step = step_us(retention, comparison.workload.planned_count, pace_of(comparison.workload.delivery))
    number = source.numbers[write.time].model_copy(update={"step": f"SELECT {step}"})
    faster = source.model_copy(update={"numbers": {**source.numbers, write.time: number}})
    return replace(comparison, operations=operations.with_parameter_source(name, faster))


def checked_time_to_live_s(comparison: Comparison, variant: Variant) -> int | None:
    """How long after their write readings of a variant expire, in whole s; None if their own time counts.

    Raises:
        UsageError: if it is not known how long a run takes, or where that is too short.

    """
    retention, declared, workload = comparison.workload.retention, variant.schema.file.retention, comparison.workload
    if retention is None or declared is None or declared.ages_from != "write":
        return None
    if workload.schedule.rate is None:
        raise UsageError(
            f"workload.retention: readings of {variant.id} expire a fixed time after their write, by the wall clock; expected schedule.rate, by which "
            "it is known how long a run takes"
        )
    ttl_s = time_to_live_s(retention, workload.planned_count / workload.schedule.rate)
    if ttl_s < _MIN_TTL_S:
        raise UsageError(
            f"workload.retention.keep: {retention.keep} of {retention.span} are {ttl_s} s of the run, after which readings of {variant.id} expire. Expected "
            f"at least {_MIN_TTL_S} s, because a time to live counts whole seconds: give a longer duration"
        )
    return ttl_s


def checked_retention(comparison: Comparison, variant: Variant) -> list[DriverStatement]:
    """The statements by which readings of a variant expire; none where the workload has no retention, or the variant is only loaded.

    Raises:
        UsageError: if the schema has none, or none that does what the workload wants.

    """
    retention = comparison.workload.retention
    if retention is None or variant.only_loads:
        return []
    write = retained_write(comparison)
    declared = variant.schema.file.retention
    if declared is None:
        raise UsageError(
            f"workload.retention: {variant.schema.path} does not say how readings expire in {variant.id}; leave this variant out, or add [retention] to "
            "it. docs/how-to/retention.md has the schemas that say it, and what it is"
        )
    for name in (write, str(comparison.operations.operation[write].read_by)):
        _check_can(variant, name, "workload.retention")
    if retention.rollup is not None and declared.rollup_rows is None:
        raise UsageError(
            f"workload.retention.rollup: {variant.schema.path} keeps no rollup; expected retention.rollup_rows there"
        )
    statements = retention_statements(
        variant.schema, comparison.operations.operation[write], checked_time_to_live_s(comparison, variant)
    )
    for name, length in (("keep", retention.keep), ("every", retention.every)):
        if microseconds(length) % statements.unit_us:
            raise UsageError(
                f"workload.retention.{name}: readings of {variant.id} expire by {declared.unit}, of which {length} is not a multiple"
            )
    if retention.rollup is not None and statements.interval_us not in {None, microseconds(retention.rollup.interval)}:
        raise UsageError(
            f"workload.retention.rollup.interval: the rollup of {variant.id} has an interval of its own, {declared.interval}, not {retention.rollup.interval}; "
            "expected the same, or parameters of the schema with which it is"
        )
    return statements.all()


def _check_variant(variant: Variant, operations: Operations, writes: list[str], *, sends_again: bool) -> None:
    for write in writes:
        if variant.answers(write):
            _check_can(variant, str(operations.operation[write].read_by), "workload.delivery")
            if sends_again and variant.schema.duplicate_rule is None:
                expected = " or ".join(f'"{rule}"' for rule in get_args(DuplicateRule))
                raise UsageError(
                    f"workload.delivery.duplicates: {variant.schema.path} does not say which of several writes of one reading counts; "
                    f"add duplicates = {expected} to it"
                )


def _check_can(variant: Variant, name: str, where: str) -> None:
    if not variant.only_loads and name not in variant.schema.file.operation:
        raise UsageError(
            f"{where}: {variant.id} has no statement for {name}, which it needs; leave this variant out, or write one"
        )
