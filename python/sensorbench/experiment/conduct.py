"""Conducting a comparison: the one way in which studies, experiments and the quickstart are run.

Validate everything, prepare and load each setting, check known answers, run the settings in turn, compute the reference
answers. Until all of it is known to be sound, nothing is written.
"""

import hashlib
import json
import shutil
import sys
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Any, Literal

import duckdb
import pyarrow.compute as pc

from sensorbench import __version__, _engine
from sensorbench.dataset import Dataset
from sensorbench.errors import CancelledError, EngineError, FailedError, InterruptedRunError, NamespaceError, UsageError
from sensorbench.experiment.answers import (
    REFERENCE_SAMPLE,
    applicable_known_answers,
    check_dataset,
    check_target,
    reference_table,
)
from sensorbench.experiment.ceiling import driver_ceiling, server_ceiling
from sensorbench.experiment.contents import check_contents, written_rows
from sensorbench.experiment.load import load_setting, mark
from sensorbench.experiment.plan import Parameters, build_plan, draw_parameters, planned_operations
from sensorbench.experiment.prepare import PreparedTable, prepare
from sensorbench.experiment.run import run_and_write
from sensorbench.experiment.servers import Servers, servers
from sensorbench.experiment.settings import Setting
from sensorbench.experiment.workload import Workload
from sensorbench.progress import Teller
from sensorbench.results import (
    ComparisonManifest,
    ComparisonResult,
    ComparisonWriter,
    RunManifest,
    RunWriter,
    read_comparison,
    read_run,
)
from sensorbench.results.environment import environment
from sensorbench.results.files import DiskFullError, release_reserve
from sensorbench.results.latencies import MEASURE
from sensorbench.results.manifest import OperationManifest, Process, now
from sensorbench.schemas import Operations

DATA_FOLDER = "data"


@dataclass(frozen=True)
class Comparison:
    """What is to be compared."""

    kind: Literal["experiment", "study"]
    name: str
    title: str
    dataset: Dataset
    operations_name: str
    operations: Operations
    settings: list[Setting]
    workload: Workload
    metric: str


@dataclass(frozen=True)
class _Ready:
    """A comparison whose parts were all found to be sound."""

    comparison: Comparison
    workbench: duckdb.DuckDBPyConnection
    names: list[str]
    parameters: Parameters
    schemas: dict[str, dict[str, Any]]
    columns: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class _Up(_Ready):
    """The same with all its servers up."""

    targets: dict[str, _engine.Target]
    servers: Servers


def conduct(
    comparison: Comparison, out: Path, teller: Teller, *, resume: bool = False, replace: bool = False
) -> ComparisonResult:
    """Conducts a comparison into the folder `out`.

    Raises UsageError before anything is written; InterruptedRunError, FailedError and DiskFullError after what was done
    until then is on disk.
    """
    check_out(out, resume=resume)
    ready = _validated(comparison)
    with ready.workbench:
        tables = {
            setting.id: prepare(comparison.dataset, setting.schema, ready.columns[setting.id], ready.workbench, teller)
            for setting in comparison.settings
        }
        with servers(comparison.settings, teller, pin=comparison.workload.pin) as started:
            up = _up(ready, started)
            writer = _writer(up, out, resume=resume)
            try:
                _conduct(up, tables, writer, teller, replace=replace or resume)
            except (KeyboardInterrupt, CancelledError):
                writer.finish("interrupted", "interrupted by the user")
                raise InterruptedRunError(f"interrupted; what was measured until then is in {out}") from None
            except DiskFullError as error:
                release_reserve(out)
                writer.finish("incomplete", str(error))
                raise
            except (EngineError, FailedError) as error:
                # An error of a schema has two parts: where, and what.
                message = ": ".join(map(str, error.args))
                writer.finish("failed", message)
                raise FailedError(message) from None
            writer.finish("complete")
            _remove_data(up, out)
    return read_comparison(out)


def _up(ready: _Ready, started: Servers) -> _Up:
    """The comparison with its settings at the servers' URLs."""
    settings = started.at_their_urls(ready.comparison.settings)
    return _Up(
        replace_fields(ready.comparison, settings=settings),
        ready.workbench,
        ready.names,
        ready.parameters,
        ready.schemas,
        ready.columns,
        {setting.id: setting.engine_target() for setting in settings},
        started,
    )


def check_out(out: Path, *, resume: bool) -> None:
    """Raises UsageError when results cannot go there."""
    if resume and not (out / "manifest.json").exists():
        raise UsageError(f"--resume: {out} holds no results to go on with; name the folder with --out")
    if not resume and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty; name another folder with --out, or go on with it by --resume")


def _validated(comparison: Comparison) -> _Ready:
    names = planned_operations(comparison.operations, comparison.workload)
    for name in comparison.workload.mix:
        comparison.operations.require(name, "mix")
    unknown = [name for name in comparison.workload.choice if name not in comparison.operations.draw]
    if unknown:
        raise UsageError(f"choice: there is no draw {unknown[0]!r}; expected one of {', '.join(comparison.operations.draw)}")
    workbench = comparison.dataset.connect()
    parameters = draw_parameters(comparison.operations, names, workbench, f"operations {comparison.operations_name}")
    columns, schemas = {}, {}
    for setting in comparison.settings:
        columns[setting.id] = setting.schema.fill_columns(workbench)
        schemas[setting.id] = setting.schema.driver_schema(comparison.operations, names, columns[setting.id])
        build_plan(comparison.operations, setting.schema, parameters, comparison.workload, 0)
    return _Ready(comparison, workbench, names, parameters, schemas, columns)


def _writer(ready: _Up, out: Path, *, resume: bool) -> ComparisonWriter:
    comparison = ready.comparison
    settings = [
        setting.manifest({name: setting.schema.statement(name) for name in ready.names}) for setting in comparison.settings
    ]
    described = {
        name: OperationManifest(title=one.title, question=one.question, writes=one.writes is not None)
        for name, one in comparison.operations.operation.items()
        if name in ready.names
    }
    ceilings = {
        setting.target.database.name: driver_ceiling(setting.target.database, in_flight=_ceiling_in_flight(comparison.workload))
        for setting in _one_a_database(comparison.settings)
        if setting.target.database.embedded
    }
    manifest = ComparisonManifest(
        kind=comparison.kind,
        name=comparison.name,
        title=comparison.title,
        process=Process.this(),
        created=now(),
        version=__version__,
        command=_command(),
        dataset={**comparison.dataset.describe().model_dump(mode="json"), "operations": comparison.operations_name},
        operations=described,
        workload=comparison.workload.model_dump(mode="json", by_alias=True),
        metric=comparison.metric,
        settings=settings,
        environment={**environment(out), "driver_ceilings_per_s": ceilings, "servers": ready.servers.described()},
    )
    if resume:
        _check_same(read_comparison(out).manifest, manifest, out)
    return ComparisonWriter(out, manifest)


def _ceiling_in_flight(workload: Workload) -> int:
    return 1 if workload.schedule.is_open_loop else workload.schedule.most_in_flight


def _write_server_ceilings(ready: _Up, writer: ComparisonWriter) -> None:
    """Measures what the driver of each server reaches, now that there is something at the server to connect to."""
    in_flight = _ceiling_in_flight(ready.comparison.workload)
    ceilings = {
        setting.target.database.name: server_ceiling(setting, in_flight=in_flight)
        for setting in _one_a_database(ready.comparison.settings)
        if not setting.target.database.embedded
    }
    if ceilings:
        known = writer.manifest.environment["driver_ceilings_per_s"]
        writer.update(environment={**writer.manifest.environment, "driver_ceilings_per_s": {**known, **ceilings}})


def _one_a_database(settings: list[Setting]) -> list[Setting]:
    return list({setting.target.database.name: setting for setting in settings}.values())


def _command() -> list[str]:
    """The command line, without what could be a secret: targets are shown in the settings."""
    return [
        "sensorbench",
        *(argument.partition(":")[0] + ":…" if "//" in argument and ":" in argument else argument for argument in sys.argv[1:]),
    ]


def _check_same(before: ComparisonManifest, after: ComparisonManifest, out: Path) -> None:
    """Going on makes sense only with what was begun."""
    for key in ("name", "dataset", "operations", "workload", "settings"):
        was, will_be = getattr(before, key), getattr(after, key)
        if was != will_be:
            raise UsageError(
                f"--resume: {out} was begun with another {key}; give the same arguments, or another folder with --out"
            )


def _conduct(
    ready: _Up, tables: dict[str, list[PreparedTable]], writer: ComparisonWriter, teller: Teller, *, replace: bool
) -> None:
    comparison = ready.comparison
    known = applicable_known_answers(comparison.dataset, comparison.operations_name, comparison.operations)
    check_dataset(ready.workbench, comparison.operations, known)
    for setting in comparison.settings:
        _load(ready, setting, tables[setting.id], writer, teller, replace=replace)
        checks = check_target(ready.targets[setting.id], comparison.operations, setting.schema, known, ready.names)
        writer.write_checks(setting.id, checks)
    _write_server_ceilings(ready, writer)
    order = []
    for repeat in range(1, comparison.workload.repeat + 1):
        # A B B A: what changes with time hits all settings alike.
        settings = comparison.settings if repeat % 2 == 1 else list(reversed(comparison.settings))
        order.append([setting.id for setting in settings])
        writer.update(order=order)
        for setting in settings:
            _run(ready, setting, repeat, writer, teller)
    if writes_anything(comparison.operations, ready.names):
        _check_contents(ready, writer, teller)
    elif comparison.workload.answers == "all":
        _write_reference(ready, writer, teller)


def writes_anything(operations: Operations, names: list[str]) -> bool:
    """Whether a workload changes what it reads."""
    return any(operations.operation[name].writes is not None for name in names)


def _check_contents(ready: _Up, writer: ComparisonWriter, teller: Teller) -> None:
    """Reads again what runs that wrote left behind."""
    comparison = ready.comparison
    with teller.task("reading back what was written") as task:
        asked = wrong = 0
        for setting in comparison.settings:
            runs = [read_run(writer.run_folder(setting.id, repeat)) for repeat in range(1, comparison.workload.repeat + 1)]
            plans = [
                build_plan(comparison.operations, setting.schema, ready.parameters, comparison.workload, run)
                for run in range(len(runs))
            ]
            written = written_rows(comparison.operations, ready.names, runs, plans, ready.parameters)
            checks = check_contents(
                ready.targets[setting.id],
                comparison.dataset,
                comparison.operations,
                setting.schema,
                written,
                comparison.workload.seed,
            )
            writer.write_contents(setting.id, checks)
            asked, wrong = asked + checks["asked"], wrong + checks["wrong"]
        task.end(f"{asked} answers, {wrong} wrong")


def _fingerprint(ready: _Ready, setting: Setting) -> str:
    """Changes when anything about what lies at a target does."""
    what = json.dumps(
        [ready.comparison.dataset.fingerprint, ready.schemas[setting.id], setting.schema.file.model_dump(mode="json")],
        sort_keys=True,
    )
    return hashlib.sha256(what.encode()).hexdigest()[:16]


def _load(
    ready: _Up, setting: Setting, tables: list[PreparedTable], writer: ComparisonWriter, teller: Teller, *, replace: bool
) -> None:
    target, fingerprint = ready.targets[setting.id], _fingerprint(ready, setting)
    has_load = (writer.setting_folder(setting.id) / "load.json").exists()
    if has_load and target.mark() == mark(fingerprint, "settled"):
        target.attach(json.dumps(ready.schemas[setting.id]))
        teller.say(f"  {setting.id}: already loaded")
        return
    if setting.temporary is not None:
        setting.temporary.parent.mkdir(parents=True, exist_ok=True)
    readings = ready.comparison.dataset.describe().readings
    try:
        load = load_setting(
            setting, target, ready.schemas[setting.id], tables, readings, fingerprint, replace=replace, teller=teller
        )
    except NamespaceError as error:
        raise FailedError(str(error)) from None
    writer.write_load(setting.id, load)


def _run(ready: _Up, setting: Setting, repeat: int, writer: ComparisonWriter, teller: Teller) -> None:
    comparison = ready.comparison
    folder = writer.run_folder(setting.id, repeat)
    if (folder / "manifest.json").exists() and read_run(folder).state == "complete":
        teller.say(f"  {setting.id}, run {repeat}: already measured")
        return
    shutil.rmtree(folder, ignore_errors=True)
    plan = build_plan(comparison.operations, setting.schema, ready.parameters, comparison.workload, repeat - 1)
    target = ready.targets[setting.id]
    manifest = RunManifest(
        process=Process.this(),
        created=now(),
        setting=setting.manifest({}),
        repeat=repeat,
        temperature="hot" if comparison.workload.is_warmed_up else "warm",
        seed=comparison.workload.seed,
        operations=ready.names,
        phases=[phase["name"] for phase in plan["phases"]],
        plan={key: plan[key] for key in ("phases", "in_flight", "threads", "timeout_s", "spin", "log_every", "answers_every")},
        description=json.loads(target.describe()),
    )
    writer.setting_folder(setting.id).mkdir(parents=True, exist_ok=True)
    with teller.task(f"{setting.id}, run {repeat} of {comparison.workload.repeat}", total=1.0) as task:
        run_writer = RunWriter(folder, manifest)
        try:
            whole = run_and_write(
                target,
                plan,
                ready.parameters.readers(),
                run_writer,
                ready.servers.processes(),
                lambda now: task.advance_to(*_progress(now, plan)),
            )
        except DiskFullError as error:
            release_reserve(writer.folder)
            run_writer.finish("incomplete", None, str(error))
            raise
        except EngineError as error:
            run_writer.finish("failed", None, str(error))
            raise
        task.end(_outcome(whole))


def _progress(snapshot: dict[str, Any], plan: dict[str, Any]) -> tuple[float, str]:
    """Share of the current phase that is done, and what is going on."""
    number = snapshot["current_phase"]
    if number >= len(plan["phases"]):
        return 1.0, "ending"
    phase, planned = snapshot["phases"][number], plan["phases"][number]
    by_count = phase["started"] / planned["operations"] if planned.get("operations") else 0.0
    elapsed_s = (snapshot["now_ns"] - (phase["start_ns"] or snapshot["now_ns"])) / 1e9
    by_time = elapsed_s / planned["duration_s"] if planned.get("duration_s") else 0.0
    return min(1.0, max(by_count, by_time)), f"{phase['name'].replace('_', ' ')}: {phase['started']:,} operations"


def _outcome(whole: dict[str, Any]) -> str:
    phase = whole["phases"][-1]
    counts = [operation["counts"] for operation in phase["operations"].values()]
    ok, bad = sum(count["ok"] for count in counts), sum(count["error"] + count["timeout"] for count in counts)
    duration_s = ((phase["end_ns"] or 0) - (phase["start_ns"] or 0)) / 1e9
    failed = f", {bad:,} failed or timed out" if bad else ""
    return f"{ok:,} operations in {duration_s:.1f} s{failed}"


def _write_reference(ready: _Ready, writer: ComparisonWriter, teller: Teller) -> None:
    """Computes the reference answers to a sample of what was asked."""
    comparison = ready.comparison
    first = read_run(writer.run_folder(comparison.settings[0].id, 1))
    answers = first.table("answers")
    if answers is None:
        return
    phase = first.manifest.phases.index(MEASURE)
    asked: dict[int, list[int]] = {}
    for number, name in enumerate(ready.names):
        if comparison.operations.operation[name].writes is None:
            of_kind = answers.filter(pc.and_(pc.equal(answers["phase"], phase), pc.equal(answers["operation"], number)))
            asked[number] = sorted(of_kind["k"].to_pylist())[:REFERENCE_SAMPLE]
    total = sum(len(numbers) for numbers in asked.values())
    with teller.task("reference answers") as task:
        plan = build_plan(comparison.operations, comparison.settings[0].schema, ready.parameters, comparison.workload, 0)
        writer.write_reference(
            reference_table(ready.workbench, comparison.operations, ready.names, plan, ready.parameters, phase, asked)
        )
        task.end(f"{total} computed from the dataset itself")


def _remove_data(ready: _Up, out: Path) -> None:
    """Removes what was loaded below the results. Data at a target that the user named stays."""
    for setting in ready.comparison.settings:
        if setting.temporary is not None:
            ready.targets[setting.id].remove()
    folder = out / DATA_FOLDER
    if folder.exists():
        folder.rmdir()
