"""QuestDB: loading by its line protocol against its import of CSV files."""

import json
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from benches.clients import curl
from benches.clients.loading import LoadComparison, our_rate
from benches.clients.measuring import in_turn
from pyarrow import csv

from sensorbench import lab

HTTP_PORT = 9000
COLUMNS = "floor LONG, zone LONG, sensor SYMBOL, time TIMESTAMP, value DOUBLE"
CREATE = f"CREATE TABLE {{readings}} ({COLUMNS}) TIMESTAMP(time) PARTITION BY DAY WAL"
# The types of columns that its import would guess otherwise.
TYPES = [
    {"name": "floor", "type": "LONG"},
    {"name": "zone", "type": "LONG"},
    {"name": "sensor", "type": "SYMBOL"},
    {"name": "time", "type": "TIMESTAMP", "pattern": "yyyy-MM-dd HH:mm:ss.SSSUUU"},
]
VISIBLE_WITHIN_S = 60.0


def loads(instance: lab.Instance, rows: pa.Table) -> list[LoadComparison]:
    """In the order of time, in which its tables are."""
    by_time = rows.sort_by("time")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        csv.write_csv(by_time, folder / "readings.csv", csv.WriteOptions(quoting_style="none"))
        ours, theirs = in_turn(
            lambda: our_rate(f"{lab.url_of(instance)}&namespace=bench", {"statements": [CREATE]}, "readings", by_time),
            lambda: _import(instance, folder, rows.num_rows),
        )
    return [LoadComparison("QuestDB", "/imp of CSV by curl", ours, theirs)]


def _import(instance: lab.Instance, folder: Path, rows: int) -> float:
    options = ["--form", f"schema={json.dumps(TYPES)}", "--form", f"data=@{folder / 'readings.csv'}"]
    path = "/imp?name=theirs&timestamp=time&partitionBy=DAY&overwrite=true&forceHeader=true&fmt=json"
    rate = curl.rate(instance, HTTP_PORT, path, options, rows, folder)
    deadline_s = time.monotonic() + VISIBLE_WITHIN_S
    while (found := _count(instance)) != rows and time.monotonic() < deadline_s:
        time.sleep(0.1)
    curl.require(found, rows, "/imp")
    return rate


def _count(instance: lab.Instance) -> int:
    answer = json.loads(curl.text_of(instance, HTTP_PORT, "/exec?query=select%20count()%20from%20theirs"))
    return int(answer["dataset"][0][0])
