"""What the paper printed, by part, level and load: rows of `published.csv` that are of a cell of the study."""

import csv
import re
from pathlib import Path

from sensorbench.results.factors import FILLED, Where
from sensorbench.results.summary.factors import PublishedFigure

# The tables of each part, and the word of a configuration that tells its levels apart.
_PARTS = {
    "key-cache-size": (range(2, 7), "key_cache_size"),
    "key-cache-save-period": (range(7, 9), "key_cache_save_period"),
    "memtable-allocation": (range(9, 11), "memtable_allocation_type"),
    "flush-writers": (range(11, 13), "memtable_flush_writers"),
    "cleanup-threshold": (range(13, 15), "memtable_cleanup_threshold"),
    "draft": (range(15, 16), "draft-model"),
}
_LEVELS = {
    "heap_buffers": "heap buffers",
    "offheap_buffers": "off-heap buffers",
    "offheap_objects": "off-heap objects",
    "recommended": "draft",
}
# Its words for figures, ours, and the factor to our unit, where its unit is known.
_FIGURES = {
    "key-cache-hit-rate": ("hit_rate", 1.0),
    "time-to-achieve-hit-rate": ("steady_s", 60.0),
    "cpu-load": ("load", 1.0),
    "os-load": ("load", 1.0),
    "disk-read-throughput": ("disk_read_per_s", 1e6),
    "disk-write-throughput": ("disk_written_per_s", 1e6),
    "write-request-rate": ("per_s", 1.0),
    "operation-time": ("took_s", 1.0),
    "write-latency": ("mean_s", 1e-6),
    "bytes-compacted": ("compacted_per_s", 1e6),
    "sstables": ("sstables", 1.0),
    "disk-space-used": ("table_bytes", 1e9),
    "cache-memory-used": ("memtable_bytes", 1e6),
}
_RATES = {"10000": 0, "20000": 1, "30000": 2}
_TABLE = re.compile(r"Table (\d+)")
_WORD = re.compile(r"(?P<key>[\w-]+)=(?P<value>[\w.]+)")


def published(file: Path) -> list[PublishedFigure]:
    """Its cells."""
    with file.open(encoding="utf-8", newline="") as text:
        rows = [_row(row) for row in csv.DictReader(text)]
    return [row for row in rows if row is not None]


def _row(row: dict[str, str]) -> PublishedFigure | None:
    table = _TABLE.fullmatch(row["figure_or_table"])
    part = next((name for name, (tables, _) in _PARTS.items() if table and int(table[1]) in tables), None)
    if part is None or row["metric"] not in _FIGURES:
        return None
    words = {found["key"]: found["value"] for found in _WORD.finditer(row["configuration"])}
    figure, factor = _FIGURES[row["metric"]]
    load = "restart" if part == "key-cache-save-period" else row["operation"]
    return PublishedFigure(
        part=part,
        level=_level(words[_PARTS[part][1]]),
        load=load,
        where=_where(row, part),
        figure=figure,
        value=_value(row["value"]) * factor,
        note="" if row["note"] == "-" else row["note"],
    )


def _level(value: str) -> str:
    size = re.fullmatch(r"(\d+)(MB|h)", value)
    return f"{size[1]} {size[2]}" if size else _LEVELS.get(value, value)


def _where(row: dict[str, str], part: str) -> Where:
    rate = re.search(r"rate=(\d+)", row["parameter"])
    if rate is None:
        # The draft's reads are of the highest rate.
        return FILLED if row["operation"] == "write" else (2 if part == "draft" and row["operation"] == "read" else 0)
    later = len(_RATES) if "run=2" in row["parameter"] else 0
    return _RATES[rate[1]] + later


def _value(text: str) -> float:
    """A number, or a time as h:mm:ss in s."""
    if ":" in text:
        hours, minutes, seconds = map(int, text.split(":"))
        return float(3600 * hours + 60 * minutes + seconds)
    return float(text)
