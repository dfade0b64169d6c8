"""Schemas: how a dataset lies in one database, and how each operation is asked there."""

import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import duckdb
from pydantic import AfterValidator, ConfigDict, Field, model_validator

from sensorbench import toml_file
from sensorbench._engine import check_schema, statement_operation
from sensorbench.errors import EngineUsageError, SchemaError, TargetError, UsageError
from sensorbench.schemas.operations import SHIPPED_FOLDER, WORD, Column, Operation, Operations, asked_as
from sensorbench.schemas.types import ValueType, canonical_columns

ParameterValue = str | int | float | bool
Promises = Literal["quorums", "read_committed", "one_writer", "one_thread"]

# Days and shorter ones are equally long, in µs; months and years are the calendar's.
_UNITS: dict[str, tuple[str, int]] = {
    "second": ("microseconds", 1_000_000),
    "minute": ("microseconds", 60_000_000),
    "hour": ("microseconds", 3_600_000_000),
    "day": ("microseconds", 86_400_000_000),
    "month": ("months", 1),
    "year": ("months", 12),
}
_LENGTH = re.compile(rf"(?P<count>\d{{1,6}}) (?P<unit>{'|'.join(_UNITS)})s?")


def stretches(every: str) -> dict[str, int]:
    """Stretches of time of a length such as `15 minutes` or `1 month`, for the engine."""
    found = _LENGTH.fullmatch(every)
    if not found or int(found["count"]) == 0:
        raise ValueError(f"expected a length of time such as '15 minutes', '1 day' or '1 month', with one of {', '.join(_UNITS)}")
    name, of_one = _UNITS[found["unit"]]
    return {name: int(found["count"]) * of_one}


def _of_stretches(every: str) -> str:
    stretches(every)
    return every


Every = Annotated[str, AfterValidator(_of_stretches)]


class Encode(toml_file.FileModel):
    """Sorted rows become byte-array batches before they are loaded."""

    encoding: Literal["packed"]
    group: list[str]
    time: str = "time"
    value: str = "value"
    every: Every
    start_column: str
    bytes_column: str

    def batching(self) -> dict[str, Any]:
        """The same for the engine."""
        return {**self.model_dump(), "every": stretches(self.every)}


class Fill(toml_file.FileModel):
    """How a table is filled: a query over the dataset, the order of its rows, and how they are encoded."""

    query: str
    order: list[str] = []
    encode: Encode | None = None


class Derive(toml_file.FileModel):
    """A parameter made from another one: the start of the stretch of time that it lies in."""

    floor: str
    every: Every


class ForEach(toml_file.FileModel):
    """One statement for each stretch of time between two parameters, or for each of so many shards; the start of the stretch, or
    the number of the shard, is a parameter more.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: str = Field(pattern=WORD)
    from_: str | None = Field(default=None, alias="from")
    to: str | None = None
    every: Every | None = None
    shards: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _either_stretches_or_shards(self) -> "ForEach":
        of_stretches = [self.from_ is not None, self.to is not None, self.every is not None]
        if any(of_stretches) if self.shards is not None else not all(of_stretches):
            raise ValueError("expected either from, to and every (stretches of time), or shards (how many there are)")
        return self


class Decode(toml_file.FileModel):
    """Readings are taken out of byte-array batches."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    column: str
    encoding: Literal["packed"]
    from_: str | None = Field(default=None, alias="from")
    to: str | None = None


class Reduce(toml_file.FileModel):
    """Rows are reduced to one."""

    function: Literal["max", "min", "count", "sum"]
    column: str


class OperationText(toml_file.FileModel):
    """How an operation is asked: in the database's own words, and what the client does besides."""

    model_config = ConfigDict(extra="allow", frozen=True)

    derive: dict[str, Derive] = {}
    for_each: ForEach | None = None
    returns: list[Column] = []
    distinct: list[str] = []
    decode: Decode | None = None
    reduce: Reduce | None = None

    @property
    def statement(self) -> dict[str, Any]:
        """What only the database's driver understands."""
        return dict(self.model_extra or {})


class ParameterChoice(toml_file.FileModel):
    """A parameter of a schema: the values it may take."""

    summary: str = ""
    values: list[ParameterValue] = Field(min_length=1)
    default: ParameterValue


class SchemaFile(toml_file.FileModel):
    """A schema file."""

    database: str
    summary: str
    # Of a schema of registers: what the database promises who reads and writes them.
    promises: Promises | None = None
    parameters: dict[str, ParameterChoice] = {}
    create: dict[str, Any] = {}
    settle: dict[str, Any] = {}
    fill: dict[str, Fill] = {}
    operation: dict[str, OperationText] = {}


class Schema:
    """A schema with its parameters chosen."""

    def __init__(self, path: Path, name: str, file: SchemaFile, parameters: dict[str, ParameterValue]) -> None:
        self.path = path
        self.name = name
        self.file = file
        self.parameters = parameters

    @property
    def database(self) -> str:
        """The database it is for."""
        return self.file.database

    @property
    def summary(self) -> str:
        """What it is, in one line."""
        return self.file.summary

    def with_parameters(self, changes: dict[str, ParameterValue]) -> "Schema":
        """The same with some parameters chosen otherwise."""
        return Schema(self.path, self.name, self.file, _chosen(self.path, self.file, {**self.parameters, **changes}))

    def fill_columns(self, workbench: duckdb.DuckDBPyConnection) -> dict[str, dict[str, ValueType]]:
        """The columns of each table that is filled, as they are loaded. Raises UsageError for a query that does not work."""
        columns = {}
        for table, fill in self.file.fill.items():
            try:
                selected = canonical_columns(workbench.sql(fill.query))
                columns[table] = _encoded(selected, fill)
            except (duckdb.Error, ValueError) as error:
                raise self.error(f"fill.{table}.query", str(error)) from None
            except KeyError as error:
                raise self.error(f"fill.{table}.encode.group", f"the query has no column {error}") from None
            unknown = [name for name in fill.order if name not in selected]
            if unknown:
                raise self.error(
                    f"fill.{table}.order", f"the query has no column {unknown[0]!r}; expected some of {', '.join(selected)}"
                )
        return columns

    def driver_schema(self, operations: Operations, names: list[str], columns: dict[str, dict[str, ValueType]]) -> dict[str, Any]:
        """The schema as the engine takes it, with the named operations. Raises UsageError where the file is wrong."""
        statements = []
        for name in names:
            text = self._operation_text(name)
            operation = {**operations.operation[name].driver_operation(name), "statement": text.statement}
            work = self.work(name, operations.operation[name])
            statements.append(json.loads(self._told(statement_operation, json.dumps(operation), json.dumps(work))))
        schema = {
            "create": self._substituted(self.file.create, "create"),
            "settle": self._substituted(self.file.settle, "settle"),
            "tables": {
                table: [{"name": name, "type": value_type} for name, value_type in of_table.items()]
                for table, of_table in columns.items()
            },
            "operations": statements,
        }
        self._told(check_schema, self.database, json.dumps(schema))
        return schema

    def statement(self, name: str) -> dict[str, Any]:
        """The statement of an operation."""
        return self._operation_text(name).statement

    def work(self, name: str, operation: Operation) -> dict[str, Any]:
        """What the client does besides the statement, with every name turned into a number."""
        text = self._operation_text(name)
        parameters = list(operation.parameters)
        returns = [column.name for column in text.returns]

        def parameter(key: str, written: str | None) -> int | None:
            if written is None:
                return None
            if not written.startswith(":") or written[1:] not in parameters:
                raise self.error(
                    f"operation.{name}.{key}", f"{written!r}: expected one of {', '.join(':' + known for known in parameters)}"
                )
            return parameters.index(written[1:])

        def column(key: str, written: str, known: list[str]) -> int:
            if written not in known:
                raise self.error(f"operation.{name}.{key}", f"there is no column {written!r}; expected one of {', '.join(known)}")
            return known.index(written)

        def derived(new: str, derive: Derive) -> dict[str, Any]:
            floor = parameter(f"derive.{new}.floor", derive.floor)
            return {"name": new, "floor": floor, "every": stretches(derive.every)}

        def parts(for_each: ForEach) -> dict[str, Any]:
            if for_each.every is None:
                return {"shards": for_each.shards}
            bounds = {"from": parameter("for_each.from", for_each.from_), "to": parameter("for_each.to", for_each.to)}
            return {"stretches": {**bounds, "every": stretches(for_each.every)}}

        work: dict[str, Any] = {"derive": [derived(new, derive) for new, derive in text.derive.items()]}
        if text.for_each:
            work["for_each"] = {"name": text.for_each.name, "parts": parts(text.for_each)}
        work["returns"] = [column_.model_dump() for column_ in text.returns]
        work["distinct"] = [column("distinct", kept, returns) for kept in text.distinct]
        if text.decode:
            bounds = {"from": parameter("decode.from", text.decode.from_), "to": parameter("decode.to", text.decode.to)}
            work["decode"] = {
                "column": column("decode.column", text.decode.column, returns),
                "encoding": text.decode.encoding,
                **bounds,
            }
        if text.reduce:
            known = ["time", "value"] if text.decode else returns
            work["reduce"] = {"function": text.reduce.function, "column": column("reduce.column", text.reduce.column, known)}
        return work

    def error(self, key: str, message: str) -> UsageError:
        """An error about a key of the file."""
        return toml_file.error_at(self.path, key, message)

    def _operation_text(self, name: str) -> OperationText:
        statement = asked_as(name)
        if statement not in self.file.operation:
            known = ", ".join(self.file.operation)
            raise self.error("operation", f"the operation {statement} is missing; the schema has {known}")
        return self.file.operation[statement]

    def _told(self, call: Any, *arguments: Any) -> Any:
        """Calls the engine; an error is told with the file and line of its key."""
        try:
            return call(*arguments)
        except SchemaError as error:
            path, message = error.args
            raise self.error(path, message) from None
        except (EngineUsageError, TargetError) as error:
            raise UsageError(f"{self.path}: {error}") from None

    def _substituted(self, part: Any, path: str) -> Any:
        """A part of the file with `${parameter}` replaced by the parameter's value."""
        if isinstance(part, dict):
            return {key: self._substituted(value, f"{path}.{key}") for key, value in part.items()}
        if isinstance(part, list):
            wanted = [self._wanted(value, f"{path}[{number}]") for number, value in enumerate(part)]
            return [self._substituted(value, f"{path}[{number}]") for number, value in enumerate(wanted) if value is not None]
        if not isinstance(part, str):
            return part
        whole = _PLACE.fullmatch(part)
        if whole:
            return self._parameter(whole["name"], path)
        return _PLACE.sub(lambda place: str(self._parameter(place["name"], path)), part)

    def _wanted(self, part: Any, path: str) -> Any:
        """A member of a list; of `{ statement = …, when = { parameter = [values] } }` the statement, or None where a parameter
        has another value.
        """
        if not isinstance(part, dict) or "when" not in part:
            return part
        when, statement = part["when"], part.get("statement")
        if statement is None or set(part) != {"statement", "when"} or not isinstance(when, dict):
            raise self.error(path, "expected { statement = …, when = { PARAMETER = [VALUE, …] } }")
        for name, values in when.items():
            self._parameter(name, path)
            unknown = [value for value in values if value not in self.file.parameters[name].values]
            if unknown:
                known = self.file.parameters[name].values
                raise self.error(path, f"parameter {name} is never {unknown[0]!r}; expected some of {known}")
        return statement if all(self.parameters[name] in values for name, values in when.items()) else None

    def _parameter(self, name: str, path: str) -> ParameterValue:
        if name not in self.parameters:
            known = ", ".join(self.parameters) or "the schema has none"
            raise self.error(path, f"${{{name}}} is no parameter of the schema; expected one of: {known}")
        return self.parameters[name]


_PLACE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")


def _encoded(columns: dict[str, ValueType], fill: Fill) -> dict[str, ValueType]:
    """The columns after encoding."""
    if fill.encode is None:
        return columns
    group: dict[str, ValueType] = {name: columns[name] for name in fill.encode.group}
    return {**group, fill.encode.start_column: "timestamp", fill.encode.bytes_column: "bytes"}


def shipped_schemas(operations: str, database: str) -> dict[str, Path]:
    """The shipped schemas of a database for a set of operations, by name."""
    return {file.stem: file for file in sorted((SHIPPED_FOLDER / operations / database).glob("*.toml"))}


def load_schema(
    name_or_path: str,
    *,
    operations: str,
    database: str,
    parameters: dict[str, ParameterValue] | None = None,
    relative_to: Path | None = None,
) -> Schema:
    """A shipped schema by its name, or a user's own file."""
    if name_or_path.endswith(".toml"):
        path = (relative_to or Path()) / name_or_path
        name = path.stem
    else:
        shipped = shipped_schemas(operations, database)
        if name_or_path not in shipped:
            known = ", ".join(shipped) or f"none is shipped for {database} and {operations}"
            raise UsageError(f"there is no schema {name_or_path!r} of {database}; expected one of {known}, or a file (.toml)")
        path, name = shipped[name_or_path], name_or_path
    file = toml_file.load(path, SchemaFile)
    if file.database != database:
        raise toml_file.error_at(path, "database", f"this schema is for {file.database}, but the target is {database}")
    for table in file.fill:
        if not re.match(WORD, table):
            raise toml_file.error_at(path, f"fill.{table}", "the name of a table must be a word")
    return Schema(path, name, file, _chosen(path, file, parameters or {}))


def _chosen(path: Path, file: SchemaFile, given: dict[str, ParameterValue]) -> dict[str, ParameterValue]:
    for name, value in given.items():
        if name not in file.parameters:
            known = ", ".join(file.parameters) or "it has none"
            raise UsageError(f"{path}: the schema has no parameter {name!r}; expected one of: {known}")
        if value not in file.parameters[name].values:
            raise UsageError(f"{path}: parameter {name} cannot be {value!r}; expected one of {file.parameters[name].values}")
    return {name: given.get(name, choice.default) for name, choice in file.parameters.items()}
