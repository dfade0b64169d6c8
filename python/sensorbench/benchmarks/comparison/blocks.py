"""Blocks: what of a comparison happens while the same servers are up, in which order, and where data lie between blocks.

Usually there is one block, in which all servers are up. Where variants are measured one at a time, each block is one variant's: its server
is started, and some of its repetitions follow. Blocks of a round are in the order of the variants, those of the next round backwards (A B B A).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sensorbench.results import DataBetweenBlocks, PlannedBlocks
from sensorbench.results.estimate import PartEstimate
from sensorbench.runner import PreparedTable, Variant, keeps_on_disk, server_kind

SizesBy = Literal["pilot", "prepared rows", "loads"]
# Data lie on the disk twice for moments, where a database compacts them.
DISK_FACTOR = 1.5


@dataclass(frozen=True)
class PlannedBlock:
    """A block: variants whose servers are up, and the repetitions that each of them is measured in. Numbers count from 1."""

    number: int
    round: int
    variants: tuple[Variant, ...]
    repeats: tuple[int, ...]


def plan_blocks(variants: Sequence[Variant], repetitions: int, planned: PlannedBlocks | None) -> list[PlannedBlock]:
    """The blocks of a comparison, in their order.

    Args:
        variants: all of its variants.
        repetitions: of each variant that is asked.
        planned: how it is cut; None if all servers are up.

    """
    if planned is None:
        return [PlannedBlock(1, 1, tuple(variants), tuple(range(1, repetitions + 1)))]
    blocks: list[PlannedBlock] = []
    for number, repeats in enumerate(planned.rounds(repetitions), start=1):
        # A variant that only loads has one block, and no repetition.
        of_round = [variant for variant in in_turn(variants, number) if number == 1 or not variant.only_loads]
        blocks += [
            PlannedBlock(len(blocks) + place, number, (variant,), () if variant.only_loads else repeats)
            for place, variant in enumerate(of_round, start=1)
        ]
    return blocks


def order_of(blocks: Sequence[PlannedBlock]) -> list[list[str]]:
    """The variants by round of blocks of one variant each, in their order."""
    rounds: dict[int, list[str]] = {}
    for block in blocks:
        rounds.setdefault(block.round, []).extend(variant.id for variant in block.variants)
    return list(rounds.values())


def in_turn(variants: Sequence[Variant], number: int) -> list[Variant]:
    """Variants in the order of the repetition, or the round, with this number: A B B A, so that what changes with time hits all alike."""
    return list(variants[:: 1 if number % 2 == 1 else -1])


def lies_here(variant: Variant) -> bool:
    """Whether data of a variant lie on this machine's disk, and it is ours to remove them between blocks."""
    return keeps_on_disk(variant) and server_kind(variant) != "kept up" and not variant.target.is_url


def data_between_blocks(
    variants: Sequence[Variant],
    tables: Mapping[str, Sequence[PreparedTable]],
    estimate: PartEstimate | None,
    planned: PlannedBlocks,
    free_bytes: int,
) -> DataBetweenBlocks:
    """Whether the data of all variants lie on the disk at once: where they fit there by what a pilot found, else by what was prepared for loading.

    Args:
        variants: those that have something left to be done.
        tables: what is loaded, by variant.
        estimate: what a pilot found of them, if there was one.
        planned: says what is to stay free.
        free_bytes: what is free now.

    """
    here = [variant.id for variant in variants if lies_here(variant)]
    piloted = {variant.variant: variant.disk_bytes for variant in estimate.variants} if estimate else {}
    prepared = {name: sum(table.bytes for table in tables[name]) for name in here}
    sizes = {name: piloted.get(name) or prepared[name] for name in here}
    is_piloted = bool(here) and all(piloted.get(name) is not None for name in here)
    return decided(sum(sizes.values()), planned, free_bytes, "pilot" if is_piloted else "prepared rows")


def decided_by_loads(
    before: DataBetweenBlocks, loaded: Mapping[str, int], prepared: Mapping[str, int], planned: PlannedBlocks
) -> DataBetweenBlocks:
    """The choice once some variants were loaded: the others are taken to grow as the one that grew most. What a pilot found stays.

    Args:
        before: the choice until then.
        loaded: bytes that data take, of variants that were loaded.
        prepared: bytes that were prepared for loading, of all variants that lie on disk.
        planned: says what is to stay free.

    """
    growth = [size / prepared[name] for name, size in loaded.items() if prepared.get(name)]
    if before.sizes_by == "pilot" or before.choice == "loaded again" or not growth:
        return before
    others = sum(size for name, size in prepared.items() if name not in loaded)
    return decided(sum(loaded.values()) + max(growth) * others, planned, before.free_bytes, "loads")


def decided(size_bytes: float, planned: PlannedBlocks, free_bytes: int, sizes_by: SizesBy) -> DataBetweenBlocks:
    """The choice for data of this size, of all variants together."""
    needed = round(DISK_FACTOR * size_bytes)
    return DataBetweenBlocks(
        choice="on disk" if needed + planned.disk_reserve_bytes <= free_bytes else "loaded again",
        needed_bytes=needed,
        free_bytes=free_bytes,
        reserve_bytes=planned.disk_reserve_bytes,
        sizes_by=sizes_by,
    )


def why_too_large(rows: int | None, disk: int | None, memory: int | None, disk_free: int, memory_free: int) -> str | None:
    """Why a variant alone does not fit, with the arithmetic; None if it does, or nothing is known.

    Args:
        rows: of all its tables.
        disk: bytes that its data take there.
        memory: bytes that they take where a database keeps them in memory.
        disk_free: bytes that may be used.
        memory_free: bytes that may be used.

    """
    for what, needed, free in (("memory", memory, memory_free), ("disk", disk and disk * DISK_FACTOR, disk_free)):
        if needed is not None and needed > free:
            arithmetic = f" ({rows:,} rows of {needed / rows:,.0f} bytes)" if rows else ""
            return f"needs about {_size(round(needed))} of {what}{arithmetic}, and {_size(max(0, free))} are free for it"
    return None


def described_data(data: DataBetweenBlocks) -> str:
    """Where data lie between blocks, with the arithmetic, in words."""
    where = (
        "data stay on disk between blocks, where the database keeps them there"
        if data.choice == "on disk"
        else "each block loads again"
    )
    return (
        f"{where}: all variants together need about {_size(data.needed_bytes)} there (known by {data.sizes_by}), {_size(data.free_bytes)} are free, and "
        f"{_size(data.reserve_bytes)} are to stay free"
    )


def _size(count: int) -> str:
    """Bytes as people say them."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"
