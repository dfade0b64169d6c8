"""What the client does for an operation besides its statement: what a schema file declares, with every name turned into a number."""

import json
from typing import TYPE_CHECKING

from sensorbench.schemas.engine_types import (
    AnsweredStatement,
    Bounds,
    ClientSteps,
    DecodedBatches,
    DerivedParameter,
    EncodedReadings,
    FirstStatement,
    PartsOfData,
    ReducedRows,
)
from sensorbench.schemas.operations import Operation, answer_columns
from sensorbench.schemas.schema_file import TABLE, Decode, Derive, EncodeReadings, First, ForEach, ListOfParts, Reduce

if TYPE_CHECKING:
    from sensorbench.schemas.schema import Schema


def client_steps(schema: "Schema", name: str, operation: Operation) -> ClientSteps:
    """What the client does for an operation of a schema. Raises UsageError naming the key of the file."""
    text, at = schema.operation_text(name)
    numbers = _Numbers(schema, at, operation)
    returns = [column.name for column in text.returns]
    steps: ClientSteps = {
        "derive": [numbers.derived(new, derive) for new, derive in text.derive.items()],
        "also": [{"statement": also.statement, "once": [each.removeprefix(":") for each in also.once]} for also in text.also],
        "returns": answer_columns(text.returns),
        "distinct": [numbers.column("distinct", kept, returns) for kept in text.distinct],
    }
    if text.readings is not None:
        steps["readings"] = schema.whole_number(text.readings, f"{at}.readings")
        if steps["readings"] > 1 and not operation.each:
            raise schema.error(
                f"{at}.readings",
                f"the operation {name} has no each = [parameter sources], so that all readings would be the same",
            )
    if text.encode:
        steps["encode"] = numbers.encoded(text.encode)
    if text.first:
        steps["first"] = numbers.first(text.first)
    if schema.file.tables is not None and TABLE in json.dumps(schema.described_statements(name)):
        steps["tables"] = {"count": schema.table_count, "by": numbers.parameter("tables.by", f":{schema.file.tables.by}")}
    if text.for_each:
        steps["for_each"] = {"name": text.for_each.name, "parts": numbers.parts(text.for_each)}
    if text.decode:
        steps["decode"] = numbers.decoded(text.decode, returns)
    if text.reduce:
        steps["reduce"] = numbers.reduced(text.reduce, ["time", "value"] if text.decode else returns)
    return steps


class _Numbers:
    """Numbers of the parameters of an operation and of columns, in the place of the names that stand at `at` in the file."""

    def __init__(self, schema: "Schema", at: str, operation: Operation) -> None:
        self._schema = schema
        self._at = at
        self._parameters = list(operation.parameters)

    def parameter(self, key: str, written: str) -> int:
        if not written.startswith(":") or written[1:] not in self._parameters:
            known = ", ".join(f":{name}" for name in self._parameters)
            raise self._schema.error(f"{self._at}.{key}", f"{written!r}: expected one of {known}")
        return self._parameters.index(written[1:])

    def column(self, key: str, written: str, known: list[str]) -> int:
        if written not in known:
            raise self._schema.error(f"{self._at}.{key}", f"there is no column {written!r}; expected one of {', '.join(known)}")
        return known.index(written)

    def derived(self, new: str, derive: Derive) -> DerivedParameter:
        floor = self.parameter(f"derive.{new}.floor", derive.floor)
        return {"name": new, "floor": floor, "every": self._schema.bucket_of(derive.every, f"{self._at}.derive.{new}.every")}

    def encoded(self, encode: EncodeReadings) -> EncodedReadings:
        return {
            "name": encode.name,
            "encoding": self._schema.encoding(encode.encoding, f"{self._at}.encode.encoding"),
            "time": self.parameter("encode.time", encode.time),
            "value": self.parameter("encode.value", encode.value),
        }

    def first(self, first: First) -> FirstStatement:
        answered = _answered(first)
        if first.append is None:
            return {"statement": answered["statement"], "returns": answered["returns"]}
        column = self.column("first.append.column", first.append.column, [column.name for column in first.returns])
        return {**answered, "append": {"name": first.append.name, "column": column, "text": first.append.text}}

    def parts(self, for_each: ForEach) -> PartsOfData:
        list_ = for_each.list_
        known = [column.name for column in list_.returns] if list_ else []
        if list_ and list_.start is None:
            return {"rows": {**_answered(list_), "column": self.column("for_each.name", for_each.name, known)}}
        if for_each.shards is not None:
            return {"shards": for_each.shards}
        bounds = self._bounds("for_each", for_each)
        every = self._schema.bucket_of(for_each.every or "", f"{self._at}.for_each.every")
        if list_ is None or list_.start is None:
            return {"time_buckets": {**bounds, "every": every}}
        own = [
            (self.column("for_each.list.own", own, known), self.parameter(f"for_each.list.own.{own}", written))
            for own, written in list_.own.items()
        ]
        start = self.column("for_each.list.start", list_.start, known)
        return {"listed": {**bounds, "every": every, **_answered(list_), "start": start, "own": own}}

    def decoded(self, decode: Decode, returns: list[str]) -> DecodedBatches:
        return {
            "column": self.column("decode.column", decode.column, returns),
            "encoding": self._schema.encoding(decode.encoding, f"{self._at}.decode.encoding"),
            **self._bounds("decode", decode),
        }

    def reduced(self, reduce: Reduce, known: list[str]) -> ReducedRows:
        return {"function": reduce.function, "column": self.column("reduce.column", reduce.column, known)}

    def _bounds(self, key: str, part: ForEach | Decode) -> Bounds:
        return {
            "from": None if part.from_ is None else self.parameter(f"{key}.from", part.from_),
            "to": None if part.to is None else self.parameter(f"{key}.to", part.to),
        }


def _answered(part: ListOfParts | First) -> AnsweredStatement:
    return {"statement": part.statement, "returns": answer_columns(part.returns)}
