"""What a schema file says, as it stands there."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from sensorbench import toml_file
from sensorbench.schemas.engine_types import Statement
from sensorbench.schemas.operations import WORD, Column
from sensorbench.schemas.time_buckets import check_every

ENCODINGS = ("text", "packed", "gorilla")

ParameterValue = str | int | float | bool
# Where a parameter's value is put in.
PLACE = r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}"
# In the names of tables that are alike, and in statements: the number of one of them.
TABLE = "{table}"
Promises = Literal["quorums", "read_committed", "one_writer", "one_thread", "one_server_a_row", "members", "applied_later"]


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

    encoding: Encoding
    group: list[str]
    time: str = "time"
    value: str = "value"
    every: Every
    start_column: str
    bytes_column: str


class LoadQueryEntry(toml_file.FileModel):
    """How a table is filled: a query over the dataset, columns derived from its own, of equal rows one, the order of the rows, and how
    they are encoded. `table` is its name where it is not that of the fill: several fills may go into one.
    """

    when: When = {}
    table: str | None = None
    query: str
    derive: dict[str, "Derive"] = {}
    distinct: list[str] = []
    order: list[str] = []
    encode: Encode | None = None


class Derive(toml_file.FileModel):
    """A parameter made from another one: the start of the time bucket that it lies in."""

    floor: str
    every: Every


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

    returns: list[Column] = Field(min_length=1)
    start: str | None = None
    own: dict[str, str] = {}


class ForEach(toml_file.FileModel):
    """One statement for each time bucket between two parameters, all of them or those that a `list` has; for each of so many
    shards; or for each row of a `list`. The start of the stretch, the number of the shard, or the row's column of the same name, is a
    parameter more.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: str = Field(pattern=WORD)
    from_: str | None = Field(default=None, alias="from")
    to: str | None = None
    every: Every | None = None
    list_: ListOfParts | None = Field(default=None, alias="list")
    shards: int | None = Field(default=None, ge=1)

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

    column: str
    encoding: Encoding
    from_: str | None = Field(default=None, alias="from")
    to: str | None = None


class Reduce(toml_file.FileModel):
    """Rows are reduced to one."""

    function: Literal["max", "min", "count", "sum"]
    column: str


class EncodeReadings(toml_file.FileModel):
    """The readings that an operation writes become one byte-array batch, the parameter `name`."""

    name: str = Field(pattern=WORD)
    encoding: Encoding
    time: str = ":time"
    value: str = ":value"


class Also(WithStatement):
    """A statement that is issued together with the operation's own: once for each combination of the values of these parameters, as far as
    a client remembers, or each time.
    """

    once: list[str] = []


class Append(toml_file.FileModel):
    """What is found in a column, the text of the only row, becomes longer by some text: the parameter `name` of the write."""

    name: str = Field(pattern=WORD)
    column: str
    text: str = Field(min_length=1)


class First(WithStatement):
    """A statement that is answered before a write is issued, as in read-modify-write; its rows are not used, but for what is appended
    to.
    """

    returns: list[Column] = Field(min_length=1)
    append: Append | None = None


class OperationText(WithStatement):
    """How an operation is asked: in the database's own words, and what the client does besides."""

    when: When = {}
    # Asked like another operation, which has the same parameters and columns; then nothing else is said.
    like: str | None = None
    derive: dict[str, Derive] = {}
    readings: int | str | None = None
    encode: EncodeReadings | None = None
    first: First | None = None
    also: list[Also] = []
    for_each: ForEach | None = None
    returns: list[Column] = []
    distinct: list[str] = []
    decode: Decode | None = None
    reduce: Reduce | None = None


class ParameterChoice(toml_file.FileModel):
    """A parameter of a schema: the values it may take."""

    summary: str = ""
    values: list[ParameterValue] = Field(min_length=1)
    default: ParameterValue


class Tables(toml_file.FileModel):
    """The data are spread over tables that are alike, `{table}` in their names and in statements: by the remainder of a column, which is
    a parameter of each operation, too.
    """

    count: int | str
    by: str = Field(pattern=WORD)


class SchemaFile(toml_file.FileModel):
    """A schema file."""

    database: str
    summary: str
    # Of a schema of registers: what the database promises who reads and writes them.
    promises: Promises | None = None
    parameters: dict[str, ParameterChoice] = {}
    # What a reading takes, by which rows of so many MB are so many readings long: a number, or by the value of a parameter.
    bytes_a_reading: float | dict[str, dict[str, float]] | None = None
    tables: Tables | None = None
    create: Statement = {}
    settle: Statement = {}
    # Each as it is for some values of the parameters, or the only one.
    load_query: dict[str, Annotated[list[LoadQueryEntry], _ONE_OR_SEVERAL]] = {}
    operation: dict[str, Annotated[list[OperationText], _ONE_OR_SEVERAL]] = {}
    # Operations that cannot be expressed in this database or with these tables, and why.
    cannot: dict[str, str] = {}

    @model_validator(mode="after")
    def _either_can_or_cannot(self) -> "SchemaFile":
        if both := sorted(set(self.cannot) & set(self.operation)):
            raise ValueError(f"the operation {both[0]} has a statement, and cannot says why it has none; expected one of the two")
        return self
