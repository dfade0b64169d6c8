"""The statements of a schema by which old readings expire and a rollup is kept, for the engine."""

from dataclasses import dataclass

import pyarrow as pa

from sensorbench.schemas.arrow_types import arrow_schema
from sensorbench.schemas.engine_types import AnswerColumn, DriverStatement
from sensorbench.schemas.operations import Column, Operation, answer_columns, typed_names
from sensorbench.schemas.schema import Schema
from sensorbench.schemas.schema_file import ParameterValue, RetentionStatement
from sensorbench.schemas.types import ValueType

# The parameters of all these statements; each uses those that it needs.
PARAMETERS: dict[str, ValueType] = {
    "from": "timestamp",
    "to": "timestamp",
    "before": "timestamp",
    "width": "integer",
    "age": "integer",
}
# A row of a rollup: the columns of its series, and these.
START = "start"
# What a schema's text has for the seconds that a reading stays after its write.
TTL = "ttl_s"
AGGREGATES: dict[str, ValueType] = {"count": "integer", "min": "double", "max": "double", "sum": "double"}


@dataclass(frozen=True)
class RetentionStatements:
    """What a schema declares, each as an operation for the engine.

    Attributes:
        begin: what is executed before the run; None if nothing is.
        expire: removes what is older than `before`; its rows, if it returns some, add up to how many rows were removed. None if the database
            expires readings by itself.
        rollup: computes the rollup again between `from` and `to`; None if there is none, or the database keeps it.
        rollup_rows: returns the rollup; None if there is none.
        unit_us: what readings expire by; 1 where any time will do.
        interval_us: the interval of the rollup; None if it may be any.
        grace_us: how much older than `before` readings may still be there.

    """

    begin: DriverStatement | None
    expire: DriverStatement | None
    rollup: DriverStatement | None
    rollup_rows: DriverStatement | None
    unit_us: int
    interval_us: int | None
    grace_us: int

    def all(self) -> list[DriverStatement]:
        """Those that there are."""
        found = (self.begin, self.expire, self.rollup, self.rollup_rows)
        return [statement for statement in found if statement is not None]


def _rollup_columns(write: Operation) -> dict[str, ValueType]:
    """The columns of a rollup's row, by their types."""
    return {**{name: write.parameters[name] for name in write.series}, START: "timestamp", **AGGREGATES}


def rollup_table(rows: list[list[object]], write: Operation) -> pa.Table:
    """The rows of a rollup as a table.

    Args:
        rows: as its statement returned them, times in µs.
        write: the write whose readings were rolled up.

    """
    schema = arrow_schema(_rollup_columns(write))
    return pa.table(
        {name: pa.array([row[place] for row in rows], schema.field(name).type) for place, name in enumerate(schema.names)},
        schema=schema,
    )


def _length_us(schema: Schema, every: str | None, key: str) -> int | None:
    """A length in µs. Raises UsageError for months, which are not all equally long."""
    if every is None:
        return None
    length = schema.bucket_of(every, key)
    if "microseconds" not in length:
        raise schema.error(key, f"{every!r}: expected a length in days or shorter ones")
    return length["microseconds"]


def retention_statements(schema: Schema, write: Operation, ttl_s: int | None = None) -> RetentionStatements:
    """The statements of a schema that has some.

    Args:
        schema: whose file has `retention`.
        write: the write whose readings expire.
        ttl_s: how long after their write, where they expire by that.

    Raises:
        UsageError: if a parameter is none of the schema's.

    """
    declared = schema.file.retention
    if declared is None:
        raise AssertionError("a schema without retention is refused before its statements are wanted")
    words: dict[str, ParameterValue] = {} if ttl_s is None else {TTL: ttl_s}

    def made(key: str, statement: RetentionStatement, columns: list[AnswerColumn] | None = None) -> DriverStatement:
        return {
            "name": f"retention.{key}",
            "parameters": typed_names(PARAMETERS),
            "columns": columns or [],
            "order": [],
            "statement": schema.with_values(statement.statement, f"retention.{key}", words),
        }

    columns = [Column(name=name, type=of) for name, of in _rollup_columns(write).items()]
    return RetentionStatements(
        begin=made("begin", declared.begin) if declared.begin else None,
        expire=made("expire", declared.expire, answer_columns(declared.expire.returns)) if declared.expire else None,
        rollup=made("rollup", declared.rollup) if declared.rollup else None,
        rollup_rows=made("rollup_rows", declared.rollup_rows, answer_columns(columns)) if declared.rollup_rows else None,
        unit_us=_length_us(schema, declared.unit, "retention.unit") or 1,
        interval_us=_length_us(schema, declared.interval, "retention.interval"),
        grace_us=_length_us(schema, declared.grace, "retention.grace") or 0,
    )
