"""The JSON documents in which the engine takes operations and schemas. Names of columns and parameters have become their numbers."""

from typing import Literal, NotRequired, TypedDict

from pydantic import JsonValue

from sensorbench.schemas.types import ValueType

# What only the database's driver understands.
Statement = dict[str, JsonValue]
# The length of a time bucket: this many `microseconds`, or `months`.
BucketLength = dict[str, int]


class TypedName(TypedDict):
    """A parameter, or a column of a table."""

    name: str
    type: ValueType


class AnswerColumn(TypedName):
    """A column of an answer; what is computed is compared within a tolerance."""

    computed: bool


class OrderedBy(TypedDict):
    """One column of a declared order."""

    column: str
    direction: Literal["ascending", "descending"]


class DriverOperation(TypedDict):
    """An operation without a statement."""

    name: str
    parameters: list[TypedName]
    columns: list[AnswerColumn]
    order: list[OrderedBy]


class DriverStatement(DriverOperation):
    """An operation with its statement."""

    statement: Statement


class DriverSchema(TypedDict):
    """A schema with the operations that are used."""

    create: Statement
    settle: Statement
    tables: dict[str, list[TypedName]]
    operations: list[DriverStatement]


class DerivedParameter(TypedDict):
    """The parameter `name` is the start of the time bucket that another one lies in."""

    name: str
    floor: int
    every: BucketLength


class EncodedReadings(TypedDict):
    """Readings become a byte-array batch, the parameter `name`."""

    name: str
    encoding: str
    time: int
    value: int


class AppendedText(TypedDict):
    """The text of a returned column becomes longer: the parameter `name`."""

    name: str
    column: int
    text: str


class OtherStatement(TypedDict):
    """A statement that is issued together with the operation's own."""

    statement: Statement
    once: list[str]


class AnsweredStatement(TypedDict):
    """A statement with what it returns."""

    statement: Statement
    returns: list[AnswerColumn]


class FirstStatement(AnsweredStatement):
    """A statement that is answered before the operation's own is issued."""

    append: NotRequired[AppendedText]


class AlikeTables(TypedDict):
    """How many tables are alike, and the parameter whose remainder says which of them an operation is about."""

    count: int
    by: int


Bounds = TypedDict("Bounds", {"from": int | None, "to": int | None})


class BucketBounds(Bounds):
    """The time buckets between two parameters."""

    every: BucketLength


class ListedBuckets(BucketBounds, AnsweredStatement):
    """Time buckets that a statement lists: the column of their starts, and pairs of a column and the parameter whose value it must have."""

    start: int
    own: list[tuple[int, int]]


class ListedRows(AnsweredStatement):
    """The rows that a statement lists, and the column that distinguishes them."""

    column: int


class PartsOfData(TypedDict, total=False):
    """What an operation has a statement for each of; one of these."""

    time_buckets: BucketBounds
    shards: int
    listed: ListedBuckets
    rows: ListedRows


class StatementForEach(TypedDict):
    """Of which parts, and the parameter that says which one it is."""

    name: str
    parts: PartsOfData


class DecodedBatches(Bounds):
    """The column with the byte-array batches that readings are taken out of."""

    column: int
    encoding: str


class ReducedRows(TypedDict):
    """By what rows are reduced to one."""

    function: Literal["max", "min", "count", "sum"]
    column: int


class ClientSteps(TypedDict):
    """What the client does for an operation besides its statement."""

    derive: list[DerivedParameter]
    readings: NotRequired[int]
    encode: NotRequired[EncodedReadings]
    first: NotRequired[FirstStatement]
    also: list[OtherStatement]
    tables: NotRequired[AlikeTables]
    for_each: NotRequired[StatementForEach]
    returns: list[AnswerColumn]
    distinct: list[int]
    decode: NotRequired[DecodedBatches]
    reduce: NotRequired[ReducedRows]


class Batching(TypedDict):
    """How sorted rows become byte-array batches."""

    encoding: str
    group: list[str]
    time: str
    value: str
    every: BucketLength
    start_column: str
    bytes_column: str
