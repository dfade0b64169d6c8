"""TSBS's own files: what `tsbs_generate_data` writes of servers and trucks, as line protocol or as the rows of TimescaleDB (which ClickHouse reads, too).

A row of TimescaleDB's form is two lines, the tags and then the values; a row of line protocol is one. Files are read a chunk at a
time, compressed or not. Tags are kept once for each host or truck, so that memory does not grow with the rows.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from sensorbench.dataset.compressed import ByteStream, first_bytes
from sensorbench.dataset.dataset import CPU, Dataset, DatasetWriter, Description, RelationWriter
from sensorbench.dataset.tsbs import MEASUREMENTS_VIEW
from sensorbench.dataset.tsbs_iot import ARRIVAL
from sensorbench.dataset.tsbs_layouts import LAYOUTS, SERVERS, SINGLE, Devices, Layout
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter

NAME = "tsbs"

_HEADER = b"tags,"
# What files say that have one CPU metric: in their header, or in their first line.
_ONE_CPU_METRIC = re.compile(rb"\A(?:tags,[^\n]*\n(?:[^\n]+\n)*cpu,usage_user\n|(?!tags,)[^ \n]+ usage_user=[0-9.]+i? )")
_NUMBER = rb"(-?[0-9.]+(?:[eE][-+]?\d+)?)"


class _Measurement:
    """How rows of a measurement are read: its name, and how its fields lie in a line of line protocol, after tags that are numbers."""

    def __init__(self, layout: Layout, name: str) -> None:
        self.name = name
        self.start = name.encode() + b","
        self.fields = layout.fields[name]
        self.numbers = layout.numbers
        self.all_fields = re.compile(b",".join(of.encode() + b"=" + _NUMBER + b"i?" for of in (*self.numbers, *self.fields)))
        self.columns = csv.ReadOptions(column_names=["ns", *self.fields])
        self.types = csv.ConvertOptions(
            column_types={"ns": pa.int64(), **dict.fromkeys(self.fields, pa.float64())},
            null_values=[""],
            strings_can_be_null=True,
        )


@dataclass
class _Counts:
    """What was in the files. `arrived` are the rows of the layout's measurements, also of those that nobody is named in."""

    rows: int = 0
    arrived: int = 0
    nameless: int = 0
    bad_rows: int = 0
    others: dict[str, int] = field(default_factory=dict)
    metrics: int = 0
    values: int = 0


@dataclass(frozen=True)
class _Row:
    """A row: its measurement, the number of its line (of its second one, where it has two), its tags and its values, with commas between."""

    measurement: str
    line: int
    tags: bytes
    values: bytes


@dataclass(frozen=True)
class _File:
    """A file with what it holds."""

    path: Path
    measurements: dict[bytes, _Measurement]
    layout: Layout


def recognises(file: Path) -> bool:
    """Whether a file is one of TSBS's, compressed or not."""
    return _layout_of(first_bytes(file)) is not None


def _layout_of(start: bytes) -> Layout | None:
    """The layout of a file that begins so."""
    for layout in LAYOUTS:
        header = _HEADER + layout.tags[0].encode() + b" "
        # Where tags may be missing, any may be the first.
        measurements, tags = ("|".join(layout.fields), "|".join(layout.tags)) if layout.has_gaps else ("[a-z_]+", layout.tags[0])
        line = re.compile(f"({measurements}),({tags})=".encode())
        if start.startswith(header) or line.match(start):
            return SINGLE if layout is SERVERS and _ONE_CPU_METRIC.match(start) else layout
    return None


def import_files(files: list[Path], out: Path, *, skip_bad_rows: bool, reporter: ProgressReporter) -> Dataset:
    """Imports files of TSBS, one after the other, all of one use case.

    Args:
        files: line protocol or TimescaleDB's form, each plain or compressed by gzip, bzip2 or xz.
        out: the folder.
        skip_bad_rows: whether bad rows are left out and counted; else the first one is an error.
        reporter: reports progress.

    Raises:
        UsageError: for what is none of TSBS's files, and for bad rows that are not skipped, with file and line.

    """
    missing = next((file for file in files if not file.is_file()), None)
    if missing is not None:
        raise UsageError(f"{missing}: no such file; expected files that tsbs_generate_data wrote")
    layout = _one_layout(files)
    measurements = [_Measurement(layout, name) for name in layout.fields]
    read = [_File(file, {of.start: of for of in measurements}, layout) for file in files]
    writer, devices, counts = DatasetWriter(out), Devices(layout), _Counts()
    if layout.has_gaps:
        # A row may lack the tag that its site is of: what others of the same truck say must be known before.
        for file in read:
            for rows in _rows(file, ByteStream(file.path), None, _Counts()):
                for row in rows:
                    devices.learn(row.measurement, row.tags)
    total = sum(file.stat().st_size for file in files)
    with _Relations(writer, layout) as relations, reporter.task("importing TSBS's files", total=total) as task:
        read_bytes = 0
        for file in read:
            stream = ByteStream(file.path)
            taker = _Taker(file, devices, counts, relations, skip_bad_rows=skip_bad_rows)
            for rows in _rows(file, stream, taker, counts):
                taker.take(rows)
                task.advance_to(read_bytes + stream.read_bytes, f"{counts.rows:,} rows")
            if stream.is_cut:
                raise UsageError(f"{file.path}: the compressed data end too early; fetch or generate the file again")
            read_bytes += stream.read_bytes
        task.end(f"{counts.rows:,} rows")
    if counts.rows == 0:
        raise UsageError(f"{files[0]}: no row of the measurement {' or '.join(layout.fields)} is there; nothing was imported")
    layout = relations.layout
    writer.add_table(layout.devices, devices.table(layout))
    writer.add_view(MEASUREMENTS_VIEW, layout.narrow())
    return writer.finish(_description(files, layout, counts))


class _Relations:
    """The relations that rows are written into, each made when its first row comes. At the end all of the layout are there; files of servers
    that have rows of their CPU alone make no others.
    """

    def __init__(self, writer: DatasetWriter, layout: Layout) -> None:
        self._writer = writer
        self._stack = ExitStack()
        self._open: dict[str, RelationWriter] = {}
        self.layout = layout

    def __enter__(self) -> "_Relations":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            if self.layout is SERVERS and self._open.keys() <= {CPU}:
                self.layout = self.layout.with_cpu_alone()
            for name in self.layout.schemas:
                self.of(name)
        self._stack.__exit__(kind, error, trace)

    def of(self, name: str) -> RelationWriter:
        """The relation of a measurement."""
        if name not in self._open:
            self._open[name] = self._stack.enter_context(self._writer.writing(name, self.layout.schemas[name]))
        return self._open[name]


def _one_layout(files: Sequence[Path]) -> Layout:
    """The layout of all files. Raises UsageError for a file of none, and for files of several."""
    layouts = []
    for file in files:
        start = first_bytes(file)
        layout = _layout_of(start)
        if layout is None:
            shown = start.split(b"\n", 1)[0][:60].decode("utf-8", "replace")
            raise UsageError(f"{file}, line 1: {shown!r}; expected a file of TSBS's: tags,hostname string,… or cpu,hostname=…")
        layouts.append(layout)
        if layout is not layouts[0]:
            raise UsageError(f"{file}: it has {layout.what}, and {files[0]} has {layouts[0].what}; import each by itself")
    return layouts[0]


def _lines(stream: ByteStream) -> Iterator[list[bytes]]:
    """The lines of a file, those of a chunk together."""
    rest = b""
    for chunk in stream:
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield lines
    if rest and not stream.is_cut:
        yield [rest]


def _rows(file: _File, stream: ByteStream, taker: "_Taker | None", counts: _Counts) -> Iterator[list[_Row]]:
    """The rows of a file, those of a chunk together. Bad ones are reported to `taker`."""
    blocks = _lines(stream)
    first = next(blocks, [])
    blocks = chain([first], blocks)
    if first and first[0].startswith(_HEADER):
        yield from _rows_of_pairs(file, stream, blocks, taker, counts)
    else:
        yield from _rows_of_lines(file, blocks, taker, counts)


def _refuse(taker: "_Taker | None", line: int, text: bytes, why: str) -> None:
    if taker is not None:
        taker.refuse(line, text, why)


def _rows_of_pairs(
    file: _File, stream: ByteStream, blocks: Iterator[list[bytes]], taker: "_Taker | None", counts: _Counts
) -> Iterator[list[_Row]]:
    """The rows of TimescaleDB's form: a header, an empty line, then two lines for each row."""
    number, in_header, tags = 0, True, b""
    expected = f"expected tags,{file.layout.tags[0]}=…"
    for block in blocks:
        rows = []
        for line in block:
            number += 1
            if in_header:
                _check_header(file, number, line)
                in_header = bool(line)
            elif not tags:
                if line.startswith(_HEADER):
                    tags = line[len(_HEADER) :]
                elif line:
                    _refuse(taker, number, line, expected)
            elif (measurement := file.measurements.get(line[: line.find(b",") + 1])) is not None:
                rows.append(_Row(measurement.name, number, tags, line[len(measurement.start) :]))
                tags = b""
            elif line.startswith(_HEADER):
                _refuse(taker, number, line, "expected the values of a row; the line before has its tags")
                tags = line[len(_HEADER) :]
            else:
                _count_other(line, counts)
                tags = b""
        yield rows
    if tags and not stream.is_cut:
        _refuse(taker, number + 1, b"", "the file ends after the tags of a row; expected its values")


def _check_header(file: _File, number: int, line: bytes) -> None:
    """Raises UsageError for a header that names other tags or fields."""
    layout, words = file.layout, line.decode("utf-8", "replace").split(",")
    if number == 1 and tuple(word.partition(" ")[0] for word in words[1:]) != layout.tags:
        raise UsageError(f"{file.path}, line 1: the tags are {', '.join(words[1:])}; expected {', '.join(layout.tags)}")
    if words[0] in layout.fields and tuple(words[1:]) != layout.fields[words[0]]:
        raise UsageError(
            f"{file.path}, line {number}: the fields of {words[0]} are {', '.join(words[1:])}; expected {', '.join(layout.fields[words[0]])}"
        )


def _rows_of_lines(file: _File, blocks: Iterator[list[bytes]], taker: "_Taker | None", counts: _Counts) -> Iterator[list[_Row]]:
    """The rows of line protocol."""
    number = 0
    for block in blocks:
        rows = []
        for line in block:
            number += 1
            measurement = file.measurements.get(line[: line.find(b",") + 1])
            if measurement is None:
                if line:
                    _count_other(line, counts)
                continue
            parts = line.split(b" ")
            if len(parts) != 3:
                _refuse(taker, number, line, "expected a measurement with tags, fields and a time, with a blank between each")
                continue
            tags, fields, ns = parts
            try:
                numbers, values = _values(measurement, fields)
            except ValueError as error:
                _refuse(taker, number, line, str(error))
            else:
                rows.append(_Row(measurement.name, number, tags[len(measurement.start) :] + numbers, ns + b"," + values))
        yield rows


def _values(measurement: _Measurement, fields: bytes) -> tuple[bytes, bytes]:
    """Tags that are numbers, as further tags, and the values of fields in their order, with commas between; nothing for a field that is not
    there. Raises ValueError for other fields.
    """
    names = (*measurement.numbers, *measurement.fields)
    if (found := measurement.all_fields.fullmatch(fields)) is not None:
        values = dict(zip(names, found.groups(), strict=True))
    else:
        values = dict.fromkeys(names, b"")
        for entry in fields.split(b","):
            name, _, value = entry.partition(b"=")
            text = name.decode("utf-8", "replace")
            if text not in values:
                raise ValueError(f"{measurement.name} has no field {text!r}; expected {', '.join(measurement.fields)}")
            values[text] = value.removesuffix(b"i")
    numbers = b"".join(b"," + name.encode() + b"=" + values[name] for name in measurement.numbers)
    return numbers, b",".join(values[name] for name in measurement.fields)


def _count_other(line: bytes, counts: _Counts) -> None:
    name = line.partition(b",")[0].decode("utf-8", "replace")[:40]
    counts.others[name] = counts.others.get(name, 0) + 1


class _Taker:
    """Takes rows of a file over into relations."""

    def __init__(self, file: _File, devices: Devices, counts: _Counts, relations: _Relations, *, skip_bad_rows: bool) -> None:
        self._file = file
        self._measurements = {of.name: of for of in file.measurements.values()}
        self._devices = devices
        self._counts = counts
        self._relations = relations
        self._skip_bad_rows = skip_bad_rows

    def take(self, rows: Sequence[_Row]) -> None:
        """Writes rows. Raises UsageError for a bad one, unless they are skipped."""
        by_measurement: dict[str, list[tuple[int, _Row]]] = defaultdict(list)
        for arrival, row in enumerate(rows, start=self._counts.arrived + 1):
            by_measurement[row.measurement].append((arrival, row))
        self._counts.arrived += len(rows)
        for name, numbered in by_measurement.items():
            self._take(name, numbered)

    def _take(self, name: str, rows: list[tuple[int, _Row]]) -> None:
        try:
            batch = self._batch(name, rows)
        except (ValueError, pa.ArrowInvalid):
            # One of them is bad: each by itself, to say which.
            rows = [row for row in rows if self._is_good(name, row)]
            batch = self._batch(name, rows)
        if batch.num_rows:
            self._relations.of(name).write(batch)
        layout, counts = self._file.layout, self._counts
        values = batch.columns[len(layout.readings.key) + len(layout.readings.valueless) :]
        counts.rows += batch.num_rows
        counts.nameless += len(rows) - batch.num_rows
        counts.metrics += batch.num_rows * len(values)
        counts.values += sum(len(column) - column.null_count for column in values)

    def refuse(self, line: int, text: bytes, why: str) -> None:
        """Counts a bad line. Raises UsageError unless those are skipped."""
        self._counts.bad_rows += 1
        if not self._skip_bad_rows:
            shown = text[:60].decode("utf-8", "replace")
            raise UsageError(f"{self._file.path}, line {line}: {shown!r}: {why}; --bad-rows skip leaves bad rows out")

    def _is_good(self, name: str, numbered: tuple[int, _Row]) -> bool:
        row = numbered[1]
        try:
            self._batch(name, [numbered])
        except pa.ArrowInvalid:
            self.refuse(row.line, row.values, f"expected a time in ns and {len(self._measurements[name].fields)} numbers")
        except ValueError as error:
            self.refuse(row.line, row.tags, str(error))
        else:
            return True
        return False

    def _batch(self, name: str, rows: Sequence[tuple[int, _Row]]) -> pa.RecordBatch:
        """The rows that name a device as a batch. Raises ValueError for tags or a time that are none, ArrowInvalid for other values."""
        layout, measurement = self._file.layout, self._measurements[name]
        schema = layout.schemas[name]
        taken = [(arrival, row, key) for arrival, row in rows if (key := self._devices.key(name, row.tags)) is not None]
        if not taken:
            return pa.RecordBatch.from_pylist([], schema=schema)
        text = pa.BufferReader(b"\n".join(row.values for _, row, _ in taken) + b"\n")
        table = csv.read_csv(text, measurement.columns, csv.ParseOptions(quote_char=False), measurement.types).combine_chunks()
        if table.num_rows != len(taken) or table["ns"].null_count:
            raise pa.ArrowInvalid("a row is empty, or has no time")
        times = pc.divide(table["ns"], 1000)
        if not pc.all(pc.equal(pc.multiply(times, 1000), table["ns"])).as_py():
            raise ValueError("the time has parts of a microsecond; expected whole microseconds")
        columns = {
            "site": pa.array([site for *_, (site, _) in taken], pa.int32()),
            "zone": pa.array([zone for *_, (_, zone) in taken], pa.int32()),
            "time": times.cast(pa.timestamp("us")),
            ARRIVAL: pa.array([arrival for arrival, *_ in taken], pa.int64()),
            **{field: table[field] for field in measurement.fields},
        }
        return pa.table([columns[field.name] for field in schema], schema=schema).combine_chunks().to_batches()[0]


def _description(files: Sequence[Path], layout: Layout, counts: _Counts) -> Description:
    others = ", ".join(f"{rows:,} of {name}" for name, rows in sorted(counts.others.items()))
    notes = [
        f"{counts.rows:,} rows of {' and '.join(layout.fields)}: {counts.metrics:,} metrics, {counts.metrics - counts.values:,} of them null."
        + (f" Rows of other measurements are left out: {others}." if others else "")
    ]
    if counts.nameless:
        notes.append(f"{counts.nameless:,} rows have no host or truck and were left out.")
    if counts.bad_rows:
        notes.append(f"{counts.bad_rows:,} bad lines were left out.")
    return Description(
        name=NAME,
        title=f"TSBS: {layout.what}, from {', '.join(file.name for file in files)}",
        generated=False,
        source=", ".join(file.name for file in files),
        license="that of the files",
        how_made="Imported from files that tsbs_generate_data wrote.",
        site_is=layout.site_is,
        zone_is=f"the number of the {layout.prefix[:-1]}, from 0 on",
        notes=notes,
        counted={
            "rows": counts.rows,
            "metrics": counts.metrics,
            "metrics_not_null": counts.values,
            "bad_lines": counts.bad_rows,
            **({"nameless_rows": counts.nameless} if layout.has_gaps else {}),
        },
    )
