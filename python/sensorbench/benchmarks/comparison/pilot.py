"""The pilot: two short prefixes of the data are loaded and asked for moments, so that it is known what the whole would take.

What it loads lies at servers that the lab starts for it, or in a folder that goes with it. Servers of users are not touched, unless what
follows loads there anyway: then in a namespace of its own, which is removed.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from sensorbench import lab
from sensorbench.analysis.extrapolation import Growth, Line
from sensorbench.benchmarks.comparison.measure import writes_anything
from sensorbench.benchmarks.comparison.piloted import PartPilot, Pilot, PrefixCosts, ShortRun, VariantPilot
from sensorbench.errors import CancelledError, EngineError, FailedError, UsageError, message_of
from sensorbench.progress import ProgressReporter
from sensorbench.results.manifest import MEASURE, now
from sensorbench.results.ownership import Claim, Owner, new_id
from sensorbench.runner import (
    DATA_FOLDER,
    Comparison,
    ConnectedComparison,
    LoadOrder,
    Servers,
    ValidatedComparison,
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

# The comparisons of a benchmark at a scale, by name, with their data below a folder. Raises UsageError if the scale is too small for them.
ComparisonsAt = Callable[[float, Path], dict[str, Comparison]]
# Whether what was found of the first comparisons leaves no time for further ones.
IsFull = Callable[[Pilot], bool]

# Readings of the two prefixes; the second has at least this many times as many as the first, if there are this many.
READINGS, TIMES = (10_000, 50_000), 3.0
# With what is looked for a scale that has this many readings; where it is too small, the next is this many times as large.
FIRST_SCALE, SCALE_STEP = 0.0005, 2.0
# Whose data are too small for them even so are wrong for another reason.
LAST_SCALE = 0.05
# A run of the pilot asks at most this many operations for at most this long, and at least a round of them.
OPERATIONS, RUN_S = 200, 2.0
# An operation of the pilot may take this long: on so little data, one that takes longer is hopeless.
TIMEOUT = "20s"
# A server is warm when a load takes more than this share of the one before; after this many it has to be.
WARM_RATIO, MAX_WARM_UPS = 0.8, 6
# What namespaces at servers of users are called after.
PILOT = "pilot"
# Of each kind of operation this many reference answers are computed.
REFERENCES = 2


@dataclass
class _Size:
    """The comparisons at one of both scales."""

    scale: float
    comparisons: dict[str, Comparison]
    opened_s: float
    mixes: dict[str, dict[str, float]] = field(default_factory=dict)
    costs: dict[tuple[str, str], PrefixCosts] = field(default_factory=dict)
    reference_s: dict[str, dict[str, float]] = field(default_factory=dict)


def run_pilot(
    comparisons_at: ComparisonsAt,
    scale: float,
    allowed_s: float,
    reporter: ProgressReporter,
    *,
    measures: bool = True,
    touches_users: bool = False,
    is_full: IsFull | None = None,
) -> Pilot:
    """Measures comparisons on prefixes of their data, the first ones first.

    Args:
        comparisons_at: makes them.
        scale: that they may have at most.
        allowed_s: after about this long, besides starting servers, variants that were not measured yet are taken to be as others with the same server
            and schema.
        reporter: reports progress.
        measures: whether anything is loaded and asked; else only the readings are known.
        touches_users: whether servers of users are measured, too.
        is_full: asked whenever all of one comparison more has been measured, with what was found of it and of those before it. The others are
            then left out. If not given, all are measured.

    Raises:
        UsageError: if comparisons make no sense at any scale.

    """
    start_s = time.monotonic()
    with pilot_folder() as folder:
        small, large = _sizes(_movable(comparisons_at, touches_users=touches_users), scale, folder)
        if not measures:
            parts = {name: _part(name, small, large, {}, {}) for name in large.comparisons}
            return Pilot(parts, small.scale, {}, {}, time.monotonic() - start_s)
        pin = all(comparison.workload.pin for comparison in large.comparisons.values())
        with _measuring(small, large, Owner.of(new_id(), folder), reporter) as measuring:
            measuring.measure(allowed_s, is_full, pin=pin)
            measuring.compute_references()
    return replace(measuring.found(), took_s=time.monotonic() - start_s)


def _sizes(comparisons_at: ComparisonsAt, scale: float, folder: Path) -> tuple[_Size, _Size]:
    """The comparisons at two scales, the second of which has some times as many readings, if there are this many."""
    first = _opened(comparisons_at, min(scale, FIRST_SCALE), scale, folder)
    per_scale = max(readings_in(comparison) for comparison in first.comparisons.values()) / first.scale
    wanted = [min(scale, max(first.scale, _rounded(readings / per_scale))) for readings in READINGS]
    small = first if wanted[0] == first.scale else _opened(comparisons_at, wanted[0], scale, folder)
    large_scale = max(wanted[1], min(scale, small.scale * TIMES))
    return small, small if large_scale == small.scale else _opened(comparisons_at, large_scale, scale, folder)


def _opened(comparisons_at: ComparisonsAt, scale: float, limit: float, folder: Path) -> _Size:
    """The comparisons at a scale, or at the next larger one that is not too small for them. Raises UsageError if none is."""
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
    """The operations, each range of one by itself. Raises UsageError if the data are too small for them."""
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


@contextmanager
def _measuring(small: _Size, large: _Size, owner: Owner, reporter: ProgressReporter) -> Iterator["_Measuring"]:
    """Who measures, with the data of both sizes at hand."""
    sizes = [small] if small is large else [small, large]
    with ExitStack() as stack:
        # What follows reaches hosts for itself: a second process on each would take CPU time from what is measured.
        stack.callback(lab.disconnect)
        sound = [{name: validated(comparison) for name, comparison in size.comparisons.items()} for size in sizes]
        for of_size in sound:
            for comparison in of_size.values():
                stack.enter_context(comparison.workbench)
        yield _Measuring(sizes, sound, owner, reporter)


@dataclass
class _Measuring:
    """Measures variants, one server after the other, so that no other server takes anything from it. Of each kind one is measured, of the others
    as many as there is time for.

    By comparison and variant, `failed` has why one could not be measured, and `left_out` who stands for it. By comparison, `unmeasured` has how many
    kinds still are to be measured.
    """

    sizes: list[_Size]
    sound: list[dict[str, ValidatedComparison]]
    owner: Owner
    reporter: ProgressReporter
    failed: dict[tuple[str, str], str] = field(default_factory=dict)
    left_out: dict[tuple[str, str], str] = field(default_factory=dict)
    start_s: dict[str, float] = field(default_factory=dict)
    server_bytes: dict[str, int] = field(default_factory=dict)
    unmeasured: dict[str, int] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    since_s: float = field(default_factory=time.monotonic)

    def found(self) -> Pilot:
        """What was found, of all that are not skipped."""
        small, large = self.sizes[0], self.sizes[-1]
        measured = [name for name in large.comparisons if name not in self.skipped]
        parts = {name: _part(name, small, large, self.failed, self.left_out) for name in measured}
        return Pilot(parts, small.scale, self.start_s, self.server_bytes, time.monotonic() - self.since_s, self.skipped)

    def _look(self, is_full: IsFull) -> None:
        """Skips what is not measured yet, where what is leaves no time for it."""
        names = list(self.unmeasured)
        measured = next((number for number, name in enumerate(names) if self.unmeasured[name]), len(names))
        if not 0 < measured < len(names):
            return
        found = self.found()
        first = {name: found.parts[name] for name in names[:measured]}
        if is_full(replace(found, parts=first, skipped=names[measured:])):
            self.skipped = names[measured:]

    def measure(self, allowed_s: float, is_full: IsFull | None, *, pin: bool) -> None:
        """Measures all variants, which takes about this long besides starting servers."""
        kinds: dict[tuple[str, tuple[str, str, bool]], str] = {}
        groups: dict[str, list[tuple[str, Variant, str]]] = {}
        for name, comparison in self.sizes[-1].comparisons.items():
            for variant in comparison.variants:
                stand_in = kinds.setdefault((name, _kind_of(variant)), variant.id)
                groups.setdefault(variant.target.server, []).append((name, variant, stand_in))
        self.unmeasured = {name: sum(part == name for part, _ in kinds) for name in self.sizes[-1].comparisons}
        left, until_s = len(kinds), time.monotonic() + allowed_s
        for of_server in groups.values():
            group = [(name, variant, stand_in) for name, variant, stand_in in of_server if name not in self.skipped]
            if not group:
                continue
            of_group = sum(variant.id == stand_in for _, variant, stand_in in group)
            with ExitStack() as stack:
                try:
                    servers = stack.enter_context(running_servers([variant for _, variant, _ in group], self.reporter, pin=pin))
                except FailedError as error:
                    # The study continues without it, and says why.
                    self._fail(group, message_of(error))
                else:
                    until_s += sum(servers.start_s.values())
                    now_s = time.monotonic()
                    self._measure_group(group, servers, now_s + max(0.0, until_s - now_s) * of_group / left, is_full)
                    self.start_s |= servers.start_s
                    self.server_bytes |= {
                        server: Servers({server: instance}).memory_bytes() for server, instance in servers.instances.items()
                    }
            left -= of_group

    def _fail(self, group: list[tuple[str, Variant, str]], why: str) -> None:
        """Leaves out the variants at a server that does not start."""
        self.reporter.warn(f"pilot: {group[0][1].target.server} is left out: {why}")
        for name, variant, stand_in in group:
            self.failed[name, variant.id] = why
            self.unmeasured[name] -= variant.id == stand_in

    def _measure_group(
        self, group: list[tuple[str, Variant, str]], servers: Servers, until_s: float, is_full: IsFull | None
    ) -> None:
        """Measures the variants at one server."""
        connected = {name: [connect(sound[name], servers) for sound in self.sound] for name, _, _ in group}
        first = [(name, variant) for name, variant, stand_in in group if variant.id == stand_in]
        others = [(name, variant, stand_in) for name, variant, stand_in in group if variant.id != stand_in]
        if servers.start_s:
            # What a server does for the first time after its start takes several times as long, and would stand for all variants of its kind.
            name, variant = first[0]
            self._warm_up(name, variant.id, connected[name][0])
        for number, (name, variant) in enumerate(first):
            if name in self.skipped:
                continue
            self._measure_one(name, variant.id, connected[name], (until_s - time.monotonic()) / (len(first) - number))
            self.unmeasured[name] -= 1
            if is_full is not None and not self.unmeasured[name]:
                self._look(is_full)
        for number, (name, variant, stand_in) in enumerate(others):
            left_s = until_s - time.monotonic()
            if left_s <= 0.0 or name in self.skipped:
                self.left_out[name, variant.id] = stand_in
            else:
                self._measure_one(name, variant.id, connected[name], left_s / (len(others) - number))

    def _warm_up(self, name: str, variant: str, connected: ConnectedComparison) -> None:
        """Does with the small prefix what will be measured, again as long as it still becomes faster."""
        with self.reporter.task(f"pilot: warming up, {name} {variant}".replace("  ", " ")):
            try:
                before_s = math.inf
                for _ in range(MAX_WARM_UPS):
                    load_s = _costs(connected, variant, self.owner, ProgressReporter(quiet=True)).load_s
                    if load_s > WARM_RATIO * before_s:
                        break
                    before_s = load_s
            except (EngineError, FailedError) as error:
                # It fails again when it is measured, and is reported then.
                if isinstance(error, CancelledError):
                    raise

    def _measure_one(self, name: str, variant: str, by_size: list[ConnectedComparison], share_s: float) -> None:
        """Measures a variant on both prefixes; one that is slow on the first alone, because others need the time, too."""
        more_readings = readings_in(self.sizes[-1].comparisons[name]) / readings_in(self.sizes[0].comparisons[name]) - 1.0
        with self.reporter.task(f"pilot: {name} {variant}".replace("  ", " ")) as task:
            try:
                for size, connected in zip(self.sizes, by_size, strict=True):
                    start_s = time.monotonic()
                    size.costs[name, variant] = costs = _costs(connected, variant, self.owner, ProgressReporter(quiet=True))
                    if 2.0 * (time.monotonic() - start_s) + more_readings * costs.rows_s > share_s:
                        break
                task.end(_described(costs))
            except (EngineError, FailedError) as error:
                if isinstance(error, CancelledError):
                    raise
                self.failed[name, variant] = message_of(error)
                task.end(f"failed: {message_of(error)}")

    def compute_references(self) -> None:
        """Computes some reference answers, to what variants were asked."""
        small = self.sizes[0]
        for name, comparison in small.comparisons.items():
            if name in self.skipped:
                continue
            whole = {variant.id for variant in comparison.variants if variant.is_whole}
            requested = [
                costs.run.requests
                for (part, variant), costs in small.costs.items()
                if part == name and variant in whole and costs.run.requests
            ]
            for size, sound in zip(self.sizes, self.sound, strict=True):
                size.reference_s[name] = _reference_s(connect(sound[name], Servers({})), requested[0] if requested else {})


def _described(costs: PrefixCosts) -> str:
    by_cost = sorted(costs.run.operations.items(), key=lambda item: -item[1])
    slowest = f", {by_cost[0][0]} {by_cost[0][1] * 1e3:,.1f} ms" if by_cost else ""
    return f"{costs.readings:,} readings in {costs.load_s:.1f} s{slowest}"


def _costs(connected: ConnectedComparison, variant_id: str, owner: Owner, quiet: ProgressReporter) -> PrefixCosts:
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
            order=LoadOrder(batches=variant.batches),
        )
        load_s = time.monotonic() - start_s
        run = ShortRun({}, 1.0, {}) if variant.only_loads else _run_shortly(connected, variant)
    finally:
        target.remove(owner=owner.to_json())
    prepared_bytes = sum(table.bytes for table in tables)
    if (loader := load.get("loader")) is not None:
        prepared_bytes += loader["file_bytes"]
    size = load["size"]["total_bytes"]
    prepare_s = sum(table.prepare_s for table in tables)
    return PrefixCosts(readings, load_s, load["load_s"], size, load["rows"], prepare_s, prepared_bytes, run)


def _run_shortly(connected: ConnectedComparison, variant: Variant) -> ShortRun:
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
    return ShortRun(costs, (phase.length_s or busy_s) / busy_s if busy_s else 1.0, requests)


def _short(workload: Workload) -> Workload:
    """The workload for moments; where its operations come in turn, at least a round of them."""
    round_of = math.ceil(sum(workload.mix.values())) if workload.order == "in turn" else 1
    operations = max(round_of, min(OPERATIONS, workload.operations or OPERATIONS))
    changes = {"operations": operations, "duration": f"{RUN_S:g}s", "warmup": "0", "repetitions": 1, "timeout": TIMEOUT}
    return workload.model_copy(update=changes)


def _reference_s(connected: ConnectedComparison, requested: dict[int, list[int]]) -> dict[str, float]:
    """What a reference answer of each operation that reads takes (s)."""
    comparison = connected.comparison
    if comparison.workload.answers != "all" or not requested or writes_anything(comparison, connected.names):
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
        operation: Growth.through((at_small, small.reference_s.get(name, {}).get(operation, 0.0)), (at_large, took_s))
        for operation, took_s in large.reference_s.get(name, {}).items()
    }
    variants = {
        variant.id: VariantPilot.through(small.costs[name, variant.id], large.costs.get((name, variant.id)))
        for variant in comparison.variants
        if (name, variant.id) in small.costs and (name, variant.id) not in failed
    }
    nothing = Line(0.0, 0.0)
    for (part, variant), why in failed.items():
        if part == name:
            variants[variant] = VariantPilot(nothing, None, nothing, nothing, nothing, {}, 1.0, why)
    measured_as = {variant: stand_in for (part, variant), stand_in in left_out.items() if part == name}
    return PartPilot(comparison, readings, opened, reference, large.mixes[name], variants, measured_as)
