"""Operations: questions and writes, each named once for all databases."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from sensorbench import toml_file
from sensorbench.errors import UsageError
from sensorbench.schemas.engine_types import AnswerColumn, DriverOperation, OrderedBy, TypedName
from sensorbench.schemas.repeated import names_of, with_lists
from sensorbench.schemas.shipped import OPERATIONS_FILE, SHIPPED_FOLDER, shipped_operations
from sensorbench.schemas.types import ValueType

WORD = r"^[A-Za-z_][A-Za-z0-9_]*$"


def _are_names(written: str | list[str]) -> str | list[str]:
    names_of(written)
    return written


# Names that parts of a file are there for each of: `repeated.py`.
Names = Annotated[str | list[str], AfterValidator(_are_names)]
LISTS_DESCRIPTION = 'Names, or a range such as `"s0..s99"`, by a word: `[[{word}|, ]]` in a text and `{ each = … }` in a list or table are there for each of them.'


class Column(toml_file.FileModel):
    """A column of an answer."""

    name: str = Field(pattern=WORD, description="Name of the column.")
    type: ValueType = Field(description="Type of the column; a timestamp has µs, in UTC.")
    computed: bool = Field(
        default=False, description="A double that the database computes: it is compared by value, within a tolerance."
    )

    @model_validator(mode="after")
    def _computed_is_double(self) -> "Column":
        if self.computed and self.type != "double":
            raise ValueError("only a double can be computed; other types are compared exactly")
        return self


class Order(toml_file.FileModel):
    """One column of a declared order."""

    column: str = Field(description="The column that rows are ordered by.")
    direction: Literal["ascending", "descending"] = Field(default="ascending", description="Direction of the order.")


class Choice(toml_file.FileModel):
    """A choice with a skew."""

    zipfian: float | None = Field(
        default=None, gt=0, description="Exponent of a Zipf distribution: popular rows are chosen more often."
    )
    latest: float | None = Field(default=None, gt=0, description="The same, with the newest rows as the popular ones.")

    @model_validator(mode="after")
    def _one(self) -> "Choice":
        if (self.zipfian is None) == (self.latest is None):
            raise ValueError("expected either zipfian or latest, with its exponent")
        return self


AnyChoice = Literal["uniform", "sequential"] | Choice


class Number(toml_file.FileModel):
    """A column of numbers used once each, as SQL over the dataset: the first one, and the step to the next."""

    start: str = Field(description="SQL of the first number.")
    step: str = Field(description="SQL of the step to the next number.")


class Span(toml_file.FileModel):
    """A time bucket that ends with a write, by its parameter `time`: columns `from` and `to`. It is as long as this many `unit`s, an
    interval; `min`, `max` and `unit` are SQL over the dataset.
    """

    time: str = Field(description="The parameter of the write that has its time.")
    unit: str = Field(description="SQL of an interval, the unit of the length.")
    min: str = Field(description="SQL of the smallest number of units.")
    max: str = Field(description="SQL of the largest number of units.")


class Written(toml_file.FileModel):
    """Parameters of an earlier write, at least `window` operations old; skewed to the newest if an exponent is given. With a `span`, also
    a time bucket that ends with it.
    """

    operation: str = Field(description="The write whose parameters are used again.")
    window: int = Field(default=1000, ge=1, description="How many operations old the write is at least.")
    exponent: float | None = Field(default=None, gt=0, description="Skew towards the newest writes; none if not given.")
    span: Span | None = Field(
        default=None, description="Two parameters more, `from` and `to`: a time bucket that ends with the write."
    )


class ParameterSource(toml_file.FileModel):
    """Where parameters come from: rows of a query, numbers used once, or an earlier write."""

    summary: str = Field(default="", description="What the source gives, in a line.")
    query: str | None = Field(default=None, description="SQL over the dataset: its rows are the parameters.")
    choice: AnyChoice = Field(default="uniform", description="How rows are chosen.")
    numbers: dict[str, Number] = Field(default={}, description="Columns of numbers that are used once each, instead of a query.")
    # Of numbers, a parameter source whose rows come one after the other: each row has numbers of its own, which follow one another.
    per: str | None = Field(
        default=None, description="A sequential source: each of its rows has numbers of its own, without a gap."
    )
    written: Written | None = Field(default=None, description="Parameters of an earlier write, instead of a query.")

    @model_validator(mode="after")
    def _one_source(self) -> "ParameterSource":
        if sum([self.query is not None, bool(self.numbers), self.written is not None]) != 1:
            raise ValueError("expected exactly one of query, numbers, written")
        if self.per is not None and not self.numbers:
            raise ValueError("per is only for numbers")
        return self


class OperationInstance(toml_file.FileModel):
    """One place at which an operation is asked: which operation's, its name, and which share of the rows it is about."""

    of: str = Field(description="The operation.")
    name: str = Field(pattern=r"^[A-Za-z0-9_]+$", description="The name of the instance.")
    share: float | None = Field(default=None, description="The share of the rows that it is about.")


def instance_name(instance: OperationInstance) -> str:
    """The name of the operation that an instance is. No name in a file has a dot."""
    return f"{instance.of}.{instance.name}"


def statement_name(name: str) -> str:
    """The name under which schemas have the statement of an operation: an instance's is that of its operation."""
    return name.partition(".")[0]


class Operation(toml_file.FileModel):
    """One operation. With `instances`, the name of a parameter source, it is asked at each of its rows as an operation of its own."""

    title: str = Field(description="Title in reports.")
    question: str = Field(description="What the operation reads or does, in a sentence.")
    parameter_sources: list[str] = Field(default=[], description="Where its parameters come from.")
    # Draws from which each of several readings that one operation writes has a row of its own.
    each: list[str] = Field(
        default=[], description="Sources that give each reading a row, where a schema writes several readings at once."
    )
    parameters: dict[str, ValueType] = Field(default={}, description="Types of the parameters, by name.")
    columns: list[Column] = Field(default=[], description="Columns of the answer.")
    order: list[Order] = Field(default=[], description="The order that the answer must have.")
    reference: str | None = Field(
        default=None, description="DuckDB's SQL over the dataset, with `$name` for parameters: the answer that is expected."
    )
    writes: str | None = Field(
        default=None, description="The relation that a write adds rows to, instead of `columns` and `reference`."
    )
    key: list[str] = Field(
        default=[],
        description="Of a write: the parameters that identify its row, one of them its time. Two writes with equal ones are the same reading.",
    )
    read_by: str | None = Field(
        default=None,
        description="Of a write with a key: the question that returns the rows of one series from a time on until before another, `from` and `to`.",
    )
    # It changes a row that is there, instead of adding one.
    changes: bool = Field(
        default=False, description="Whether the write changes rows that are there; then contents are not compared after the runs."
    )
    instances: str | None = Field(
        default=None, description="A parameter source: the operation runs at each of its rows as an operation of its own."
    )
    instance: OperationInstance | None = Field(
        default=None, exclude=True, description="Set by sensorbench: which instance this is."
    )

    @model_validator(mode="after")
    def _instances_have_a_source(self) -> "Operation":
        if self.instances is not None and self.instances not in self.parameter_sources:
            raise ValueError(f"instances names {self.instances!r}, which is none of the operation's parameter sources")
        return self

    @model_validator(mode="after")
    def _each_has_a_source(self) -> "Operation":
        unknown = [source for source in self.each if source not in self.parameter_sources]
        if unknown:
            raise ValueError(f"each names {unknown[0]!r}, which is none of the operation's parameter sources")
        return self

    @model_validator(mode="after")
    def _changes_what_it_writes(self) -> "Operation":
        if self.changes and self.writes is None:
            raise ValueError("what changes a row needs writes, the relation of that row")
        return self

    @model_validator(mode="after")
    def _reads_or_writes(self) -> "Operation":
        if self.writes is None and (not self.columns or self.reference is None):
            raise ValueError(
                "an operation that reads needs columns and reference; one that writes needs writes, the relation it adds a row to"
            )
        if self.writes is not None and (self.columns or self.reference):
            raise ValueError("an operation that writes has no columns and no reference")
        unknown = [order.column for order in self.order if order.column not in [column.name for column in self.columns]]
        if unknown:
            raise ValueError(f"order names the column {unknown[0]}, which the operation does not return")
        return self

    @model_validator(mode="after")
    def _key_is_of_a_write(self) -> "Operation":
        if (self.key or self.read_by) and self.writes is None:
            raise ValueError("key and read_by are only for writes")
        if self.read_by and not self.key:
            raise ValueError("read_by needs key, the parameters that identify a row")
        unknown = [name for name in self.key if name not in self.parameters]
        if unknown:
            raise ValueError(f"key names {unknown[0]!r}, which is none of the operation's parameters")
        if self.key and [self.parameters[name] for name in self.key].count("timestamp") != 1:
            raise ValueError("key: expected exactly one timestamp, the time of the row")
        return self

    @property
    def time(self) -> str:
        """Of a write with a key, the parameter that is its time."""
        return next(name for name in self.key if self.parameters[name] == "timestamp")

    @property
    def series(self) -> list[str]:
        """Of a write with a key, the parameters that identify its series."""
        return [name for name in self.key if name != self.time]

    def driver_operation(self, name: str) -> DriverOperation:
        """The operation without a statement, for the engine, under the name that it has there."""
        return {
            "name": name,
            "parameters": typed_names(self.parameters),
            "columns": answer_columns(self.columns),
            "order": ordered_by(self.order),
        }


def typed_names(types: Mapping[str, ValueType]) -> list[TypedName]:
    """Parameters or columns of a table with their types, for the engine."""
    return [{"name": name, "type": value_type} for name, value_type in types.items()]


def ordered_by(orders: Iterable[Order]) -> list[OrderedBy]:
    """A declared order, for the engine."""
    return [{"column": order.column, "direction": order.direction} for order in orders]


def answer_columns(columns: Iterable[Column]) -> list[AnswerColumn]:
    """Columns of an answer, for the engine."""
    return [{"name": column.name, "type": column.type, "computed": column.computed} for column in columns]


class Operations(toml_file.FileModel):
    """A file of operations. `relations` are those that a dataset must have."""

    lists: dict[str, Names] = Field(default={}, exclude=True, description=LISTS_DESCRIPTION)
    relations: list[str] = Field(default=[], description="Relations that a dataset must have.")
    parameter_source: dict[str, ParameterSource] = Field(default={}, description="Where parameters come from, by name.")
    operation: dict[str, Operation] = Field(description="The operations, by name.")

    @model_validator(mode="after")
    def _names_fit(self) -> "Operations":
        for name, operation in self.operation.items():
            for source in operation.parameter_sources:
                if source not in self.parameter_source:
                    raise ValueError(
                        f"operation {name} takes parameters from {source}, which is not there; expected one of {', '.join(self.parameter_source)}"
                    )
            if operation.read_by:
                _check_reader(name, operation, self.operation.get(operation.read_by))
        for name, source_ in self.parameter_source.items():
            if source_.written and source_.written.operation not in self.operation:
                raise ValueError(f"parameter source {name} is of the operation {source_.written.operation}, which is not there")
            if (
                source_.per is not None
                and self.parameter_source.get(source_.per, ParameterSource(query="")).choice != "sequential"
            ):
                raise ValueError(
                    f'parameter source {name} counts per {source_.per}, which must be a parameter source with choice = "sequential"'
                )
        return self

    def with_parameter_source(self, name: str, source: ParameterSource) -> "Operations":
        """The same with another parameter source of a name that is there."""
        if name not in self.parameter_source:
            raise UsageError(f"there is no parameter source {name!r}; expected one of {', '.join(self.parameter_source)}")
        return self.model_copy(update={"parameter_source": {**self.parameter_source, name: source}})

    def require(self, name: str, where: str) -> Operation:
        """The operation called `name`; raises UsageError saying `where` it was asked for."""
        if name not in self.operation:
            raise UsageError(f"{where}: there is no operation {name!r}; expected one of {', '.join(self.operation)}")
        return self.operation[name]


def _check_reader(name: str, write: Operation, reader: Operation | None) -> None:
    """Raises ValueError unless a question returns what a write wrote of one series between two times."""
    if reader is None:
        raise ValueError(f"operation {name} is read by {write.read_by}, which is not there")
    wanted = {**{parameter: write.parameters[parameter] for parameter in write.series}, "from": "timestamp", "to": "timestamp"}
    if reader.parameters != wanted:
        raise ValueError(f"operation {name} is read by {write.read_by}, whose parameters must be {', '.join(wanted)}")
    columns = {column.name: column.type for column in reader.columns if not column.computed}
    if write.time not in columns or any(write.parameters.get(column) != of for column, of in columns.items()):
        raise ValueError(
            f"operation {name} is read by {write.read_by}, whose columns must be {write.time} and others of the write's parameters"
        )


def operations_file(name_or_path: str, relative_to: Path | None = None) -> Path:
    """The file of a shipped operation set, or a user's own."""
    if name_or_path.endswith(".toml"):
        return (relative_to or Path()) / name_or_path
    file = SHIPPED_FOLDER / name_or_path / OPERATIONS_FILE
    if not file.exists():
        known = ", ".join(shipped_operations())
        raise UsageError(f"there is no operation set {name_or_path!r}; expected one of {known}, or a file (.toml)")
    return file


def load_operations(name_or_path: str, relative_to: Path | None = None) -> Operations:
    """A shipped operation set, or a user's own file."""
    path = operations_file(name_or_path, relative_to)
    return _read(toml_file.text_of(path), path)


@lru_cache(maxsize=64)
def _read(text: str, path: Path) -> Operations:
    """The content of a file of this text, which every part of a study asks for."""
    return toml_file.parse(text, Operations, path, with_lists)
