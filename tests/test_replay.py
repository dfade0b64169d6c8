"""Recorded statements are replayed on their own clock, in their sessions, and nothing is written that may not be."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sensorbench import _engine, lab
from sensorbench.benchmarks.replay import ReplayOptions, plan_replay
from sensorbench.benchmarks.replay.recorded import Sessions, copies_of, overlap
from sensorbench.traffic import STATEMENTS
from tests.conftest import Cli, server_url

READ, INSERT = "SELECT v FROM t WHERE k = $1", "INSERT INTO t VALUES ($1, $2)"
TEMPLATES = [
    (READ, "read"),
    (INSERT, "write"),
    ("BEGIN", "begin"),
    ("COMMIT", "commit"),
    ("ROLLBACK", "rollback"),
    ("SELECT 1 / $1::int", "read"),
]
READ_NUMBER, INSERT_NUMBER, BEGIN, COMMIT, ROLLBACK, DIVIDE = range(len(TEMPLATES))


@dataclass
class Recording:
    """A trace as it is being written down."""

    rows: list[dict[str, object]] = field(default_factory=list)

    def add(
        self,
        at_s: float,
        session: int,
        template: int,
        parameters: Sequence[object] = (),
        *,
        transaction: int | None = None,
        rows: int | None = None,
        error: str | None = None,
    ) -> None:
        sequence = sum(row["session"] == session for row in self.rows)
        whole = (round(at_s * 1e6), session, sequence, transaction, template, json.dumps(parameters), 0.001, rows, error)
        self.rows.append(dict(zip(STATEMENTS.names, whole, strict=True)))

    def write(
        self,
        folder: Path,
        templates: Sequence[tuple[str, str]] = TEMPLATES,
        *,
        database: str = "postgresql",
        levels: Mapping[int, str] | None = None,
        keyspace: str | None = None,
    ) -> Path:
        """Writes the trace; `levels` are those of consistency, by the numbers of templates, and the keyspace is that of all sessions."""
        folder.mkdir()
        table = pa.Table.from_pylist(self.rows, schema=STATEMENTS).sort_by(
            [(name, "ascending") for name in ("at", "session", "sequence")]
        )
        pq.write_table(table, folder / "statements.parquet")
        numbered: list[dict[str, object]] = [
            {
                "number": number,
                "statement": statement,
                "kind": kind,
                "parameters": [],
                "keyspace": keyspace,
                "consistency": (levels or {}).get(number),
            }
            for number, (statement, kind) in enumerate(templates)
        ]
        described = {"database": database, "version": "17", "templates": numbered}
        (folder / "trace.json").write_text(json.dumps(described), encoding="utf-8")
        return folder


def reads(sessions: int, of_each: int, length_s: float) -> Recording:
    """Reads that come evenly, of one session after the other."""
    recording = Recording()
    for number in range(sessions * of_each):
        recording.add(number * length_s / (sessions * of_each), number % sessions, READ_NUMBER, [number])
    return recording


def summary_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["result"]
    return found


def log_of(folder: Path) -> pa.Table:
    return pq.read_table(folder / "runs" / "001" / "operations.parquet").sort_by("k")


def test_statements_start_when_they_came_in_the_trace(cli: Cli, tmp_path: Path) -> None:
    trace = reads(4, 25, 1.0).write(tmp_path / "trace")
    for speed, gap_ms in (("1", 10.0), ("2", 5.0)):
        out = tmp_path / f"at-{speed}"
        ended = cli("traffic", "replay", trace, "null:", "--speed", speed, "--out", out, "--no-open")
        assert ended.exit_code == 0, ended.err
        log = log_of(out)
        intended_ms = log["intended_start_ns"].to_numpy() / 1e6
        assert np.diff(intended_ms) == pytest.approx(gap_ms, abs=0.002)
        assert (log["start_ns"].to_numpy() >= log["intended_start_ns"].to_numpy()).all()
        counts = summary_of(out)["counts"]
        assert counts == {
            **dict.fromkeys(("statements", "started", "ok"), 100),
            **dict.fromkeys(("not_started", "error", "timeout", "cancelled", "unknown"), 0),
        }
        assert "100 of 100 statements started: 100 ok" in " ".join(ended.out.split())
        assert "Compared with the recording" in (out / "report.html").read_text(encoding="utf-8")


def test_a_slow_target_makes_statements_wait_in_their_session_and_is_named_for_it(cli: Cli, tmp_path: Path) -> None:
    # Each statement takes twice as long as the next one of its session is away.
    trace = reads(2, 20, 0.4).write(tmp_path / "trace")
    out = tmp_path / "out"
    assert cli("traffic", "replay", trace, "null:?delay_ms=40", "--out", out, "--no-open").exit_code == 0
    log, figures = log_of(out), summary_of(out)
    # Unless the machine let the replayer itself wait for longer than the target.
    assert figures["late_because"] == "target" or figures["own_lag_s"]["p99"] > 0.1
    for slot in range(2):
        mine = log.filter(pa.compute.equal(log["slot"], slot)).to_pylist()
        assert len(mine) == 20
        for before, after in pairwise(mine):
            assert before["end_ns"] <= after["start_ns"], "a session executes one statement after the other"
    (template,) = figures["templates"]
    assert template["response_s"]["max"] > 0.3, "the response time has the wait in it"
    assert template["service_s"]["p50"] < 0.1, "the service time has not"


def test_sessions_are_copied_and_thinned(cli: Cli, tmp_path: Path) -> None:
    trace = reads(10, 10, 0.1).write(tmp_path / "trace")
    for scale, statements in (("2.5", 250), ("0.3", 30)):
        out = tmp_path / f"scaled-{scale}"
        ended = cli("traffic", "replay", trace, "null:", "--speed", "max", "--scale-rate", scale, "--out", out, "--no-open")
        assert ended.exit_code == 0, ended.err
        assert summary_of(out)["counts"]["ok"] == statements
        assert len(set(log_of(out)["k"].to_pylist())) == statements


def test_copies_and_overlap_of_sessions() -> None:
    whole = np.array([0.0, 1.0, 2.0])
    sessions = Sessions(np.arange(3), np.full(3, 2), whole, whole + 1.5, rows=6, length_s=3.5)
    assert [(copy.delay_s, copy.share) for copy in copies_of(2.5)] == [(0.0, 1.0), (1.0, 1.0), (2.0, 0.5)]
    assert overlap(sessions, copies_of(1.0), 1.0) == 2
    assert overlap(sessions, copies_of(2.0), 1.0) == 4
    assert sessions.chosen(1.0).tolist() == [True] * 3
    assert sessions.chosen(0.34).sum() == 1


def test_a_long_replay_has_no_more_intervals_than_a_report_shows(tmp_path: Path) -> None:
    recording = Recording()
    recording.add(0.0, 1, READ_NUMBER, [1])
    recording.add(20 * 3600.0, 1, READ_NUMBER, [1])
    trace = recording.write(tmp_path / "trace")
    for speed, interval_s in ((1.0, 20.0), (10.0, 2.0), (1000.0, 1.0), (None, 1.0)):
        work = plan_replay(trace, "null:", ReplayOptions(speed=speed), tmp_path / "out")
        assert work.engine_plan()["interval_s"] == interval_s


def test_what_cannot_be_replayed_is_refused(cli: Cli, tmp_path: Path) -> None:
    recording = reads(3, 2, 0.1)
    trace = recording.write(tmp_path / "trace")
    recording.add(0.2, 0, INSERT_NUMBER, [1, 2])
    writing = recording.write(tmp_path / "writing")
    unsorted = reads(2, 2, 0.1).write(tmp_path / "unsorted")
    of_other = recording.write(tmp_path / "of-other", database="influxdb")
    of_mysql = recording.write(tmp_path / "of-mysql", database="mysql")
    # It calls itself transaction control, and takes back that the session may only read.
    freed = recording.write(tmp_path / "freed", [(READ, "read"), ("SET default_transaction_read_only = off", "begin")])
    table = pq.read_table(unsorted / "statements.parquet")
    pq.write_table(table.take([3, 2, 1, 0]), unsorted / "statements.parquet")
    for arguments, code, said in [
        ((tmp_path, "null:"), 2, "no trace is there (trace.json is missing)"),
        ((trace, "null:", "--connections", "2"), 2, "3 recorded sessions are open at the same time"),
        ((trace, "null:", "--speed", "0"), 2, "expected a number above zero, or max"),
        ((trace, "null:", "--scale-rate", "x"), 2, "expected a number above 0"),
        ((trace, "sqlite"), 2, "expected sqlite:PATH"),
        ((trace, f"sqlite:{tmp_path}/data.db"), 2, "sqlite does not take the statements"),
        ((of_mysql, "cassandra://h"), 2, "it was recorded from mysql; expected a target of mysql, mariadb"),
        ((of_mysql, "mysql://h", "--compare-with", "redis://h"), 2, "--target redis://h: redis does not take the statements"),
        ((of_other, "redis://h"), 2, "only traces of cassandra, mysql, postgresql, redis can be replayed"),
        ((freed, "null:"), 2, "1 of its templates may change data at the target, the first: SET default_transaction_read_only"),
        ((writing, "null:"), 2, "1 of its templates may change data at the target, the first: INSERT INTO t VALUES ($1, $2)"),
        ((unsorted, "null:"), 1, "row 1 of the trace is earlier than the row before it"),
    ]:
        ended = cli("traffic", "replay", *arguments, "--out", tmp_path / "out", "--no-open")
        words = " ".join(ended.err.split())
        assert ended.exit_code == code, (arguments, words)
        assert said in words, (said, words)
    out = tmp_path / "reads"
    assert cli("traffic", "replay", writing, "null:", "--reads-only", "--out", out, "--no-open").exit_code == 0
    assert summary_of(out)["counts"]["started"] == 6


@pytest.fixture
def urls(lab_servers: dict[str, lab.Instance]) -> Iterator[tuple[str, str]]:
    """A namespace of ours with a table, and somebody's table of the same name, at one server: the URL of each."""
    mine = server_url("postgresql", "sensorbench_replay")
    target = _engine.Target(mine)
    create = {"create": {"statements": ["CREATE TABLE t (k bigint PRIMARY KEY, v bigint)"]}}
    owner = json.dumps({"id": "replay", "folder": "replay"})
    target.create(json.dumps(create), "", intent="create", owner=owner)
    somebody = mine.replace("namespace=sensorbench_replay", "namespace=somebody")
    change(target, "CREATE SCHEMA somebody")
    change(target, "CREATE TABLE somebody.t (k bigint PRIMARY KEY, v bigint)")
    yield mine, somebody
    change(target, "DROP SCHEMA somebody CASCADE")
    target.clean()


def change(target: _engine.Target, statement: str) -> None:
    asked(target, statement, [])


def asked(target: _engine.Target, statement: str, columns: Sequence[str] = ("n",)) -> list[list[object]]:
    """The answer to a statement outside of any run."""
    described = [{"name": name, "type": "integer"} for name in columns]
    operation = {"name": "x", "parameters": [], "columns": described, "statement": {"statement": statement}}
    rows: list[list[object]] = json.loads(target.execute_once(json.dumps(operation), pa.table({}).to_reader()))
    return rows


def test_a_replay_at_postgresql_keeps_transactions_and_counts_what_differs(
    cli: Cli, urls: tuple[str, str], tmp_path: Path
) -> None:
    mine, somebody = urls
    recording = Recording()
    recording.add(0.00, 1, INSERT_NUMBER, [1, "10"], rows=1)
    recording.add(0.05, 1, BEGIN, transaction=1)
    recording.add(0.06, 2, INSERT_NUMBER, [2, 20], rows=1)
    recording.add(0.07, 1, INSERT_NUMBER, [3, 30], transaction=1, rows=1)
    recording.add(0.08, 1, ROLLBACK, transaction=1)
    recording.add(0.10, 2, BEGIN, transaction=2)
    recording.add(0.11, 2, INSERT_NUMBER, [4, None], transaction=2, rows=1)
    recording.add(0.12, 2, COMMIT, transaction=2)
    recording.add(0.15, 1, READ_NUMBER, ["1"], rows=1)
    recording.add(0.16, 1, READ_NUMBER, [3], rows=1)
    recording.add(0.17, 1, DIVIDE, [0])
    recording.add(0.18, 1, DIVIDE, [1], error="division by zero")
    recording.add(0.19, 2, DIVIDE, [0], error="division by zero")
    trace, out = recording.write(tmp_path / "trace"), tmp_path / "out"
    target = _engine.Target(mine)

    refused = cli("traffic", "replay", trace, somebody, "--out", out, "--no-open")
    assert refused.exit_code == 2
    assert "sensorbench did not create the namespace somebody" in " ".join(refused.err.split())
    assert asked(target, "SELECT count(*) FROM somebody.t") == [[0]]

    ended = cli("traffic", "replay", trace, mine, "--out", out, "--no-open")
    assert ended.exit_code == 0, ended.err
    assert asked(target, "SELECT k FROM t ORDER BY k") == [[1], [2], [4]], "what was rolled back is not there"
    assert asked(target, "SELECT v FROM t WHERE k = 1") == [[10]]
    figures = summary_of(out)
    assert figures["counts"]["ok"] == 11
    assert figures["counts"]["error"] == 2
    of = {template["statement"]: template for template in figures["templates"]}
    divide = of[TEMPLATES[DIVIDE][0]]
    assert [divide[name] for name in ("recorded_errors", "error", "new_errors", "gone_errors")] == [2, 2, 1, 1]
    assert [of[READ][name] for name in ("rows_compared", "rows_differ")] == [2, 1]
    assert [of[INSERT][name] for name in ("rows_compared", "rows_differ")] == [4, 0]
    assert "division by zero" in (out / "report.html").read_text(encoding="utf-8")


def test_nothing_is_written_elsewhere(cli: Cli, urls: tuple[str, str], tmp_path: Path) -> None:
    mine, somebody = urls
    target = _engine.Target(mine)
    hidden = "WITH w AS (INSERT INTO somebody.t VALUES ($1, 1) RETURNING k) SELECT k FROM w"
    recording = Recording()
    recording.add(0.0, 1, 0, [1])
    elsewhere = recording.write(tmp_path / "elsewhere", [(hidden, "write")])
    two = recording.write(tmp_path / "two", [("INSERT INTO t VALUES ($1, 1); DELETE FROM somebody.t", "write")])
    disguised = recording.write(tmp_path / "disguised", [(hidden, "read")])
    both = [("INSERT INTO t VALUES ($1, 1)", "write"), (hidden, "read")]
    beside = recording.write(tmp_path / "beside", both)
    for trace, said in (
        (elsewhere, "it changes somebody.t"),
        (beside, "it changes somebody.t"),
        (two, "cannot insert multiple commands"),
    ):
        refused = cli("traffic", "replay", trace, mine, "--out", tmp_path / "refused", "--no-open")
        assert refused.exit_code == 2, refused.err
        assert said in " ".join(refused.err.split())
        assert not (tmp_path / "refused").exists()
    # What looks like a read is sent, and the server refuses it.
    ended = cli("traffic", "replay", disguised, somebody, "--out", tmp_path / "disguised-out", "--no-open")
    assert ended.exit_code == 0, ended.err
    assert "read-only transaction" in (tmp_path / "disguised-out" / "report.html").read_text(encoding="utf-8")
    assert asked(target, "SELECT count(*) FROM somebody.t") == [[0]]
    # Only the owner's own word lets it go there.
    ended = cli("traffic", "replay", elsewhere, somebody, "--allow-writes", "--out", tmp_path / "allowed", "--no-open")
    assert ended.exit_code == 0, ended.err
    assert asked(target, "SELECT k FROM somebody.t") == [[1]]


def test_what_is_not_answered_in_time_is_unknown_and_its_session_goes_on(cli: Cli, urls: tuple[str, str], tmp_path: Path) -> None:
    recording = Recording()
    recording.add(0.0, 1, 0, [5])
    recording.add(0.1, 1, 1, [7])
    trace = recording.write(tmp_path / "trace", [("SELECT pg_sleep($1)", "read"), ("SELECT $1::int", "read")])
    ended = cli("traffic", "replay", trace, urls[0], "--timeout", "300ms", "--out", tmp_path / "out", "--no-open")
    assert ended.exit_code == 0, ended.err
    counts = summary_of(tmp_path / "out")["counts"]
    assert [counts[name] for name in ("started", "ok", "timeout", "unknown")] == [2, 1, 1, 1]


def test_answers_of_two_targets_are_compared(cli: Cli, urls: tuple[str, str], tmp_path: Path) -> None:
    mine, somebody = urls
    target = _engine.Target(mine)
    change(target, "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
    change(target, "INSERT INTO somebody.t VALUES (1, 10), (2, 21)")
    recording = Recording()
    for number in range(1, 4):
        recording.add(number / 100, number, READ_NUMBER, [number])
    trace = recording.write(tmp_path / "trace")
    for other, differences in ((somebody, [1, 1]), (mine, [0, 0])):
        out = tmp_path / f"out-{sum(differences)}"
        arguments = ("--reads-only", "--compare-with", other, "--out", out, "--no-open", "--json")
        ended = cli("traffic", "replay", trace, mine, *arguments)
        assert ended.exit_code == 0, ended.err
        summary = json.loads(ended.out)
        assert summary["answers_equal"] == (sum(differences) == 0)
        (answers,) = summary["result"]["answers"]
        assert answers["compared"] == 3
        assert [answers["rows_differ"], answers["values_differ"]] == differences
