"""Carries out a phase of a core workload on a target, and writes it down as any other run."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sensorbench._engine import Target
from sensorbench.compat.ycsb.core_workload import CoreWorkload
from sensorbench.compat.ycsb.plan import Phase, driver_schema, plan_of, tables_of
from sensorbench.errors import NamespaceError, UsageError
from sensorbench.paths import check_is_free
from sensorbench.progress import ProgressReporter
from sensorbench.results import RunResult
from sensorbench.results.engine_plan import EnginePlan
from sensorbench.results.ownership import Owner, new_id
from sensorbench.runner import (
    DATA_FOLDER,
    Observer,
    Variant,
    VariantSpec,
    drive_one_phase,
    make_variants,
    parse_target,
    running_servers,
)
from sensorbench.schemas import Schema, load_schema
from sensorbench.schemas.engine_types import DriverSchema

SCHEMA = "usertable"
# What is noted at a target that has records: the names of their fields, under this key.
FIELDS = "ycsb"
_DONE: dict[Phase, str] = {"load": "loading", "run": "transactions"}


@dataclass(frozen=True)
class YcsbSpec:
    """What somebody asks for: a phase, on a target, with so many operations in flight."""

    workload: CoreWorkload
    phase: Phase
    target: str
    seed: int = 1
    timeout_s: float = 60.0
    ycsb_zipfian: bool = False
    replace: bool = False


def carry_out(spec: YcsbSpec, folder: Path, reporter: ProgressReporter, observers: Sequence[Observer] = ()) -> RunResult:
    """Does what is asked for. `observers` are called some times a second with the run and its snapshot. Raises UsageError before anything is
    written; FailedError and InterruptedRunError after what was done until then is on disk.
    """
    check_is_free(folder)
    variant = _variant(spec, folder)
    plan, schema = _plan(spec, variant.schema), driver_schema(spec.workload, spec.phase, variant.schema)
    with running_servers([variant], reporter, pin=False) as started:
        at = started.at_their_urls([variant])[0]
        target = at.engine_target()
        owner = Owner.of(new_id(), folder)
        _make_ready(target, schema, spec, owner)
        with reporter.task(f"{_DONE[spec.phase]} at {spec.target}", total=1.0) as task:
            result = drive_one_phase(
                target, at, plan, tables_of(spec.workload, spec.phase), folder, started, observers, task, owner.id
            )
        if spec.phase == "load":
            target.set_fingerprint(_fingerprint(spec, "loaded"))
        return result


def _variant(spec: YcsbSpec, folder: Path) -> Variant:
    target = parse_target(spec.target)
    if target.place in ("folder", "started"):
        name = target.database.name
        place = f"{name}:PATH" if target.database.embedded else f"lab:NAME (sensorbench lab up {name}) or a URL"
        raise UsageError(f"--target {spec.target}: what is loaded must still be there afterwards; expected {place}")
    schema = load_schema(SCHEMA, operations="ycsb", database=target.database.dialect, fields=spec.workload.field_names)
    return make_variants([VariantSpec(target, schema)], folder / DATA_FOLDER)[0]


def _plan(spec: YcsbSpec, schema: Schema) -> EnginePlan:
    if spec.phase == "run" and not spec.workload.operationcount and not spec.workload.maxexecutiontime:
        raise UsageError("the run has no end: expected -p operationcount=…, or -p maxexecutiontime=… (s)")
    return plan_of(
        spec.workload,
        spec.phase,
        schema,
        concurrency=spec.workload.threadcount,
        threads=1,
        seed=spec.seed,
        timeout_s=spec.timeout_s,
        ycsb_zipfian=spec.ycsb_zipfian,
    )


def _make_ready(target: Target, schema: DriverSchema, spec: YcsbSpec, owner: Owner) -> None:
    """An empty table to load into, or the one that was loaded. Records that follow others go to where those are. Until all that are
    loaded are there, the fingerprint says so.
    """
    try:
        if spec.phase == "load" and spec.workload.insertstart == 0:
            intent = "replace" if spec.replace else "create"
            target.create(json.dumps(schema), _fingerprint(spec, "loading"), intent=intent, owner=owner.to_json())
            return
        _check_loaded(target, spec)
        target.attach(json.dumps(schema), intent="attach", owner=owner.to_json())
        if spec.phase == "load":
            target.set_fingerprint(_fingerprint(spec, "loading"))
    except NamespaceError as error:
        raise UsageError(str(error)) from None


def _fingerprint(spec: YcsbSpec, state: Literal["loading", "loaded"]) -> str:
    return json.dumps({FIELDS: spec.workload.field_names, "state": state})


def _check_loaded(target: Target, spec: YcsbSpec) -> None:
    """Raises UsageError unless records with the fields of the workload are there."""
    at, wanted = f"--target {spec.target}", list(spec.workload.field_names)
    noted = json.loads(target.fingerprint() or "{}")
    there = noted.get(FIELDS)
    if there is None:
        raise UsageError(f"{at}: no records are there; load them first: sensorbench ycsb load …")
    if noted["state"] != "loaded":
        raise UsageError(f"{at}: the loading there was cut short; load all records anew: sensorbench ycsb load … --replace")
    if there != wanted:
        fields = f"have {_fields(there)}, those of this workload {_fields(wanted)}"
        raise UsageError(
            f"{at}: the records there {fields}; expected the fieldcount and fieldnameprefix that they were loaded with"
        )


def _fields(names: list[str]) -> str:
    return f"{len(names)} fields from {names[0]} on"
