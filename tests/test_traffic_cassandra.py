"""A full query log of Cassandra becomes a trace."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sensorbench.errors import UsageError
from sensorbench.traffic import read_trace
from sensorbench.traffic.cassandra_log import SESSIONS, entries_of
from sensorbench.traffic.cassandra_types import MarkerTypes, decoded
from sensorbench.traffic.entries import Skipped
from sensorbench.traffic.formats import QUERY_LOG
from sensorbench.traffic.importing import make_trace
from sensorbench.traffic.lexer import kind_of, lift_literals, number_markers, tables_of
from tests.conftest import Cli

# Records of the log of a Cassandra 5.0.6 of the lab, as its own library reads them (lab/java/cassandra/FullQueryLog.java).
RECORDS = Path(__file__).parent / "fixtures" / "traffic" / "cassandra-full-query-log.jsonl"


def record(text: str, values: list[str | None], *, consistency: str = "ONE", batch: str | None = None) -> bytes:
    said = {"at_ms": 1767225602250, "consistency": consistency, "keyspace": "k", "batch": batch, "statements": [[text, values]]}
    return json.dumps(said).encode()


def traced(folder: Path, *lines: bytes) -> list[tuple[str, list[object], int | None]]:
    make_trace(entries_of(Path("log"), iter(lines)), folder, QUERY_LOG, [Path("log")], Skipped())
    templates = read_trace(folder).templates
    rows = pq.read_table(folder / "statements.parquet").to_pylist()
    return [(templates[row["template"]].statement, json.loads(row["parameters"]), row["transaction"]) for row in rows]


def test_records_of_a_server_are_statements(tmp_path: Path) -> None:
    found = traced(tmp_path / "trace", *RECORDS.read_bytes().splitlines())
    of_us = [statement for statement in found if "readings" in statement[0]]
    assert ("SELECT value FROM readings WHERE sensor = $1 AND time >= $2", ["0x00000007", "0x000000000000000a"], None) in of_us
    assert ("SELECT value FROM readings WHERE sensor = $1 LIMIT $2", [7, 3], None) in of_us
    templates = read_trace(tmp_path / "trace").templates
    assert {template.consistency for template in templates if "FROM readings" in template.statement} == {"ONE", "QUORUM"}
    assert {template.keyspace for template in templates if "FROM readings" in template.statement} == {"traffic"}
    batch = [statement for statement in found if statement[2] is not None]
    assert [statement[0].split(" (")[0] for statement in batch] == [
        *("BEGIN UNLOGGED BATCH", 'INSERT INTO "readings"', 'INSERT INTO "readings"', "APPLY BATCH")
    ]
    assert len({len(statement[1]) for statement in batch[1:3]}) == 1


def test_a_batch_that_is_a_text_is_its_statements(tmp_path: Path) -> None:
    text = "BEGIN UNLOGGED BATCH INSERT INTO t (a, b) VALUES (?, 1); UPDATE t SET b = ? WHERE a = :key; APPLY BATCH;"
    assert traced(tmp_path / "trace", record(text, ["01", None, "02"])) == [
        ("BEGIN UNLOGGED BATCH", [], 0),
        ("INSERT INTO t (a, b) VALUES ($1, 1)", ["0x01"], 0),
        ("UPDATE t SET b = $1 WHERE a = $2", [None, "0x02"], 0),
        ("APPLY BATCH", [], 0),
    ]


def test_the_same_text_at_another_consistency_level_is_another_template(tmp_path: Path) -> None:
    lines = [record("SELECT a FROM t", [], consistency=level) for level in ("ONE", "QUORUM", "ONE")]
    traced(tmp_path / "trace", *lines)
    templates = read_trace(tmp_path / "trace").templates
    assert [(template.statement, template.consistency, template.tables) for template in templates] == [
        ("SELECT a FROM t", "ONE", ["t"]),
        ("SELECT a FROM t", "QUORUM", ["t"]),
    ]


def test_a_description_says_the_consistency_level(cli: Cli, tmp_path: Path) -> None:
    traced(tmp_path / "trace", record("SELECT a FROM t", [], consistency="QUORUM"))
    ended = cli("traffic", "describe", tmp_path / "trace", "--no-open")
    assert (ended.exit_code, "SELECT a FROM t -- QUORUM" in ended.out) == (0, True), ended.err
    assert "SELECT a FROM t -- QUORUM" in (tmp_path / "trace" / "report.html").read_text(encoding="utf-8")


def test_queries_are_dealt_to_sessions(tmp_path: Path) -> None:
    traced(tmp_path / "trace", *[record("SELECT a FROM t", [])] * (SESSIONS + 1))
    assert read_trace(tmp_path / "trace").sessions == SESSIONS


@pytest.mark.parametrize(
    ("statement", "template", "literals"),
    [
        ("SELECT \"A\" FROM t WHERE k = 'it''s' // x\nAND n >= -5", 'SELECT "A" FROM t WHERE k = $1 AND n >= $2', ("it's", -5)),
        ("SELECT a FROM t WHERE time > '2026-01-01' LIMIT 10", "SELECT a FROM t WHERE time > $1 LIMIT $2", ("2026-01-01", 10)),
        (
            "UPDATE t USING TTL 60 SET b = 0xCAFE, d = 1h30m WHERE id = 5132B130-ae79-11e4-ab27-0800200c9a66",
            "UPDATE t USING TTL $1 SET b = $2, d = $3 WHERE id = $4",
            (60, "0xCAFE", "1h30m", "5132B130-ae79-11e4-ab27-0800200c9a66"),
        ),
        ("INSERT INTO t (a, m) VALUES ($$it's$$, {'x': 1})", "INSERT INTO t (a, m) VALUES ($1, {$2: $3})", ("it's", "x", 1)),
        ("CREATE TABLE t (a int PRIMARY KEY) WITH comment = 'x'", "CREATE TABLE t (a int PRIMARY KEY) WITH comment = 'x'", ()),
    ],
)
def test_literals_are_taken_out_as_cassandra_reads_them(statement: str, template: str, literals: tuple[object, ...]) -> None:
    lifted = lift_literals(statement, "cassandra")
    assert (lifted.statement, lifted.literals) == (template, literals)


def test_what_statements_do() -> None:
    assert kind_of("APPLY BATCH", "cassandra") == "commit"
    assert tables_of('DELETE a FROM k."T" USING TIMESTAMP $1 WHERE k = $2', "cassandra") == ['k."T"']
    assert (
        number_markers("UPDATE t SET m = {'a': ?} WHERE k = :k AND l='?'") == "UPDATE t SET m = {'a': $1} WHERE k = $2 AND l='?'"
    )


COLUMNS = {
    ("k", "t"): {"a": "int", "B": "text", "at": "timestamp", "id": "uuid", "l": "list<int>", "limit_": "double", "day": "date"}
}


@pytest.mark.parametrize(
    ("statement", "types"),
    [
        (
            'INSERT INTO t (a, "B", at) VALUES ($1, $2, toTimestamp(now())) USING TTL $3 AND TIMESTAMP $4',
            ("int", "text", "int", "bigint"),
        ),
        ("INSERT INTO K.T (a, l, at) VALUES ($1, [$2], $3)", ("int", "list<int>", "timestamp")),
        (
            "SELECT a FROM t WHERE a IN ($1, $2) AND at >= $3 AND at < $4 LIMIT $5",
            ("int", "int", "timestamp", "timestamp", "int"),
        ),
        # A list as a whole is of no column's type: its bytes could be read as a text.
        ('SELECT a FROM t WHERE "B" IN $1 AND a IN($2) AND id IN $3', (None, "int", None)),
        ('UPDATE t SET "B" = $1, limit_=$2 WHERE id = $3', ("text", "double", "uuid")),
        ("SELECT a FROM t WHERE token(a) > $1", (None,)),
        ("SELECT a FROM other WHERE a = $1", (None,)),
    ],
)
def test_types_of_bound_values_are_those_of_columns(statement: str, types: tuple[str | None, ...]) -> None:
    assert MarkerTypes(COLUMNS).of(statement, "k") == types


@pytest.mark.parametrize(
    ("value", "its_type", "expected"),
    [
        ("fffffff9", "int", -7),
        ("4008000000000000", "double", 3.0),
        ("7ff8000000000000", "double", "nan"),
        ("01", "boolean", True),
        ("c3a9", "text", "é"),
        ("ff", "text", "0xff"),
        ("000001940a1a5c7d", "timestamp", "2024-12-27 21:51:27.357+00:00"),
        ("80000001", "date", "1970-01-02"),
        ("5132b130ae7911e4ab270800200c9a66", "timeuuid", "5132b130-ae79-11e4-ab27-0800200c9a66"),
        ("7f000001", "inet", "127.0.0.1"),
        ("", "int", "0x"),
        ("00000001", "list<int>", "0x00000001"),
        (None, "int", None),
    ],
)
def test_bytes_are_read_by_their_type(value: str | None, its_type: str, expected: object) -> None:
    assert decoded(value, its_type) == expected


def test_what_is_no_log_is_named(cli: Cli, tmp_path: Path) -> None:
    ended = cli("traffic", "import", tmp_path, "--out", tmp_path / "trace", "--log-format", "cassandra-full-query-log")
    assert (ended.exit_code, "expected the folder of a full query log, with files *.cq4" in ended.err) == (2, True), ended.err
    with pytest.raises(UsageError, match=r"log: record 2: .*; expected a record of a full query log"):
        list(entries_of(Path("log"), iter([record("SELECT a FROM t", []), b'{"at_ms": "x"}'])))


def test_bytes_stay_as_many_when_they_are_anonymised(cli: Cli, tmp_path: Path) -> None:
    long = "ab" * 40
    traced(tmp_path / "trace", record("SELECT a FROM t WHERE k = ? AND l = ?", ["00000007", long]))
    (tmp_path / "key").write_bytes(b"a key that nobody can guess")
    assert cli("traffic", "anonymise", tmp_path / "trace", "--key", tmp_path / "key", "--out", tmp_path / "new").exit_code == 0
    (row,) = pq.read_table(tmp_path / "new" / "statements.parquet")["parameters"].to_pylist()
    short, other = json.loads(row)
    assert (len(short), len(other)) == (10, 82)
    assert (int(short, 16) != 7, "ababab" not in other, len(bytes.fromhex(other[2:]))) == (True, True, 40)
