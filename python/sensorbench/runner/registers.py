"""Registers beside any load: a mix may name the operations that write and read them, whatever else is asked of whatever data.
What the database promises shows in their history; see `history`.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from sensorbench.errors import UsageError
from sensorbench.runner.comparison import Comparison
from sensorbench.runner.plan import Parameters
from sensorbench.schemas import Operations, Schema, load_operations, load_schema, shipped_schemas
from sensorbench.schemas.schema_file import SchemaFile

Entry = TypeVar("Entry")

REGISTERS = "registers"
WRITE = "write_register"
READ = "read_register"
KEY, VALUE = "key", "value"
# Keys of a run, and runs of a second, are fewer.
_KEYS_OF_A_RUN, _RUNS = 1000, 1000


def is_of_registers(name: str) -> bool:
    """Whether an operation writes or reads registers, which are no part of the dataset."""
    return name in {WRITE, READ}


def with_registers(comparison: Comparison) -> Comparison:
    """The comparison with all that its mix asks of registers. Raises UsageError when a variant cannot have them."""
    workload = comparison.workload
    if not any(is_of_registers(name) for name in workload.mix):
        return comparison
    if workload.log == "none" or workload.answers == "none":
        raise UsageError(f"mix: {WRITE} and {READ} are checked by every record and every answer; set log and answers to all")
    operations = operations_with_registers(comparison.operations, set(workload.mix))
    _check_parameters(operations, set(workload.mix))
    variants = comparison.variants
    if operations is not comparison.operations:
        variants = [
            variant if variant.only_loads else replace(variant, schema=schema_with_registers(variant.schema))
            for variant in variants
        ]
    return replace(comparison, operations=operations, variants=variants, workload=workload.model_copy(update={"log": "all"}))


def _check_parameters(operations: Operations, names: set[str]) -> None:
    """Operations of a user's own need the parameters and the column that histories are made of."""
    for name, wanted in ((WRITE, {KEY, VALUE}), (READ, {KEY})):
        found = operations.operation[name].parameters if name in names else dict.fromkeys(wanted, "integer")
        if set(found) != wanted or set(found.values()) != {"integer"}:
            raise UsageError(f"operation.{name}.parameters: expected {' and '.join(sorted(wanted))}, integers; found {found}")
    if READ in names and not operations.operation[READ].columns[0].computed:
        raise UsageError(f"operation.{READ}.columns: expected first the value, a double with computed = true")


def operations_with_registers(operations: Operations, names: set[str]) -> Operations:
    """The operations, with those of registers if they are named and not there."""
    if not any(is_of_registers(name) and name not in operations.operation for name in names):
        return operations
    more = load_operations(REGISTERS)
    where = f"the operations other than {WRITE}"
    return operations.model_copy(
        update={
            "parameter_source": _joined(operations.parameter_source, more.parameter_source, where, "parameter_source"),
            "operation": _joined(operations.operation, more.operation, where, "operation"),
        }
    )


def schema_with_registers(schema: Schema) -> Schema:
    """The schema with the registers of its database beside its tables."""
    if not shipped_schemas(REGISTERS, schema.database):
        raise UsageError(
            f"mix: {WRITE} and {READ}: no schema of registers is shipped for {schema.database}; leave them out there"
        )
    more = load_schema(REGISTERS, operations=REGISTERS, database=schema.database).file
    return schema.with_file(_with_file(schema.file, more, str(schema.path)))


def _with_file(file: SchemaFile, more: SchemaFile, where: str) -> SchemaFile:
    return file.model_copy(
        update={
            "create": _joined(file.create, more.create, where, "create"),
            "operation": _beside(file.operation, more.operation, where, "operation"),
            "promises": more.promises,
        }
    )


def _beside(entry: Mapping[str, Entry], other: Mapping[str, Entry], where: str, key: str) -> dict[str, Entry]:
    """The entries of both, none of which have the same name."""
    shared = next((name for name in entry if name in other), None)
    if shared is not None:
        raise _taken(where, f"{key}.{shared}")
    return {**entry, **other}


def _taken(where: str, key: str) -> UsageError:
    return UsageError(f"{where}, {key}: registers have one of this name, too; rename it to use both")


def _joined(item: Any, other: Any, where: str, key: str) -> Any:
    """Both: tables with the keys of both, lists one after the other."""
    if isinstance(item, dict) and isinstance(other, dict):
        shared = {name: _joined(item[name], other[name], where, f"{key}.{name}") for name in item if name in other}
        return {**item, **other, **shared}
    if isinstance(item, list) and isinstance(other, list):
        return [*item, *other]
    raise _taken(where, key)


def with_keys_of_run(parameters: Parameters, operations: Operations, created: datetime, repetition: int) -> Parameters:
    """The same with keys that no other run has, not even one that was broken off, so that its registers begin empty."""
    first = (int(created.timestamp()) * _RUNS + repetition % _RUNS) * _KEYS_OF_A_RUN
    sources = operations.operation[WRITE].parameter_sources if WRITE in operations.operation else []
    moved = {
        name: _moved(table, first) for name, table in parameters.tables.items() if name in sources and KEY in table.column_names
    }
    return replace(parameters, tables={**parameters.tables, **moved})


def _moved(table: pa.Table, first: int) -> pa.Table:
    place = table.column_names.index(KEY)
    return table.set_column(place, KEY, pc.add(table[KEY], pa.scalar(first, pa.int64())))
