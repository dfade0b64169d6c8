"""VictoriaMetrics: loading by the line protocol against its import of JSON lines, a line for each series."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from benches.clients import curl, tools
from benches.clients.loading import LoadComparison, our_rate
from benches.clients.measuring import in_turn

from sensorbench import lab

POINTS = {"points": {"readings": {"tags": ["floor", "zone", "sensor"], "fields": ["value"]}}}
METRIC = "theirs_value"
# The readings are of 2019; a range that begins before 1970 would be empty.
COUNT = {"query": f"sum(count_over_time({METRIC}[2y]))", "time": "2020-01-01T00:00:00Z", "nocache": "1"}


def loads(instance: lab.Instance, rows: pa.Table) -> list[LoadComparison]:
    """Points of a hundred series."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        curl.write_lines(folder / "readings.jsonl", _series(rows))
        ours, theirs = in_turn(
            lambda: our_rate(f"{lab.url_of(instance)}?namespace=bench", POINTS, "readings", rows),
            lambda: _import(instance, folder, rows.num_rows),
        )
    return [LoadComparison("VictoriaMetrics", "/api/v1/import of JSON lines by curl", ours, theirs)]


def _series(rows: pa.Table) -> Iterator[str]:
    keys = ["floor", "zone", "sensor"]
    timed = rows.set_column(3, "time", rows["time"].cast(pa.timestamp("ms")).cast(pa.int64()))
    grouped = timed.group_by(keys, use_threads=False).aggregate([("value", "list"), ("time", "list")])
    for row in grouped.to_pylist():
        metric = {"__name__": METRIC, **{key: str(row[key]) for key in keys}}
        yield json.dumps({"metric": metric, "values": row["value_list"], "timestamps": row["time_list"]}) + "\n"


def _import(instance: lab.Instance, folder: Path, rows: int) -> float:
    port = instance.nodes[0].port
    curl.text_of(instance, port, "/api/v1/admin/tsdb/delete_series", {"match[]": METRIC})
    options: tools.Words = ["--request", "POST", "--upload-file", folder / "readings.jsonl"]
    rate = curl.rate(instance, port, "/api/v1/import", options, rows, folder)
    curl.text_of(instance, port, "/internal/force_flush")
    found = json.loads(curl.text_of(instance, port, "/api/v1/query", COUNT))["data"]["result"]
    curl.require(int(found[0]["value"][1]) if found else 0, rows, "/api/v1/import")
    return rate
