"""Conducting a comparison: the one way in which studies, experiments and the quickstart are run.

Validate everything, prepare and load each setting, check known answers, run the settings in turn, compute the reference
answers. Until all of it is known to be sound, nothing is written.
"""

import sys
from collections.abc import Callable, Container
from dataclasses import replace as replace_fields
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from sensorbench import __version__
from sensorbench.errors import CancelledError, EngineError, FailedError, UsageError, message_of
from sensorbench.experiment.answers import (
    REFERENCE_SAMPLE,
    KnownAnswer,
    applicable_known_answers,
    check_dataset,
    check_target,
    reference_table,
)
from sensorbench.experiment.ceiling import driver_ceiling, server_ceiling
from sensorbench.experiment.comparison import DATA_FOLDER, Comparison, Ready, Up
from sensorbench.experiment.contents import check_contents, written_rows
from sensorbench.experiment.ending import written_down
from sensorbench.experiment.grain import grain_of
from sensorbench.experiment.load import check_namespace
from sensorbench.experiment.measure import claim_of, is_finished, load_one, run_one, writes_anything
from sensorbench.experiment.plan import build_plan, draw_parameters, planned_operations
from sensorbench.experiment.prepare import PreparedTable, prepare
from sensorbench.experiment.registers import is_of_registers, with_registers
from sensorbench.experiment.servers import Servers, servers
from sensorbench.experiment.settings import Setting
from sensorbench.experiment.workload import Workload
from sensorbench.places import check_is_free, remove_if_empty
from sensorbench.progress import Teller
from sensorbench.results import (
    ComparisonManifest,
    ComparisonResult,
    ComparisonWriter,
    has_results,
    read_comparison,
    read_run,
)
from sensorbench.results.environment import environment
from sensorbench.results.latencies import of_kind
from sensorbench.results.manifest import MEASURE, OperationManifest, Process, now
from sensorbench.results.ownership import Intent, Owner, new_id
from sensorbench.schemas import Operation
from sensorbench.schemas.variants import mix_of_variants, with_variants

# How options end that are followed by a command of the user's.
_COMMANDS = "-command"


def conduct(
    comparison: Comparison, out: Path, teller: Teller, *, resume: bool = False, replace: bool = False, drop_after: bool = False
) -> ComparisonResult:
    """Conducts a comparison into the folder `out`; with `drop_after`, what it created at users' targets is removed when it is complete.

    Raises UsageError before anything is written; InterruptedRunError, FailedError and DiskFullError after what was done
    until then is on disk.
    """
    check_out(out, resume=resume)
    ready = validated(comparison)
    todo = _unfinished(ready, out, teller) if resume else ready.comparison.settings
    with ready.workbench:
        tables = {
            setting.id: prepare(comparison.dataset, setting.schema, ready.columns[setting.id], ready.workbench, teller)
            for setting in todo
        }
        with servers(todo, teller, pin=comparison.workload.pin) as started:
            up = up_with(ready, started)
            intent: Intent = "replace" if replace else "resume" if resume else "create"
            owner = Owner.of(read_comparison(out).manifest.id if resume else new_id(), out)
            _check_namespaces(up, tables, owner, intent)
            writer = _writer(up, out, owner, resume=resume)
            with written_down(writer):
                _conduct(up, tables, writer, teller, intent=intent)
            _remove_data(up, writer, drop_after=drop_after)
    return read_comparison(out)


def _unfinished(ready: Ready, out: Path, teller: Teller) -> list[Setting]:
    """The settings that have something left to be done; runs that wrote are read back at the target, so that it is needed."""
    comparison = ready.comparison
    if writes_anything(comparison.operations, ready.names):
        return comparison.settings
    finished = [setting for setting in comparison.settings if is_finished(setting, out, comparison.workload.repeat)]
    for setting in finished:
        teller.say(f"  {setting.id}: finished before, not repeated")
    return [setting for setting in comparison.settings if setting not in finished]


def up_with(ready: Ready, started: Servers) -> Up:
    """A comparison with its settings at the URLs of servers that are up."""
    settings = started.at_their_urls(ready.comparison.settings)
    return Up(
        replace_fields(ready.comparison, settings=settings),
        ready.workbench,
        ready.names,
        ready.parameters,
        ready.schemas,
        ready.columns,
        {setting.id: setting.engine_target() for setting in settings if setting.url is not None},
        started,
    )


def check_out(out: Path, *, resume: bool) -> None:
    """Raises UsageError when results cannot go there."""
    if resume and not has_results(out):
        raise UsageError(f"--resume: {out} holds no results to go on with; name the folder with --out")
    if not resume:
        check_is_free(out, ", or go on with it by --resume")


def validated(comparison: Comparison) -> Ready:
    """The comparison with everything that was looked up for it. Raises UsageError for what cannot be right; writes nothing."""
    comparison = with_registers(comparison)
    for name in comparison.workload.mix:
        comparison.operations.require(name, "mix")
    unknown = [name for name in comparison.workload.choice if name not in comparison.operations.draw]
    if unknown:
        raise UsageError(f"choice: there is no draw {unknown[0]!r}; expected one of {', '.join(comparison.operations.draw)}")
    _check_relations(comparison)
    workbench = comparison.dataset.connect()
    where = f"operations {comparison.operations_name}"
    operations = with_variants(comparison.operations, set(comparison.workload.mix), workbench, where)
    workload = comparison.workload.model_copy(update={"mix": mix_of_variants(comparison.workload.mix, operations)})
    comparison = replace_fields(comparison, operations=operations, workload=workload)
    names = planned_operations(operations, workload)
    parameters = draw_parameters(operations, names, workbench, where)
    comparison = _on_its_dataset(comparison, workbench)
    columns, schemas = {}, {}
    for setting in comparison.settings:
        columns[setting.id] = setting.schema.fill_columns(workbench)
        asked = [] if setting.only_loads else names
        schemas[setting.id] = setting.schema.driver_schema(operations, asked, columns[setting.id])
        if not setting.only_loads:
            build_plan(operations, setting.schema, parameters, workload, 0)
    return Ready(comparison, workbench, names, parameters, schemas, columns)


def _on_its_dataset(comparison: Comparison, workbench: duckdb.DuckDBPyConnection) -> Comparison:
    """The comparison with schemas that know how close together the dataset's readings are, where that matters."""
    if not any(setting.schema.needs_grain for setting in comparison.settings):
        return comparison
    grain = grain_of(workbench, comparison.dataset.scale)
    settings = [replace_fields(setting, schema=setting.schema.on(grain)) for setting in comparison.settings]
    return replace_fields(comparison, settings=settings)


def _check_relations(comparison: Comparison) -> None:
    """A dataset of logs is no dataset of sensors."""
    known = comparison.dataset.describe().relations
    missing = [name for name in comparison.operations.relations if name not in known]
    if missing:
        raise UsageError(
            f"operations {comparison.operations_name} need the relation {missing[0]}, which dataset {comparison.dataset.name} does not have; "
            f"it has {', '.join(known)}. `sensorbench data list` says what each dataset is"
        )


def _check_namespaces(up: Up, todo: Container[str], owner: Owner, intent: Intent) -> None:
    """Raises UsageError where the namespace of a setting that is not finished is refused, and EngineError where nobody answers, before anything
    is written.
    """
    for setting in up.comparison.settings:
        if setting.id in todo:
            check_namespace(up.targets[setting.id], claim_of(setting, owner, intent))


def _writer(ready: Up, out: Path, owner: Owner, *, resume: bool) -> ComparisonWriter:
    comparison = ready.comparison
    settings = [
        setting.manifest({} if setting.only_loads else {name: setting.schema.told_statements(name) for name in ready.names})
        for setting in comparison.settings
    ]
    described = {name: _described(comparison.operations.operation[name]) for name in ready.names}
    ceilings = {
        setting.target.database.name: driver_ceiling(setting.target.database, in_flight=_ceiling_in_flight(comparison.workload))
        for setting in _one_a_database(comparison.settings)
        if setting.target.database.embedded
    }
    manifest = ComparisonManifest(
        id=owner.id,
        kind=comparison.kind,
        name=comparison.name,
        part=comparison.part,
        title=comparison.title,
        process=Process.this(),
        created=now(),
        version=__version__,
        command=told_command(),
        dataset={**comparison.dataset.describe().model_dump(mode="json"), "operations": comparison.operations_name},
        operations=described,
        workload=comparison.workload.model_dump(mode="json", by_alias=True),
        metric=comparison.metric,
        settings=settings,
        environment={**environment(out), "driver_ceilings_per_s": ceilings, "servers": ready.servers.described()},
    )
    if resume:
        before = read_comparison(out).manifest
        _check_same(before, manifest, out)
        manifest = manifest.model_copy(update={"environment": _joined(before.environment, manifest.environment)})
    return ComparisonWriter(out, manifest)


def _described(operation: Operation) -> OperationManifest:
    variant = operation.variant
    return OperationManifest(
        title=operation.title,
        question=operation.question,
        writes=operation.writes is not None,
        variant_of=variant.of if variant else None,
        variant=variant.name if variant else None,
        share=variant.share if variant else None,
    )


def _joined(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The environment of work that goes on: with the servers that were not started again, and what was known of them."""
    kept = {key: {**before.get(key, {}), **after[key]} for key in ("servers", "driver_ceilings_per_s")}
    return {**after, **kept}


def _ceiling_in_flight(workload: Workload) -> int:
    return 1 if workload.schedule.is_open_loop else workload.schedule.most_in_flight


def _write_server_ceilings(ready: Up, loaded: list[Setting], writer: ComparisonWriter) -> None:
    """Measures what the driver of each server reaches, now that there is something at the server to connect to."""
    in_flight = _ceiling_in_flight(ready.comparison.workload)
    ceilings = {
        setting.target.database.name: server_ceiling(setting, in_flight=in_flight)
        for setting in _one_a_database(loaded)
        if not setting.target.database.embedded
    }
    if ceilings:
        known = writer.manifest.environment["driver_ceilings_per_s"]
        writer.update(environment={**writer.manifest.environment, "driver_ceilings_per_s": {**known, **ceilings}})


def _one_a_database(settings: list[Setting]) -> list[Setting]:
    return list({setting.target.database.name: setting for setting in settings}.values())


def told_command() -> list[str]:
    """The command line, without what could be a secret: targets are shown in the settings, and commands of users are not shown."""
    words = zip(["", *sys.argv[1:]], sys.argv[1:], strict=False)
    return ["sensorbench", *("…" if before.endswith(_COMMANDS) else _shown(word) for before, word in words)]


def _shown(word: str) -> str:
    option, equals, _ = word.partition("=")
    if equals and option.startswith("--") and option.endswith(_COMMANDS):
        return f"{option}=…"
    return word.partition(":")[0] + ":…" if "//" in word and ":" in word else word


def _check_same(before: ComparisonManifest, after: ComparisonManifest, out: Path) -> None:
    """Going on makes sense only with what was begun."""
    for key in ("name", "part", "dataset", "operations", "workload", "settings"):
        was, will_be = getattr(before, key), getattr(after, key)
        if was != will_be:
            raise UsageError(
                f"--resume: {out} was begun with another {key}; give the same arguments, or another folder with --out"
            )


def _conduct(up: Up, tables: dict[str, list[PreparedTable]], writer: ComparisonWriter, teller: Teller, *, intent: Intent) -> None:
    comparison = up.comparison
    known = applicable_known_answers(comparison.dataset, comparison.operations_name, comparison.operations)
    check_dataset(up.workbench, comparison.operations, known)
    todo = [setting for setting in comparison.settings if setting.id in tables]
    load = partial(_load, up, tables=tables, known=known, writer=writer, teller=teller, intent=intent)
    standing = [setting for setting in todo if _succeeds(up, setting, "loading", writer, teller, load)]
    _write_server_ceilings(up, standing, writer)
    order = []
    for repeat in range(1, comparison.workload.repeat + 1):
        # A B B A: what changes with time hits all settings alike.
        settings = [setting for setting in standing if not setting.only_loads][:: 1 if repeat % 2 == 1 else -1]
        order.append([setting.id for setting in settings])
        writer.update(order=order)
        for setting in settings:
            if not _succeeds(
                up, setting, "running", writer, teller, partial(run_one, up, repeat=repeat, writer=writer, teller=teller)
            ):
                standing.remove(setting)
    if todo and not standing:
        raise FailedError("every setting failed; what each failed of is said above, and in its failure.json")
    if writes_anything(comparison.operations, up.names):
        _check_contents(up, standing, writer, teller)
    elif comparison.workload.answers == "all":
        _write_reference(up, writer, teller)


def _load(
    up: Up,
    setting: Setting,
    tables: dict[str, list[PreparedTable]],
    known: list[KnownAnswer],
    writer: ComparisonWriter,
    teller: Teller,
    intent: Intent,
) -> None:
    load_one(up, setting, tables[setting.id], writer, teller, intent=intent)
    asked = [] if setting.only_loads else up.names
    checks = check_target(up.targets[setting.id], up.comparison.operations, setting.schema, known, asked)
    writer.write_checks(setting.id, checks)


def _succeeds(
    up: Up, setting: Setting, step: str, writer: ComparisonWriter, teller: Teller, what: Callable[[Setting], None]
) -> bool:
    """Does a step of a setting. Where the work goes on without those that fail, says of one why it failed."""
    try:
        what(setting)
    except (EngineError, FailedError) as error:
        if isinstance(error, CancelledError) or not up.comparison.goes_on:
            raise
        teller.warn(f"{setting.id} failed at {step} and is left out: {message_of(error)}")
        writer.write_failure(setting.id, {"step": step, "cause": message_of(error)})
        _clear(up, setting, writer, teller)
        return False
    writer.forget_failure(setting.id)
    return True


def _clear(up: Up, setting: Setting, writer: ComparisonWriter, teller: Teller) -> None:
    """Removes what a failed setting has loaded, because the others need the room."""
    if setting.target.is_url:
        return
    try:
        up.targets[setting.id].remove(owner=writer.owner.to_json())
    except EngineError as error:
        teller.warn(f"{setting.id}: what was loaded cannot be removed: {error}")


def _check_contents(ready: Up, standing: list[Setting], writer: ComparisonWriter, teller: Teller) -> None:
    """Reads again what runs that wrote left behind."""
    comparison = ready.comparison
    with teller.task("reading back what was written") as task:
        asked = wrong = 0
        for setting in standing:
            runs = [read_run(writer.run_folder(setting.id, repeat)) for repeat in range(1, comparison.workload.repeat + 1)]
            plans = [
                build_plan(comparison.operations, setting.schema, ready.parameters, setting.workload(comparison.workload), run)
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


def _write_reference(ready: Ready, writer: ComparisonWriter, teller: Teller) -> None:
    """Computes the reference answers to a sample of what was asked and answered by at least one setting."""
    comparison = ready.comparison
    asked_ones = [setting for setting in comparison.settings if not setting.only_loads]
    folders = [folder for setting in asked_ones if has_results(folder := writer.run_folder(setting.id, 1))]
    runs = [run for run in map(read_run, folders) if run.state == "complete"]
    answers = [table for run in runs if (table := run.table("answers")) is not None]
    if not answers:
        return
    phase = runs[0].manifest.phases.index(MEASURE)
    reads = [
        number
        for number, name in enumerate(ready.names)
        if comparison.operations.operation[name].writes is None and not is_of_registers(name)
    ]
    asked = {number: _answered(answers, phase, number)[:REFERENCE_SAMPLE] for number in reads}
    total = sum(len(numbers) for numbers in asked.values())
    if not total:
        return
    with teller.task("reference answers") as task:
        plan = build_plan(comparison.operations, asked_ones[0].schema, ready.parameters, comparison.workload, 0)
        writer.write_reference(
            reference_table(ready.workbench, comparison.operations, ready.names, plan, ready.parameters, phase, asked)
        )
        task.end(f"{total} computed from the dataset itself")


def _answered(answers: list[pa.Table], phase: int, operation: int) -> list[int]:
    """The numbers of an operation that some run has an answer to, in order."""
    return sorted({k for table in answers for k in of_kind(table, phase, operation)["k"].to_pylist()})


def _remove_data(ready: Up, writer: ComparisonWriter, *, drop_after: bool) -> None:
    """Removes what was loaded below the results. Data at a target that the user named stays, unless `drop_after`."""
    for setting in ready.comparison.settings:
        is_below = setting.temporary is not None and setting.temporary.exists()
        if is_below or (drop_after and setting.target.is_url):
            ready.targets[setting.id].remove(owner=writer.owner.to_json())
    remove_if_empty(writer.folder / DATA_FOLDER)
