"""The part of a prepared table that one load generator loads: contiguous rows of the sorted input, found in its file without reading the others."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from sensorbench.runner.prepare import PreparedTable

# Bytes of a part that are sent to a host at a time.
CHUNK_BYTES = 8_000_000


class Shift(BaseModel):
    """What is added to the whole numbers of a column, so that the rows are those of other keys."""

    model_config = ConfigDict(frozen=True)

    column: str
    by: int

    def applied_to(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """The rows with it."""
        import pyarrow.compute as pc

        schema = rows.schema
        place = schema.get_field_index(self.column)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in rows:
                shifted = pc.add(batch.column(place), pa.scalar(self.by, schema.field(place).type))
                yield batch.set_column(place, schema.field(place), shifted)

        return pa.RecordBatchReader.from_batches(schema, batches())


class LoadPart(BaseModel):
    """Rows of a table, as they lie in a file of Arrow's stream format.

    Attributes:
        table: the table.
        file: the file; None for the one that was put together from what was sent before.
        header_bytes: how long the stream's schema is, with which the file begins.
        from_byte: where the first batch of the part begins.
        to_byte: where its last batch ends.
        skip_rows: rows of its first batch that are another's.
        rows: how many rows it has.
        shift: what is added to a column of them; None if nothing.

    """

    model_config = ConfigDict(frozen=True)

    table: str
    file: str | None
    header_bytes: int
    from_byte: int
    to_byte: int
    skip_rows: int
    rows: int
    shift: Shift | None = None

    def as_sent(self) -> "LoadPart":
        """The same where its bytes alone are sent: the schema, then its batches."""
        end = self.header_bytes + self.to_byte - self.from_byte
        return self.model_copy(update={"file": None, "from_byte": self.header_bytes, "to_byte": end})

    def chunks(self) -> Iterator[bytes]:
        """The bytes that are sent."""
        if self.file is None:
            raise AssertionError("it was sent")
        with Path(self.file).open("rb") as file:
            yield file.read(self.header_bytes)
            file.seek(self.from_byte)
            left = self.to_byte - self.from_byte
            while left:
                chunk = file.read(min(CHUNK_BYTES, left))
                left -= len(chunk)
                yield chunk


def parts_of(table: "PreparedTable", count: int) -> list[LoadPart]:
    """The parts of this many load generators: each row is in one of them, and they differ by one row at most."""
    places, rows_before = _batches(table.file)
    header_bytes, total = places[0], rows_before[-1]
    bounds = [total * number // count for number in range(count + 1)]

    def part(first: int, last: int) -> LoadPart:
        """The rows from one number on, up to another."""
        from_batch, to_batch = bisect_right(rows_before, first) - 1, bisect_left(rows_before, last)
        return LoadPart(
            table=table.table,
            file=str(table.file),
            header_bytes=header_bytes,
            from_byte=places[from_batch],
            to_byte=places[to_batch] if last > first else places[from_batch],
            skip_rows=first - rows_before[from_batch],
            rows=last - first,
            shift=table.shift,
        )

    return [part(first, last) for first, last in pairwise(bounds)]


def _batches(file: Path) -> tuple[list[int], list[int]]:
    """Where each batch of a file begins, and how many rows are before it; last, where the last one ends."""
    places, rows_before = [], [0]
    # Only the first column is decoded: nothing but the number of rows is of interest.
    with pa.memory_map(str(file)) as source:
        reader = pa.ipc.open_stream(source, options=pa.ipc.IpcReadOptions(included_fields=[0]))
        while True:
            places.append(source.tell())
            try:
                rows_before.append(rows_before[-1] + reader.read_next_batch().num_rows)
            except StopIteration:
                return places, rows_before


def rows_of(part: LoadPart, file: Path) -> pa.RecordBatchReader:
    """The rows of a part, out of a file."""
    source = pa.OSFile(str(file))
    reader = pa.ipc.open_stream(source)
    source.seek(part.from_byte)

    def batches() -> Iterator[pa.RecordBatch]:
        skip_rows, left = part.skip_rows, part.rows
        while left:
            batch = reader.read_next_batch().slice(skip_rows, left)
            skip_rows = 0
            left -= batch.num_rows
            yield batch

    rows = pa.RecordBatchReader.from_batches(reader.schema, batches())
    return rows if part.shift is None else part.shift.applied_to(rows)
