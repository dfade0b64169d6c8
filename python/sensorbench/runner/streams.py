"""What a workload with a delivery, or with markers of freshness, needs of its operations and of the schemas of its variants."""

from typing import get_args

from sensorbench.errors import UsageError
from sensorbench.runner.comparison import Comparison
from sensorbench.runner.variants import Variant
from sensorbench.schemas import Operations
from sensorbench.schemas.schema_file import DuplicateRule


def streamed_writes(operations: Operations, names: list[str]) -> list[str]:
    """Of some operations, the writes whose readings can be told apart and read again."""
    return [name for name in names if operations.operation[name].read_by is not None]


def marker_write(comparison: Comparison) -> str | None:
    """The write that markers are made by: the first one of the mix that can be read again, else the first one that there is; None where there is none."""
    known = streamed_writes(comparison.operations, list(comparison.operations.operation))
    in_the_mix = [name for name in known if name in comparison.workload.mix]
    return next(iter([*in_the_mix, *known]), None)


def check_stream(comparison: Comparison) -> None:
    """Raises UsageError where readings cannot be delivered, accounted for or marked as the workload wants it."""
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
