"""Captured requests of HTTP become traces: InfluxDB's line protocol, and Prometheus' remote write."""

import base64
import gzip
import json
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sensorbench.traffic import describe_trace, import_logs, read_trace
from sensorbench.traffic.formats import INFLUXDB_LINES, INFLUXDB_POINTS, REMOTE_WRITE, recognise
from tests.conftest import Cli

# What a loading sensorbench sent to an InfluxDB 1.6 of the lab, and a Prometheus 2.42 to whoever takes its samples.
LINES, WRITES = (Path(__file__).parent / "fixtures" / "traffic" / f"{name}.jsonl" for name in ("influxdb-lines", "remote-write"))
AT = "2026-01-01T00:00:02.25Z"


def captured(folder: Path, *requests: dict[str, object]) -> Path:
    file = folder / "requests.jsonl"
    file.write_text("".join(f"{json.dumps({'at': AT} | request)}\n" for request in requests), encoding="utf-8")
    return file


def statements(folder: Path) -> list[tuple[str, list[object]]]:
    templates = read_trace(folder).templates
    rows = pq.read_table(folder / "statements.parquet").to_pylist()
    return [(templates[row["template"]].statement, json.loads(row["parameters"])) for row in rows]


def message(*fields: tuple[int, bytes | int | float]) -> bytes:
    """A message of protocol buffers."""
    written = b""
    for number, value in fields:
        if isinstance(value, float):
            written += varint(number << 3 | 1) + struct.pack("<d", value)
        elif isinstance(value, int):
            written += varint(number << 3) + varint(value % (1 << 64))
        else:
            written += varint(number << 3 | 2) + varint(len(value)) + value
    return written


def varint(number: int) -> bytes:
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def series(labels: dict[str, str], *samples: tuple[float, int]) -> bytes:
    named = [(1, message((1, name.encode()), (2, value.encode()))) for name, value in labels.items()]
    return message((1, message(*named, *[(2, message((1, value), (2, time))) for value, time in samples])))


def test_points_that_were_written_are_statements(tmp_path: Path) -> None:
    assert recognise(LINES) is INFLUXDB_LINES
    trace = import_logs([LINES], tmp_path / "trace")
    points = sum(len(json.loads(line)["body"].splitlines()) for line in LINES.read_text(encoding="utf-8").splitlines())
    assert (trace.database, trace.statements) == ("influxdb", points)
    assert [template.statement for template in trace.templates] == [
        *('sensorbench mark="$1" $2', "readings,sensor=$1 value=$2,level=$3i $4")
    ]
    assert statements(tmp_path / "trace")[2] == ("readings,sensor=$1 value=$2,level=$3i $4", ["s 1", 0.5, 1, 1700000001000000000])
    described = describe_trace(tmp_path / "trace")
    assert [(use.table, use.reads, use.writes) for use in described.tables] == [
        ("readings", 0, points - 1),
        ("sensorbench", 0, 1),
    ]


def test_samples_that_were_sent_are_statements(tmp_path: Path) -> None:
    assert recognise(WRITES) is REMOTE_WRITE
    trace = import_logs([WRITES], tmp_path / "trace")
    assert trace.database == "prometheus"
    sent = dict(statements(tmp_path / "trace"))
    assert sent["up{instance=$1,job=$2} $3 $4"][:2] == ["127.0.0.1:19090", "itself"]
    assert any(template.statement.startswith("prometheus_http_requests_total{code=$1,handler=$2") for template in trace.templates)


@pytest.mark.parametrize(
    ("line", "template", "values"),
    [
        ("cpu,host=a,zone=b usage=1.5,n=3i 10", "cpu,host=$1,zone=$2 usage=$3,n=$4i $5", ["a", "b", 1.5, 3, 10_000_000]),
        ('c\\ p\\,u,ho\\=st=a\\ b s="x, \\"y\\" \\\\ 1",b=T', 'c\\ p\\,u,ho\\=st=$1 s="$2",b=$3', ["a b", 'x, "y" \\ 1', True]),
        ('m,pipe=5" v=2u -3', "m,pipe=$1 v=$2u $3", ['5"', 2, -3_000_000]),
        ('m s="two\nlines"', 'm s="$1"', ["two\nlines"]),
    ],
)
def test_a_point_is_read_as_influxdb_reads_it(tmp_path: Path, line: str, template: str, values: list[object]) -> None:
    body = base64.b64encode(gzip.compress(f"# a remark\n{line}\n\n".encode())).decode()
    file = captured(tmp_path, {"path": "/write?db=x&precision=ms", "encoding": "gzip", "body_base64": body})
    import_logs([file], tmp_path / "trace")
    assert statements(tmp_path / "trace") == [(template, values)]


def test_a_file_of_points_arrives_at_their_times(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "points.txt"
    file.write_text(
        'cpu,host=a usage=1.5 1767225602250000000\n\ncpu,host=b usage=2,s="x\ny" 1767225602250001999\n', encoding="utf-8"
    )
    assert recognise(file) is INFLUXDB_POINTS
    import_logs([file], tmp_path / "trace")
    rows = pq.read_table(tmp_path / "trace" / "statements.parquet").to_pylist()
    assert [row["at"].microsecond for row in rows] == [250_000, 250_001]
    assert statements(tmp_path / "trace")[1] == ('cpu,host=$1 usage=$2,s="$3" $4', ["b", 2.0, "x\ny", 1767225602250001999])
    file.write_text("cpu a=1 1\n# a remark\ncpu a=1\n", encoding="utf-8")
    ended = cli("traffic", "import", file, "--out", tmp_path / "none")
    assert (ended.exit_code, f"{file}:3: the point has no time" in ended.err) == (2, True), ended.err


def test_what_json_has_no_number_for_is_a_text(tmp_path: Path) -> None:
    (stale,) = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))
    samples = [(1.5, -1), (float("inf"), 2), (float("nan"), 3), (stale, 4)]
    body = series({"__name__": "m", "a": "é"}, *samples) + message((3, b""))
    compressed = pa.Codec("snappy").compress(body, asbytes=True)
    file = captured(
        tmp_path,
        {"path": "/api/v1/write", "encoding": "snappy", "body_base64": base64.b64encode(compressed).decode(), "status": 400},
    )
    trace = import_logs([file], tmp_path / "trace")
    assert statements(tmp_path / "trace") == [
        ("m{a=$1} $2 $3", ["é", value, time]) for value, time in ((1.5, -1), ("+Inf", 2), ("NaN", 3), ("StaleNaN", 4))
    ]
    assert trace.skipped == 1
    assert set(pq.read_table(tmp_path / "trace" / "statements.parquet")["error"].to_pylist()) == {"HTTP 400"}


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"path": "/write", "body": "cpu usage=x"}, ":1: line 1 of the body: field usage: 'x' is not a number"),
        ({"path": "/write", "body": "cpu a=1\ncpu,x a=1"}, ":1: line 2 of the body: expected a tag TAG=VALUE"),
        ({"path": "/write", "body": "cpu a=1,"}, ":1: line 1 of the body: expected FIELD=VALUE"),
        ({"path": "/write", "body": "cpu"}, ":1: line 1 of the body: expected MEASUREMENT"),
        ({"path": "/write?precision=d", "body": "cpu a=1"}, ":1: path: precision=d is none of"),
        ({"path": "/write", "body": "cpu a=1", "encoding": "gzip"}, ":1: encoding: the body is not compressed by gzip"),
        ({"path": "/write", "body": "cpu a=1", "body_base64": ""}, ":1: expected either body, which is text, or body_base64"),
        ({"path": "/write", "body_base64": "?"}, ":1: body_base64: "),
        ({"path": "/api/v1/write", "body": "cpu a=1"}, ":1: the body is not a remote write of version 1"),
        ({"path": "/api/v1/write", "body": "x", "encoding": "snappy"}, ":1: encoding: the body is not compressed by snappy"),
        ({"path": "/query", "body": ""}, ":1: path: '/query' is none of"),
        ({"path": "/write", "body": "", "at": "soon"}, ":1: at: "),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(cli: Cli, tmp_path: Path, request_: dict[str, object], said: str) -> None:
    file = captured(tmp_path, request_)
    ended = cli("traffic", "import", file, "--out", tmp_path / "trace")
    assert (ended.exit_code, f"{file}{said}" in ended.err) == (2, True), ended.err
    assert not (tmp_path / "trace").exists()
