"""What comparisons would take at a scale, by a pilot: the arithmetic alone, so that it can be done for many scales."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from sensorbench.benchmarks.comparison.blocks import (
    DISK_FACTOR,
    PlannedBlock,
    decided,
    described_data,
    in_turn,
    lies_here,
    order_of,
    plan_blocks,
    why_too_large,
)
from sensorbench.benchmarks.comparison.piloted import PartPilot, Pilot, VariantPilot
from sensorbench.results import DataBetweenBlocks, PlannedBlocks
from sensorbench.results.estimate import Estimate, PartEstimate, Room, VariantEstimate
from sensorbench.runner import Variant, Workload, free_room, place_of, seconds, seconds_or_none, why_undivided_by
from sensorbench.verification import REFERENCE_SAMPLE

# What a run takes besides its operations: it is written down, and its answers are hashed.
RUN_OVERHEAD_S = 0.6
# What the summary, the report and the end of servers take.
END_S = 5.0
# What writes of a variant take to be read back, with the questions about its contents: a server at most about this, an embedded database less.
READ_BACK_S, EMBEDDED_READ_BACK_S = 12.0, 2.0
# What a server that keeps its data in memory takes of the machine, for each byte that it says its data take: its tables of keys and its
# allocator. Measured with 390,600 records of the log study: 1.12 with a hash for each, 1.11 with one sorted set; a table that is just being
# doubled takes some more.
MEMORY_FACTOR = 1.2


@dataclass(frozen=True)
class RunCost:
    """A run of a variant: what an operation takes, and how many there are; where it ends by time, how long it is."""

    operation_s: float
    operations: int | None
    warmup_s: float
    length_s: float

    def at_most(self, limit_s: float) -> float:
        """How long it is when its operations end after a time."""
        return self.warmup_s + min(self.length_s, limit_s) + RUN_OVERHEAD_S

    def expected(self, limit_s: float) -> int | None:
        """How many operations end within a time; None if all of them do."""
        if self.operations is None or self.length_s <= limit_s or self.operation_s <= 0.0:
            return None
        return max(1, min(self.operations, int(limit_s / self.operation_s)))


def run_cost(variant: Variant, found: VariantPilot, part: PartPilot, workload: Workload, readings: float) -> RunCost:
    """What a run of a variant takes on this many readings."""
    own = variant.workload(workload.model_copy(update={"mix": part.mix}))
    total = sum(weight for name, weight in part.mix.items() if name in found.operations)
    cost_s = sum(part.mix[name] / total * found.operations[name].at(readings) for name in found.operations if name in part.mix)
    operation_s = found.parallel * cost_s
    ends_s = [seconds(own.duration)] if own.duration else []
    if own.operations is not None:
        rate = own.schedule.rate
        ends_s.append(max(own.operations * operation_s, own.operations / rate if rate else 0.0))
    return RunCost(operation_s, own.operations, seconds_or_none(own.warmup), min(ends_s))


def found_of(variant: Variant, part: PartPilot) -> VariantPilot | None:
    """What the pilot found of a variant, or of the one that stands for it; None if it found nothing."""
    found = part.variants.get(part.measured_as.get(variant.id, variant.id))
    return None if found is None or found.failed else found


def estimate_comparisons(
    pilot: Pilot,
    variants: Mapping[str, list[Variant]],
    workloads: Mapping[str, Workload],
    scale: float,
    out: Path,
    *,
    title: str,
    max_variant_time_s: float = math.inf,
    is_measured: bool = True,
    refused: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    blocks: PlannedBlocks | None = None,
) -> Estimate:
    """What comparisons take.

    Args:
        pilot: what was found of them.
        variants: all variants of each comparison, also those at users' servers.
        workloads: of each comparison, at the scale.
        scale: share of the data.
        out: the folder of the results.
        title: of the benchmark.
        max_variant_time_s: how long a run of a variant may take.
        is_measured: whether the pilot measured anything.
        refused: variants of each comparison that make no sense at the scale, with why not.
        blocks: how variants are measured one at a time; None if all servers are up.

    """
    disk_free, memory_free = free_room(out)
    parts = [
        _Arithmetic(pilot, pilot.parts[name], scale, disk_free, memory_free, blocks, is_measured, refused.get(name, {})).part(
            name, variants[name], workloads[name], max_variant_time_s
        )
        for name in pilot.parts
    ]
    starts_s = sum(_starts_s(part, variants[part.name], blocks) for part in parts)
    disk, memory = _needed(parts, pilot, scale, blocks)
    of_parts = [part.time_s for part in parts]
    known = [time_s for time_s in of_parts if time_s is not None]
    return Estimate(
        title=title,
        kind="comparison" if len(parts) == 1 else "series",
        scale=scale,
        parts=parts,
        disk=Room(needed=disk if is_measured else None, free=disk_free),
        memory=Room(needed=memory if is_measured else None, free=memory_free),
        start_s=starts_s if is_measured else None,
        pilot_s=pilot.took_s if is_measured else None,
        time_s=starts_s + sum(known) + END_S * len(parts) if is_measured and known else None,
        notes=[
            *_notes(parts, disk if is_measured else 0, disk_free, memory if is_measured else 0, memory_free, is_measured),
            *_undivided(pilot, variants),
            *(_by_one_process(pilot) if is_measured else []),
        ],
    )


@dataclass(frozen=True)
class _Arithmetic:
    """The arithmetic of one comparison, on a machine on which this many bytes are free."""

    pilot: Pilot
    found: PartPilot
    scale: float
    disk_free: int
    memory_free: int
    blocks: PlannedBlocks | None
    is_measured: bool
    refused: Mapping[str, str]

    def part(self, name: str, variants: list[Variant], workload: Workload, limit_s: float) -> PartEstimate:
        """What a comparison takes."""
        part, readings = self.found, max(1.0, self.found.readings.at(self.scale))
        shown = [self._variant(variant, workload, readings, limit_s) for variant in variants]
        data = self._data_between_blocks(variants, shown)
        planned = plan_blocks(
            [variant for variant in variants if variant.id not in self.refused], workload.repetitions, self.blocks
        )
        shown = [
            estimate.model_copy(update={"loads": _loads(variant, data, planned)})
            for variant, estimate in zip(variants, shown, strict=True)
        ]
        known = [variant for variant in shown if variant.load_s is not None and variant.refused is None]
        prepare_s = part.generate_s.at(readings) + sum(
            found.prepare_s.at(readings)
            for variant in variants
            if variant.id not in self.refused and (found := found_of(variant, part))
        )
        reference_s = REFERENCE_SAMPLE * sum(cost.at(readings) for cost in part.reference_s.values())
        used_s = [variant.loads * (variant.load_s or 0.0) + variant.repetitions * (variant.run_s or 0.0) for variant in known]
        if any(part.comparison.operations.operation[operation.partition(".")[0]].writes for operation in part.mix):
            used_s += [
                EMBEDDED_READ_BACK_S if variant.place == "embedded" else READ_BACK_S for variant in known if variant.repetitions
            ]
        return PartEstimate(
            name=name,
            data=part.comparison.dataset.name,
            readings=round(readings),
            variants=shown,
            order=_order(planned, self.blocks),
            data_between_blocks=data,
            prepare_s=prepare_s if known else None,
            reference_s=reference_s if known else None,
            time_s=prepare_s + reference_s + sum(used_s) if known else None,
        )

    def _data_between_blocks(self, variants: list[Variant], shown: list[VariantEstimate]) -> DataBetweenBlocks | None:
        """Where data lie between blocks, by what the pilot found of those that fit alone."""
        if self.blocks is None or not self.is_measured:
            return None
        here = [
            estimate.disk_bytes or 0
            for variant, estimate in zip(variants, shown, strict=True)
            if lies_here(variant) and estimate.refused is None
        ]
        return decided(sum(here), self.blocks, self.disk_free - _prepared_bytes(self.found, self.scale), "pilot")

    def _variant(self, variant: Variant, workload: Workload, readings: float, limit_s: float) -> VariantEstimate:
        part = self.found
        found, own = found_of(variant, part), part.variants.get(variant.id)
        repetitions = 0 if variant.only_loads else workload.repetitions
        cost = run_cost(variant, found, part, workload, readings) if found and not variant.only_loads else None
        size = round(found.size_bytes.at(readings)) if found and found.size_bytes else None
        in_memory = variant.target.database.in_memory
        disk, memory = (None, size and round(size * MEMORY_FACTOR)) if in_memory else (size, None)
        rows = round(found.rows.at(readings)) if found else None
        disk_free = self.disk_free - (self.blocks.disk_reserve_bytes if self.blocks else 0)
        return VariantEstimate(
            variant=variant.id,
            place=place_of(variant.target),
            rows=rows,
            operations=None if variant.only_loads else variant.workload(workload.model_copy(update={"mix": part.mix})).operations,
            repetitions=repetitions,
            expected=cost.expected(limit_s) if cost else None,
            load_s=found.load_s.at(readings) if found else None,
            run_s=cost.at_most(limit_s) if cost else None,
            disk_bytes=disk,
            memory_bytes=memory,
            measured_as=part.measured_as.get(variant.id),
            start_s=self.pilot.start_s.get(variant.target.server),
            server_bytes=self.pilot.server_bytes.get(variant.target.server),
            refused=self.refused.get(variant.id)
            or (own.failed if own else None)
            or why_too_large(rows, disk, memory, disk_free, self.memory_free),
        )


def _loads(variant: Variant, data: DataBetweenBlocks | None, planned: list[PlannedBlock]) -> int:
    """How often a variant is loaded: for each of its blocks, where its data do not lie anywhere between them."""
    stays = data is None or (lies_here(variant) and data.choice == "on disk") or variant.target.is_url
    return 1 if stays else sum(variant.id == other.id for block in planned for other in block.variants)


def _order(planned: list[PlannedBlock], blocks: PlannedBlocks | None) -> list[list[str]]:
    """The variants by repetition, or by round of blocks, in the order in which they run."""
    if blocks is None:
        (whole,) = planned
        queried = [variant for variant in whole.variants if not variant.only_loads]
        return [[variant.id for variant in in_turn(queried, repeat)] for repeat in whole.repeats]
    return order_of(planned)


def _starts_s(part: PartEstimate, variants: list[Variant], blocks: PlannedBlocks | None) -> float:
    """What starting servers takes: each once; where variants are measured one at a time, for each block."""
    start_s = {variant.variant: variant.start_s for variant in part.variants if variant.start_s and variant.refused is None}
    if blocks is not None:
        return sum(start_s.get(variant, 0.0) for of_round in part.order for variant in of_round)
    return sum({variant.target.server: start_s[variant.id] for variant in variants if variant.id in start_s}.values())


def _prepared_bytes(part: PartPilot, scale: float) -> int:
    """What lies in the cache, prepared for loading."""
    return round(sum(found.prepared_bytes.at(part.readings.at(scale)) for found in part.variants.values()))


def _needed(parts: list[PartEstimate], pilot: Pilot, scale: float, blocks: PlannedBlocks | None) -> tuple[int, int]:
    """Bytes of disk and memory: each comparison removes its data before the next one loads, prepared data stay in the cache."""
    disks, memories = [0.0], [0.0]
    for part in parts:
        stays = [variant for variant in part.variants if variant.refused is None]
        on_disk = [variant.disk_bytes or 0 for variant in stays]
        in_memory = [variant.memory_bytes or 0 for variant in stays]
        is_loaded_again = part.data_between_blocks is not None and part.data_between_blocks.choice == "loaded again"
        disks.append(DISK_FACTOR * (max(on_disk, default=0) if is_loaded_again else sum(on_disk)))
        if blocks is None:
            memories.append(sum(in_memory) + sum(pilot.server_bytes.values()))
        else:
            memories.append(max(((variant.memory_bytes or 0) + (variant.server_bytes or 0) for variant in stays), default=0))
    prepared = sum(_prepared_bytes(of_part, scale) for of_part in pilot.parts.values())
    return round(max(disks) + prepared), round(max(memories))


def _undivided(pilot: Pilot, variants: Mapping[str, Sequence[Variant]]) -> list[str]:
    """Which variants load generators do not load together, and why not."""
    whys = [
        why_undivided_by(part.comparison.generators, variant) for name, part in pilot.parts.items() for variant in variants[name]
    ]
    return list(dict.fromkeys(why for why in whys if why is not None))


def _by_one_process(pilot: Pilot) -> list[str]:
    """Why load generators do not share the pilot, where there are several."""
    count = max((part.comparison.generators.count for part in pilot.parts.values()), default=1)
    if count == 1:
        return []
    why = "because they take longer to start than so few rows take to load; loading may take less time than is said here"
    return [f"the pilot is loaded and measured by one process, not by {count} load generators, {why}"]


def _notes(parts: list[PartEstimate], disk: int, disk_free: int, memory: int, memory_free: int, is_measured: bool) -> list[str]:
    notes = []
    variants = [variant for part in parts for variant in part.variants]
    if any(variant.place == "yours" and variant.load_s is None for variant in variants):
        notes.append("servers of yours are not touched by a dry run: what they take is not in the time, nor in disk and memory")
    if any(variant.measured_as for variant in variants):
        notes.append(
            "some variants were not measured themselves: their costs are those of another with the same server and schema"
        )
    for what, needed, free in (("disk", disk, disk_free), ("memory", memory, memory_free)):
        if needed > free:
            whose = (
                "all variants together"
                if not any(part.data_between_blocks for part in parts)
                else "the data and what is prepared of them"
            )
            notes.append(
                f"{whose} need about {needed / 1e9:,.1f} GB of {what}, and {free / 1e9:,.1f} GB are free: name fewer targets, "
                "or use a smaller --scale"
            )
    notes += [
        f"{f'{part.name}: ' if len(parts) > 1 else ''}one at a time; {described_data(part.data_between_blocks)}"
        for part in parts
        if part.data_between_blocks is not None
    ]
    if not is_measured:
        notes.append("there was no pilot: what is not known without one is left out")
    return notes
