"""What it costs the client to make byte-array batches of readings and to take them apart again, on the dataset's own readings."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import duckdb

from sensorbench._engine import batch_cost
from sensorbench.dataset.dataset import MEASUREMENTS, readings_of
from sensorbench.runner.prepare import PreparedTable
from sensorbench.schemas import Schema
from sensorbench.schemas.arrow_types import canonical_table

# So many readings of one sensor are encoded and decoded, again and again.
READINGS = 50_000


def encoding_cost(
    schema: Schema, tables: Sequence[PreparedTable], readings: int, workbench: duckdb.DuckDBPyConnection
) -> dict[str, Any] | None:
    """Of a schema with batches: the encoding, the readings of a batch, bytes a reading, and processor time a reading in ns of encoding
    and of decoding. None for other schemas.
    """
    batched = [(fill.batching, table.rows) for fill, table in zip(schema.fills(), tables, strict=True) if fill.batching]
    batches = sum(rows for _, rows in batched)
    if not batches:
        return None
    encoding, size = str(batched[0][0]["encoding"]), max(1, round(readings / batches))
    cost = _cost(workbench, encoding, size)
    return {
        "encoding": encoding,
        "readings_a_batch": size,
        "bytes_a_reading": cost["bytes"] / cost["readings"],
        "encode_ns": cost["encode_ns"],
        "decode_ns": cost["decode_ns"],
    }


@cache
def _cost(workbench: duckdb.DuckDBPyConnection, encoding: str, batch: int) -> dict[str, Any]:
    """What `batch_cost` tells, measured once for all settings of a comparison: they share a workbench."""
    found: dict[str, Any] = json.loads(batch_cost(canonical_table(workbench.sql(_OF_ONE_SENSOR)).to_reader(), encoding, batch))
    return found


_READINGS = readings_of([MEASUREMENTS])
_SERIES = ", ".join(_READINGS.series)
_OF_ONE_SENSOR = f"""
SELECT {_READINGS.time} AS time, value
FROM {_READINGS.relation} SEMI JOIN (SELECT {_SERIES} FROM {_READINGS.relation} ORDER BY ALL LIMIT 1) USING ({_SERIES})
ORDER BY time LIMIT {READINGS}
"""
