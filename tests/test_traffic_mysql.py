"""Logs of MySQL and MariaDB become traces."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sensorbench.report import traffic_page
from sensorbench.traffic import describe_trace, import_logs, read_trace
from sensorbench.traffic.formats import GENERAL_LOG, SLOW_LOG, recognise
from sensorbench.traffic.lexer import kind_of, lift_literals, tables_of
from tests.conftest import Cli

# What a MariaDB 11.4 of the lab wrote of one session.
GENERAL, SLOW = (Path(__file__).parent / "fixtures" / "traffic" / f"mariadb-{name}.log" for name in ("general", "slow"))
# Of MySQL 8, as its manual shows them (The Slow Query Log; The General Query Log): times to the microsecond.
MYSQL_SLOW = """\
# Time: 2026-01-01T00:00:02.500000Z
# User@Host: app[app] @ localhost [127.0.0.1]  Id:    12
# Query_time: 0.250000  Lock_time: 0.000003 Rows_sent: 1  Rows_examined: 0
use shop;
SET timestamp=1767225602;
SELECT 'x'
  FROM t;
# Time: 2026-01-01T00:00:03.000000Z
# User@Host: app[app] @ localhost [127.0.0.1]  Id:    12
# Query_time: 0.000001  Lock_time: 0.000000 Rows_sent: 0  Rows_examined: 0
SET timestamp=1767225603;
# administrator command: Quit;
"""
MYSQL_GENERAL = "2026-01-01T00:00:02.250000Z\t   12 Query\tSELECT 'x'\n  FROM t\n2026-01-01T01:00:03.000000+01:00\t   12 Quit\t\n"


def statements(folder: Path) -> list[tuple[str, list[object]]]:
    templates = read_trace(folder).templates
    rows = pq.read_table(folder / "statements.parquet").to_pylist()
    return [(templates[row["template"]].statement, json.loads(row["parameters"])) for row in rows]


def test_both_logs_have_the_statements_that_were_sent(tmp_path: Path) -> None:
    assert (recognise(GENERAL), recognise(SLOW)) == (GENERAL_LOG, SLOW_LOG)
    of_general, of_slow = import_logs([GENERAL], tmp_path / "general"), import_logs([SLOW], tmp_path / "slow")
    sent = statements(tmp_path / "slow")
    assert sent == [found for found in statements(tmp_path / "general") if "@@" not in found[0] and "SHOW" not in found[0]]
    assert ("INSERT INTO readings VALUES ($1, $2, $3), ($4, NOW(), $5)", ["a'b", "2024-01-01 00:00:00.5", 1.5, "c", -2]) in sent
    assert ("UPDATE readings SET value = value + $1 WHERE sensor = $2", [1, "a'b"]) in sent
    assert ("SELECT count(*) FROM readings WHERE value > $1", [1]) in sent, "prepared, with its values, and once"
    assert (of_general.sessions, of_slow.sessions) == (2, 1)
    rows = pq.read_table(tmp_path / "slow" / "statements.parquet").to_pylist()
    assert [row["transaction"] for row in rows if row["transaction"] is not None] == [0] * 4
    assert all(row["duration"] > 0 for row in rows)
    assert [row["rows"] for row in rows if row["rows"]] == [1, 2, 1, 1]
    # MariaDB writes whole seconds: statements of a session follow one another in them.
    times = [row["at"] for row in rows]
    assert times == sorted(set(times))


def test_sizes_of_answers_are_on_the_page_where_the_log_has_them(tmp_path: Path) -> None:
    charts = {}
    for log in (SLOW, GENERAL):
        import_logs([log], tmp_path / log.name)
        charts[log] = [chart.name for chart in traffic_page(describe_trace(tmp_path / log.name), tmp_path).charts]
    assert "traffic-rows" in charts[SLOW]
    assert "traffic-rows" not in charts[GENERAL]


@pytest.mark.parametrize(("name", "text"), [("slow", MYSQL_SLOW), ("general", MYSQL_GENERAL)])
def test_times_of_mysql_are_of_microseconds(tmp_path: Path, name: str, text: str) -> None:
    log = tmp_path / f"{name}.log"
    log.write_text(text, encoding="utf-8")
    trace = import_logs([log], tmp_path / "trace")
    (row,) = pq.read_table(tmp_path / "trace" / "statements.parquet").to_pylist()
    assert statements(tmp_path / "trace") == [("SELECT $1 FROM t", ["x"])]
    assert (row["at"].isoformat(), trace.skipped) == ("2026-01-01T00:00:02.250000+00:00", 1)


@pytest.mark.parametrize(
    ("statement", "template", "literals"),
    [
        ("""SELECT 'it''s', 'a\\'b\\n\\Z\\%', "q""'" """, "SELECT $1, $2, $3", ("it's", "a'b\n\x1a\\%", "q\"'")),
        ("SELECT `a 'b'`, n'x' # 'c'\nFROM t -- 'd'", "SELECT `a 'b'`, $1 FROM t", ("x",)),
        ("SELECT 5--1, /*! 1 */ /* 'c' */ 2 FROM t", "SELECT $1-$2, /*! 1 */ $3 FROM t", (5, -1, 2)),
        ("SELECT a FROM t WHERE time > '2024-01-01'", "SELECT a FROM t WHERE time > $1", ("2024-01-01",)),
        ("SELECT x'41' FROM t WHERE at > TIMESTAMP '2024-01-01 00:00:00'", None, ("x'41'", "2024-01-01 00:00:00")),
    ],
)
def test_literals_are_taken_out_as_mysql_reads_them(statement: str, template: str | None, literals: tuple[object, ...]) -> None:
    lifted = lift_literals(statement, "mysql")
    assert lifted.literals == literals
    assert lifted.statement == (template or "SELECT $1 FROM t WHERE at > CAST($2 AS DATETIME)")


def test_what_locks_rows_is_a_write_and_names_keep_their_quotes() -> None:
    assert kind_of("SELECT * FROM t LOCK IN SHARE MODE", "mysql") == "write"
    assert kind_of("SELECT `lock` FROM t", "mysql") == "read"
    assert tables_of("SELECT * FROM `a b`.t JOIN u", "mysql") == ["`a b`.t", "u"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("slow", SLOW.read_text(encoding="utf-8").replace("SET timestamp", "SET time", 1), ":4: expected an entry of a slow log"),
        ("general", GENERAL.read_text(encoding="utf-8").replace("261126 22:13:12", "", 1), ":4: expected a time in the first"),
    ],
)
def test_a_log_that_is_none_is_named_with_its_line(cli: Cli, tmp_path: Path, name: str, text: str, said: str) -> None:
    log = tmp_path / f"{name}.log"
    log.write_text(text, encoding="utf-8")
    ended = cli("traffic", "import", log, "--out", tmp_path / "trace", "--log-format", f"mysql-{name}-log")
    assert (ended.exit_code, f"{log}{said}" in ended.err) == (2, True), ended.err
    assert not (tmp_path / "trace").exists()


def test_a_trace_of_mysql_is_not_sent_to_another_database(cli: Cli, tmp_path: Path) -> None:
    import_logs([SLOW], tmp_path / "trace")
    ended = cli("traffic", "replay", tmp_path / "trace", "postgresql://nowhere/shop", "--out", tmp_path / "out")
    said = "it was recorded from mysql; expected a target of mysql, mariadb"
    assert (ended.exit_code, said in " ".join(ended.err.split())) == (2, True), ended.err


def test_nothing_of_the_literals_is_left_when_it_is_anonymised(cli: Cli, tmp_path: Path) -> None:
    import_logs([SLOW], tmp_path / "trace")
    (tmp_path / "key").write_bytes(b"a key that nobody can guess")
    assert cli("traffic", "anonymise", tmp_path / "trace", "--key", tmp_path / "key", "--out", tmp_path / "new").exit_code == 0
    written = b"".join(file.read_bytes() for file in (tmp_path / "new").iterdir())
    assert b"2024-01-01 00:00:00.5" not in written
    assert b"a'b" not in written
