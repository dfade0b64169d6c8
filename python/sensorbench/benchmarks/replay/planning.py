"""The plan of a replay, and what is refused of it before anything is sent."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict

from sensorbench._engine import Target
from sensorbench.benchmarks.replay.options import ReplayOptions
from sensorbench.benchmarks.replay.recorded import Sessions, TraceCopy, copies_of, counts_of_templates, overlap, sessions_of
from sensorbench.compat.targets import lasting_target
from sensorbench.errors import UsageError
from sensorbench.results.manifest import MEASURE
from sensorbench.results.replay import PlannedTemplate, WritePermission
from sensorbench.runner import Observer, TargetSpec, Variant, VariantSpec, databases, make_variants
from sensorbench.schemas import Schema
from sensorbench.schemas.schema_file import SchemaFile
from sensorbench.traffic import Trace, read_trace, statements_file

# Figures over time are of intervals of a second, in a long replay of longer ones: a report shows no more of them than this.
_MAX_INTERVALS = 3600
# Later than this after its intended start, a statement counts as late (ms).
LATE_AFTER_MS = 1.0
# Of what is not read, transaction control changes nothing by itself, if it has no words but these, and numbers: READ WRITE would take back
# that a session may only read.
_CONTROL = {"begin", "commit", "rollback"}
_NO_CONTROL = re.compile(
    r"\b(?!(?:abort|and|apply|batch|begin|chain|commit|committed|consistent|counter|deferrable|discard|end|exec|isolation|level|logged|multi"
    r"|no|not|only|read|release|repeatable|rollback|serializable|snapshot|start|timestamp|transaction|uncommitted|unlogged|using|with|work"
    r"|\d+)\b)\w+|[^\w\s,;$]",
    re.IGNORECASE,
)
# The word of a driver that looks at no statements.
_ANY_STATEMENTS = "any"
# The option of a URL by which the tables of the statements are in a namespace of ours.
_NAMESPACE_OPTION = "namespace"


class EngineTemplate(TypedDict):
    """A template as the engine has it."""

    name: str
    statement: str
    keyspace: str | None
    consistency: str | None


class EngineCopy(TypedDict):
    """A copy of the trace as the engine has it."""

    delay_us: int


class ReplayEnginePlan(TypedDict):
    """What the engine is requested to replay (`crates/sensorbench-engine/src/replay/plan.rs`)."""

    templates: list[EngineTemplate]
    phase: str
    speed: float | None
    copies: list[EngineCopy]
    rows: int
    left_out: NotRequired[list[int]]
    connections: int
    timeout_s: float
    interval_s: float
    late_after_ms: float
    keeps_answers: bool
    read_only: bool


@dataclass(frozen=True)
class ReplayWork:
    """A trace, a target, and how the one is replayed at the other. `planned` are the trace's templates in the order of their numbers."""

    folder: Path
    trace: Trace
    planned: list[PlannedTemplate]
    sessions: Sessions
    copies: list[TraceCopy]
    variant: Variant
    options: ReplayOptions
    writes: WritePermission
    connections: int
    observers: Sequence[Observer]
    # Where the same is replayed afterwards, for comparing answers.
    other: Variant | None = None

    @property
    def variants(self) -> list[Variant]:
        """The targets, in the order in which they are replayed at."""
        return [self.variant, *([self.other] if self.other else [])]

    @property
    def statements(self) -> Path:
        """The file of its statements."""
        return statements_file(self.folder)

    @property
    def left_out(self) -> list[int]:
        """Numbers of the templates whose statements are not replayed."""
        return [number for number, template in enumerate(self.planned) if template.is_left_out]

    @property
    def writing(self) -> list[int]:
        """Numbers of the templates that write."""
        return [number for number, template in enumerate(self.planned) if template.kind == "write"]

    @property
    def expected_statements(self) -> int:
        """How many statements are replayed, of all copies."""
        return sum(int(self.sessions.statements[self.sessions.chosen(copy.share)].sum()) for copy in self.copies)

    @property
    def interval_s(self) -> float:
        """How long the intervals of figures are."""
        length_s = self.sessions.length_s / self.options.speed if self.options.speed else 0.0
        return max(1.0, float(math.ceil(length_s / _MAX_INTERVALS)))

    def engine_plan(self) -> ReplayEnginePlan:
        """The plan for the engine."""
        return {
            "templates": self.engine_templates(),
            "phase": MEASURE,
            "speed": self.options.speed,
            "copies": [{"delay_us": round(copy.delay_s * 1e6)} for copy in self.copies],
            "rows": self.sessions.rows,
            "left_out": self.left_out,
            "connections": self.connections,
            "timeout_s": self.options.timeout,
            "interval_s": self.interval_s,
            "late_after_ms": LATE_AFTER_MS,
            "keeps_answers": self.other is not None,
            "read_only": self.writes == "none",
        }

    def engine_templates(self) -> list[EngineTemplate]:
        """The templates for the engine, in the order of their numbers."""
        return [
            {
                "name": template.name,
                "statement": template.statement,
                "keyspace": template.keyspace,
                "consistency": template.consistency,
            }
            for template in self.planned
        ]


def plan_replay(
    folder: Path,
    target_text: str,
    options: ReplayOptions,
    out: Path,
    *,
    allow_writes: bool = False,
    compare_with: str | None = None,
    observers: Sequence[Observer] = (),
) -> ReplayWork:
    """The plan of a replay.

    Args:
        folder: of the trace.
        target_text: the target, as the user names it.
        options: how it is replayed.
        out: the folder of the results.
        compare_with: another target with the same data, whose answers are compared with those of the first.
        allow_writes: whether the owner of the target's data lets writes go wherever the statements say.
        observers: called some times per second with the run and its snapshot.

    Raises:
        UsageError: for a trace that cannot be read, a target that does not take its statements, writes that may not be replayed, or too few
            connections.

    """
    trace = read_trace(folder)
    target = lasting_target(target_text)
    other = lasting_target(compare_with) if compare_with is not None else None
    for each in (target, other) if other else (target,):
        _check_taken(folder, trace, each)
    planned = _planned(trace, counts_of_templates(statements_file(folder)), reads_only=options.reads_only)
    changing = [template for template in planned if _may_change(template)]
    writes: WritePermission = "none"
    if changing:
        writes = "owner" if allow_writes else "namespace"
        if writes == "namespace" and _NAMESPACE_OPTION not in target.url_options:
            raise UsageError(_refusal(folder, changing))
    if writes != "none" and compare_with is not None:
        raise UsageError("--compare-with: answers are compared on data that does not change; give --reads-only as well")
    sessions = sessions_of(statements_file(folder), [number for number, each in enumerate(planned) if each.is_left_out])
    if not len(sessions.numbers):
        raise UsageError(f"{folder}: the trace has no statements to replay" + (" but writes" if options.reads_only else ""))
    copies = copies_of(options.scale_rate)
    needed = overlap(sessions, copies, options.speed or 1.0)
    if options.connections is not None and options.connections < needed:
        raise UsageError(
            f"--connections {options.connections}: {needed} recorded sessions are open at the same time; expected at least as many"
        )
    return ReplayWork(
        folder,
        trace,
        planned,
        sessions,
        copies,
        _variant(folder, target, out),
        options,
        writes,
        options.connections or needed + needed // 4 + 1,
        observers,
        _variant(folder, other, out, "compared") if other else None,
    )


def _check_taken(folder: Path, trace: Trace, target: TargetSpec) -> None:
    """Raises UsageError if the statements of a trace are not those that a target takes."""
    if target.database.replays in {_ANY_STATEMENTS, trace.database}:
        return
    taking = [database.name for database in databases().values() if database.replays == trace.database]
    if not taking:
        known = {database.replays for database in databases().values() if database.replays} - {_ANY_STATEMENTS}
        raise UsageError(
            f"{folder}: it was recorded from {trace.database}; only traces of {', '.join(sorted(known))} can be replayed so far"
        )
    raise UsageError(
        f"--target {target.text}: {target.database.name} does not take the statements of {folder}: it was recorded from {trace.database}; "
        f"expected a target of {', '.join(taking)}"
    )


def _variant(folder: Path, target: TargetSpec, out: Path, label: str = "") -> Variant:
    """A target with the statements of the trace in a folder in the place of a schema."""
    recorded = SchemaFile(database=target.database.dialect, summary="statements as they were recorded")
    return make_variants([VariantSpec(target, Schema(folder, "recorded", recorded, {}), label)], out)[0]


def check_target(work: ReplayWork, target: Target) -> None:
    """Raises UsageError if writes would not stay in a namespace of ours, or where something writes though all seems to read; nothing is changed
    or executed.
    """
    guarded, read_only = ([] if work.writes == "owner" else work.planned), work.writes == "none"
    at = f"--target {work.variant.target.text}"
    namespace = work.variant.namespace_at_url
    if work.writes == "namespace" and target.marker() is None:
        raise UsageError(
            f"{at}: sensorbench did not create the namespace {namespace}, so writes are not replayed there; name one that a run "
            "of sensorbench left, replay reads alone (--reads-only), or let the statements write (--allow-writes)"
        )
    changing = [number for number, template in enumerate(guarded) if _may_change(template)]
    reading = [number for number, template in enumerate(guarded) if template.kind == "read"]
    for check in json.loads(target.check_writes(json.dumps(work.engine_templates()), changing, reading, read_only=read_only)):
        if check["problem"] is not None:
            template = work.planned[check["template"]]
            advice = (
                "call it a write in trace.json and leave it out (--reads-only)"
                if template.kind == "read"
                else "replay reads alone (--reads-only)"
            )
            raise UsageError(
                f"{at}: template {template.name} is not replayed: {check['problem']}: {_short(template.statement)}; {advice}, or let the "
                "statements write (--allow-writes)"
            )


def _planned(trace: Trace, counts: Mapping[int, int], *, reads_only: bool) -> list[PlannedTemplate]:
    """The templates in the order of their numbers. Raises UsageError if numbers are missing."""
    by_number = {template.number: template for template in trace.templates}
    if sorted(by_number) != list(range(len(by_number))):
        raise UsageError("trace.json: templates: expected the numbers 0, 1, 2, … without a gap")
    width = len(str(len(by_number)))
    return [
        PlannedTemplate(
            name=f"t{number:0{width}}",
            kind=by_number[number].kind,
            statement=by_number[number].statement,
            keyspace=by_number[number].keyspace,
            consistency=by_number[number].consistency,
            statements=counts.get(number, 0),
            is_left_out=reads_only and by_number[number].kind != "read",
        )
        for number in range(len(by_number))
    ]


def _may_change(template: PlannedTemplate) -> bool:
    """Whether statements of a template may change something, as far as its kind says."""
    if template.is_left_out or not template.statements or template.kind == "read":
        return False
    return template.kind not in _CONTROL or _NO_CONTROL.search(template.statement) is not None


def _refusal(folder: Path, changing: Sequence[PlannedTemplate]) -> str:
    return (
        f"{folder}: {len(changing)} of its templates may change data at the target, the first: {_short(changing[0].statement)}; "
        "replay reads alone (--reads-only), name a namespace that sensorbench created (…?namespace=NAME), or let the statements "
        "write (--allow-writes)"
    )


def _short(statement: str, length: int = 80) -> str:
    """The beginning of a statement, in one line."""
    line = " ".join(statement.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"
