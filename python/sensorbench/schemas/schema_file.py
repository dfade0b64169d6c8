"""What a schema file says, as it stands there."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from sensorbench import toml_file
from sensorbench.schemas.engine_types import Statement
from sensorbench.schemas.operations import LISTS_DESCRIPTION, WORD, Column, Names, Order
from sensorbench.schemas.time_buckets import check_every

ENCODINGS = ("text", "packed", "gorilla")

ParameterValue = str | int | float | bool
# Where a parameter's value is put in.
PLACE = r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}"
# In the names of tables that are alike, and in statements: the number of one of them.
TABLE = "{table}"
# What `to_write` says of the tables, where it is not an operation.
CREATE = "create"
Promises = Literal[
    "quorums",
    "read_committed",
    "one_writer",
    "snapshots",
    "parts",
    "last_point",
    "one_thread",
    "one_server_a_row",
    "members",
    "applied_later",
    "shown_later",
    "log",
    "put_points",
]


# Which of several deliveries of one reading counts: the one that was written last, or first, or all of them, or the one with the greatest value; each
# value once; or one of them, and nobody knows which.
DuplicateRule = Literal["last", "first", "both", "highest", "distinct", "any"]


def _of_encoding(encoding: str) -> str:
    if "${" not in encoding and encoding not in ENCODINGS:
        raise ValueError(f"expected one of {', '.join(ENCODINGS)}")
    return encoding


_ONE_OR_SEVERAL = BeforeValidator(lambda part: part if isinstance(part, list) else [part])

# Lengths of stretches and encodings may be parameters of the schema.
Every = Annotated[str, AfterValidator(check_every)]
Encoding = Annotated[str, AfterValidator(_of_encoding)]
# A part of the file that is there only where parameters of the schema have some of these values.
When = dict[str, list[ParameterValue]]


class Encode(toml_file.FileModel):
    """Sorted rows become byte-array batches before they are loaded."""

    encoding: Encoding = Field(description="`text`, `packed` or `gorilla`.")
    group: list[str] = Field(description="Columns: rows that are alike in them go into the same batches.")
    time: str = Field(default="time", description="The column of the times.")
    value: str = Field(default="value", description="The column of the values.")
    every: Every = Field(description="Length of a batch: `1 day`, `batches of 150`.")
    start_column: str = Field(description="The new column with the first time of a batch.")
    bytes_column: str = Field(description="The new column with the bytes of a batch.")


class LoadQueryEntry(toml_file.FileModel):
    """How a table is loaded: a query over the dataset, columns derived from its own, of equal rows one, the order of the rows, and how
    they are encoded. `table` is its name where it is not that of the load query: several load queries may load one table.
    """

    when: When = Field(default={}, description="Values of the schema's parameters for which this load query counts.")
    table: str | None = Field(default=None, description="The table that is filled, where its name is another.")
    query: str = Field(description="DuckDB's SQL over the dataset.")
    derive: dict[str, "Derive"] = Field(default={}, description="Columns made of others, by name.")
    distinct: list[str] = Field(default=[], description="Only these columns, and of equal rows one.")
    order: list[str] = Field(default=[], description="Columns by which rows are sorted before they are loaded.")
    encode: Encode | None = Field(default=None, description="Sorted rows become byte-array batches.")


class Derive(toml_file.FileModel):
    """A parameter made from another one: the start of the time bucket that it lies in."""

    floor: str = Field(description="The column, or `:parameter`, that is rounded down.")
    every: Every = Field(description="Length of the time buckets: `1 day`, `1 month`, `rows of 100k`.")


class WithStatement(toml_file.FileModel):
    """A part of the file with keys of its own, and a statement in those of the database's driver: all others."""

    model_config = ConfigDict(extra="allow")

    @property
    def statement(self) -> Statement:
        """What only the database's driver understands."""
        return dict(self.model_extra or {})


class ListOfParts(WithStatement):
    """A statement that lists parts of the data. Of time buckets, their starts are in the column `start`, and those rows count whose
    columns have the values of the parameters that `own` names.
    """

    returns: list[Column] = Field(min_length=1, description="The columns that the statement returns.")
    start: str | None = Field(default=None, description="The column with the start of a time bucket.")
    own: dict[str, str] = Field(default={}, description="Columns that must equal parameters, for a row to count.")


class ForEach(toml_file.FileModel):
    """One statement for each time bucket between two parameters, all of them or those that a `list` has; for each of this many
    shards; or for each row of a `list`. The start of the stretch, the number of the shard, or the row's column of the same name, is a
    parameter more.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: str = Field(pattern=WORD, description="The parameter with the bucket, the shard, or the value that was listed.")
    from_: str | None = Field(default=None, alias="from", description="The first time, a parameter.")
    to: str | None = Field(default=None, description="The end, a parameter; not included.")
    every: Every | None = Field(default=None, description="Length of the time buckets.")
    list_: ListOfParts | None = Field(default=None, alias="list", description="A statement that lists which parts there are.")
    shards: int | None = Field(default=None, ge=1, description="Number of shards.")

    @model_validator(mode="after")
    def _one_kind_of_parts(self) -> "ForEach":
        of_buckets = [self.from_ is not None, self.to is not None, self.every is not None]
        if self.list_ is not None and self.shards is not None:
            raise ValueError("a list is of stretches of time or of rows, not of shards")
        lists_rows = self.list_ is not None and not any(of_buckets)
        if any(of_buckets) if self.shards is not None else not all(of_buckets) and not lists_rows:
            raise ValueError(
                "expected either from, to and every (stretches of time), or shards (how many there are), or a list alone (its rows)"
            )
        if self.list_ is not None and lists_rows != (self.list_.start is None and not self.list_.own):
            raise ValueError(
                "a list of stretches of time has a start, and goes with from, to and every; a list of rows has none of these"
            )
        return self


class Decode(toml_file.FileModel):
    """Readings are taken out of byte-array batches."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    column: str = Field(description="The column with the batches.")
    encoding: Encoding = Field(description="The encoding of the batches.")
    from_: str | None = Field(default=None, alias="from", description="The first time that counts, a parameter.")
    to: str | None = Field(default=None, description="The end of the times that count, a parameter; not included.")


class Reduce(toml_file.FileModel):
    """Rows are reduced to one."""

    function: Literal["max", "min", "count", "sum"] = Field(description="What the client computes.")
    column: str = Field(description="The column that it is computed of.")


class EncodeReadings(toml_file.FileModel):
    """The readings that an operation writes become one byte-array batch, the parameter `name`."""

    name: str = Field(pattern=WORD, description="The parameter with the batch.")
    encoding: Encoding = Field(description="`text`, `packed` or `gorilla`.")
    time: str = Field(default=":time", description="The parameter of a reading's time.")
    value: str = Field(default=":value", description="The parameter of a reading's value.")


class Also(WithStatement):
    """A statement that is issued together with the operation's own: once for each combination of the values of these parameters, as far as
    a client remembers, or each time.
    """

    once: list[str] = Field(
        default=[], description="Parameters: a session issues the statement once for each combination of their values."
    )


class Append(toml_file.FileModel):
    """What is found in a column, the text of the only row, becomes longer by some text: the parameter `name` of the write."""

    name: str = Field(pattern=WORD, description="The parameter with the longer text.")
    column: str = Field(description="The column whose text is made longer.")
    text: str = Field(min_length=1, description="What is added to it.")


class First(WithStatement):
    """A statement that is answered before a write is issued, as in read-modify-write; its rows are not used, but for what is appended
    to.
    """

    returns: list[Column] = Field(min_length=1, description="The columns that the statement returns.")
    append: Append | None = Field(default=None, description="A text that was found becomes longer, as a parameter of the write.")


class OperationText(WithStatement):
    """How an operation is asked: in the database's own words, and what the client does besides."""

    when: When = Field(default={}, description="Values of the schema's parameters for which this counts.")
    # Asked like another operation, which has the same parameters and columns; then nothing else is said.
    like: str | None = Field(default=None, description="Another operation, whose statement and steps this one has.")
    derive: dict[str, Derive] = Field(default={}, description="Parameters made of others, by name.")
    readings: int | str | None = Field(
        default=None, description="How many readings a write has, each with a statement of its own."
    )
    encode: EncodeReadings | None = Field(default=None, description="The readings of a write become one batch.")
    first: First | None = Field(default=None, description="A statement that is answered before the write (read-modify-write).")
    also: list[Also] = Field(default=[], description="Statements that are issued together with the operation's own.")
    for_each: ForEach | None = Field(default=None, description="One statement for each time bucket, shard or listed value.")
    returns: list[Column] = Field(
        default=[], description="Columns that the database returns, where they are not those of the operation."
    )
    # Columns are those of the operation.
    order: list[Order] = Field(
        default=[], description="The order in which rows come by how they are stored: it is checked in every answer."
    )
    distinct: list[str] = Field(default=[], description="Only these columns, and of equal rows one.")
    decode: Decode | None = Field(default=None, description="Readings are taken out of batches.")
    reduce: Reduce | None = Field(default=None, description="The client reduces the rows to one.")


class ParameterChoice(toml_file.FileModel):
    """A parameter of a schema: the values it may take."""

    summary: str = Field(default="", description="What the parameter is, in a line.")
    values: list[ParameterValue] = Field(min_length=1, description="The values that it may have.")
    default: ParameterValue = Field(description="Its value if nothing else is said.")


class Tables(toml_file.FileModel):
    """The data are spread over tables that are alike, `{table}` in their names and in statements: by the remainder of a column, which is
    a parameter of each operation, too.
    """

    count: int | str = Field(description="Number of tables, or a parameter that has it.")
    by: str = Field(pattern=WORD, description="The column whose remainder is the number of a row's table.")


class RetentionStatement(WithStatement):
    """A statement that is executed beside a run. Its parameters are `from` and `to`, `before`, `width`, the interval of the rollup in µs, and `age`: how
    old readings of `before` are by the wall clock, in ms, with `grace` more.
    """


class ExpireStatement(RetentionStatement):
    """Removes what is older than `:before`."""

    returns: list[Column] = Field(
        default=[],
        max_length=1,
        description="An integer column, where the statement says how many rows it removed: the sum of its values.",
    )

    @model_validator(mode="after")
    def _counts(self) -> "ExpireStatement":
        if any(column.type != "integer" for column in self.returns):
            raise ValueError("returns: expected an integer column, the number of rows that were removed")
        return self


class SchemaRetention(toml_file.FileModel):
    """How old readings expire in this schema, and how a rollup is kept of them: what `workload.retention` executes."""

    unit: Every | None = Field(
        default=None,
        description="What readings expire by, such as the length of a partition, `1 day`: `keep` and `every` must be multiples of it. Any time if not given.",
    )
    interval: Every | None = Field(
        default=None,
        description="The interval of the rollup, where what was created says it: `rollup.interval` must be the same. Any interval if not given.",
    )
    grace: Every | None = Field(
        default=None,
        description="How much older than `:before` readings may still be there: for a time to live, which goes by the wall clock and so continues after `:age` was computed. None if not given.",
    )
    create: Statement = Field(
        default={},
        description="What is created besides, as in `[create]`: the table of the rollup, procedures. Only for runs with retention.",
    )
    begin: RetentionStatement | None = Field(
        default=None,
        description="What is executed before the run, such as making partitions for the times that will be written, `:from` until before `:to`.",
    )
    ages_from: Literal["reading", "write"] = Field(
        default="reading",
        description="What the age of a reading counts from: its own time, or its write. Those that count from the write expire by themselves, by the wall clock, `${ttl_s}` seconds after it, and there is no `expire`.",
    )
    expire: ExpireStatement | None = Field(
        default=None, description='Removes what is older than `:before`. Needed unless `ages_from = "write"`.'
    )
    expires_by: str = Field(min_length=1, description="How readings expire, in some words, for the report.")
    rollup: RetentionStatement | None = Field(
        default=None,
        description="Computes the rollup again of the buckets from `:from` until before `:to`. Without it, the database keeps the rollup itself.",
    )
    rolls_up_by: str | None = Field(
        default=None, min_length=1, description="How the rollup is kept, in some words, for the report."
    )
    rollup_rows: RetentionStatement | None = Field(
        default=None,
        description="Returns the rollup: the columns of a series, start of the bucket, count, min, max and sum.",
    )

    @model_validator(mode="after")
    def _expires_in_one_way(self) -> "SchemaRetention":
        if (self.expire is None) != (self.ages_from == "write"):
            raise ValueError('expire: expected it, or ages_from = "write", where the database expires readings by itself')
        if self.ages_from == "write" and self.rollup_rows is not None:
            raise ValueError(
                "rollup_rows: expected none where ages count from the write: which readings a rollup had is not known then"
            )
        return self

    @model_validator(mode="after")
    def _has_all_of_a_rollup(self) -> "SchemaRetention":
        if (self.rolls_up_by is None) != (self.rollup_rows is None):
            raise ValueError("rollup_rows and rolls_up_by: expected both, for a schema that keeps a rollup, or none")
        if self.rollup is not None and self.rollup_rows is None:
            raise ValueError("rollup: expected rollup_rows, too, by which the rollup is read")
        return self


class RuleBySetting(toml_file.FileModel):
    """The rule for duplicates of a server whose setting is not the default."""

    default: str = Field(description="The setting's default, as the target's description has it.")
    rule: DuplicateRule = Field(description="Which of several writes of one reading is there where the setting is another.")


class SchemaFile(toml_file.FileModel):
    """A schema file."""

    database: str = Field(description="The dialect that the schema is for.")
    summary: str = Field(description="How the data are stored, in a line.")
    min_version: str | None = Field(
        default=None,
        pattern=r"^\d+(\.\d+)*$",
        description="The first version of the database that takes the schema's statements; a target of an earlier one is refused.",
    )
    # Of a schema of registers: what the database promises who reads and writes them.
    promises: Promises | None = Field(default=None, description="What the database promises of registers in this schema.")
    lists: dict[str, Names] = Field(default={}, exclude=True, description=LISTS_DESCRIPTION)
    duplicates: DuplicateRule | dict[str, dict[str, DuplicateRule]] | None = Field(
        default=None,
        description="Which of several writes of one reading is kept: the `last` or the `first`, `both`, the one with the `highest` value, each `distinct` value, or `any` one of them. One rule, or rules by the values of a parameter. A run with `delivery.duplicates` verifies it.",
    )
    duplicates_by_setting: dict[str, RuleBySetting] = Field(
        default={},
        description="Other rules than `duplicates`, of servers with other settings than the default: by the setting's name, as the target's description has it.",
    )
    parameters: dict[str, ParameterChoice] = Field(
        default={}, description="What may be varied, by name; `${NAME}` stands for it."
    )
    # What a reading takes, by which rows of this many MB are this many readings long: a number, or by the value of a parameter.
    bytes_a_reading: float | dict[str, dict[str, float]] | None = Field(
        default=None,
        description="Bytes per reading in this schema, for rows of a size in MB: a number, or numbers by the values of a parameter.",
    )
    tables: Tables | None = Field(default=None, description="The data are spread over tables that are alike.")
    create: Statement = Field(default={}, description="What creates the tables, in the database's own words.")
    split: list[str] = Field(
        default=[],
        description="Tables whose key begins with an integer: a benchmark of a cluster makes them of so many parts that each node has several.",
    )
    settle: Statement = Field(default={}, description="What is done after loading: indexes, statistics. Timed apart.")
    # Each as it is for some values of the parameters, or the only one.
    load_query: dict[str, Annotated[list[LoadQueryEntry], _ONE_OR_SEVERAL]] = Field(
        default={}, description="How each table is filled, by its name."
    )
    operation: dict[str, Annotated[list[OperationText], _ONE_OR_SEVERAL]] = Field(
        default={}, description="How each operation is done: its native statement, and what the client does."
    )
    cannot: dict[str, str] = Field(
        default={}, description="Operations that cannot be expressed in this database or with these tables, and why."
    )

    retention: SchemaRetention | None = Field(
        default=None, description="How old readings expire, and how a rollup is kept: what `workload.retention` executes."
    )

    to_write: dict[str, str] = Field(
        default={},
        description="Operations whose statements are still to be written, with what they do elsewhere. As long as one is there, the schema is refused.",
    )

    def missing_statements(self) -> Iterator[tuple[str, str]]:
        """What is still to be written: the key of each, and what to do about it."""
        for name, recorded in self.to_write.items():
            place = CREATE if name == CREATE else f"operation.{name}"
            yield (
                f"to_write.{name}",
                f"this is still to be written for {self.database}: {recorded}. Write [{place}], and remove this line",
            )

    @model_validator(mode="after")
    def _rules_are_of_parameters(self) -> "SchemaFile":
        rules = self.duplicates if isinstance(self.duplicates, dict) else {}
        for name, of_values in rules.items():
            known = {str(value) for value in self.parameters[name].values} if name in self.parameters else set()
            if set(of_values) != known:
                raise ValueError(
                    f"duplicates.{name}: expected a rule for each value of a parameter of the schema: {', '.join(sorted(known)) or 'there is none'}"
                )
        return self

    @model_validator(mode="after")
    def _either_can_or_cannot(self) -> "SchemaFile":
        if both := sorted(set(self.cannot) & set(self.operation)):
            raise ValueError(f"the operation {both[0]} has a statement, and cannot says why it has none; expected one of the two")
        return self
