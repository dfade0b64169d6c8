"""Plans for the engine: the operations of a profile with what they are about.

An insertion of several rows is one batch. Batches of different sizes are different statements, so each size is an operation of
its own, as often as it comes among the insertions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sensorbench.compat.cassandra_stress.cql import quoted
from sensorbench.compat.cassandra_stress.population import Population
from sensorbench.compat.cassandra_stress.profile import INSERT, BatchType, Profile
from sensorbench.compat.cassandra_stress.table import Table
from sensorbench.compat.cassandra_stress.visits import (
    Partitions,
    arguments,
    insertions,
    max_calls,
    max_insertions,
    rows_of_a_partition,
)
from sensorbench.errors import SchemaError, UsageError
from sensorbench.results.engine_plan import EnginePlan, Pace, ParameterOrigin, PlannedPhase
from sensorbench.runner import planned_operation
from sensorbench.schemas import Operation, Operations, Schema, load_schema
from sensorbench.schemas.engine_types import DriverSchema
from sensorbench.schemas.operations import Column as AnswerColumn
from sensorbench.schemas.schema_file import OperationText

# Databases whose schemas have this shape run profiles.
SCHEMAS = "cassandra_stress"
# Servers keep prepared statements in little memory, by default 10 MB: four times as many values do not fit there.
MAX_PREPARED_VALUES = 15_000
# How many calls of a query differ where nobody says how many operations there are.
DEFAULT_CALLS = 100_000
# Of every operation there is a record, unless there are more.
MAX_LOGGED = 1_000_000
# Insertions in turn may be so many more than asked for, that each size comes as often in every round.
_SURPLUS = 0.01


@dataclass(frozen=True)
class PlannedOperation:
    """An operation of a plan: what the profile calls it, its weight, how it is asked, and the rows of a table that it draws
    from. Of an insertion, how many rows it writes, and of how many partitions on average.
    """

    name: str
    kind: str
    weight: float
    operation: Operation
    statement: str
    parameters: pa.Table
    rows: int | None = None
    partitions: float = 1.0


@dataclass(frozen=True)
class Mix:
    """What a run consists of: weights by the names of operations, how many operations or seconds, and the partitions that it is
    about.
    """

    weights: dict[str, float]
    operations: int | None
    duration_s: float | None
    partitions: Partitions

    @property
    def writes_each_once(self) -> bool:
        """Whether each partition is to be written, one after the other."""
        return set(self.weights) == {INSERT} and self.partitions.in_turn


class ProfileSchema(Schema):
    """The profile's table and operations as a schema of a database. Errors have their place in the profile."""

    def __init__(self, profile: Profile, database: str, planned: Sequence[PlannedOperation] = (), consistency: str = "") -> None:
        of_each = {
            operation.name: [OperationText.model_validate({"statement": operation.statement, "consistency": consistency})]
            for operation in planned
        }
        create = {"statements": [statement for statement, _ in profile.create]}
        file = load_schema("profile", operations=SCHEMAS, database=database).file
        super().__init__(profile.path, profile.path.stem, file.model_copy(update={"create": create, "operation": of_each}), {})
        self._profile = profile
        self._kinds = {operation.name: operation.kind for operation in planned}

    def error(self, key: str, message: str) -> UsageError:
        """An error about a key of the schema."""
        part, _, name = key.partition(".")
        if part == "create":
            number = name.removeprefix("statements[").rstrip("]")
            return self._profile.create[int(number) if number.isdigit() else 0][1].error(message)
        kind = self._kinds.get(name.partition(".")[0], INSERT)
        return self._profile.error(INSERT if kind == INSERT else f"queries.{kind}.cql", message)

    def refusal(self, error: SchemaError) -> UsageError:
        """What a server says of a statement, as an error of the profile."""
        path, message = error.args
        return self.error(path, message)


def operations_of_mix(profile: Profile, mix: Mix, seed: int) -> tuple[list[PlannedOperation], list[str]]:
    """The operations of a run, and what to report. Raises UsageError if there would be too many rows."""
    population, notes = Population(profile, seed), []
    planned: list[PlannedOperation] = []
    for kind, weight in mix.weights.items():
        if kind == INSERT:
            found, more_notes = _insertions(population, mix, weight, seed)
        else:
            found, more_notes = _calls(population, mix, kind, weight, seed)
        planned += found
        notes += more_notes
    return planned, notes


def _insertions(population: Population, mix: Mix, weight: float, seed: int) -> tuple[list[PlannedOperation], list[str]]:
    profile = population.profile
    max_bytes, notes = max_insertions(profile), []
    wanted = mix.operations or min(max_bytes, DEFAULT_CALLS)
    if max_bytes < 1:
        raise profile.error(
            "columnspec", f"a partition has {rows_of_a_partition(profile):,.0f} rows on average, more than can be made here"
        )
    if wanted > max_bytes and mix.writes_each_once:
        raise UsageError(
            f"--operations {wanted}: at most {max_bytes:,} insertions can be made in one run; insert the others in further runs "
            "(--population FIRST..LAST)"
        )
    if wanted > max_bytes:
        notes.append(f"insertions repeat after {max_bytes:,}: more are not held")
    visits = insertions(population, mix.partitions, min(wanted, max_bytes), seed)
    sizes = np.unique(visits.sizes)
    max_rows = MAX_PREPARED_VALUES // len(profile.table.columns)
    if sizes.sum() > max_rows:
        raise profile.error(
            INSERT,
            f"an insertion writes {sizes.min():,} to {sizes.max():,} rows as one batch: {len(sizes)} sizes with "
            f"{sizes.sum():,} rows together, and at most {max_rows:,} can be prepared. Expected fewer partitions, a smaller "
            "cluster in columnspec, or a smaller select",
        )
    planned = []
    for size in sizes.tolist():
        drawn, partitions = visits.of_size(size)
        name = INSERT if len(sizes) == 1 else f"{INSERT}_{size}_rows"
        # Where insertions come in turn, weights are how many of each there are.
        share = drawn.num_rows if mix.writes_each_once else weight * drawn.num_rows / len(visits.sizes)
        planned.append(_insertion(profile, name, size, float(share), drawn, partitions))
    return planned, notes


def _insertion(profile: Profile, name: str, size: int, weight: float, drawn: pa.Table, partitions: float) -> PlannedOperation:
    columns = profile.table.columns
    names = [f"row{row}_{column.name}" for row in range(size) for column in columns]
    parameters = dict(zip(names, [column.value_type for column in columns] * size, strict=True))
    operation = Operation(
        title=name, question="writes rows as the profile says", parameters=parameters, writes=profile.table.name
    )
    return PlannedOperation(
        name, INSERT, weight, operation, insert_statement(profile.table, size, profile.insert.batch), drawn, size, partitions
    )


def _calls(population: Population, mix: Mix, name: str, weight: float, seed: int) -> tuple[list[PlannedOperation], list[str]]:
    profile = population.profile
    query = profile.queries[name]
    max_bytes = max_calls(profile, mix.partitions, query)
    wanted = mix.operations or min(max_bytes, DEFAULT_CALLS)
    if max_bytes < 1:
        raise profile.error(
            "columnspec", f"a partition has {rows_of_a_partition(profile):,.0f} rows on average, more than can be made here"
        )
    notes = [f"the arguments of {name} repeat after {max_bytes:,} operations: more are not held"] if wanted > max_bytes else []
    drawn = arguments(population, mix.partitions, query, name, min(wanted, max_bytes), seed)
    parameters = {argument: column.value_type for argument, column in query.arguments.items()}
    of_answer: dict[str, Any] = {"writes": profile.table.name}
    if query.answer:
        of_answer = {"columns": [AnswerColumn(name=name, type=of_type) for name, of_type in query.answer], "reference": ""}
    operation = Operation(title=name, question="as the profile says", parameters=parameters, **of_answer)
    return [PlannedOperation(name, name, weight, operation, query.statement, drawn)], notes


def insert_statement(table: Table, rows: int, batch: BatchType) -> str:
    """The statement that writes this many rows, as cassandra-stress has it: UPDATE, or INSERT where all columns are in the key."""
    statements = [_statement_of_row(table, row) for row in range(rows)]
    if rows == 1:
        return statements[0]
    kind = "" if batch == "LOGGED" else f"{batch} "
    return f"BEGIN {kind}BATCH {' '.join(f'{statement};' for statement in statements)} APPLY BATCH"


def _statement_of_row(table: Table, row: int) -> str:
    def place(name: str) -> str:
        return f":row{row}_{name}"

    name = quoted(table.name)
    if not table.others:
        columns = ", ".join(quoted(column.name) for column in table.key)
        return f"INSERT INTO {name} ({columns}) VALUES ({', '.join(place(column.name) for column in table.key)})"
    put = []
    for column in table.others:
        own = quoted(column.name)
        before = f"{own} + " if column.cql_type == "counter" else ""
        put.append(f"{own} = {before}{place(column.name)}")
    where = " AND ".join(f"{quoted(column.name)} = {place(column.name)}" for column in table.key)
    return f"UPDATE {name} SET {', '.join(put)} WHERE {where}"


def driver_schema(schema: ProfileSchema, planned: list[PlannedOperation]) -> DriverSchema:
    """The schema as the engine takes it. Raises UsageError for a statement that it cannot use."""
    operations = Operations(operation={operation.name: operation.operation for operation in planned})
    return schema.driver_schema(operations, [operation.name for operation in planned], {})


def plan_of(
    planned_operations: list[PlannedOperation],
    schema: ProfileSchema,
    mix: Mix,
    *,
    rate_per_s: float | None,
    concurrency: int,
    seed: int,
    timeout_s: float,
) -> EnginePlan:
    """The plan of a run. Where batches of several sizes are each to be written once, they come in rounds with as many of each
    size; else an operation is of a kind with the probability that its weight says.
    """
    weights, operations, order = [each.weight for each in planned_operations], mix.operations, "random"
    if mix.writes_each_once and len(planned_operations) > 1 and operations is not None:
        rounds = max(1, int(operations * _SURPLUS / len(planned_operations)))
        weights = [float(-(-each.parameters.num_rows // rounds)) for each in planned_operations]
        operations, order = rounds * int(sum(weights)), "in turn"
    planned = []
    for number, (operation, weight) in enumerate(zip(planned_operations, weights, strict=True)):
        sources: list[ParameterOrigin] = [
            {"source": number, "column": column} for column in range(len(operation.operation.parameters))
        ]
        planned.append(planned_operation(operation.name, operation.operation, schema, sources, weight))
    pace: Pace | None = {"segments": [{"from_per_s": rate_per_s}]} if rate_per_s else None
    phase: PlannedPhase = {"name": "measure", "operations": operations, "pace": pace}
    if mix.duration_s is not None:
        phase["duration_s"] = mix.duration_s
    return {
        "seed": seed,
        "operations": planned,
        "order": order,
        "parameter_sources": [{"rows": {"table": number, "choice": "sequential"}} for number in range(len(planned_operations))],
        "phases": [phase],
        "concurrency": concurrency,
        "threads": 1,
        "timeout_s": timeout_s,
        "log_every": -(-(operations or 1) // MAX_LOGGED),
    }
