"""The benchmark that a phase of a core workload is: records that are loaded, or transactions on those that were."""

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from sensorbench._engine import Target
from sensorbench.compat.drive import drive
from sensorbench.compat.targets import lasting_target
from sensorbench.compat.ycsb.core_workload import CoreWorkload, parse_core_workload
from sensorbench.compat.ycsb.options import YcsbOptions, YcsbRunOptions
from sensorbench.compat.ycsb.plan import Phase, driver_schema, operations_of_phase, plan_of, tables_of
from sensorbench.compat.ycsb.properties import overridden, read_all_properties
from sensorbench.errors import UsageError
from sensorbench.hosts.pool import HostPool
from sensorbench.lifecycle import Benchmark, Description, RunContext
from sensorbench.progress import ProgressReporter
from sensorbench.results.engine_plan import EnginePlan
from sensorbench.results.ownership import Claim, Intent, Owner
from sensorbench.results.planned import PlannedYcsb, ToolOperation, YcsbManifest
from sensorbench.results.writer import ManifestWriter
from sensorbench.runner import (
    DATA_FOLDER,
    LoadGenerators,
    Observer,
    Servers,
    Variant,
    VariantSpec,
    check_can_share,
    check_can_share_operations,
    check_namespace,
    driver_ceiling,
    load_generators,
    make_variants,
    running_servers,
)
from sensorbench.schemas import load_schema
from sensorbench.wording import counted

SCHEMA = "usertable"
# What is noted at a target that has records: the names of their fields, under this key.
FIELDS = "ycsb"
TIMEOUT_S = 60.0
_DONE: dict[Phase, str] = {"load": "loading", "run": "transactions"}


@dataclass(frozen=True)
class YcsbPlan:
    """A phase at a target: its plan for the engine, and the schema for the driver (JSON). `observers` are called some times a second with the run and its snapshot."""

    workload: CoreWorkload
    phase: Phase
    variant: Variant
    engine: EnginePlan
    driver_schema: str
    intent: Intent
    ycsb_zipfian: bool
    observers: Sequence[Observer]
    generators: LoadGenerators


def plan_ycsb(
    phase: Phase,
    options: YcsbOptions,
    folder: Path,
    progress: ProgressReporter,
    *,
    observers: Sequence[Observer] = (),
    replace: bool = False,
) -> YcsbPlan:
    """The plan of what options ask for. Raises UsageError for what makes no sense."""
    workload, notes = parse_core_workload(overridden(read_all_properties(options.files), options.properties))
    for note in notes:
        progress.warn(note)
    variant = _variant(workload, options.target, folder)
    if phase == "run" and not workload.operationcount and not workload.maxexecutiontime:
        raise UsageError("the run has no end: expected -p operationcount=…, or -p maxexecutiontime=… (s)")
    ycsb_zipfian = isinstance(options, YcsbRunOptions) and options.ycsb_zipfian
    engine = plan_of(
        workload,
        phase,
        variant.schema,
        concurrency=workload.threadcount,
        threads=1,
        seed=options.seed,
        timeout_s=TIMEOUT_S,
        ycsb_zipfian=ycsb_zipfian,
    )
    generators = load_generators(options, progress)
    check_can_share(generators, workload.threadcount, [variant.target.database])
    check_can_share_operations(generators, engine)
    schema = json.dumps(driver_schema(workload, phase, variant.schema))
    # Records that follow others go to where those are.
    begins = phase == "load" and workload.insertstart == 0
    intent: Intent = ("replace" if replace else "create") if begins else "attach"
    return YcsbPlan(workload, phase, variant, engine, schema, intent, ycsb_zipfian, observers, generators)


def _variant(workload: CoreWorkload, target_text: str, folder: Path) -> Variant:
    target = lasting_target(target_text)
    schema = load_schema(SCHEMA, operations="ycsb", database=target.database.dialect, fields=workload.field_names)
    return make_variants([VariantSpec(target, schema)], folder / DATA_FOLDER)[0]


class YcsbBenchmark(Benchmark[YcsbPlan, YcsbManifest, ManifestWriter[YcsbManifest]]):
    """Loads the records of a core workload, or executes its transactions."""

    manifest = YcsbManifest
    writer = ManifestWriter

    def hosts(self, plan: YcsbPlan) -> HostPool | None:
        """Those of its load generators."""
        return plan.generators.hosts

    def servers(self, plan: YcsbPlan, progress: ProgressReporter) -> AbstractContextManager[Servers]:
        """The target's server."""
        return running_servers([plan.variant], progress, pin=False)

    def check(self, plan: YcsbPlan, servers: Servers, owner: Owner) -> None:
        """Raises UsageError if the target's namespace is refused, or has no records of the workload."""
        target = servers.at_their_urls([plan.variant])[0].engine_target()
        if plan.intent == "attach":
            _check_loaded(target, plan)
        check_namespace(target, Claim(owner, plan.intent))

    def describe(self, plan: YcsbPlan, servers: Servers) -> Description[PlannedYcsb]:
        """The phase, the properties and what they make of it."""
        database, planned = plan.variant.target.database, operations_of_phase(plan.workload, plan.phase)
        return Description(
            title=f"YCSB, {_DONE[plan.phase]} at {plan.variant.target.label}",
            plan=PlannedYcsb(
                operations={operation.name: ToolOperation(kind=operation.kind) for operation in planned},
                phase=plan.phase,
                properties=asdict(plan.workload),
                ycsb_zipfian=plan.ycsb_zipfian,
                seed=plan.engine["seed"],
                timeout_s=TIMEOUT_S,
            ),
            variants=[
                plan.variant.manifest(
                    {operation.name: plan.variant.schema.described_statements(operation.name) for operation in planned}
                )
            ],
            environment={
                "driver_ceiling_per_s": driver_ceiling(database) if database.embedded else None,
                "servers": servers.described(),
            },
        )

    def execute(self, plan: YcsbPlan, context: RunContext[ManifestWriter[YcsbManifest]]) -> None:
        """Makes the table, or finds it, and carries out the phase. Until all records that are loaded are there, the fingerprint says so."""
        variant = context.servers.at_their_urls([plan.variant])[0]
        target, owner = variant.engine_target(), context.owner.to_json()
        if plan.intent == "attach":
            target.attach(plan.driver_schema, intent=plan.intent, owner=owner)
        else:
            target.create(plan.driver_schema, _fingerprint(plan, "loading"), intent=plan.intent, owner=owner)
        if plan.phase == "load":
            target.set_fingerprint(_fingerprint(plan, "loading"))
        tables = tables_of(plan.workload, plan.phase)
        drive(context, target, variant, plan.engine, tables, plan.observers, _DONE[plan.phase], generators=plan.generators)
        if plan.phase == "load":
            target.set_fingerprint(_fingerprint(plan, "loaded"))


def _fingerprint(plan: YcsbPlan, state: Literal["loading", "loaded"]) -> str:
    return json.dumps({FIELDS: plan.workload.field_names, "state": state})


def _check_loaded(target: Target, plan: YcsbPlan) -> None:
    """Raises UsageError unless records with the fields of the workload are there."""
    at, wanted = f"--target {plan.variant.target.text}", list(plan.workload.field_names)
    noted = json.loads(target.fingerprint() or "{}")
    there = noted.get(FIELDS)
    if there is None:
        raise UsageError(f"{at}: no records are there; load them first: sensorbench ycsb load …")
    if noted["state"] != "loaded":
        raise UsageError(f"{at}: loading there was cut short; load all records again: sensorbench ycsb load … --replace")
    if there != wanted:
        fields = f"have {_fields(there)}, those of this workload {_fields(wanted)}"
        raise UsageError(
            f"{at}: the records there {fields}; expected the fieldcount and fieldnameprefix that they were loaded with"
        )


def _fields(names: list[str]) -> str:
    return f"{counted(len(names), 'field')} from {names[0]} on"
