"""What comparisons would take at a scale, by a pilot: the arithmetic alone, so that it can be done for many scales."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from sensorbench.benchmarks.comparison.pilot import PartPilot, Pilot, VariantPilot
from sensorbench.results.estimate import Estimate, PartEstimate, Room, VariantEstimate
from sensorbench.runner import Variant, Workload, free_room, place_of, seconds, seconds_or_none
from sensorbench.verification import REFERENCE_SAMPLE

# What a run takes besides its operations: it is written down, and its answers are hashed.
RUN_OVERHEAD_S = 0.6
# What the summary, the report and the end of servers take.
END_S = 5.0
# Data lie on the disk twice for moments, where a database compacts them.
DISK_FACTOR = 1.5
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
        """How many operations end within a time; None where all of them do."""
        if self.operations is None or self.length_s <= limit_s or self.operation_s <= 0.0:
            return None
        return max(1, min(self.operations, int(limit_s / self.operation_s)))


def run_cost(variant: Variant, found: VariantPilot, part: PartPilot, workload: Workload, readings: float) -> RunCost:
    """What a run of a variant takes on so many readings."""
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
    """What the pilot found of a variant, or of the one that stands for it; None where it found nothing."""
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

    """
    disk_free, memory_free = free_room(out)
    parts = [
        _part(
            name,
            pilot.parts[name],
            variants[name],
            workloads[name],
            scale,
            max_variant_time_s,
            disk_free,
            memory_free,
            refused.get(name, {}),
        )
        for name in pilot.parts
    ]
    starts_s = sum(pilot.start_s for name in pilot.parts if any(place_of(variant.target) == "lab" for variant in variants[name]))
    disk, memory = _needed(parts, pilot, scale)
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
        notes=_notes(parts, disk if is_measured else 0, disk_free, memory if is_measured else 0, memory_free, is_measured),
    )


def _part(
    name: str,
    part: PartPilot,
    variants: list[Variant],
    workload: Workload,
    scale: float,
    limit_s: float,
    disk_free: int,
    memory_free: int,
    refused: Mapping[str, str],
) -> PartEstimate:
    readings = max(1.0, part.readings.at(scale))
    shown = [
        _variant(variant, part, workload, readings, limit_s, disk_free, memory_free, refused.get(variant.id))
        for variant in variants
    ]
    known = [variant for variant in shown if variant.load_s is not None and variant.refused is None]
    prepare_s = part.generate_s.at(readings) + sum(
        found.prepare_s.at(readings) for variant in variants if variant.id not in refused and (found := found_of(variant, part))
    )
    reference_s = REFERENCE_SAMPLE * sum(cost.at(readings) for cost in part.reference_s.values())
    queried = [variant.id for variant in variants if not variant.only_loads and variant.id not in refused]
    used_s = [(variant.load_s or 0.0) + variant.repetitions * (variant.run_s or 0.0) for variant in known]
    return PartEstimate(
        name=name,
        data=part.comparison.dataset.name,
        readings=round(readings),
        variants=shown,
        order=[queried[:: 1 if repetition % 2 == 0 else -1] for repetition in range(workload.repetitions)],
        prepare_s=prepare_s if known else None,
        reference_s=reference_s if known else None,
        time_s=prepare_s + reference_s + sum(used_s) if known else None,
    )


def _variant(
    variant: Variant,
    part: PartPilot,
    workload: Workload,
    readings: float,
    limit_s: float,
    disk_free: int,
    memory_free: int,
    refused: str | None,
) -> VariantEstimate:
    found = found_of(variant, part)
    own = part.variants.get(variant.id)
    repetitions = 0 if variant.only_loads else workload.repetitions
    cost = run_cost(variant, found, part, workload, readings) if found and not variant.only_loads else None
    size = round(found.size_bytes.at(readings)) if found and found.size_bytes else None
    in_memory = variant.target.database.in_memory
    disk, memory = (None, size and round(size * MEMORY_FACTOR)) if in_memory else (size, None)
    rows = round(found.rows.at(readings)) if found else None
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
        refused=refused or (own.failed if own else None) or _why_refused(rows, disk, memory, disk_free, memory_free),
    )


def _why_refused(rows: int | None, disk: int | None, memory: int | None, disk_free: int, memory_free: int) -> str | None:
    for what, needed, free in (("memory", memory, memory_free), ("disk", disk and disk * DISK_FACTOR, disk_free)):
        if needed is not None and needed > free:
            arithmetic = f" ({rows:,} rows of {needed / rows:,.0f} bytes)" if rows else ""
            return f"needs about {needed / 1e9:,.1f} GB of {what}{arithmetic}, and {free / 1e9:,.1f} GB are free"
    return None


def _needed(parts: list[PartEstimate], pilot: Pilot, scale: float) -> tuple[int, int]:
    """Bytes of disk and memory: each comparison removes its data before the next one loads, prepared data stay in the cache."""
    disks, memories = [0.0], [0.0]
    for part in parts:
        stays = [variant for variant in part.variants if variant.refused is None]
        disks.append(DISK_FACTOR * sum(variant.disk_bytes or 0 for variant in stays))
        memories.append(sum(variant.memory_bytes or 0 for variant in stays))
    prepared = sum(
        found.prepared_bytes.at(of_part.readings.at(scale))
        for of_part in pilot.parts.values()
        for found in of_part.variants.values()
    )
    return round(max(disks) + prepared), round(max(memories) + pilot.server_bytes)


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
            notes.append(
                f"all variants together need about {needed / 1e9:,.1f} GB of {what}, and {free / 1e9:,.1f} GB are free: name fewer targets, "
                "or use a smaller --scale"
            )
    if not is_measured:
        notes.append("there was no pilot: what is not known without one is left out")
    return notes
