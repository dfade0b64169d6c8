"""A segment of a load generator on its way to the controller."""

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

if TYPE_CHECKING:
    from sensorbench._engine import Segment


class SegmentParts(NamedTuple):
    """What a load generator recorded: rows as the engine has them, and the interval log."""

    operations: pa.RecordBatch
    answers: pa.RecordBatch
    intervals: pa.RecordBatch
    histograms: str


def to_parts(segment: "Segment") -> list[bytes]:
    """A segment in bytes, without its events: those are the controller's."""
    batches = (segment["operations"], segment["answers"], segment["intervals"])
    return [*map(batch_to_bytes, batches), segment["histograms"].encode()]


def from_parts(parts: list[bytes]) -> SegmentParts:
    """The same segment."""
    operations, answers, intervals, histograms = parts
    return SegmentParts(batch_from_bytes(operations), batch_from_bytes(answers), batch_from_bytes(intervals), histograms.decode())


def batch_to_bytes(batch: pa.RecordBatch) -> bytes:
    """A batch as an Arrow stream."""
    return table_to_bytes(pa.Table.from_batches([batch]))


def batch_from_bytes(content: bytes) -> pa.RecordBatch:
    """The batch of an Arrow stream."""
    return whole_batch(table_from_bytes(content))


def table_to_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def table_from_bytes(content: bytes) -> pa.Table:
    """The table of an Arrow stream."""
    return pa.ipc.open_stream(content).read_all()


def whole_batch(table: pa.Table) -> pa.RecordBatch:
    """All rows of a table as one batch."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
