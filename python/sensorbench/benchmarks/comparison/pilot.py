"""The pilot: two short prefixes of the data are loaded and asked for moments, so that it is known what the whole would take.

What it loads lies at servers that the lab starts for it, or in a folder that goes with it. Servers of users are not touched, unless what
follows loads there anyway: then in a namespace of its own, which is removed.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from sensorbench.analysis.extrapolation import Growth, Line
from sensorbench.benchmarks.comparison.measure import writes_anything
from sensorbench.errors import CancelledError, EngineError, FailedError, UsageError, message_of
from sensorbench.progress import ProgressReporter
from sensorbench.results.manifest import MEASURE, now
from sensorbench.results.ownership import Claim, Owner, new_id
from sensorbench.runner import (
    DATA_FOLDER,
    Comparison,
    ConnectedComparison,
    Servers,
    Variant,
    Workload,
    build_plan,
    connect,
    is_of_registers,
    load_variant,
    pilot_folder,
    place_of,
    prepare_tables,
    run_to_end,
    running_servers,
    validated,
    with_keys_of_run,
)
from sensorbench.verification import reference_table

# The comparisons of a benchmark at a scale, by name, with their data below a folder. Raises UsageError where the scale is too small for them.
ComparisonsAt = Callable[[float, Path], dict[str, Comparison]]

# Readings of the two prefixes; the second has at least so many times as many as the first, if there are so many.
READINGS, TIMES = (10_000, 50_000), 3.0
# Of what is measured on one prefix alone, an operation is taken to grow by this power of the readings: between a look-up and a scan.
ASSUMED_EXPONENT = 0.5
# With what is looked for a scale that has so many readings; where it is too small, the next is this many times as large.
FIRST_SCALE, SCALE_STEP = 0.0005, 2.0
# Whose data are too small for them even so are wrong for another reason.
LAST_SCALE = 0.05
# A run of the pilot asks at most so many operations for at most so long, and at least a round of them.
OPERATIONS, RUN_S = 200, 2.0
# An operation of the pilot may take so long: on so little data, one that takes longer is hopeless.
TIMEOUT = "20s"
# What namespaces at servers of users are called after.
PILOT = "pilot"
# Of each kind of operation so many reference answers are computed.
REFERENCES = 2


@dataclass(frozen=True)
class VariantPilot:
    """What was found of one variant, by readings: `operations` has the cost of each kind (s), of which `parallel` times the sum is what a run
    takes. `failed` says why there is nothing.
    """

    load_s: Line
    size_bytes: Line | None
    rows: Line
    prepare_s: Line
    prepared_bytes: Line
    operations: dict[str, Growth]
    parallel: float
    failed: str | None = None


@dataclass(frozen=True)
class PartPilot:
    """What was found of one comparison. `mix` has its operations, each range of one by itself. `variants` has those that were measured; `measured_as`
    who stands for the others.
    """

    comparison: Comparison
    readings: Line
    generate_s: Line
    reference_s: dict[str, Growth]
    mix: dict[str, float]
    variants: dict[str, VariantPilot]
    measured_as: dict[str, str]


@dataclass(frozen=True)
class Pilot:
    """What was found of all comparisons. `smallest_scale` is one that they can be made at; `start_s` and `server_bytes` are how long servers
    took to start and the memory that they have, by the server that targets name.
    """

    parts: dict[str, PartPilot]
    smallest_scale: float
    start_s: dict[str, float]
    server_bytes: dict[str, int]
    took_s: float


class _Costs(NamedTuple):
    """One prefix of one variant. Of `load_s`, `create_s` is what does not depend on the rows: creating tables, and counting them."""

    readings: int
    load_s: float
    create_s: float
    size_bytes: float | None
    rows: int
    prepare_s: float
    prepared_bytes: int
    run: "_ShortRun"


class _ShortRun(NamedTuple):
    """What an operation of each kind takes (s); how many times the sum of them is what a run takes, which is less where several are in flight; and
    the numbers k of some of each kind, by its number.
    """

    operations: dict[str, float]
    parallel: float
    requests: dict[int, list[int]]


@dataclass
class _Size:
    """The comparisons at one of both scales."""

    scale: float
    comparisons: dict[str, Comparison]
    opened_s: float
    mixes: dict[str, dict[str, float]] = field(default_factory=dict)
    costs: dict[tuple[str, str], _Costs] = field(default_factory=dict)
    reference_s: dict[str, dict[str, float]] = field(default_factory=dict)


def run_pilot(
    comparisons_at: ComparisonsAt,
    scale: float,
    allowed_s: float,
    reporter: ProgressReporter,
    *,
    measures: bool = True,
    touches_users: bool = False,
) -> Pilot:
    """Measures comparisons on prefixes of their data.

    Args:
        comparisons_at: makes them.
        scale: that they may have at most.
        allowed_s: after about so long, variants that were not measured yet are taken to be as others with the same server and schema.
        reporter: told what is going on.
        measures: whether anything is loaded and asked; else only the readings are known.
        touches_users: whether servers of users are measured, too.

    Raises:
        UsageError: where comparisons make no sense at any scale.

    """
    start_s = time.monotonic()
    quiet = ProgressReporter(quiet=True)
    with pilot_folder() as folder:
        small, large = _sizes(_movable(comparisons_at, touches_users=touches_users), scale, folder)
        if not measures:
            small.reference_s = large.reference_s = {name: {} for name in large.comparisons}
            parts = {name: _part(name, small, large, {}, {}) for name in large.comparisons}
            return Pilot(parts, small.scale, {}, {}, time.monotonic() - start_s)
        variants = [variant for comparison in large.comparisons.values() for variant in comparison.variants]
        pin = all(comparison.workload.pin for comparison in large.comparisons.values())
        with running_servers(variants, reporter, pin=pin) as servers:
            servers_s = sum(servers.start_s.values())
            owner = Owner.of(new_id(), folder)
            failed, left_out = _measure(small, large, servers, owner, start_s + servers_s + allowed_s, reporter, quiet)
            server_bytes = {server: _memory(Servers({server: instance})) for server, instance in servers.instances.items()}
    parts = {name: _part(name, small, large, failed, left_out) for name in large.comparisons}
    return Pilot(parts, small.scale, dict(servers.start_s), server_bytes, time.monotonic() - start_s)


def _memory(servers: Servers) -> int:
    """Bytes that the processes of servers have resident."""
    return sum(process.memory_info().rss for process in servers.processes().values() if process.is_running())


def _sizes(comparisons_at: ComparisonsAt, scale: float, folder: Path) -> tuple[_Size, _Size]:
    """The comparisons at two scales, the second of which has some times as many readings, if there are so many."""
    first = _opened(comparisons_at, min(scale, FIRST_SCALE), scale, folder)
    per_scale = max(readings_in(comparison) for comparison in first.comparisons.values()) / first.scale
    wanted = [min(scale, max(first.scale, _rounded(readings / per_scale))) for readings in READINGS]
    small = first if wanted[0] == first.scale else _opened(comparisons_at, wanted[0], scale, folder)
    large_scale = max(wanted[1], min(scale, small.scale * TIMES))
    return small, small if large_scale == small.scale else _opened(comparisons_at, large_scale, scale, folder)


def _opened(comparisons_at: ComparisonsAt, scale: float, limit: float, folder: Path) -> _Size:
    """The comparisons at a scale, or at the next larger one that is not too small for them. Raises UsageError where none is."""
    while True:
        start_s = time.monotonic()
        try:
            comparisons = comparisons_at(scale, folder)
            mixes = {name: _mix(comparison) for name, comparison in comparisons.items()}
            return _Size(scale, comparisons, time.monotonic() - start_s, mixes)
        except UsageError:
            if scale >= min(limit, LAST_SCALE):
                raise
            scale = min(limit, _rounded(scale * SCALE_STEP))


def _mix(comparison: Comparison) -> dict[str, float]:
    """The operations, each range of one by itself. Raises UsageError where the data are too small for them."""
    sound = validated(comparison)
    with sound.workbench:
        return sound.comparison.workload.mix


def _rounded(scale: float) -> float:
    """To one digit, so that generated prefixes are found in the cache again."""
    return min(1.0, float(f"{scale:.0e}"))


def readings_in(comparison: Comparison) -> int:
    """Readings of its dataset."""
    return comparison.dataset.describe().readings


def _movable(comparisons_at: ComparisonsAt, *, touches_users: bool) -> ComparisonsAt:
    """Makes the same comparisons with variants where a pilot may load: without those at servers of users, unless these are touched."""
    wanted = {"embedded", "lab", *(["yours"] if touches_users else [])}

    def moved_at(scale: float, folder: Path) -> dict[str, Comparison]:
        return {
            name: replace(
                comparison,
                variants=[_moved(variant, folder) for variant in comparison.variants if place_of(variant.target) in wanted],
            )
            for name, comparison in comparisons_at(scale, folder).items()
        }

    return moved_at


def _moved(variant: Variant, folder: Path) -> Variant:
    """An embedded variant below the folder, wherever it is to be; one at a server of a user's in a namespace of the pilot's."""
    if place_of(variant.target) == "yours":
        return variant.in_namespace(PILOT)
    if variant.target.place != "url":
        return variant
    path = folder / DATA_FOLDER / variant.id
    _, question_mark, options = variant.target.text.partition("?")
    url = f"{variant.target.database.name}:{path}{question_mark}{options}"
    return replace(variant, url=url, temporary=path, target=replace(variant.target, place="folder"))


def _kind_of(variant: Variant) -> tuple[str, str, bool]:
    """Variants that are alike but for parameters and options."""
    return variant.target.server, variant.schema.name, variant.only_loads


def _measure(
    small: _Size,
    large: _Size,
    servers: Servers,
    owner: Owner,
    until_s: float,
    reporter: ProgressReporter,
    quiet: ProgressReporter,
) -> tuple[dict[tuple[str, str], str], dict[tuple[str, str], str]]:
    """Measures variants, first one of each kind. Returns why variants failed, and who stands for those that were not measured."""
    failed: dict[tuple[str, str], str] = {}
    left_out: dict[tuple[str, str], str] = {}
    sizes = [small] if small is large else [small, large]
    for name in large.comparisons:
        with _connected(large, name, servers) as at_large, _connected(small, name, servers) as at_small:
            by_size = list(zip(sizes, [at_large] if small is large else [at_small, at_large], strict=True))
            first_of: dict[tuple[str, str, bool], str] = {}
            order = [
                variant
                for variant in at_large.comparison.variants
                if first_of.setdefault(_kind_of(variant), variant.id) == variant.id
            ]
            order += [variant for variant in at_large.comparison.variants if variant not in order]
            for number, variant in enumerate(order):
                stand_in = first_of[_kind_of(variant)]
                if variant.id != stand_in and time.monotonic() > until_s:
                    left_out[name, variant.id] = stand_in
                    continue
                with reporter.task(f"pilot: {name} {variant.id}".replace("  ", " ")) as task:
                    # Who is slow has no second prefix: others need the time, too.
                    share_s = (until_s - time.monotonic()) / (len(order) - number)
                    try:
                        for size, connected in by_size:
                            start_s = time.monotonic()
                            size.costs[name, variant.id] = costs = _costs(connected, variant.id, owner, quiet)
                            if (time.monotonic() - start_s) * (1.0 + TIMES) > share_s:
                                break
                        task.end(_described(costs))
                    except (EngineError, FailedError) as error:
                        if isinstance(error, CancelledError):
                            raise
                        failed[name, variant.id] = message_of(error)
                        task.end(f"failed: {message_of(error)}")
            whole = {variant.id for variant in at_small.comparison.variants if variant.is_whole}
            requested = [
                costs.run.requests
                for (part, variant_id), costs in small.costs.items()
                if part == name and variant_id in whole and costs.run.requests
            ]
            for size, connected in by_size:
                size.reference_s[name] = _reference_s(connected, requested[0] if requested else {})
    return failed, left_out


@contextmanager
def _connected(size: _Size, name: str, servers: Servers) -> Iterator[ConnectedComparison]:
    sound = validated(size.comparisons[name])
    with sound.workbench:
        yield connect(sound, servers)


def _described(costs: _Costs) -> str:
    by_cost = sorted(costs.run.operations.items(), key=lambda item: -item[1])
    slowest = f", {by_cost[0][0]} {by_cost[0][1] * 1e3:,.1f} ms" if by_cost else ""
    return f"{costs.readings:,} readings in {costs.load_s:.1f} s{slowest}"


def _costs(connected: ConnectedComparison, variant_id: str, owner: Owner, quiet: ProgressReporter) -> _Costs:
    """Loads a prefix for a variant, asks it, and removes it."""
    comparison = connected.comparison
    variant = next(variant for variant in comparison.variants if variant.id == variant_id)
    target, readings = connected.targets[variant.id], readings_in(comparison)
    tables = prepare_tables(comparison.dataset, variant.schema, connected.columns[variant.id], connected.workbench, quiet)
    if variant.temporary is not None:
        variant.temporary.parent.mkdir(parents=True, exist_ok=True)
    start_s = time.monotonic()
    try:
        load = load_variant(
            variant,
            target,
            connected.schemas[variant.id],
            tables,
            readings,
            "pilot",
            claim=Claim(owner, "create"),
            reporter=quiet,
            with_snapshot=comparison.snapshots,
        )
        load_s = time.monotonic() - start_s
        run = _ShortRun({}, 1.0, {}) if variant.only_loads else _run_shortly(connected, variant)
    finally:
        target.remove(owner=owner.to_json())
    prepared_bytes = sum(table.bytes for table in tables)
    if (loader := load.get("loader")) is not None:
        prepared_bytes += loader["file_bytes"]
    size = load["size"]["total_bytes"]
    prepare_s = sum(table.prepare_s for table in tables)
    create_s = max(0.0, load_s - load["load_s"] - load["settle_s"])
    return _Costs(readings, load_s, create_s, size, load["rows"], prepare_s, prepared_bytes, run)


def _run_shortly(connected: ConnectedComparison, variant: Variant) -> _ShortRun:
    """Asks a variant for moments."""
    comparison = connected.comparison
    short = _short(variant.workload(comparison.workload))
    parameters = with_keys_of_run(connected.parameters, comparison.operations, now(), 1)
    plan = build_plan(comparison.operations, variant.schema, parameters, short, 0)
    logged: list[pa.RecordBatch] = []
    _, totals = run_to_end(
        connected.targets[variant.id], plan, parameters.readers(), lambda _, segment: logged.append(segment["operations"])
    )
    phase = next(phase for phase in totals.phases if phase.name == MEASURE)
    busy_s = ended = 0.0
    costs: dict[str, float] = {}
    for name, operation in phase.operations.items():
        served, counts = operation["service_ns"], operation["counts"]
        if served and served["count"]:
            costs[name] = served["mean"] / 1e9
            busy_s, ended = busy_s + served["mean"] * served["count"] / 1e9, ended + served["count"]
        elif counts["error"]:
            message = next((error["first_message"] for error in totals.errors if error["operation"] == name), "it failed")
            raise FailedError(f"{name}: {message}")
    if not ended:
        raise FailedError(f"no operation ended within {TIMEOUT}")
    # What was not reached within the time is taken to be as slow as the slowest that was.
    costs = {name: costs.get(name, max(costs.values())) for name in phase.operations}
    requests: dict[int, list[int]] = {}
    for batch in logged:
        for number, k in zip(batch["operation"].to_pylist(), batch["k"].to_pylist(), strict=True):
            requests.setdefault(number, []).append(k)
    return _ShortRun(costs, (phase.length_s or busy_s) / busy_s if busy_s else 1.0, requests)


def _short(workload: Workload) -> Workload:
    """The workload for moments; where its operations come in turn, at least a round of them."""
    round_of = math.ceil(sum(workload.mix.values())) if workload.order == "in turn" else 1
    operations = max(round_of, min(OPERATIONS, workload.operations or OPERATIONS))
    changes = {"operations": operations, "duration": f"{RUN_S:g}s", "warmup": "0", "repetitions": 1, "timeout": TIMEOUT}
    return workload.model_copy(update=changes)


def _reference_s(connected: ConnectedComparison, requested: dict[int, list[int]]) -> dict[str, float]:
    """What a reference answer of each operation that reads takes (s)."""
    comparison = connected.comparison
    if comparison.workload.answers != "all" or not requested or writes_anything(comparison.operations, connected.names):
        return {}
    schema = next(variant.schema for variant in comparison.variants if variant.is_whole)
    plan = build_plan(comparison.operations, schema, connected.parameters, _short(comparison.workload), 0)
    measured = next(number for number, phase in enumerate(plan["phases"]) if phase["name"] == MEASURE)
    took: dict[str, float] = {}
    for number, requests in requested.items():
        name = connected.names[number]
        if comparison.operations.operation[name].writes is None and not is_of_registers(name):
            start_s = time.monotonic()
            few = {number: requests[:REFERENCES]}
            reference_table(
                connected.workbench, comparison.operations, connected.names, plan, connected.parameters, measured, few
            )
            took[name] = (time.monotonic() - start_s) / len(few[number])
    return took


def _part(
    name: str, small: _Size, large: _Size, failed: dict[tuple[str, str], str], left_out: dict[tuple[str, str], str]
) -> PartPilot:
    comparison = large.comparisons[name]
    at_small, at_large = (float(readings_in(size.comparisons[name])) for size in (small, large))
    readings = Line.through((small.scale, at_small), (large.scale, at_large))
    opened = Line.through((at_small, small.opened_s), (at_large, large.opened_s))
    reference = {
        operation: Growth.through((at_small, small.reference_s[name].get(operation, 0.0)), (at_large, took_s))
        for operation, took_s in large.reference_s[name].items()
    }
    variants = {
        variant.id: _variant(small.costs[name, variant.id], large.costs.get((name, variant.id)))
        for variant in comparison.variants
        if (name, variant.id) in small.costs and (name, variant.id) not in failed
    }
    nothing = Line(0.0, 0.0)
    for (part, variant), why in failed.items():
        if part == name:
            variants[variant] = VariantPilot(nothing, None, nothing, nothing, nothing, {}, 1.0, why)
    measured_as = {variant: stand_in for (part, variant), stand_in in left_out.items() if part == name}
    return PartPilot(comparison, readings, opened, reference, large.mixes[name], variants, measured_as)


def _variant(small: _Costs, large: _Costs | None) -> VariantPilot:
    """What both prefixes say, or the first alone where the second was too long for it."""
    last = small if large is None else large

    def line(of: Callable[[_Costs], float]) -> Line:
        return Line.through((0.0, 0.0) if large is None else (small.readings, of(small)), (last.readings, of(last)))

    def growth(name: str, cost_s: float) -> Growth:
        if large is None:
            return Growth(cost_s, small.readings, ASSUMED_EXPONENT)
        return Growth.through((small.readings, small.run.operations.get(name, 0.0)), (large.readings, cost_s))

    return VariantPilot(
        load_s=line(lambda costs: costs.load_s)
        if large
        else Line(small.create_s, (small.load_s - small.create_s) / small.readings),
        size_bytes=None if last.size_bytes is None else line(lambda costs: costs.size_bytes or 0.0),
        rows=line(lambda costs: costs.rows),
        prepare_s=line(lambda costs: costs.prepare_s),
        prepared_bytes=line(lambda costs: costs.prepared_bytes),
        operations={name: growth(name, cost_s) for name, cost_s in last.run.operations.items()},
        parallel=last.run.parallel,
    )
