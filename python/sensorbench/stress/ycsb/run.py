"""Carries out a phase of a core workload on a target, and writes it down as any other run."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorbench._engine import Target
from sensorbench.errors import FailedError, InterruptedRunError, NamespaceError, UsageError
from sensorbench.experiment import DATA_FOLDER, Side, make_settings, parse_target
from sensorbench.experiment.run import run_and_write
from sensorbench.experiment.servers import Servers, servers
from sensorbench.experiment.settings import Setting
from sensorbench.progress import Teller
from sensorbench.results import RunManifest, RunResult, RunWriter, read_run
from sensorbench.results.latencies import MEASURE
from sensorbench.results.manifest import Process, now
from sensorbench.schemas import Operations, Schema, load_schema
from sensorbench.stress.ycsb.core_workload import CoreWorkload
from sensorbench.stress.ycsb.plan import Phase, asked_in, operation_of, plan_of, tables_of

SCHEMA = "usertable"
MARK = json.dumps({"ycsb": "loaded"})
_DONE: dict[Phase, str] = {"load": "loading", "run": "transactions"}


@dataclass(frozen=True)
class Wish:
    """What somebody asks for: a phase, on a target, with so many operations in flight."""

    workload: CoreWorkload
    phase: Phase
    target: str
    seed: int = 1
    timeout_s: float = 60.0
    ycsb_zipfian: bool = False
    replace: bool = False


def carry_out(wish: Wish, folder: Path, teller: Teller) -> RunResult:
    """Does what is asked for. Raises UsageError before anything is written; FailedError and InterruptedRunError after what was done
    until then is on disk.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; name another folder with --out")
    setting = _setting(wish, folder)
    plan, schema = _plan(wish, setting.schema), _driver_schema(wish, setting.schema)
    with servers([setting], teller, pin=False) as started:
        at = started.at_their_urls([setting])[0]
        target = at.engine_target()
        _make_ready(target, schema, wish)
        return _run(wish, at, target, plan, started, folder, teller)


def _setting(wish: Wish, folder: Path) -> Setting:
    target = parse_target(wish.target)
    if target.place in ("folder", "started"):
        name = target.database.name
        place = f"{name}:PATH" if target.database.embedded else f"lab:NAME (sensorbench lab up {name}) or a URL"
        raise UsageError(f"--target {wish.target}: what is loaded must still be there afterwards; expected {place}")
    schema = load_schema(SCHEMA, operations="ycsb", database=target.database.dialect, fields=wish.workload.field_names)
    return make_settings([Side(target, schema)], folder / DATA_FOLDER)[0]


def _plan(wish: Wish, schema: Schema) -> dict[str, Any]:
    return plan_of(
        wish.workload,
        wish.phase,
        schema,
        in_flight=wish.workload.threadcount,
        threads=1,
        seed=wish.seed,
        timeout_s=wish.timeout_s,
        ycsb_zipfian=wish.ycsb_zipfian,
    )


def _driver_schema(wish: Wish, schema: Schema) -> dict[str, Any]:
    asked = asked_in(wish.workload, wish.phase)
    operations = Operations(operation={one.name: operation_of(one) for one in asked})
    return schema.driver_schema(operations, [one.name for one in asked], {})


def _make_ready(target: Target, schema: dict[str, Any], wish: Wish) -> None:
    """An empty table to load into, or the one that was loaded. Records that follow others go to where those are."""
    try:
        if wish.phase == "load" and wish.workload.insertstart == 0:
            target.create(json.dumps(schema), MARK, wish.replace)
            return
        if target.mark() != MARK:
            raise UsageError(f"--target {wish.target}: no records are there; load them first: sensorbench ycsb load …")
        target.attach(json.dumps(schema))
    except NamespaceError as error:
        raise FailedError(str(error)) from None


def _run(
    wish: Wish, setting: Setting, target: Target, plan: dict[str, Any], started: Servers, folder: Path, teller: Teller
) -> RunResult:
    manifest = RunManifest(
        process=Process.this(),
        created=now(),
        setting=setting.manifest({}),
        repeat=1,
        temperature="warm",
        seed=wish.seed,
        operations=[one["operation"]["name"] for one in plan["operations"]],
        phases=[MEASURE],
        plan={**{key: plan[key] for key in ("phases", "in_flight", "threads", "timeout_s")}, "log_every": None},
        description=json.loads(target.describe()),
    )
    writer = RunWriter(folder, manifest)
    readers = [table.to_reader() for table in tables_of(wish.workload, wish.phase)]
    with teller.task(f"{_DONE[wish.phase]} at {wish.target}", total=1.0) as task:
        try:
            whole = run_and_write(
                target,
                plan,
                readers,
                writer,
                started.processes(),
                lambda snapshot: task.advance_to(*_progress(snapshot, plan)),
                _ignore,
            )
        except KeyboardInterrupt:
            raise InterruptedRunError(f"interrupted; what was measured until then is in {folder}") from None
        task.end(f"{sum(one['counts']['ok'] for one in whole['phases'][0]['operations'].values()):,} operations")
    return read_run(folder)


def _ignore(*_: object) -> None:
    """Nothing is to be done at the end of the run."""


def _progress(snapshot: dict[str, Any], plan: dict[str, Any]) -> tuple[float, str]:
    phase = snapshot["phases"][0]
    operations = plan["phases"][0].get("operations")
    return (min(1.0, phase["started"] / operations) if operations else 0.0), f"{phase['started']:,} operations"
