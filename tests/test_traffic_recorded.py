"""What a server really logged under load is replayed there, with the same answers."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pyarrow.parquet as pq

from sensorbench import _engine, lab
from sensorbench.benchmarks.replay import ReplayOptions, plan_replay
from sensorbench.benchmarks.replay.recorded import open_reader
from sensorbench.traffic.sql import Server
from tests.conftest import Cli
from tests.servers import LabServers
from tests.test_replay import Recording, asked, change, summary_of
from tests.test_replay_databases import INSERT, READ, created

NAMESPACE = "sensorbench_recorded"
BEGINNINGS = {"mysql": ("START TRANSACTION", "COMMIT"), "cassandra": ("BEGIN UNLOGGED BATCH", "APPLY BATCH")}
SESSIONS, UNITS, LENGTH_S = 5, 60, 0.8


def load(folder: Path, database: str) -> Path:
    """A trace of the load: rows are inserted, one by itself and two in a transaction, and the first is read."""
    begin, commit = BEGINNINGS[database]
    recording = Recording()
    gap_s = LENGTH_S / (UNITS * 6)
    for number in range(UNITS):
        session, key, at_s = number % SESSIONS, 3 * number, number * gap_s * 6
        recording.add(at_s, session, 0, [key, key])
        in_transaction = [(1, []), (0, [key + 1, 1]), (0, [key + 2, 2]), (2, [])]
        for place, (template, parameters) in enumerate(in_transaction, start=1):
            recording.add(at_s + place * gap_s, session, template, parameters, transaction=number)
        recording.add(at_s + 5 * gap_s, session, 3, [key], rows=1)
    templates = [(INSERT, "write"), (begin, "begin"), (commit, "commit"), (READ, "read")]
    return recording.write(folder, templates, database=database)


@contextmanager
def under_load(trace: Path, url: str, is_logged: Callable[[], bool]) -> Iterator[None]:
    """Has clients send the load as soon as the server logs what it is sent."""

    def send() -> None:
        while not is_logged():
            time.sleep(0.05)
        work = plan_replay(trace, url, ReplayOptions(), trace / "out")
        run = _engine.Target(url).replay(json.dumps(work.engine_plan()), [work.sessions.lengths(1.0)], [open_reader(trace)])
        while not run.wait(0.1):
            pass
        run.end()

    thread = Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def statements_of(trace: Path) -> Counter[str]:
    """How many statements a recording has, by their first two words."""
    described = json.loads((trace / "trace.json").read_text(encoding="utf-8"))["templates"]
    names = {template["number"]: " ".join(template["statement"].split()[:2]) for template in described}
    return Counter(names[number] for number in pq.read_table(trace / "statements.parquet")["template"].to_pylist())


def check_answers(cli: Cli, trace: Path, url: str) -> dict[str, int]:
    """Replays the reads of a recording twice, and compares the answers; of those of the load, how many rows were compared with the recording, and how
    many differ.
    """
    out = trace.with_name(f"{trace.name}-reads")
    ended = cli(
        *(
            "traffic",
            "replay",
            trace,
            url,
            "--speed",
            "4",
            "--reads-only",
            "--compare-with",
            url,
            "--out",
            out,
            "--no-open",
            "--json",
        )
    )
    assert ended.exit_code == 0, ended.err
    assert ended.json["answers_equal"], ended.json["result"]["answers"]
    counts = ended.json["result"]["counts"]
    assert counts["ok"] == counts["statements"] >= UNITS, summary_of(out)["templates"]
    assert "Answers of the two targets" in (out / "report.html").read_text(encoding="utf-8")
    reads = [template for template in summary_of(out)["templates"] if " FROM t WHERE" in template["statement"]]
    return {name: sum(template[name] or 0 for template in reads) for name in ("started", "rows_compared", "rows_differ")}


def replay_all(cli: Cli, trace: Path, url: str) -> None:
    """Replays a recording with what it writes; that the owner allows what clients set, too."""
    out = trace.with_name(f"{trace.name}-all")
    ended = cli("traffic", "replay", trace, url, "--speed", "4", "--allow-writes", "--out", out, "--no-open", "--json")
    assert ended.exit_code == 0, ended.err
    assert ended.json["result"]["counts"]["ok"] == ended.json["result"]["counts"]["statements"], ended.json["result"]


def test_what_mariadb_logged_is_replayed_with_the_same_answers(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    target, (mine, _) = created("mariadb", NAMESPACE, [])
    server = Server(mine, inside="information_schema")

    def is_logged() -> bool:
        return server.row("SELECT @@GLOBAL.general_log", {"on": "integer"}) == [1]

    try:
        with under_load(load(tmp_path / "load", "mysql"), mine, is_logged):
            ended = cli("traffic", "record", "lab:mariadb", "--for", "4s", "--out", tmp_path / "trace", "--json")
        assert ended.exit_code == 0, ended.err
        recorded = statements_of(tmp_path / "trace")
        assert [recorded[name] for name in ("INSERT INTO", "START TRANSACTION", "COMMIT", "SELECT v")] == [
            *(3 * UNITS, UNITS, UNITS, UNITS)
        ]
        found = check_answers(cli, tmp_path / "trace", mine)
        assert (found["started"], found["rows_differ"]) == (UNITS, 0)
        assert found["rows_compared"] == UNITS, "the slow log has how many rows each returned"
        change(target, "DELETE FROM t")
        replay_all(cli, tmp_path / "trace", mine)
        assert asked(target, "SELECT count(*) FROM t") == [[3 * UNITS]]
    finally:
        target.clean()


def test_what_cassandra_logged_is_replayed_with_the_same_answers(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    instance = lab_servers["cassandra"]
    target, (mine, _) = created("cassandra", NAMESPACE, [])
    sent = load(tmp_path / "load", "cassandra")

    def is_logged() -> bool:
        return any((instance.node_folder(instance.nodes[0]) / "query-log").glob("*.cq4*"))

    try:
        with under_load(sent, mine, is_logged):
            ended = cli("traffic", "record", f"lab:{instance.name}", "--for", "12s", "--out", tmp_path / "trace", "--json")
        assert ended.exit_code == 0, ended.err
        with lab.query_logs(instance) as logs:
            with under_load(sent, mine, is_logged):
                pass
            (log,) = logs.stop()
            imported = cli("traffic", "import", log, "--out", tmp_path / "imported", "--json")
        assert imported.exit_code == 0, imported.err
        # With the types of columns, and without them as bytes.
        for trace in (tmp_path / "trace", tmp_path / "imported"):
            recorded = statements_of(trace)
            assert [recorded[name] for name in ("INSERT INTO", "BEGIN UNLOGGED", "APPLY BATCH", "SELECT v")] == [
                *(3 * UNITS, UNITS, UNITS, UNITS)
            ]
            assert check_answers(cli, trace, mine)["started"] == UNITS
            change(target, "TRUNCATE t")
            replay_all(cli, trace, mine)
            assert asked(target, "SELECT count(*) FROM t") == [[3 * UNITS]]
    finally:
        target.clean()
