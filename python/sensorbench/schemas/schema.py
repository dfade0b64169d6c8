"""Schemas: how a dataset lies in one database, and how each operation is asked there."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sensorbench import toml_file
from sensorbench._engine import check_schema, statement_operations
from sensorbench.errors import EngineUsageError, SchemaError, TargetError, UsageError
from sensorbench.schemas.client_steps import client_steps
from sensorbench.schemas.engine_types import (
    Batching,
    BucketLength,
    ClientSteps,
    DriverSchema,
    DriverStatement,
    Statement,
)
from sensorbench.schemas.operations import (
    WORD,
    Operation,
    Operations,
    ordered_by,
    statement_name,
    typed_names,
)
from sensorbench.schemas.repeated import repeated, with_lists
from sensorbench.schemas.row_widths import RowWidth, row_width_of
from sensorbench.schemas.schema_file import (
    ENCODINGS,
    PLACE,
    TABLE,
    Derive,
    DuplicateRule,
    Encode,
    LoadQueryEntry,
    OperationText,
    ParameterValue,
    SchemaFile,
    When,
)
from sensorbench.schemas.shipped import shipped_schemas
from sensorbench.schemas.time_buckets import SamplingInterval, bucket_of, needs_sampling_interval
from sensorbench.schemas.types import ValueType, canonical_columns

if TYPE_CHECKING:
    import duckdb

Part = TypeVar("Part", LoadQueryEntry, OperationText)


@dataclass(frozen=True)
class LoadQuery:
    """A load query with its parameters filled in: the table that it loads, and the query that gives its rows. `name` is unique in the schema,
    `key` is its place in the file; some of several tables that are alike may be empty.
    """

    name: str
    key: str
    table: str
    query: str
    order: tuple[str, ...]
    batching: Batching | None
    may_be_empty: bool


class Schema:
    """A schema with its parameters chosen."""

    def __init__(
        self,
        path: Path,
        name: str,
        file: SchemaFile,
        parameters: dict[str, ParameterValue],
        sampling: SamplingInterval | None = None,
        borders: Sequence[int] = (),
    ) -> None:
        self.path = path
        self.name = name
        self.file = file
        self.parameters = parameters
        self._sampling = sampling
        self._borders = borders

    @property
    def database(self) -> str:
        """The database it is for."""
        return self.file.database

    @property
    def summary(self) -> str:
        """What it is, in one line."""
        return self.file.summary

    @property
    def digest(self) -> str:
        """SHA-256 of what the file does: tables, loading and operations, whatever its name, comments and order of keys are."""
        said = self.file.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=_SAID_ALONE)
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    def with_parameters(self, changes: dict[str, ParameterValue]) -> "Schema":
        """The same with some parameters chosen otherwise."""
        chosen = _chosen(self.path, self.file, {**self.parameters, **changes})
        return Schema(self.path, self.name, self.file, chosen, self._sampling, self._borders)

    @property
    def needs_sampling_interval(self) -> bool:
        """Whether the length of something depends on how close together the readings of the dataset are."""
        parts = json.dumps(self.file.model_dump(mode="json", include={"load_query", "operation"}))
        return any(needs_sampling_interval(self._put_in(every, "")) for every in re.findall(r'"every": "([^"]*)"', parts))

    def on(self, sampling: SamplingInterval) -> "Schema":
        """The same for a dataset."""
        return Schema(self.path, self.name, self.file, self.parameters, sampling, self._borders)

    def with_file(self, file: SchemaFile) -> "Schema":
        """The same with more in its file."""
        return Schema(self.path, self.name, file, self.parameters, self._sampling, self._borders)

    def split_at(self, borders: Sequence[int]) -> "Schema":
        """The same, whose tables that the file has under `split` are made of parts: a new one begins at each of these values of their key."""
        return Schema(self.path, self.name, self.file, self.parameters, self._sampling, borders)

    def bucket_of(self, every: str, key: str) -> BucketLength:
        """A length of stretches for the engine. Raises UsageError naming the key."""
        try:
            return bucket_of(self._put_in(every, key), self._sampling, self._bytes_a_reading())
        except ValueError as error:
            raise self.error(key, str(error)) from None

    def row_width(self) -> RowWidth | None:
        """How wide rows are meant to be; None if that is not said in readings or MB, or no dataset is known."""
        if self._sampling is None:
            return None
        for name, entries in self.file.load_query.items():
            chosen = self._chosen_of(entries, f"load_query.{name}")
            for column, derive in chosen[0].derive.items() if chosen else ():
                key = f"{chosen[1]}.derive.{column}.every" if chosen else ""
                parameters = {place["name"] for place in _PLACE.finditer(derive.every)}
                width = row_width_of(self._put_in(derive.every, key), self._sampling, self._bytes_a_reading(), parameters)
                if width is not None:
                    return width
        return None

    def load_queries(self) -> list[LoadQuery]:
        """How each table is filled, with the parameters of the schema put in."""
        load_queries = []
        for name, entries in self.file.load_query.items():
            chosen = self._chosen_of(entries, f"load_query.{name}")
            if chosen is not None:
                load_queries += self._load_queries_of(name, *chosen)
        return load_queries

    def _load_queries_of(self, name: str, load_query: LoadQueryEntry, key: str) -> list[LoadQuery]:
        table, query = load_query.table or name, load_query.query
        for new, derive in load_query.derive.items():
            query = f'SELECT *, {self._floor_sql(derive, f"{key}.derive.{new}.every")} AS "{new}" FROM ({query})'
        if load_query.distinct:
            columns = ", ".join(f'"{column}"' for column in load_query.distinct)
            query = f"SELECT DISTINCT {columns} FROM ({query})"
        batching = self._batching(load_query.encode, f"{key}.encode") if load_query.encode else None
        loading = LoadQuery(name, key, table, query, tuple(load_query.order), batching, may_be_empty=False)
        if self.file.tables is None or TABLE not in table:
            return [loading]
        count, by = self.table_count, self.file.tables.by
        remainder = f'(("{by}" % {count}) + {count}) % {count}'
        return [
            replace(
                loading,
                name=_of_table(name, number),
                table=_of_table(table, number),
                query=f"SELECT * FROM ({query}) WHERE {remainder} = {number}",
                may_be_empty=True,
            )
            for number in range(count)
        ]

    def _floor_sql(self, derive: Derive, key: str) -> str:
        """The start of the stretch that a column's time lies in."""
        column, length = f'"{derive.floor}"', self.bucket_of(derive.every, key)
        if "months" in length:
            return f"CAST(time_bucket(to_months({length['months']}), {column}, TIMESTAMP '1970-01-01') AS TIMESTAMP)"
        of_one = length["microseconds"]
        return f"make_timestamp(epoch_us({column}) - (epoch_us({column}) % {of_one} + {of_one}) % {of_one})"

    def _batching(self, encode: Encode, key: str) -> Batching:
        """How rows are batched, for the engine."""
        return {
            "encoding": self.encoding(encode.encoding, f"{key}.encoding"),
            "group": encode.group,
            "time": encode.time,
            "value": encode.value,
            "every": self.bucket_of(encode.every, f"{key}.every"),
            "start_column": encode.start_column,
            "bytes_column": encode.bytes_column,
        }

    @property
    def table_count(self) -> int:
        """How many tables that are alike the data are spread over."""
        return 1 if self.file.tables is None else self.whole_number(self.file.tables.count, "tables.count")

    def whole_number(self, written: int | str, key: str) -> int:
        """A number of the file, which may be a parameter. Raises UsageError naming the key."""
        number = self._put_in(written, key) if isinstance(written, str) else written
        if not str(number).isdigit() or int(number) == 0:
            raise self.error(key, f"{number!r}: expected a whole number above zero, or a parameter that is one")
        return int(number)

    def _bytes_a_reading(self) -> float | None:
        known = self.file.bytes_a_reading
        if not isinstance(known, dict):
            return known
        found = [of_values.get(str(self.parameters.get(name))) for name, of_values in known.items()]
        return next((value for value in found if value is not None), None)

    @property
    def duplicate_rule(self) -> DuplicateRule | None:
        """Which of several writes of one reading is there afterwards; None if the file does not say."""
        rules = self.file.duplicates
        if not isinstance(rules, dict):
            return rules
        return next(of_values[str(self.parameters[name])] for name, of_values in rules.items())

    def duplicate_rule_at(self, settings: Mapping[str, str]) -> DuplicateRule | None:
        """Which of several writes of one reading is there afterwards on a server with these settings, by their names in its description."""
        for name, other in self.file.duplicates_by_setting.items():
            if settings.get(name, other.default) != other.default:
                return other.rule
        return self.duplicate_rule

    def loaded_columns(self, workbench: "duckdb.DuckDBPyConnection") -> dict[str, dict[str, ValueType]]:
        """The columns of each table that is filled, as they are loaded. Raises UsageError for a query that does not work."""
        # Whoever lists schemas has no workbench.
        import duckdb

        columns: dict[str, dict[str, ValueType]] = {}
        for load_query in self.load_queries():
            try:
                selected = canonical_columns(workbench.sql(load_query.query))
                of_table = _encoded(selected, load_query)
            except (duckdb.Error, ValueError) as error:
                raise self.error(f"{load_query.key}.query", str(error)) from None
            except KeyError as error:
                raise self.error(f"{load_query.key}.encode.group", f"the query has no column {error}") from None
            unknown = [name for name in load_query.order if name not in selected]
            if unknown:
                raise self.error(
                    f"{load_query.key}.order", f"the query has no column {unknown[0]!r}; expected some of {', '.join(selected)}"
                )
            if columns.setdefault(load_query.table, of_table) != of_table:
                raise self.error(
                    load_query.key,
                    f"it gives {of_table}, but another load query gives the table {load_query.table} {columns[load_query.table]}",
                )
        return columns

    def driver_schema(
        self,
        operations: Operations,
        names: list[str],
        columns: dict[str, dict[str, ValueType]],
        more: Sequence[DriverStatement] = (),
        *,
        retains: bool = False,
    ) -> DriverSchema:
        """The schema as the engine takes it.

        Args:
            operations: a file of operations.
            names: those that are used.
            columns: of each table, as `loaded_columns` gives them.
            more: statements that are not operations; they are checked, too.
            retains: whether it has what retention creates.

        Raises:
            UsageError: if the file is wrong.

        """
        statements: list[DriverStatement] = []
        for name in names:
            operation = self.driver_statement(name, operations.operation[name])
            work = self.work(name, operations.operation[name])
            statements += json.loads(self._with_place(statement_operations, json.dumps(operation), json.dumps(work)))
        schema: DriverSchema = {
            "create": self._created(retains=retains),
            "settle": self._substituted(self.file.settle, "settle"),
            "tables": {table: typed_names(of_table) for table, of_table in columns.items()},
            "operations": statements,
        }
        self._with_place(check_schema, self.database, json.dumps({**schema, "operations": [*statements, *more]}))
        return schema

    def with_values(self, statement: Statement, key: str, words: dict[str, ParameterValue] | None = None) -> Statement:
        """A statement with the values of the schema's parameters, and of some words more, put in. Raises UsageError naming the key."""
        known = Schema(self.path, self.name, self.file, {**self.parameters, **(words or {})}, self._sampling, self._borders)
        return dict(known._substituted(statement, key))

    def _created(self, *, retains: bool) -> Statement:
        """How tables are made, those that are split with where their parts begin."""
        created: Statement = self._substituted(self.file.create, "create")
        if retains and self.file.retention is not None:
            created = joined(created, self._substituted(self.file.retention.create, "retention.create"))
        for name in self.file.split if self._borders else ():
            tables = created.get("table")
            table = tables.get(name) if isinstance(tables, dict) else None
            if not isinstance(table, dict):
                raise self.error("split", f"there is no create.table.{name}, which could be split")
            table["splits"] = [[border] for border in self._borders]
        return created

    def driver_statement(self, name: str, operation: Operation) -> DriverStatement:
        """An operation with its statement, for the engine. Its answers must have the order that the operation asks for, or else the one
        that the schema promises.

        Raises:
            UsageError: if the schema promises an order by a column that the operation does not return.

        """
        text, key = self.operation_text(name)
        described: DriverStatement = {**operation.driver_operation(name), "statement": text.statement}
        known = [column.name for column in operation.columns]
        unknown = [order.column for order in text.order if order.column not in known]
        if unknown:
            raise self.error(f"{key}.order", f"there is no column {unknown[0]!r}; expected one of {', '.join(known)}")
        return described if operation.order or not text.order else {**described, "order": ordered_by(text.order)}

    def statement(self, name: str) -> Statement:
        """The operation's own statement."""
        return self.operation_text(name)[0].statement

    def described_statements(self, name: str) -> Statement:
        """The statements of an operation, for people; and how many readings it writes, where it says so."""
        text, at = self.operation_text(name)
        listed = text.for_each.list_ if text.for_each else None
        more: Statement = {"list": listed.statement} if listed else {}
        if text.first:
            more["first"] = text.first.statement
        if text.order:
            more["order"] = [order.model_dump(mode="json") for order in text.order]
        if text.also:
            more["also"] = [also.statement for also in text.also]
        if text.readings is not None:
            more["readings"] = self.whole_number(text.readings, f"{at}.readings")
        return {**text.statement, **more}

    def work(self, name: str, operation: Operation) -> ClientSteps:
        """What the client does besides the statement, with every name turned into a number. Raises UsageError naming the key."""
        return client_steps(self, name, operation)

    def readings_of(self, name: str, operation: Operation) -> int:
        """How many readings one operation writes; 1 for those that write none or one."""
        return int(self.work(name, operation).get("readings", 1))

    def asks(self, name: str) -> bool:
        """Whether the schema has an operation."""
        return statement_name(name) in self.file.operation

    def error(self, key: str, message: str) -> UsageError:
        """An error about a key of the file."""
        return toml_file.error_at(self.path, key, message)

    def operation_text(self, name: str) -> tuple[OperationText, str]:
        """How an operation is asked, and the key of that in the file."""
        statement = statement_name(name)
        if statement not in self.file.operation:
            known = ", ".join(self.file.operation)
            why = f" ({self.file.cannot[statement]})" if statement in self.file.cannot else ""
            raise self.error("operation", f"the operation {statement} is missing{why}; the schema has {known}")
        chosen = self._chosen_of(self.file.operation[statement], f"operation.{statement}")
        if chosen is None:
            raise self.error(f"operation.{statement}", f"none of its parts is for {self.parameters}")
        text, key = chosen
        if text.like is None:
            return chosen
        if not self.asks(text.like):
            known = ", ".join(self.file.operation)
            raise self.error(f"{key}.like", f"there is no operation {text.like!r}; expected one of {known}")
        says_more = text.model_fields_set - {"when", "like"} or text.statement
        if says_more or any(operation_text.like for operation_text in self.file.operation[text.like]):
            raise self.error(
                key, "an operation with the statements of another says nothing else, and the other has statements of its own"
            )
        return self.operation_text(text.like)

    def _chosen_of(self, parts: list[Part], key: str) -> tuple[Part, str] | None:
        """The one of several parts of the file that is for these parameters, and its key. Raises UsageError for two that are."""
        places = [key] if len(parts) == 1 else [f"{key}[{number}]" for number in range(len(parts))]
        wanted = [(part, at) for part, at in zip(parts, places, strict=True) if self._is_for(part.when, f"{at}.when")]
        if len(wanted) > 1:
            raise self.error(wanted[1][1], f"both this and {wanted[0][1]} are for {self.parameters}")
        return wanted[0] if wanted else None

    def _is_for(self, when: When, key: str) -> bool:
        """Whether the parameters have these values. Raises UsageError for values that they never have."""
        for name, values in when.items():
            self._parameter(name, key)
            unknown = [value for value in values if value not in self.file.parameters[name].values]
            if unknown:
                known = self.file.parameters[name].values
                raise self.error(key, f"parameter {name} is never {unknown[0]!r}; expected some of {known}")
        return all(self.parameters[name] in values for name, values in when.items())

    def _put_in(self, text: str, key: str) -> str:
        """A text with the values of parameters in it."""
        return str(self._substituted(text, key))

    def encoding(self, written: str, key: str) -> str:
        """An encoding of the file, which may be a parameter. Raises UsageError naming the key."""
        encoding = self._put_in(written, key)
        if encoding not in ENCODINGS:
            raise self.error(key, f"{encoding!r}: expected one of {', '.join(ENCODINGS)}")
        return encoding

    def _with_place(self, call: Any, *arguments: Any) -> Any:
        """Calls the engine; an error is reported with the file and line of its key."""
        try:
            return call(*arguments)
        except SchemaError as error:
            path, message = error.args
            raise self.error(self._as_in_file(path), message) from None
        except (EngineUsageError, TargetError) as error:
            raise UsageError(f"{self.path}: {error}") from None

    def _as_in_file(self, path: str) -> str:
        """The key in the file that a path of the engine is about: an operation may be one of several parts, or asked like another."""
        if path.startswith("operation.retention."):
            return path.removeprefix("operation.")
        found = re.match(r"operation\.(?P<name>\w+)", path)
        if found is None or not self.asks(found["name"]):
            return path
        return self.operation_text(found["name"])[1] + path[found.end() :]

    def _substituted(self, part: Any, path: str) -> Any:
        """A part of the file with `${parameter}` replaced by the parameter's value."""
        if isinstance(part, dict):
            return {
                of_table: self._substituted(value, f"{path}.{key}")
                for key, value in part.items()
                for of_table in self._of_tables(key)
            }
        if isinstance(part, list):
            wanted = [self._wanted(value, f"{path}[{number}]") for number, value in enumerate(part)]
            kept = [self._substituted(value, f"{path}[{number}]") for number, value in enumerate(wanted) if value is not None]
            return [of_table for value in kept for of_table in self._of_tables(value)]
        if not isinstance(part, str):
            return part
        whole = _PLACE.fullmatch(part)
        if whole:
            return self._parameter(whole["name"], path)
        return _PLACE.sub(lambda place: str(self._parameter(place["name"], path)), part)

    def _wanted(self, part: Any, path: str) -> Any:
        """A member of a list; of `{ statement = …, when = { parameter = [values] } }` the statement, or None if a parameter
        has another value.
        """
        if not isinstance(part, dict) or "when" not in part:
            return part
        when, statement = part["when"], part.get("statement")
        if statement is None or set(part) != {"statement", "when"} or not isinstance(when, dict):
            raise self.error(path, "expected { statement = …, when = { PARAMETER = [VALUE, …] } }")
        return statement if self._is_for(when, path) else None

    def _of_tables(self, statement: Any) -> list[Any]:
        """A statement once for each of the tables that are alike, if it is about one of them."""
        if self.file.tables is None or not isinstance(statement, str) or TABLE not in statement:
            return [statement]
        return [_of_table(statement, number) for number in range(self.table_count)]

    def _parameter(self, name: str, path: str) -> ParameterValue:
        if name not in self.parameters:
            known = ", ".join(self.parameters) or "the schema has none"
            raise self.error(path, f"${{{name}}} is not a parameter of the schema; expected one of: {known}")
        return self.parameters[name]


_PLACE = re.compile(PLACE)
# What a file says of itself, and does not do.
_SAID_ALONE = {"summary", "duplicates", "duplicates_by_setting", "retention"}


def joined(first: Statement, second: Statement) -> Statement:
    """Two parts that create something as one: lists are concatenated, tables merged."""
    together = dict(first)
    for key, more in second.items():
        known = together.get(key)
        if isinstance(known, list) and isinstance(more, list):
            together[key] = [*known, *more]
        else:
            together[key] = {**known, **more} if isinstance(known, dict) and isinstance(more, dict) else more
    return together


def _of_table(text: str, number: int) -> str:
    return text.replace(TABLE, str(number))


def _encoded(columns: dict[str, ValueType], load_query: LoadQuery) -> dict[str, ValueType]:
    """The columns after encoding."""
    if load_query.batching is None:
        return columns
    group: dict[str, ValueType] = {name: columns[name] for name in load_query.batching["group"]}
    return {**group, load_query.batching["start_column"]: "timestamp", load_query.batching["bytes_column"]: "bytes"}


def load_schema(
    name_or_path: str,
    *,
    operations: str,
    database: str,
    parameters: dict[str, ParameterValue] | None = None,
    relative_to: Path | None = None,
    fields: Sequence[str] = (),
) -> Schema:
    """A shipped schema by its name, or a user's own file.

    Args:
        name_or_path: the name of a shipped one, or a file (.toml).
        operations: the operation set that shipped ones are looked for in.
        database: the dialect of the target, which the file must be for.
        parameters: values of the schema's parameters; others have their defaults.
        relative_to: the folder that the path starts at, if it is relative.
        fields: names of a record's fields; what the file says once for each field is there once for each of these.

    Raises:
        UsageError: naming file, line and key, for a file that is not there, is wrong, or is for another database.

    """
    if name_or_path.endswith(".toml"):
        path = (relative_to or Path()) / name_or_path
        name = path.stem
    else:
        shipped = shipped_schemas(operations, database)
        if name_or_path not in shipped:
            known = ", ".join(shipped) or f"none is shipped for {database} and {operations}"
            raise UsageError(f"there is no schema {name_or_path!r} of {database}; expected one of {known}, or a file (.toml)")
        path, name = shipped[name_or_path], name_or_path
    file = _read(toml_file.text_of(path), path, tuple(fields))
    if file.database != database:
        raise toml_file.error_at(path, "database", f"this schema is for {file.database}, but the target is {database}")
    if file.to_write:
        raise toml_file.FileError([str(toml_file.error_at(path, key, problem)) for key, problem in file.missing_statements()])
    for load_query, load_queries in file.load_query.items():
        for table in [load_query, *(query.table or load_query for query in load_queries)]:
            if not re.match(WORD, table.replace(TABLE, "0")):
                raise toml_file.error_at(path, f"load_query.{load_query}", f"{table!r}: the name of a table must be a word")
    return Schema(path, name, file, _chosen(path, file, parameters or {}))


@lru_cache(maxsize=256)
def _read(text: str, path: Path, fields: tuple[str, ...]) -> SchemaFile:
    """The content of a file of this text. While a study is planned, each is asked for dozens of times: by every part, at several scales."""
    return toml_file.parse(
        text, SchemaFile, path, lambda content: repeated(with_lists(content), "field", fields) if fields else with_lists(content)
    )


def _chosen(path: Path, file: SchemaFile, given: dict[str, ParameterValue]) -> dict[str, ParameterValue]:
    for name, value in given.items():
        if name not in file.parameters:
            known = ", ".join(file.parameters) or "it has none"
            raise UsageError(f"{path}: the schema has no parameter {name!r}; expected one of: {known}")
        if value not in file.parameters[name].values:
            raise UsageError(f"{path}: parameter {name} cannot be {value!r}; expected one of {file.parameters[name].values}")
    return {name: given.get(name, choice.default) for name, choice in file.parameters.items()}
