"""The gate: base and head interleaved on one machine, until it is decided whether head is slower."""

import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

from sensorbench.analysis.gate import LOOKS, looks_until
from sensorbench.app.comparison import fail_if_wrong
from sensorbench.app.gate_verdict import SIDES, decided, gate_operations, overall
from sensorbench.app.reports import COMPARISON
from sensorbench.app.run import Show, run_and_report
from sensorbench.benchmarks.comparison import ComparisonBenchmark, plan_comparison
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.results import ComparisonManifest, ComparisonResult, VariantManifest, read_comparison
from sensorbench.results.files import write_result
from sensorbench.results.manifest import now
from sensorbench.results.reader import read_manifest
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.results.summary.gate import GATE_FILE, GateResult, GateSide
from sensorbench.runner import DATA_FOLDER, Comparison, TargetSpec, Variant, VariantSpec, make_variants, plan_experiment

_CHANGE = re.compile(r"[A-Za-z_][A-Za-z0-9_.\[\]]*=.*", re.DOTALL)


@dataclass(frozen=True)
class Side:
    """What distinguishes one side from the other.

    Attributes:
        given: changes of the experiment file: `key=value`, or for its first target a schema file or a target.
        server_settings: settings of the server that the lab starts for this side.

    """

    given: tuple[str, ...] = ()
    server_settings: tuple[tuple[str, str], ...] = ()

    @property
    def words(self) -> list[str]:
        """What was given, as it is shown."""
        return [*self.given, *(f"{key}={value}" for key, value in self.server_settings)]


@dataclass(frozen=True)
class Gate:
    """What a gate compares, and when it stops.

    Attributes:
        experiment: an experiment file. It has one target, or a target for each side.
        base: what is known.
        head: what may be slower.
        changes: keys of the file that are changed for both sides, key=value.
        margin: share by which head may be slower.
        repetitions: of each side, at most.
        budget_s: how long it may take, loading included.

    """

    experiment: Path
    base: Side
    head: Side
    margin: float
    repetitions: int
    budget_s: float
    changes: tuple[str, ...] = ()


def run_gate(gate: Gate, folder: Path, progress: ProgressReporter, *, replace_data: bool = False) -> tuple[GateResult, Path]:
    """Measures both sides interleaved, and says whether head is slower.

    Args:
        gate: what is compared.
        folder: for the results; it is new.
        progress: reports what is measured.
        replace_data: whether what an earlier run of ours left at a target is replaced.

    Returns:
        The result, which is in `gate.json` of the folder too, and the page.

    Raises:
        UsageError: before anything is written.
        FailedError: if a side failed, or the sides gave different answers.

    """
    start_s = time.monotonic()
    try:
        looks = looks_until(gate.repetitions)
    except ValueError as error:
        raise UsageError(f"--repetitions {error}") from None
    comparison = plan_gate(gate, folder, progress)
    watch = _Watch(gate, folder, looks, start_s)
    plan = plan_comparison(comparison, folder, replace=replace_data, is_enough=watch.is_enough)

    def write_report(folder: Path, show: Show[ComparisonSummary] | None) -> tuple[ComparisonSummary, Path]:
        """The gate's own file comes first, since the page shows it. One that was cut short, or whose answers are wrong, has none."""
        if (
            read_manifest(folder, ComparisonManifest).state == "complete"
            and COMPARISON.summary(folder).answers_equal is not False
        ):
            result = _result(gate, read_comparison(folder), watch, time.monotonic() - start_s)
            write_result(folder / GATE_FILE, result.model_dump_json(indent=2) + "\n")
        return COMPARISON.write(folder, show)

    summary, page = run_and_report(ComparisonBenchmark(), plan, folder, progress, write_report)
    fail_if_wrong(summary)
    found = read_comparison(folder).gate
    if found is None:
        raise AssertionError("a comparison that is complete, and whose answers are equal, has a gate")
    return found, page


def plan_gate(gate: Gate, folder: Path, progress: ProgressReporter) -> Comparison:
    """The comparison of base, base again and head. Raises UsageError for sides that cannot be compared."""
    base, head = (_planned(gate, side, folder, progress) for side in (gate.base, gate.head))
    if len(base.variants) != len(head.variants) or len(base.variants) > 2:
        raise UsageError(f"{gate.experiment}: a gate compares one target with another, and the file has {len(base.variants)}")
    if len(base.variants) == 2:
        if gate.base.words or gate.head.words:
            raise UsageError(
                f"{gate.experiment} has two targets, which are base and head: leave out what --base and --head change"
            )
        of_base, of_head = base.variants
    else:
        (of_base,), (of_head,) = base.variants, head.variants
        if not (gate.base.words or gate.head.words):
            raise UsageError("base and head are the same: say with --head what is changed, for example a schema file or a target")
    _check_same_work(base, head)
    specs = [
        VariantSpec(_target(variant, side), variant.schema, label)
        for label, variant, side in zip(SIDES, (of_base, of_base, of_head), (gate.base, gate.base, gate.head), strict=True)
    ]
    return replace(
        base,
        name=f"gate-{base.name}",
        title=f"Gate: {base.title}",
        variants=make_variants(specs, folder / DATA_FOLDER),
        workload=base.workload.model_copy(update={"repetitions": gate.repetitions}),
    )


def _planned(gate: Gate, side: Side, folder: Path, progress: ProgressReporter) -> Comparison:
    changes = [*gate.changes, *(_change(text) for text in side.given)]
    planned = plan_experiment(gate.experiment, changes, folder, progress)
    if planned.blocks is not None:
        raise UsageError(f"{gate.experiment}: a gate interleaves both sides; leave out one_at_a_time")
    return planned


def _change(text: str) -> str:
    """What a side's text changes in the experiment file."""
    if _CHANGE.fullmatch(text):
        return text
    if text.endswith(".toml"):
        # A file is looked for here first, then beside the experiment.
        return f"target[0].schema={Path(text).resolve() if Path(text).exists() else text}"
    return f"target[0].url={text}"


def _target(variant: Variant, side: Side) -> TargetSpec:
    target = variant.target
    if not side.server_settings:
        return target
    if target.place != "started":
        raise UsageError(
            f"a server setting is of a server that the lab starts: name the target of the experiment by its database alone ({target.label})"
        )
    return replace(target, server_settings=(*target.server_settings, *side.server_settings))


def _check_same_work(base: Comparison, head: Comparison) -> None:
    """Raises UsageError for sides that do not do the same work."""
    if base.workload != head.workload or base.operations_name != head.operations_name:
        raise UsageError(
            "base and head have different workloads: a gate changes the target or the schema, and measures the same work on both"
        )
    if base.dataset.describe().fingerprint != head.dataset.describe().fingerprint:
        raise UsageError("base and head have different datasets: a gate measures the same rows on both")


class _Watch:
    """Looks at what was measured between repetitions, and ends measuring when it is decided or the budget is over."""

    def __init__(self, gate: Gate, folder: Path, looks: tuple[int, ...], start_s: float) -> None:
        self._gate = gate
        self._folder = folder
        self._start_s = start_s
        self._last_s = start_s
        self._longest_s = 0.0
        self.looks = looks
        self.is_over_budget = False

    def is_enough(self, repeat: int) -> bool:
        """Whether no further repetition is made."""
        now_s = time.monotonic()
        if repeat > 1:
            # The first one has loading in it.
            self._longest_s = max(self._longest_s, now_s - self._last_s)
        self._last_s = now_s
        if now_s - self._start_s + self._longest_s > self._gate.budget_s:
            self.is_over_budget = True
            if repeat >= LOOKS[0]:
                self.looks = tuple(sorted({*self.looks, repeat}))
            return True
        if repeat not in self.looks:
            return False
        return decided(gate_operations(read_comparison(self._folder), self.looks, self._gate.margin))


def _result(gate: Gate, result: ComparisonResult, watch: _Watch, took_s: float) -> GateResult:
    manifest = result.manifest
    operations = gate_operations(result, watch.looks, gate.margin)
    verdict, reason = overall(operations, gate.margin, is_over_budget=watch.is_over_budget)
    base, again, head = (variant.id for variant in manifest.variants)
    return GateResult(
        title=manifest.title,
        folder=str(result.folder),
        verdict=verdict,
        reason=reason,
        base=GateSide(given=gate.base.words, variants=[base, again], version=_version(result, base)),
        head=GateSide(given=gate.head.words, variants=[head], version=_version(result, head)),
        differences=_differences(result, gate),
        metric=manifest.plan.metric,
        margin=gate.margin,
        looks=list(watch.looks),
        repetitions=min(len(runs) for runs in result.runs.values()),
        max_repetitions=gate.repetitions,
        budget_s=gate.budget_s,
        took_s=took_s,
        created=now(),
        operations=operations,
    )


def _version(result: ComparisonResult, variant: str) -> str:
    load = result.loads.get(variant)
    return f"{load.description.database} {load.description.version}" if load else ""


def _settings(result: ComparisonResult, variant: VariantManifest, side: Side) -> dict[str, str]:
    """The settings of a side's server: those that the lab started it with, in the server's own words where it says them."""
    load = result.loads.get(variant.id)
    return {**dict(side.server_settings), **(load.description.settings if load else {})}


def _differences(result: ComparisonResult, gate: Gate) -> list[str]:
    """What differs between base and head, in words."""
    base, _, head = result.manifest.variants
    # An embedded database in the results folder has a place for each side, which is no difference.
    has_own_address = not (base.embedded and base.target == head.target and "?" not in base.url + head.url)
    sides = {"schema": (base.schema_name, head.schema_name), "database": (_version(result, base.id), _version(result, head.id))}
    if has_own_address:
        sides = {"target": (base.url, head.url), **sides}
    found = [f"{name}: {of_base} → {of_head}" for name, (of_base, of_head) in sides.items() if of_base != of_head]
    if base.schema_digest != head.schema_digest and base.schema_name == head.schema_name:
        found.append(f"content of schema {base.schema_name}")
    of_base, of_head = _settings(result, base, gate.base), _settings(result, head, gate.head)
    found += [
        f"{key}: {of_base.get(key, 'not said')} → {of_head.get(key, 'not said')}"
        for key in sorted(of_base.keys() | of_head.keys())
        if of_base.get(key) != of_head.get(key)
    ]
    changed = sorted(
        operation
        for operation, plan in result.plans.get(base.id, {}).items()
        if operation in result.plans.get(head.id, {}) and plan.access != result.plans[head.id][operation].access
    )
    found += [
        f"access of {operation}: {result.plans[base.id][operation].access} → {result.plans[head.id][operation].access}"
        for operation in changed
    ]
    return found
