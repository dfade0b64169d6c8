"""Work on records: YCSB's table, read and written in a mix of its operations, on every database that has a schema for it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from sensorbench._engine import Target
from sensorbench.benchmarks.stress.work import Means, Work
from sensorbench.compat.ycsb import SCHEMA, CoreWorkload, Phase, driver_schema, operations_of_phase, plan_of, tables_of
from sensorbench.errors import FailedError, UsageError
from sensorbench.results import RunResult
from sensorbench.results.engine_plan import EnginePlan, OperationsPlan
from sensorbench.results.ownership import Intent
from sensorbench.runner import (
    ALONE,
    DATA_FOLDER,
    TargetSpec,
    Variant,
    VariantSpec,
    make_variants,
    run_plan,
)
from sensorbench.schemas import load_schema

# The words of a mix, and YCSB's keys for them.
OPERATIONS = {
    "read": "readproportion",
    "write": "updateproportion",
    "insert": "insertproportion",
    "scan": "scanproportion",
    "read_modify_write": "readmodifywriteproportion",
}
TITLES = {
    "READ": "Read a record",
    "UPDATE": "Overwrite a record",
    "INSERT": "Add a record",
    "SCAN": "Read records in the order of their keys",
    "READ-MODIFY-WRITE": "Read a record and write it back changed",
}
# This many records are added at a time before the steps.
ADDED_AT_ONCE = 64
# Fewer are added by one process before several of them have begun.
MIN_SHARED = 10_000
# What decides which records are there.
_OF_RECORDS = (
    "recordcount",
    "insertstart",
    "insertcount",
    "fieldcount",
    "fieldnameprefix",
    "fieldlength",
    "minfieldlength",
    "fieldlengthdistribution",
    "insertorder",
    "zeropadding",
)
BEGUN = json.dumps({"stress": "begun"})
GROWN = json.dumps({"stress": "grown"})


def with_mix(workload: CoreWorkload, mix: Mapping[str, float]) -> CoreWorkload:
    """The workload with another mix: weights by the words of OPERATIONS. Raises UsageError."""
    unknown = [name for name in mix if name not in OPERATIONS]
    if unknown:
        raise UsageError(f"--mix: {unknown[0]!r}: expected one of {', '.join(OPERATIONS)}")
    if any(weight < 0.0 for weight in mix.values()) or not sum(mix.values()) > 0.0:
        raise UsageError("--mix: the weights must be at least zero, one of them above zero")
    shares = {key: mix.get(name, 0.0) / sum(mix.values()) for name, key in OPERATIONS.items()}
    return replace(workload, **shares)  # type: ignore[arg-type]


class RecordWork(Work):
    """Operations on the records of a core workload."""

    def __init__(self, target: TargetSpec, workload: CoreWorkload, folder: Path, *, seed: int, replace: bool) -> None:
        schema = load_schema(SCHEMA, operations="ycsb", database=target.database.dialect, fields=workload.field_names)
        planned = operations_of_phase(workload, "run")
        self.variant = make_variants([VariantSpec(target, schema)], folder / DATA_FOLDER)[0]
        self.operations = {operation.name: TITLES[operation.kind] for operation in planned}
        self.described = {
            "data": f"{workload.loaded:,} records of {workload.fieldcount} fields, each of {workload.fieldlength} bytes",
            "records": workload.loaded,
            "mix": {operation.name: operation.weight for operation in planned},
            "choice": workload.requestdistribution,
        }
        self._workload = workload
        self._seed = seed
        self._replace = replace
        self._planned = self._plan("run")

    @property
    def seed(self) -> int:
        """Seed of all operations."""
        return self._seed

    def plan(self) -> OperationsPlan:
        """The operations on records that are there."""
        return self._planned

    def tables(self) -> list[pa.Table]:
        """How many records a scan reads."""
        return tables_of(self._workload, "run")

    def intent(self, target: Target) -> Intent:
        """Records that are just those of the workload are used, whoever added them."""
        if target.fingerprint() == self._fingerprint():
            return "attach"
        return "replace" if self._replace else "create"

    def make_ready(self, at: Variant, target: Target, means: Means) -> None:
        """Adds the records, unless just these are there."""
        intent = self.intent(target)
        if intent == "attach":
            means.progress.say(f"  {self._workload.loaded:,} records are there already")
        else:
            target.create(self._driver_schema("load"), BEGUN, intent=intent, owner=means.owner.to_json())
            self._add_records(at, target, means)
            target.settle()
        target.attach(self._driver_schema("run"), intent="attach", owner=means.owner.to_json())
        # Where operations add records, others are there the next time.
        target.set_fingerprint(GROWN if self._workload.insertproportion else self._fingerprint())

    def check_count(self, target: Target) -> None:
        """Raises FailedError unless the target has just as many records as the workload says, counted one by one."""
        counted = target.count(SCHEMA)
        if counted != self._workload.loaded:
            raise FailedError(f"{counted:,} of {self._workload.loaded:,} records are there")

    def _plan(self, phase: Phase) -> EnginePlan:
        return plan_of(
            self._workload,
            phase,
            self.variant.schema,
            concurrency=ADDED_AT_ONCE,
            threads=1,
            seed=self._seed,
            timeout_s=60.0,
            ycsb_zipfian=False,
        )

    def _fingerprint(self) -> str:
        """What is noted at a target that has these records."""
        return json.dumps({"stress": {**{key: getattr(self._workload, key) for key in _OF_RECORDS}, "seed": self._seed}})

    def _driver_schema(self, phase: Phase) -> str:
        return json.dumps(driver_schema(self._workload, phase, self.variant.schema))

    def _add_records(self, at: Variant, target: Target, means: Means) -> None:
        records = self._workload.loaded
        with means.progress.task(f"adding {records:,} records", total=records) as task:
            run = run_plan(
                target,
                at,
                self._plan("load"),
                [],
                means.folder,
                means.servers,
                lambda _, now: task.advance_to(now["phases"][0]["started"], f"{now['phases'][0]['started']:,}"),
                generators=means.generators if records >= MIN_SHARED else ALONE,
            )
            _check_all_added(run, records)
            task.end(f"{records:,} records")


class SharedRecordWork(RecordWork):
    """Operations on records that servers have when they start: none are added, and none may be missing."""

    def make_ready(self, at: Variant, target: Target, means: Means) -> None:
        """Counts the records."""
        if self.intent(target) != "attach":
            raise FailedError("the records with which the servers started differ from those of this benchmark")
        super().make_ready(at, target, means)
        self.check_count(target)


def _check_all_added(run: RunResult, records: int) -> None:
    added = sum(phase.operations["insert"]["counts"]["ok"] for phase in run.manifest.phase_figures)
    if added != records:
        why = next((error["first_message"] for error in run.manifest.errors), "the others timed out")
        raise FailedError(f"{added:,} of {records:,} records could be added: {why}")
