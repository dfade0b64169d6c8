"""TSBS's own files: what `tsbs_generate_data` writes of servers, as line protocol or as the rows of TimescaleDB (which ClickHouse reads, too).

A row of TimescaleDB's form is two lines, the tags and then the values; a row of line protocol is one. Files are read a chunk at a
time, compressed or not. Tags are kept once for each host, so that memory does not grow with the rows.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from sensorbench.dataset.compressed import ByteStream, first_bytes
from sensorbench.dataset.dataset import CPU, CPU_READINGS, Dataset, DatasetWriter, Description, RelationWriter
from sensorbench.dataset.tsbs import (
    CPU_FIELDS,
    CPU_SCHEMA,
    HOST_SCHEMA,
    HOST_TAGS,
    HOSTS,
    MEASUREMENTS_VIEW,
    REGIONS,
    narrow_view,
)
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter

NAME = "tsbs"
# As TSBS calls them.
TAGS = ("hostname", *HOST_TAGS[1:])
# A row may lack fields.
IMPORTED_SCHEMA = pa.schema([field if field.name in CPU_READINGS.key else field.with_nullable(True) for field in CPU_SCHEMA])

_HEADER, _CPU_ROW = b"tags,", CPU.encode() + b","
_LINE_PROTOCOL = re.compile(rb"[a-z_]+,hostname=")
_HOST = re.compile(r"host_(0|[1-9]\d{0,8})")
_NUMBER = rb"(-?[0-9.]+(?:[eE][-+]?\d+)?)"
_ALL_FIELDS = re.compile(b",".join(name.encode() + b"=" + _NUMBER + b"i?" for name in CPU_FIELDS))
_ROW = csv.ReadOptions(column_names=["ns", *CPU_FIELDS])
_TYPES = csv.ConvertOptions(
    column_types={"ns": pa.int64(), **dict.fromkeys(CPU_FIELDS, pa.float64())}, null_values=[""], strings_can_be_null=True
)


@dataclass
class _Counts:
    """What was in the files."""

    rows: int = 0
    bad_rows: int = 0
    others: dict[str, int] = field(default_factory=dict)
    values: int = 0


class _Hosts:
    """The hosts that rows named, by their tags as the files write them."""

    def __init__(self) -> None:
        self._keys: dict[bytes, tuple[int, int]] = {}
        self.rows: dict[int, tuple[int | str, ...]] = {}

    def key(self, tags: bytes) -> tuple[int, int]:
        """Site and zone of a host by its tags. Raises ValueError for tags that no host of TSBS has."""
        found = self._keys.get(tags)
        if found is None:
            found = self._keys[tags] = self._add(tags)
        return found

    def _add(self, tags: bytes) -> tuple[int, int]:
        pairs = [entry.partition("=") for entry in tags.decode("utf-8", "replace").split(",")]
        values = {name: value for name, _, value in pairs}
        missing = next((name for name in TAGS if not values.get(name)), None)
        if missing is not None:
            raise ValueError(f"the tag {missing} is missing; expected the tags {', '.join(TAGS)}")
        host = _HOST.fullmatch(values["hostname"])
        if host is None:
            raise ValueError(f"hostname={values['hostname']}; expected host_ and a number")
        if values["region"] not in REGIONS:
            raise ValueError(f"region={values['region']}; expected one of {', '.join(REGIONS)}")
        site, zone = REGIONS.index(values["region"]) + 1, int(host[1])
        row: tuple[int | str, ...] = (site, zone, *(values[name] for name in TAGS))
        if self.rows.setdefault(zone, row) != row:
            raise ValueError(f"{values['hostname']} has other tags than in a row before; expected one set of tags for each host")
        return site, zone

    def table(self) -> pa.Table:
        """All of them, by their numbers."""
        columns = zip(*(self.rows[zone] for zone in sorted(self.rows)), strict=True)
        return pa.table([pa.array(values, of.type) for values, of in zip(columns, HOST_SCHEMA, strict=True)], schema=HOST_SCHEMA)


@dataclass(frozen=True)
class _Row:
    """A row of the measurement cpu: the number of its line (of its second one, where it has two), its tags and its values, with commas between."""

    line: int
    tags: bytes
    values: bytes


def recognises(file: Path) -> bool:
    """Whether a file is one of TSBS's, compressed or not."""
    start = first_bytes(file)
    return start.startswith(_HEADER + b"hostname ") or _LINE_PROTOCOL.match(start) is not None


def import_files(files: list[Path], out: Path, *, skip_bad_rows: bool, reporter: ProgressReporter) -> Dataset:
    """Imports files of TSBS, one after the other.

    Args:
        files: line protocol or TimescaleDB's form, each plain or compressed by gzip, bzip2 or xz.
        out: the folder.
        skip_bad_rows: whether bad rows are left out and counted; else the first one is an error.
        reporter: told how far it is.

    Raises:
        UsageError: for what is none of TSBS's files, and for bad rows that are not skipped, with file and line.

    """
    missing = next((file for file in files if not file.is_file()), None)
    if missing is not None:
        raise UsageError(f"{missing}: no such file; expected files that tsbs_generate_data wrote")
    writer, hosts, counts = DatasetWriter(out), _Hosts(), _Counts()
    total = sum(file.stat().st_size for file in files)
    with writer.writing(CPU, IMPORTED_SCHEMA) as relation, reporter.task("importing TSBS's files", total=total) as task:
        read_bytes = 0
        for file in files:
            stream = ByteStream(file)
            taker = _Taker(file, hosts, counts, relation, skip_bad_rows=skip_bad_rows)
            for rows in _rows(file, stream, taker, counts):
                taker.take(rows)
                task.advance_to(read_bytes + stream.read_bytes, f"{counts.rows:,} rows")
            if stream.is_cut:
                raise UsageError(f"{file}: the compressed data end too early; fetch or generate the file again")
            read_bytes += stream.read_bytes
        task.end(f"{counts.rows:,} rows")
    if counts.rows == 0:
        raise UsageError(f"{files[0]}: no row of the measurement {CPU} is there; nothing was imported")
    writer.add_table(HOSTS, hosts.table())
    writer.add_view(MEASUREMENTS_VIEW, narrow_view(CPU, CPU_FIELDS))
    return writer.finish(_description(files, counts))


def _lines(stream: ByteStream) -> Iterator[list[bytes]]:
    """The lines of a file, those of a chunk together."""
    rest = b""
    for chunk in stream:
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield lines
    if rest and not stream.is_cut:
        yield [rest]


def _rows(file: Path, stream: ByteStream, taker: "_Taker", counts: _Counts) -> Iterator[list[_Row]]:
    """The rows of a file, those of a chunk together."""
    blocks = _lines(stream)
    first = next(blocks, [])
    blocks = chain([first], blocks)
    if first and first[0].startswith(_HEADER):
        yield from _rows_of_pairs(file, stream, blocks, taker, counts)
    elif first and _LINE_PROTOCOL.match(first[0]):
        yield from _rows_of_lines(blocks, taker, counts)
    else:
        shown = first[0][:60].decode("utf-8", "replace") if first else ""
        raise UsageError(f"{file}, line 1: {shown!r}; expected a file of TSBS's: tags,hostname string,… or {CPU},hostname=…")


def _rows_of_pairs(
    file: Path, stream: ByteStream, blocks: Iterator[list[bytes]], taker: "_Taker", counts: _Counts
) -> Iterator[list[_Row]]:
    """The rows of TimescaleDB's form: a header, an empty line, then two lines for each row."""
    number, in_header, tags = 0, True, b""
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
                    taker.refuse(number, line, "expected tags,hostname=…")
            elif line.startswith(_CPU_ROW):
                rows.append(_Row(number, tags, line[len(_CPU_ROW) :]))
                tags = b""
            elif line.startswith(_HEADER):
                taker.refuse(number, line, "expected the values of a row; the line before has its tags")
                tags = line[len(_HEADER) :]
            else:
                _count_other(line, counts)
                tags = b""
        yield rows
    if tags and not stream.is_cut:
        taker.refuse(number + 1, b"", "the file ends behind the tags of a row; expected its values")


def _check_header(file: Path, number: int, line: bytes) -> None:
    """Raises UsageError for a header that names other tags or fields."""
    words = line.decode("utf-8", "replace").split(",")
    if number == 1 and tuple(word.partition(" ")[0] for word in words[1:]) != TAGS:
        raise UsageError(f"{file}, line 1: the tags are {', '.join(words[1:])}; expected {', '.join(TAGS)}")
    if words[0] == CPU and tuple(words[1:]) != CPU_FIELDS:
        raise UsageError(
            f"{file}, line {number}: the fields of {CPU} are {', '.join(words[1:])}; expected {', '.join(CPU_FIELDS)}"
        )


def _rows_of_lines(blocks: Iterator[list[bytes]], taker: "_Taker", counts: _Counts) -> Iterator[list[_Row]]:
    """The rows of line protocol."""
    number = 0
    for block in blocks:
        rows = []
        for line in block:
            number += 1
            if not line.startswith(_CPU_ROW):
                if line:
                    _count_other(line, counts)
                continue
            parts = line.split(b" ")
            if len(parts) != 3:
                taker.refuse(number, line, "expected a measurement with tags, fields and a time, with a blank between each")
                continue
            tags, fields, ns = parts
            try:
                rows.append(_Row(number, tags[len(_CPU_ROW) :], ns + b"," + _values(fields)))
            except ValueError as error:
                taker.refuse(number, line, str(error))
        yield rows


def _values(fields: bytes) -> bytes:
    """The values of fields in their order, with commas between; nothing for a field that is not there. Raises ValueError for other fields."""
    if (found := _ALL_FIELDS.fullmatch(fields)) is not None:
        return b",".join(found.groups())
    values = dict.fromkeys(CPU_FIELDS, b"")
    for entry in fields.split(b","):
        name, _, value = entry.partition(b"=")
        text = name.decode("utf-8", "replace")
        if text not in values:
            raise ValueError(f"{CPU} has no field {text!r}; expected {', '.join(CPU_FIELDS)}")
        values[text] = value.removesuffix(b"i")
    return b",".join(values.values())


def _count_other(line: bytes, counts: _Counts) -> None:
    name = line.partition(b",")[0].decode("utf-8", "replace")[:40]
    counts.others[name] = counts.others.get(name, 0) + 1


class _Taker:
    """Takes rows of a file over into a relation."""

    def __init__(self, file: Path, hosts: _Hosts, counts: _Counts, relation: RelationWriter, *, skip_bad_rows: bool) -> None:
        self._file = file
        self._hosts = hosts
        self._counts = counts
        self._relation = relation
        self._skip_bad_rows = skip_bad_rows

    def take(self, rows: Sequence[_Row]) -> None:
        """Writes rows. Raises UsageError for a bad one, unless they are skipped."""
        if not rows:
            return
        try:
            batch = self._batch(rows)
        except (ValueError, pa.ArrowInvalid):
            # One of them is bad: each by itself, to say which.
            rows = [row for row in rows if self._is_good(row)]
            if not rows:
                return
            batch = self._batch(rows)
        self._relation.write(batch)
        self._counts.rows += batch.num_rows
        self._counts.values += sum(len(column) - column.null_count for column in batch.columns[len(CPU_READINGS.key) :])

    def refuse(self, line: int, text: bytes, why: str) -> None:
        """Counts a bad line. Raises UsageError unless those are skipped."""
        self._counts.bad_rows += 1
        if not self._skip_bad_rows:
            shown = text[:60].decode("utf-8", "replace")
            raise UsageError(f"{self._file}, line {line}: {shown!r}: {why}; --bad-rows skip leaves bad rows out")

    def _is_good(self, row: _Row) -> bool:
        try:
            self._batch([row])
        except pa.ArrowInvalid:
            self.refuse(row.line, row.values, f"expected a time in ns and {len(CPU_FIELDS)} numbers")
        except ValueError as error:
            self.refuse(row.line, row.tags, str(error))
        else:
            return True
        return False

    def _batch(self, rows: Sequence[_Row]) -> pa.RecordBatch:
        """The rows as a batch. Raises ValueError for tags or a time that are none, ArrowInvalid for other values."""
        keys = [self._hosts.key(row.tags) for row in rows]
        text = pa.BufferReader(b"\n".join(row.values for row in rows) + b"\n")
        table = csv.read_csv(text, _ROW, csv.ParseOptions(quote_char=False), _TYPES).combine_chunks()
        if table.num_rows != len(rows) or table["ns"].null_count:
            raise pa.ArrowInvalid("a row is empty, or has no time")
        times = pc.divide(table["ns"], 1000)
        if not pc.all(pc.equal(pc.multiply(times, 1000), table["ns"])).as_py():
            raise ValueError("the time has parts of a microsecond; expected whole microseconds")
        sites, zones = zip(*keys, strict=True)
        columns = [pa.array(sites, pa.int32()), pa.array(zones, pa.int32()), times.cast(pa.timestamp("us"))]
        values = [table[name] for name in CPU_FIELDS]
        made = pa.table([*columns, *values], schema=IMPORTED_SCHEMA).combine_chunks()
        return made.to_batches()[0]


def _description(files: Sequence[Path], counts: _Counts) -> Description:
    others = ", ".join(f"{rows:,} of {name}" for name, rows in sorted(counts.others.items()))
    fields = counts.rows * len(CPU_FIELDS)
    notes = [
        f"{counts.rows:,} rows of {CPU}: {fields:,} metrics, {fields - counts.values:,} of them null."
        + (f" Rows of other measurements are left out: {others}." if others else "")
    ]
    if counts.bad_rows:
        notes.append(f"{counts.bad_rows:,} bad lines were left out.")
    return Description(
        name=NAME,
        title=f"TSBS: CPU metrics of hosts, from {', '.join(file.name for file in files)}",
        generated=False,
        source=", ".join(file.name for file in files),
        license="that of the files",
        how_made="Imported from files that tsbs_generate_data wrote.",
        site_is="the number of the host's region, 1 to 9, in TSBS's order",
        zone_is="the number of the host, from 0 on",
        notes=notes,
        counted={"rows": counts.rows, "metrics": fields, "metrics_not_null": counts.values, "bad_lines": counts.bad_rows},
    )
