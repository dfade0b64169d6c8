"""Replay at other databases than the first: what a statement is sent as, what a server refuses, and what is refused before anything is sent."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sensorbench import _engine, lab
from tests.conftest import Cli, server_url
from tests.test_replay import Recording, asked, change, summary_of

READ, INSERT = "SELECT v FROM t WHERE k = $1", "INSERT INTO t (k, v) VALUES ($1, $2)"
TABLE = "(k bigint PRIMARY KEY, v bigint)"
Urls = tuple[str, str]
Templates = Sequence[tuple[str, str]]


def created(database: str, namespace: str, statements: Sequence[str]) -> tuple[_engine.Target, Urls]:
    """A namespace of ours with a table t, and what statements make beside it; its URL, and that of somebody's."""
    mine = server_url(database, namespace)
    target = _engine.Target(mine)
    create = {"create": {"statements": [f"CREATE TABLE t {TABLE}", *statements]}}
    target.create(json.dumps(create), "", intent="create", owner=json.dumps({"id": "replay", "folder": "replay"}))
    return target, (mine, mine.replace(f"namespace={namespace}", "namespace=somebody"))


@pytest.fixture
def mariadb(lab_servers: dict[str, lab.Instance]) -> Iterator[Urls]:
    """Ways out of a namespace of ours: a view, a trigger, and a function that writes into somebody's table."""
    target, urls = created(
        "mariadb",
        "sensorbench_replay",
        [
            "CREATE DATABASE somebody",
            f"CREATE TABLE somebody.t {TABLE}",
            "CREATE VIEW seen AS SELECT k, v FROM somebody.t",
            f"CREATE TABLE watched {TABLE}",
            "CREATE TRIGGER spill AFTER INSERT ON watched FOR EACH ROW INSERT INTO somebody.t VALUES (NEW.k, NEW.v)",
            "CREATE FUNCTION somebody.hidden(x bigint) RETURNS bigint MODIFIES SQL DATA BEGIN INSERT INTO somebody.t VALUES (x, 1); RETURN x; END",
        ],
    )
    yield urls
    change(target, "DROP DATABASE somebody")
    target.clean()


@pytest.fixture
def cassandra(lab_servers: dict[str, lab.Instance]) -> Iterator[Urls]:
    """A keyspace of ours and somebody's, with a table each."""
    target, urls = created(
        "cassandra",
        "sensorbench_replay",
        [
            "CREATE KEYSPACE somebody WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            f"CREATE TABLE somebody.t {TABLE}",
        ],
    )
    yield urls
    change(target, "DROP KEYSPACE somebody")
    target.clean()


def refused(cli: Cli, trace: Path, url: str, said: str, *options: object) -> None:
    """Nothing of a trace is sent, for a reason that is said."""
    out = trace / "refused"
    ended = cli("traffic", "replay", trace, url, *options, "--out", out, "--no-open")
    words = " ".join(ended.err.split())
    assert ended.exit_code == 2, (trace.name, words)
    assert said in words, (trace.name, words)
    assert not out.exists()


def compared(cli: Cli, trace: Path, first: str, second: str) -> list[int]:
    """How many answers of two targets had other rows, and other values."""
    out = trace.parent / f"{trace.name}-{second.rpartition('?')[2].rpartition('=')[2]}"
    ended = cli("traffic", "replay", trace, first, "--compare-with", second, "--reads-only", "--out", out, "--no-open", "--json")
    assert ended.exit_code == 0, ended.err
    (answers,) = json.loads(ended.out)["result"]["answers"]
    return [answers["compared"], answers["rows_differ"], answers["values_differ"]]


def test_a_replay_at_mariadb_keeps_transactions_and_types(cli: Cli, mariadb: Urls, tmp_path: Path) -> None:
    mine, somebody = mariadb
    templates = [
        (READ, "read"),
        (INSERT, "write"),
        ("START TRANSACTION", "begin"),
        ("COMMIT", "commit"),
        ("ROLLBACK", "rollback"),
        # A limit must be a number, a text of digits is none, and a placeholder may come twice and in any order.
        ("SELECT k FROM t WHERE concat($2, $2, k) = $1 LIMIT $3", "read"),
        ("UPDATE t SET v = v + 1 WHERE k = $1", "write"),
    ]
    read, insert, begin, commit, rollback, limited, update = range(len(templates))
    recording = Recording()
    # The log says of a write how many rows were sent: none.
    recording.add(0.00, 1, insert, [1, "10"], rows=0)
    recording.add(0.05, 1, begin, transaction=1)
    recording.add(0.06, 2, insert, [2, 20], rows=1)
    recording.add(0.07, 1, insert, [3, 30], transaction=1)
    recording.add(0.08, 1, rollback, transaction=1)
    recording.add(0.10, 2, begin, transaction=2)
    recording.add(0.11, 2, insert, [4, None], transaction=2)
    recording.add(0.12, 2, commit, transaction=2)
    recording.add(0.15, 1, read, [1], rows=1)
    recording.add(0.16, 1, read, [3], rows=1)
    recording.add(0.17, 1, insert, [1, 1], error="Duplicate entry '1' for key 'PRIMARY'")
    recording.add(0.18, 1, insert, [1, 1])
    recording.add(0.19, 1, limited, ["aa1", "a", 1], rows=1)
    recording.add(0.20, 1, update, [1], rows=1)
    trace, out = recording.write(tmp_path / "trace", templates, database="mysql"), tmp_path / "out"
    refused(cli, trace, somebody, "sensorbench did not create the namespace somebody")

    ended = cli("traffic", "replay", trace, mine, "--out", out, "--no-open")
    assert ended.exit_code == 0, ended.err
    target = _engine.Target(mine)
    assert asked(target, "SELECT k FROM t ORDER BY k") == [[1], [2], [4]], "what was rolled back is not there"
    assert asked(target, "SELECT v FROM t WHERE k = 1") == [[11]]
    figures = summary_of(out)
    assert [figures["counts"][name] for name in ("ok", "error", "unknown")] == [12, 2, 0]
    of = {template["statement"]: template for template in figures["templates"]}
    assert [of[INSERT][name] for name in ("recorded_errors", "error", "new_errors", "gone_errors")] == [1, 2, 1, 0]
    assert [of[INSERT][name] for name in ("rows_compared", "rows_differ")] == [1, 0]
    assert [of[READ][name] for name in ("rows_compared", "rows_differ")] == [2, 1]
    for statement in (templates[limited][0], templates[update][0]):
        assert [of[statement][name] for name in ("ok", "rows_compared", "rows_differ")] == [1, 1, 0], statement
    assert "Duplicate entry" in (out / "report.html").read_text(encoding="utf-8")


def test_nothing_is_written_elsewhere_at_mariadb(cli: Cli, mariadb: Urls, tmp_path: Path) -> None:
    mine, somebody = mariadb
    target = _engine.Target(mine)
    recording = Recording()
    recording.add(0.0, 1, 0, [1])

    def of(name: str, templates: Templates) -> Path:
        return recording.write(tmp_path / name, templates, database="mysql")

    for name, statement, said in (
        ("elsewhere", "INSERT INTO somebody.t VALUES ($1, 1)", "it changes somebody.t"),
        ("joined", "UPDATE t JOIN somebody.t AS o SET o.v = $1", "names a single table"),
        ("seen", "INSERT INTO seen VALUES ($1, 1)", "has no table seen of its own"),
        ("watched", "INSERT INTO watched VALUES ($1, 1)", "has the trigger spill"),
        ("called", "INSERT INTO t VALUES ($1, somebody.hidden(1))", "calls the stored function hidden"),
        ("two", "INSERT INTO t VALUES ($1, 1); DELETE FROM somebody.t", "the server does not prepare it"),
        ("comment", "/*! INSERT INTO somebody.t VALUES ($1, 1) */", "names a single table"),
        ("procedure", "CALL somebody.anything($1)", "names a single table"),
    ):
        refused(cli, of(name, [(statement, "write")]), mine, said)
    # What seems to read is looked at, too: beside a write, since the sessions may write then, and by itself.
    recording.add(0.1, 1, 1, [1])
    for name, statement, said in (
        ("beside", "SELECT somebody.hidden($1)", "calls the stored function hidden"),
        ("with", "WITH w AS (SELECT 1 AS k) DELETE FROM somebody.t WHERE k = $1", "changes what WITH selects"),
    ):
        refused(cli, of(name, [(INSERT.replace("$2", "1"), "write"), (statement, "read")]), mine, said)
    recording.rows.pop()
    for name, statement, said in (
        ("file", f"SELECT $1 INTO OUTFILE '{tmp_path}/planted'", "INTO stores what it selects"),
        ("hidden-file", f"SELECT $1 /*! INTO DUMPFILE '{tmp_path}/planted' */", "INTO stores what it selects"),
        ("locking", "SELECT v FROM t WHERE k = $1 FOR UPDATE", "it locks rows"),
        ("no-read", "DELETE FROM somebody.t WHERE k = $1", "begins with none of"),
    ):
        refused(cli, of(name, [(statement, "read")]), somebody, said)
    # It calls itself transaction control, which it is not.
    freed = of("freed", [("SET SESSION TRANSACTION READ WRITE", "commit")])
    refused(cli, freed, somebody, "sensorbench did not create the namespace somebody")
    assert not (tmp_path / "planted").exists()

    # What is sent all the same, the server refuses: the sessions may only read.
    out = tmp_path / "out"
    ended = cli("traffic", "replay", of("function", [("SELECT hidden($1)", "read")]), somebody, "--out", out, "--no-open")
    assert ended.exit_code == 0, ended.err
    assert "READ ONLY transaction" in (out / "report.html").read_text(encoding="utf-8")
    assert asked(target, "SELECT count(*) FROM somebody.t") == [[0]]

    # Only the owner's own word lets it go there.
    ended = cli(
        "traffic", "replay", tmp_path / "elsewhere", somebody, "--allow-writes", "--out", tmp_path / "allowed", "--no-open"
    )
    assert ended.exit_code == 0, ended.err
    assert asked(target, "SELECT k FROM somebody.t") == [[1]]


def test_what_mariadb_does_not_answer_in_time_is_ended_and_answers_are_compared(cli: Cli, mariadb: Urls, tmp_path: Path) -> None:
    mine, somebody = mariadb
    recording = Recording()
    recording.add(0.0, 1, 0, [30])
    recording.add(0.1, 1, 1, ["7"])
    trace = recording.write(tmp_path / "slow", [("SELECT sleep($1)", "read"), ("SELECT $1 + 1", "read")], database="mysql")
    ended = cli("traffic", "replay", trace, mine, "--timeout", "300ms", "--out", tmp_path / "out", "--no-open")
    assert ended.exit_code == 0, ended.err
    counts = summary_of(tmp_path / "out")["counts"]
    assert [counts[name] for name in ("started", "ok", "timeout", "unknown")] == [2, 1, 1, 1], "the session continues"

    target = _engine.Target(mine)
    change(target, "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
    change(target, "INSERT INTO somebody.t VALUES (1, 10), (2, 21)")
    reading = Recording()
    for number in range(1, 4):
        reading.add(number / 100, number, 0, [number])
    trace = reading.write(tmp_path / "reading", [(READ, "read")], database="mysql")
    assert compared(cli, trace, mine, mine) == [3, 0, 0]
    assert compared(cli, trace, mine, somebody) == [3, 1, 1]


BATCH = "BEGIN BATCH INSERT INTO t (k, v) VALUES ($1, $2); DELETE FROM t WHERE k = $3; APPLY BATCH"


def test_a_replay_at_cassandra_binds_values_and_keeps_levels_of_consistency(cli: Cli, cassandra: Urls, tmp_path: Path) -> None:
    mine, somebody = cassandra
    all_types = "SELECT k FROM t WHERE k = $1 AND v > $2 LIMIT $3 ALLOW FILTERING"
    templates = [
        (READ, "read"),
        (INSERT, "write"),
        (BATCH, "write"),
        (all_types, "read"),
        (f"{READ} LIMIT 1", "read"),
        # As the full query log has a batch.
        ("BEGIN UNLOGGED BATCH", "begin"),
        ("APPLY BATCH", "commit"),
    ]
    read, insert, batch, filtered, at_three, begin, apply = range(len(templates))
    recording = Recording()
    recording.add(0.00, 1, insert, [1, 10])
    recording.add(0.05, 1, insert, ["2", "20"])
    recording.add(0.06, 1, insert, [3, None])
    recording.add(0.10, 1, batch, [4, 40, 3])
    recording.add(0.20, 1, read, [4], rows=1)
    recording.add(0.21, 1, read, [5], rows=1)
    recording.add(0.22, 1, filtered, [2, 19, 1], rows=1)
    recording.add(0.23, 1, read, ["four"])
    recording.add(0.24, 1, at_three, [1])
    recording.add(0.30, 1, begin, transaction=1)
    recording.add(0.30, 1, insert, [6, "0x000000000000003c"], transaction=1)
    recording.add(0.30, 1, insert, [7, 70], transaction=1)
    recording.add(0.30, 1, apply, transaction=1)
    recording.add(0.40, 1, begin, transaction=2)
    recording.add(0.40, 1, insert, [8, 80], transaction=2)
    recording.add(0.40, 1, insert, ["nine", 90], transaction=2)
    recording.add(0.40, 1, apply, transaction=2)
    levels = {read: "ONE", at_three: "THREE"}
    trace, out = recording.write(tmp_path / "trace", templates, database="cassandra", levels=levels), tmp_path / "out"
    refused(cli, trace, somebody, "sensorbench did not create the namespace somebody")

    ended = cli("traffic", "replay", trace, mine, "--out", out, "--no-open")
    assert ended.exit_code == 0, ended.err
    target = _engine.Target(mine)
    found = sorted(asked(target, "SELECT k, v FROM t", ("k", "v")))
    assert found == [[1, 10], [2, 20], [4, 40], [6, 60], [7, 70]], "of a batch with a statement that is none nothing is sent"
    figures = summary_of(out)
    assert [figures["counts"][name] for name in ("ok", "error")] == [13, 4]
    of = {template["statement"]: template for template in figures["templates"]}
    assert [of[READ][name] for name in ("rows_compared", "rows_differ", "new_errors")] == [2, 1, 1]
    assert [of[all_types][name] for name in ("rows_compared", "rows_differ")] == [1, 0]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "is not a literal of the type bigint" in page
    assert "consistency level THREE" in page, "one node cannot answer at this level"

    change(target, "INSERT INTO somebody.t (k, v) VALUES (4, 41)")
    only_read = [templates[read], *((statement, "write") for statement, _ in templates[1:])]
    # Where the URL names no keyspace, the recorded one is meant.
    trace = recording.write(tmp_path / "reading", only_read, database="cassandra", keyspace="sensorbench_replay")
    assert compared(cli, trace, mine, mine.replace("namespace=sensorbench_replay", "consistency=one")) == [2, 0, 0]
    assert compared(cli, trace, mine, somebody) == [2, 0, 1]


def test_nothing_is_written_elsewhere_at_cassandra(cli: Cli, cassandra: Urls, tmp_path: Path) -> None:
    mine, somebody = cassandra
    target = _engine.Target(mine)
    recording = Recording()
    recording.add(0.0, 1, 0, [1])

    def of(name: str, templates: Templates, level: str = "ONE") -> Path:
        return recording.write(tmp_path / name, templates, database="cassandra", levels={0: level})

    elsewhere = "INSERT INTO somebody.t (k, v) VALUES ($1, 1)"
    for name, kind, statement, url, said in (
        ("elsewhere", "write", elsewhere, mine, "it names somebody.…"),
        (
            "batch",
            "write",
            f"BEGIN BATCH {INSERT.replace('$2', '1')}; DELETE FROM somebody.t WHERE k = 1; APPLY BATCH",
            mine,
            "it names somebody.…",
        ),
        ("marker", "write", "DELETE FROM sensorbench WHERE id = 0 IF mark = $1", mine, "known as sensorbench's"),
        ("emptied", "write", "TRUNCATE t", mine, "it is not an INSERT, UPDATE, DELETE or BATCH"),
        ("two", "write", f"{INSERT.replace('$2', '1')}; {INSERT}", mine, "the server does not prepare it"),
        ("disguised", "read", "DELETE FROM somebody.t WHERE k = $1", somebody, "it is not a SELECT"),
        (
            "begun",
            "begin",
            "BEGIN BATCH DELETE FROM t WHERE k = $1; APPLY BATCH",
            somebody,
            "did not create the namespace somebody",
        ),
    ):
        refused(cli, of(name, [(statement, kind)]), url, said)
    refused(cli, of("level", [(READ, "read")], level="MOST"), somebody, "its consistency level is MOST")
    assert asked(target, "SELECT count(*) FROM somebody.t") == [[0]]

    # Only the owner's own word lets it go there.
    trace = tmp_path / "elsewhere"
    ended = cli("traffic", "replay", trace, somebody, "--allow-writes", "--out", tmp_path / "allowed", "--no-open")
    assert ended.exit_code == 0, ended.err
    assert asked(target, "SELECT k FROM somebody.t") == [[1]]


def test_a_replay_at_redis_sends_what_the_server_calls_reads(
    cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path
) -> None:
    url = server_url("redis", "sensorbench_replay")
    templates = [
        ("SET $1 $2", "write"),
        ("MULTI", "begin"),
        ("HSET $1 $2 $3", "write"),
        ("EXEC", "commit"),
        ("GET $1", "read"),
        ("HGETALL $1", "read"),
        ("DEL $1 $2", "write"),
    ]
    put, multi, put_field, execute, get, get_all, delete = range(len(templates))
    key, fields = "replayed key", "replayed fields"
    writing = Recording()
    writing.add(0.00, 1, put, [key, "a b\\xff"])
    writing.add(0.01, 1, multi, transaction=1)
    writing.add(0.02, 1, put_field, [fields, "a", 1], transaction=1)
    writing.add(0.03, 1, execute, transaction=1)
    written = writing.write(tmp_path / "written", templates, database="redis")
    refused(cli, written, url, "sensorbench did not create the namespace")
    reading = Recording()
    reading.add(0.00, 1, get, [key], rows=1)
    reading.add(0.01, 1, get, ["no key"], rows=1)
    reading.add(0.02, 1, get_all, [fields], rows=1)
    read = reading.write(tmp_path / "read", templates, database="redis")
    disguised = reading.write(
        tmp_path / "disguised", [*templates[:get], ("DEL $1", "read"), *templates[get_all:]], database="redis"
    )
    refused(cli, disguised, url, "the server does not call DEL a command that only reads")

    # The keys are those of the trace: only the owner's own word lets it go there.
    ended = cli("traffic", "replay", written, url, "--allow-writes", "--out", tmp_path / "out-written", "--no-open")
    assert ended.exit_code == 0, ended.err
    assert summary_of(tmp_path / "out-written")["counts"]["ok"] == 4
    ended = cli("traffic", "replay", read, url, "--compare-with", url, "--out", tmp_path / "out", "--no-open", "--json")
    assert ended.exit_code == 0, ended.err
    assert json.loads(ended.out)["answers_equal"]
    of = {template["statement"]: template for template in summary_of(tmp_path / "out")["templates"]}
    assert [of["GET $1"][name] for name in ("ok", "rows_compared", "rows_differ")] == [2, 2, 1]
    assert [of["HGETALL $1"][name] for name in ("ok", "rows_compared", "rows_differ")] == [1, 1, 0], (
        "a field and its value are a row"
    )
    removing = Recording()
    removing.add(0.0, 1, delete, [key, fields], rows=1)
    removed = removing.write(tmp_path / "removed", templates, database="redis")
    ended = cli("traffic", "replay", removed, url, "--allow-writes", "--out", tmp_path / "out-removed", "--no-open")
    assert ended.exit_code == 0, ended.err


@pytest.mark.parametrize("database", ["redis", "redis+cluster"])
def test_writes_stay_in_a_namespace_of_ours_at_redis(
    cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path, database: str
) -> None:
    url = server_url(database, "sensorbench_replay")
    target = _engine.Target(url)
    templates = [
        ("SET $1 $2", "write"),
        ("MULTI", "begin"),
        ("HSET $1 $2 $3", "write"),
        ("EXEC", "commit"),
        ("GET $1", "read"),
        ("HGETALL $1", "read"),
        ("DEL $1", "write"),
        ("PING", "other"),
        ("XRANGE $1 $2 $3", "read"),
        ("XADD $1 * $2 $3", "write"),
    ]
    put, multi, put_field, execute, get, get_all, delete, ping, range_, add = range(len(templates))
    target.create(
        json.dumps({"create": {"table": {"kept": {}}}}), "", intent="create", owner=json.dumps({"id": "r", "folder": "r"})
    )
    try:
        recording = Recording()
        recording.add(0.00, 1, ping, rows=1)
        for number in range(20):
            recording.add(0.01, 1, put, [f"key {number}", f"v{number}"], rows=1)
        recording.add(0.02, 1, multi, transaction=1)
        recording.add(0.03, 1, put_field, ["fields", "a", 1], transaction=1)
        recording.add(0.04, 1, execute, transaction=1, rows=1)
        recording.add(0.05, 1, add, ["stream", "a", "b"])
        for number in range(20):
            recording.add(0.10, 1, get, [f"sensorbench_replay:key {number}"], rows=1)
        recording.add(0.11, 1, get_all, ["fields"], rows=1)
        recording.add(0.12, 1, range_, ["stream", "-", "+"], rows=1)
        # What would take the namespace from us, and what is not in the namespace.
        recording.add(0.13, 1, delete, ["mark"])
        trace = recording.write(tmp_path / "trace", templates, database="redis")
        ended = cli("traffic", "replay", trace, url, "--out", tmp_path / "out", "--no-open")
        assert ended.exit_code == 0, ended.err
        of = {template["statement"]: template for template in summary_of(tmp_path / "out")["templates"]}
        assert [of["GET $1"][name] for name in ("ok", "rows_compared", "rows_differ")] == [20, 20, 0]
        assert [of["HGETALL $1"][name] for name in ("ok", "rows_differ")] == [1, 0], "the transaction was one master's"
        assert [of["DEL $1"][name] for name in ("ok", "error")] == [0, 1]
        assert "the key by which the namespace is known" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        assert target.marker() is not None
        assert compared_reads(cli, trace, url) == [22, 0, 0]

        for name, statement, said in (
            ("all", "FLUSHALL", "it names no key"),
            ("script", "EVAL $1 $2 $3", "which of its words are keys depends on their values"),
            ("elsewhere", "COPY $1 $2 DB $3", "it writes into another database of the server"),
            ("unknown", "NOTHING $1", "the server does not know NOTHING"),
        ):
            bad = Recording()
            bad.add(0.0, 1, 0, ["a", "b", "c"][: statement.count("$")])
            refused(cli, bad.write(tmp_path / name, [(statement, "write")], database="redis"), url, said)
        # Nothing was written but in the namespace: without its name, the keys are not there.
        plain = url.replace("namespace=sensorbench_replay", "namespace=sensorbench_other")
        assert compared_reads(cli, trace, url, plain) == [22, 22, 0]
    finally:
        target.clean()


def compared_reads(cli: Cli, trace: Path, first: str, second: str | None = None) -> list[int]:
    """How many answers of two targets to the reads were compared, had other rows, and had other values."""
    out = trace.parent / f"{trace.name}-{'other' if second else 'same'}"
    options = ("--reads-only", "--compare-with", second or first, "--out", out, "--no-open", "--json")
    ended = cli("traffic", "replay", trace, first, *options)
    assert ended.exit_code == 0, ended.err
    answers = json.loads(ended.out)["result"]["answers"]
    return [sum(each[name] for each in answers) for name in ("compared", "rows_differ", "values_differ")]
