"""Plans for the engine: the load phase and the transactions of a core workload, as operations on records that are computed.

Every record's name is YCSB's own (`user` and the number, hashed or not), so that what one has loaded the other can use. Its fields are random
texts. The k-th operation depends on seed and k alone. A read-modify-write is one operation here; in YCSB its read and its update are also
counted by themselves.
"""

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from sensorbench.compat.ycsb.core_workload import TABLE, CoreWorkload
from sensorbench.errors import UsageError
from sensorbench.results import engine_plan
from sensorbench.results.engine_plan import EnginePlan, Pace, ParameterOrigin, PlannedPhase, PlannedSource
from sensorbench.runner import planned_operation
from sensorbench.schemas import Operation, Operations, Schema
from sensorbench.schemas.engine_types import DriverSchema
from sensorbench.schemas.operations import Column
from sensorbench.schemas.types import ValueType

KEY, COUNT = "ycsb_key", "records"
# As in YCSB, and with what its own generator makes of the word.
ZIPFIAN = 0.99
# What is chosen stays this many operations behind what is being inserted for each that may be in flight.
WINDOW_OF_ONE = 4

Phase = Literal["load", "run"]


@dataclass(frozen=True)
class PlannedOperation:
    """An operation of a plan: its name in schemas, YCSB's name for its kind, its weight, and the fields that it reads or writes."""

    name: str
    kind: str
    weight: float
    fields: tuple[str, ...]


def operations_of_phase(workload: CoreWorkload, phase: Phase) -> list[PlannedOperation]:
    """What a phase asks, in YCSB's order. Where only one field is read or written, each field is an operation of its own."""
    fields = workload.field_names
    if phase == "load":
        return [PlannedOperation("insert", "INSERT", 1.0, fields)]
    whole = {
        "READ": ("read", workload.readallfields),
        "UPDATE": ("update", workload.writeallfields),
        "INSERT": ("insert", True),
        "SCAN": ("scan", True),
        "READ-MODIFY-WRITE": ("read_modify_write", workload.writeallfields),
    }
    planned = []
    for kind, weight in workload.proportions.items():
        name, is_whole = whole[kind]
        if is_whole:
            planned.append(PlannedOperation(name, kind, weight, fields))
        else:
            planned += [PlannedOperation(f"{name}_{field}", kind, weight / len(fields), (field,)) for field in fields]
    return planned


def operation_of(planned: PlannedOperation) -> Operation:
    """The operation in the engine's words. Records are not in a dataset: what a read must give, nothing else says."""
    texts: dict[str, ValueType] = {KEY: "text"}
    if planned.kind == "SCAN":
        texts[COUNT] = "integer"
    if planned.kind in ("READ", "SCAN"):
        columns = [Column(name=name, type="text") for name in planned.fields]
        return Operation(title=planned.kind, question=planned.kind, parameters=texts, columns=columns, reference="")
    texts |= dict.fromkeys(planned.fields, "text")
    return Operation(title=planned.kind, question=planned.kind, parameters=texts, writes=TABLE)


def driver_schema(workload: CoreWorkload, phase: Phase, schema: Schema) -> DriverSchema:
    """What the driver gets about the table and the operations of a phase."""
    operations = {operation.name: operation_of(operation) for operation in operations_of_phase(workload, phase)}
    return schema.driver_schema(Operations(operation=operations), list(operations), {})


def plan_of(
    workload: CoreWorkload,
    phase: Phase,
    schema: Schema,
    *,
    concurrency: int,
    threads: int,
    seed: int,
    timeout_s: float,
    ycsb_zipfian: bool,
) -> EnginePlan:
    """The plan of a phase. Raises UsageError for a workload without records."""
    if workload.loaded == 0:
        keys = f"recordcount is {workload.recordcount}, insertstart {workload.insertstart}"
        raise UsageError(f"there are no records ({keys}): expected how many there are to be (-p recordcount=…)")
    planned = operations_of_phase(workload, phase)
    names = {"prefix": "user", "hashed": workload.insertorder == "hashed", "digits": workload.zeropadding}
    fields = [_lengths(workload)] * workload.fieldcount
    inserts = next((number for number, each in enumerate(planned) if each.kind == "INSERT"), None)
    # As in YCSB, new records follow all that there are, also those that others load.
    first = workload.insertstart if phase == "load" else workload.recordcount
    sources: list[PlannedSource] = [{"new_records": {"first": first, "names": names}}, {"texts": fields}]
    if phase == "run":
        grown = None if inserts is None else {"operation": inserts, "parameter": 0, "window": WINDOW_OF_ONE * concurrency}
        records = {"first": workload.insertstart, "present": workload.loaded, "names": names, "grown": grown}
        sources.append({"records": {**records, "choice": _choice(workload, ycsb_zipfian=ycsb_zipfian)}})
        sources.append({"rows": {"table": 0, "choice": _of_scans(workload)}})
    pace: Pace | None = {"segments": [{"from_per_s": workload.target}]} if workload.target else None
    operations = workload.loaded if phase == "load" else workload.operationcount or None
    measured: PlannedPhase = {"name": "measure", "operations": operations, "pace": pace}
    if workload.maxexecutiontime:
        measured["duration_s"] = workload.maxexecutiontime
    return {
        "seed": seed,
        "operations": [_planned(each, workload, schema) for each in planned],
        "parameter_sources": sources,
        "phases": [measured],
        "concurrency": concurrency,
        "threads": threads,
        "timeout_s": timeout_s,
    }


def tables_of(workload: CoreWorkload, phase: Phase) -> list[pa.Table]:
    """What the sources of a plan take rows from: how many records a scan reads."""
    lengths = pa.array(range(workload.minscanlength, workload.maxscanlength + 1), pa.int64())
    return [pa.table({COUNT: lengths})] if phase == "run" else []


# Numbers of the sources.
_NEW, _TEXTS, _RECORDS, _SCANS = range(4)


def _planned(planned: PlannedOperation, workload: CoreWorkload, schema: Schema) -> engine_plan.PlannedOperation:
    operation = operation_of(planned)
    fields = workload.field_names
    key = _NEW if planned.kind == "INSERT" else _RECORDS
    sources: dict[str, ParameterOrigin] = {KEY: {"source": key, "column": 0}, COUNT: {"source": _SCANS, "column": 0}}
    of_fields: dict[str, ParameterOrigin] = {name: {"source": _TEXTS, "column": number} for number, name in enumerate(fields)}
    found = [{**sources, **of_fields}[name] for name in operation.parameters]
    return planned_operation(planned.name, operation, schema, found, planned.weight)


def _lengths(workload: CoreWorkload) -> dict[str, Any]:
    """How long fields are."""
    choices: dict[str, Any] = {"constant": "uniform", "uniform": "uniform", "zipfian": {"zipfian": ZIPFIAN}}
    low = workload.fieldlength if workload.fieldlengthdistribution == "constant" else workload.minfieldlength
    return {"min": low, "max": workload.fieldlength, "choice": choices[workload.fieldlengthdistribution]}


def _of_scans(workload: CoreWorkload) -> Any:
    return {"zipfian": ZIPFIAN} if workload.scanlengthdistribution == "zipfian" else "uniform"


def _choice(workload: CoreWorkload, *, ycsb_zipfian: bool) -> Any:
    """How records are chosen."""
    choices: dict[str, Any] = {
        "uniform": "uniform",
        "sequential": "sequential",
        "zipfian": "ycsb_zipfian" if ycsb_zipfian else {"scattered_zipfian": ZIPFIAN},
        "latest": {"latest": ZIPFIAN},
        "hotspot": {"hotspot": {"rows": workload.hotspotdatafraction, "operations": workload.hotspotopnfraction}},
        "exponential": {"exponential": {"percentile": workload.exponential_percentile, "rows": workload.exponential_frac}},
    }
    return choices[workload.requestdistribution]
