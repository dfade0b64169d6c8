"""Loads that load generators share: what lies there then is what one would have loaded, and whatever ends one of them ends the load."""

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copytree
from typing import Any

import psutil
import pyarrow as pa
import pytest

from sensorbench import _engine, lab
from sensorbench.dataset import open_dataset
from sensorbench.errors import EngineError, FailedError
from sensorbench.hosts.chosen import choose_hosts
from sensorbench.hosts.host import HURRIED_S
from sensorbench.hosts.pool import HostPool
from sensorbench.interrupts import held_back, let_through
from sensorbench.progress import ProgressReporter
from sensorbench.results.described import LoadReport
from sensorbench.results.ownership import Claim
from sensorbench.runner import load as load_module
from sensorbench.runner.generators import shared_load as shared_load_module
from sensorbench.runner.generators.hosted import HostedGenerator
from sensorbench.runner.generators.load_part import LoadPart, parts_of, rows_of
from sensorbench.runner.generators.local import HEARTBEAT_S, LocalGenerator
from sensorbench.runner.generators.messages import LoadState
from sensorbench.runner.generators.shared_load import SharedLoad, shared_load
from sensorbench.runner.generators.sharing import LoadGenerators, why_undivided_by
from sensorbench.runner.load import load_more, load_variant
from sensorbench.runner.prepare import PreparedTable, prepare_tables
from sensorbench.runner.variants import Variant, parse_target
from sensorbench.schemas import load_operations, load_schema
from sensorbench.schemas.engine_types import DriverSchema
from sensorbench.schemas.undivided_loads import why_undivided
from tests.conftest import TEST_OWNER, Cli, server_url
from tests.programs import have_ssh
from tests.slow_connects import interrupted_while_they_connect, own_processes
from tests.test_generators import null_target
from tests.test_hosts_ssh import hosts_file, running_ssh_server

EXAMPLE = Path(__file__).parent.parent / "docs" / "example"
OWN = "sensorbench_divided"
QUIET = ProgressReporter(quiet=True)
# This long the rest of a part would be sent.
LONGEST_S = 60.0
# Beijing's twelve stations, some rows of each.
DATASET, SCALE = "beijing-air-quality", 0.002


def table_of(sizes: list[int], folder: Path, name: str = "rows") -> PreparedTable:
    """A prepared table with batches of these sizes; its rows are numbered."""
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    file = folder / f"{name}.arrows"
    before = 0
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, schema, options=options) as writer:
        for size in sizes:
            ids = range(before, before + size)
            writer.write_batch(pa.record_batch([list(ids), [f"row {number}" for number in ids]], schema=schema))
            before += size
    return PreparedTable(name, file, before, file.stat().st_size, 0.0)


@pytest.mark.parametrize("sizes", [[7, 7, 7, 2], [1], [5, 0, 3], [100], [2, 1], [0], []])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_parts_are_all_rows_once_and_in_their_order(tmp_path: Path, sizes: list[int], count: int) -> None:
    table = table_of(sizes, tmp_path)
    parts = parts_of(table, count)
    assert len(parts) == count
    assert max(part.rows for part in parts) - min(part.rows for part in parts) <= 1
    found = [rows_of(part, table.file).read_all()["id"].to_pylist() for part in parts]
    assert [len(ids) for ids in found] == [part.rows for part in parts]
    assert [number for ids in found for number in ids] == list(range(sum(sizes)))
    # What is sent to hosts that do not have the file are the same rows.
    for part, ids in zip(parts, found, strict=True):
        sent = tmp_path / "sent"
        sent.write_bytes(b"".join(part.chunks()))
        assert sent.stat().st_size <= table.file.stat().st_size
        assert rows_of(part.as_sent(), sent).read_all()["id"].to_pylist() == ids


def test_parts_of_rows_with_other_keys_have_these(tmp_path: Path) -> None:
    table = table_of([7, 7, 2], tmp_path).shifted("id", 100)
    keys = list(range(100, 116))
    assert table.open().read_all()["id"].to_pylist() == keys
    parts = [LoadPart.model_validate_json(part.model_dump_json()) for part in parts_of(table, 3)]
    found = [rows_of(part, table.file).read_all() for part in parts]
    assert [key for rows in found for key in rows["id"].to_pylist()] == keys
    # All else of a row stays.
    assert [text for rows in found for text in rows["text"].to_pylist()] == [f"row {number}" for number in range(16)]


@dataclass(frozen=True)
class Loadable:
    """A dataset that can be loaded at a server, in a namespace of these tests."""

    variant: Variant
    schema: DriverSchema
    tables: list[PreparedTable]
    readings: int
    series: pa.Table

    def load(self, generators: int | LoadGenerators) -> LoadReport:
        """Loads it again."""
        claim = Claim(TEST_OWNER, "replace")
        target = self.variant.engine_target()
        return load_variant(
            self.variant,
            target,
            self.schema,
            self.tables,
            self.readings,
            "fingerprint",
            claim=claim,
            reporter=QUIET,
            generators=LoadGenerators(generators) if isinstance(generators, int) else generators,
        )

    def attached(self) -> _engine.Target:
        """A target at what was loaded."""
        target = self.variant.engine_target()
        target.attach(json.dumps(self.schema), intent="resume", owner=TEST_OWNER.to_json())
        return target

    def digests(self) -> dict[str, list[object]]:
        """Of each table: its rows, and a hash over all of them in an order of their own."""
        target = self.attached()
        found = {}
        for table in self.tables:
            query = f"SELECT count(*), md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table.table} t"
            columns = [{"name": "rows", "type": "integer"}, {"name": "digest", "type": "text"}]
            operation = {"name": "look", "parameters": [], "columns": columns, "order": [], "statement": {"statement": query}}
            (found[table.table],) = json.loads(target.execute_once(json.dumps(operation), pa.table({}).to_reader()))
        return found

    def answers(self) -> list[list[object]]:
        """All readings that are there, series by series, as the operation of the schema finds them, which each database has."""
        target = self.attached()
        (operation,) = [each for each in self.schema["operations"] if each["name"] == "get_sensor_data"]
        rows = [self.series.slice(number, 1) for number in range(self.series.num_rows)]
        found = [json.loads(target.execute_once(json.dumps(operation), row.to_reader())) for row in rows]
        return [[number, *row] for number, answer in enumerate(found) for row in sorted(answer)]


@dataclass(frozen=True)
class Alone:
    """What one process loads: what it says of that, and what lies there."""

    report: LoadReport
    digests: dict[str, list[object]]


@pytest.fixture(scope="module")
def alone(loadable: Loadable) -> Alone:
    return Alone(loadable.load(1), loadable.digests())


@pytest.fixture(scope="module")
def loadable(lab_servers: dict[str, lab.Instance]) -> Loadable:
    return loadable_at("postgresql", "natural")


# Of each series, all of time.
SERIES = """
SELECT DISTINCT site::BIGINT AS site, zone::BIGINT AS zone, sensor, '1970-01-01'::TIMESTAMP AS "from", '2100-01-01'::TIMESTAMP AS "to"
FROM measurements ORDER BY site, zone, sensor
"""


def loadable_at(database: str, schema_name: str) -> Loadable:
    """The dataset for a server that tests share."""
    url = server_url(database, OWN)
    parsed = parse_target(url)
    schema = load_schema(schema_name, operations="sensors", database=parsed.database.dialect)
    dataset = open_dataset(DATASET, scale=SCALE)
    with dataset.connect() as workbench:
        columns = schema.loaded_columns(workbench)
        tables = prepare_tables(dataset, schema, columns, workbench, QUIET)
        series = workbench.execute(SERIES).to_arrow_table()
    operations = load_operations("sensors")
    whole = schema.driver_schema(operations, list(schema.file.operation), columns)
    assert min(table.rows for table in tables) >= 2
    return Loadable(Variant("v", parsed, schema, url, None), whole, tables, dataset.describe().readings, series)


def test_together_they_load_what_one_does(loadable: Loadable, alone: Alone) -> None:
    assert not any("generators" in table for table in alone.report["tables"])
    for count in (2, 3):
        together = loadable.load(count)
        assert loadable.digests() == alone.digests
        assert (together["rows"], together["readings"]) == (alone.report["rows"], alone.report["readings"])
        assert "undivided" not in together
        for prepared, table in zip(loadable.tables, together["tables"], strict=True):
            parts = table["generators"]
            assert [part["number"] for part in parts] == list(range(1, count + 1))
            assert len({part["pid"] for part in parts}) == count
            assert [part["rows"] for part in parts] == [part["rows_sent"] for part in parts]
            assert sum(part["rows"] for part in parts) == table["rows"] == prepared.rows
            assert min(part["start_s"] for part in parts) == 0.0
            # From the first start to the last end.
            assert table["duration_s"] == max(part["start_s"] + part["duration_s"] for part in parts)
        assert together["load_s"] == sum(table["duration_s"] for table in together["tables"])
        assert own_processes() == []


@pytest.mark.parametrize(
    ("database", "schema"),
    [("mariadb", "natural"), ("redis", "by_sensor"), ("clickhouse", "natural"), ("cassandra", "by_sensor")],
)
def test_every_reading_is_there_once_whoever_loaded_it(lab_servers: dict[str, lab.Instance], database: str, schema: str) -> None:
    loadable = loadable_at(database, schema)
    found = []
    for count in (1, 2):
        report = loadable.load(count)
        loaded_by = {part["number"] for table in report["tables"] for part in table.get("generators", []) if part["rows"]}
        assert loaded_by == ({1, 2} if count == 2 else set())
        found.append(loadable.answers())
    assert len(found[0]) == loadable.readings
    assert found[0] == found[1]


@contextmanager
def hosts_by_ssh(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Two hosts that SSH reaches, which get their parts sent."""
    have_ssh(monkeypatch)
    with running_ssh_server(folder) as server:
        yield str(hosts_file(folder, server))


@contextmanager
def hosts_here(_: Path, __: pytest.MonkeyPatch) -> Iterator[str]:
    """Two hosts of this machine, which read its files."""
    yield "local:2"


def interrupt_once(
    monkeypatch: pytest.MonkeyPatch,
    kind: type[LocalGenerator] | type[HostedGenerator],
    before: Callable[[list[int]], None] = lambda _: None,
) -> list[int]:
    """Has Ctrl-C come while load generators load, which never end by themselves then; `before` is called with their processes before it comes.
    Returns these, as they come.
    """
    poll = kind.poll_load
    pids: list[int] = []

    def never_over(generator: LocalGenerator | HostedGenerator, wait_s: float) -> LoadState:
        state = poll(generator, wait_s)
        if generator.pid not in pids:
            pids.append(generator.pid)
            # Both of them are heard of before it comes.
            if len(pids) == 2:
                before(pids)
                os.kill(os.getpid(), signal.SIGINT)
        return state.model_copy(update={"result": None})

    monkeypatch.setattr(kind, "poll_load", never_over)
    return pids


@pytest.mark.parametrize("hosts", [hosts_here, hosts_by_ssh])
def test_hosts_load_what_one_process_does_and_ctrl_c_leaves_none_of_them(
    loadable: Loadable,
    alone: Alone,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hosts: Callable[..., AbstractContextManager[str]],
) -> None:
    tmp_path.chmod(0o700)
    with hosts(tmp_path, monkeypatch) as text, HostPool(choose_hosts(text), QUIET) as pool:
        generators = LoadGenerators(2, pool)
        assert generators.are_here is (hosts is hosts_here)
        with monkeypatch.context() as patch:
            pids = interrupt_once(patch, HostedGenerator)
            with pytest.raises(KeyboardInterrupt):
                loadable.load(generators)
        assert len(pids) == 2
        assert not any(map(psutil.pid_exists, pids))
        report = loadable.load(generators)
        names = [host.name for host in pool.hosts]
    for table in report["tables"]:
        assert [part["host"] for part in table["generators"]] == names
    assert loadable.digests() == alone.digests


EXPERIMENT = """
dataset = "{dataset}"
scale = {scale}
[[target]]
url = "{url}"
schema = "natural"
[workload]
mix = {{ get_sensor_data = 1 }}
schedule = {{ concurrency = 2 }}
operations = 20
repetitions = 1
"""


def test_ctrl_c_during_a_load_ends_it_and_it_is_loaded_anew(
    cli: Cli, tmp_path: Path, lab_servers: dict[str, lab.Instance], monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, out = tmp_path / "experiment.toml", tmp_path / "out"
    url = server_url("postgresql", f"{OWN}_interrupted")
    experiment.write_text(EXPERIMENT.format(dataset=DATASET, scale=SCALE, url=url), encoding="utf-8")
    words = ("run", experiment, "--generators", 2, "--no-open", "--out", out)
    with monkeypatch.context() as patch:
        pids = interrupt_once(patch, LocalGenerator)
        ended = cli(*words)
    assert (ended.exit_code, "Traceback" in ended.err) == (130, False), ended.err
    assert len(pids) == 2
    assert not any(map(psutil.pid_exists, pids))
    assert own_processes() == []
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["status"] == "interrupted"
    assert list(out.rglob("*.unfinished")) == []
    assert cli("report", out, "--no-open").exit_code == 0
    resumed = cli(*words, "--resume")
    assert resumed.exit_code == 0, resumed.err
    # What each part was, and how long it took, is on the page and in the answer of the command.
    page, shown = (out / "report.html").read_text(encoding="utf-8"), " ".join(cli("report", out, "--no-open").out.split())
    assert "Each load generator loaded its part of every table" in page
    assert re.search(r"load generator 1 \(local\) [\d,]+ rows in .+ rows/s; load generator 2 \(local\) [\d,]+ rows in", shown), (
        shown
    )


def test_rows_with_other_keys_are_added_by_all_of_them(loadable: Loadable, monkeypatch: pytest.MonkeyPatch) -> None:
    shared: list[int] = []

    def noted(*arguments: Any, **named: Any) -> AbstractContextManager[SharedLoad]:
        shared.append(arguments[1])
        return shared_load(*arguments, **named)

    monkeypatch.setattr(load_module, "shared_load", noted)
    found = []
    for count in (1, 2):
        loadable.load(1)
        more = [table.shifted("floor", 1000) for table in loadable.tables]
        load_more(loadable.variant, loadable.attached(), more, "more", reporter=QUIET, generators=LoadGenerators(count))
        found.append(loadable.digests())
    assert shared == [2]
    assert found[0] == found[1]
    assert [found[0][table.table][0] for table in loadable.tables] == [2 * table.rows for table in loadable.tables]
    assert own_processes() == []


def test_ctrl_c_while_parts_are_sent_is_not_kept_waiting_by_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    until_s = time.monotonic() + LONGEST_S
    sent: list[int] = []
    taken: list[bool] = []

    def endless(_: LoadPart) -> Iterator[bytes]:
        while time.monotonic() < until_s:
            sent.append(threading.get_ident())
            # Both threads send. The one that takes the signal is not the main thread, which nothing wakes then.
            if sent.count(threading.get_ident()) == 3 and not taken:
                taken.append(True)
                signal.pthread_kill(threading.get_ident(), signal.SIGINT)
            yield b"more"

    monkeypatch.setattr(LoadPart, "chunks", endless)
    with pytest.raises(KeyboardInterrupt), shared_load(null_target(), 2, sends_parts=True) as load:
        load.load(table_of([10], tmp_path), lambda _: None)
    assert time.monotonic() < until_s
    assert own_processes() == []


@pytest.mark.parametrize("hangs", ["local", "hosted", "host"])
def test_ctrl_c_during_a_load_is_not_kept_waiting_by_what_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs: str
) -> None:
    with HostPool(choose_hosts("local:2"), QUIET) if hangs != "local" else nullcontext() as pool, monkeypatch.context() as patch:
        hosts = [] if pool is None else pool.hosts

        def hang(pids: list[int]) -> None:
            os.kill(hosts[0].about.pid if hangs == "host" else pids[0], signal.SIGSTOP)

        interrupt_once(patch, HostedGenerator if hosts else LocalGenerator, hang)
        since_s = time.monotonic()
        # As in every benchmark: how an interruption comes is known to all that wait.
        with pytest.raises(KeyboardInterrupt), held_back(), let_through(), shared_load(null_target(), 2, hosts) as load:
            load.load(table_of([10], tmp_path), lambda _: None)
        took_s = time.monotonic() - since_s
    assert took_s < HEARTBEAT_S - HURRIED_S
    assert own_processes() == []


def test_ctrl_c_while_they_connect_for_loading_is_not_kept_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        interrupted_while_they_connect(monkeypatch, LocalGenerator, 2),
        pytest.raises(KeyboardInterrupt),
        shared_load(null_target(), 2),
    ):
        pytest.fail("nobody answers them")


def test_parts_that_are_sent_are_loaded_like_those_of_files(loadable: Loadable, alone: Alone) -> None:
    target = loadable.variant.engine_target()
    target.create(json.dumps(loadable.schema), "", intent="replace", owner=TEST_OWNER.to_json())
    with shared_load(target, 2, batch_rows=100, sends_parts=True) as load:
        for table in loadable.tables:
            whole, parts = load.load(table, lambda _: None)
            assert whole["batches"] == sum(part["batches"] for part in parts) >= 2
    target.settle()
    assert loadable.digests() == alone.digests


def test_one_that_dies_ends_the_load_and_is_named(loadable: Loadable, alone: Alone, monkeypatch: pytest.MonkeyPatch) -> None:
    poll = LocalGenerator.poll_load

    def die(generator: LocalGenerator, wait_s: float) -> LoadState:
        if generator.number == 2:
            os.kill(generator.pid, signal.SIGKILL)
        return poll(generator, wait_s)

    with monkeypatch.context() as patch:
        patch.setattr(LocalGenerator, "poll_load", die)
        first = loadable.tables[0].table
        with pytest.raises(FailedError, match=rf"table {first}: load generator 2 \(process \d+\): it was ended by SIGKILL"):
            loadable.load(3)
    assert own_processes() == []
    target = loadable.attached()
    assert json.loads(target.fingerprint() or "")["state"] == "loading"
    # Nothing was sent twice, and no other table was begun.
    assert target.count(first) <= loadable.tables[0].rows
    assert [target.count(table.table) for table in loadable.tables[1:]] == [0] * (len(loadable.tables) - 1)
    loadable.load(2)
    assert loadable.digests() == alone.digests


def test_what_one_is_refused_ends_the_load_and_names_it(loadable: Loadable, monkeypatch: pytest.MonkeyPatch) -> None:
    def astray(table: PreparedTable, count: int) -> list[LoadPart]:
        first, *others = parts_of(table, count)
        return [first, *(part.model_copy(update={"table": "nowhere"}) for part in others)]

    monkeypatch.setattr(shared_load_module, "parts_of", astray)
    with pytest.raises(EngineError, match=r"load generator 2 .*nowhere"):
        loadable.load(2)
    assert own_processes() == []


def test_rows_that_are_lost_on_the_way_are_found(loadable: Loadable, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_the_last(table: PreparedTable, count: int) -> list[LoadPart]:
        *others, last = parts_of(table, count)
        return [*others, last.model_copy(update={"rows": last.rows - 1})]

    monkeypatch.setattr(shared_load_module, "parts_of", without_the_last)
    with pytest.raises(FailedError, match=r"rows went into .*, but .* are there"):
        loadable.load(2)


def test_an_experiment_whose_databases_one_process_loads_says_so(cli: Cli, tmp_path: Path) -> None:
    copytree(EXAMPLE, tmp_path / "example")
    experiment, out = tmp_path / "example" / "experiment.toml", tmp_path / "out"
    changes = (
        "workload.duration=200ms",
        "workload.warmup=100ms",
        "workload.repetitions=1",
        'target=[{url="sqlite",schema="by-time.toml"}]',
    )
    words = [word for change in changes for word in ("--set", change)]
    ended = cli("run", experiment, *words, "--generators", 2, "--no-open", "--out", out)
    assert ended.exit_code == 0, ended.err
    why = "is loaded by one process, not by 2 load generators, because the process that loads owns its database"
    assert why in " ".join(ended.err.split())
    (load,) = [json.loads(file.read_text(encoding="utf-8")) for file in out.rglob("load.json")]
    assert load["undivided"].endswith(why)
    # The page has it where the table of their parts would be, and the answer of the command where their line would be.
    assert f"{why}." in (out / "report.html").read_text(encoding="utf-8")
    shown = cli("report", out, "--no-open")
    assert why in " ".join(shown.out.split())
    planned = cli("run", experiment, *words, "--generators", 2, "--dry-run", "--json", "--out", tmp_path / "dry")
    assert planned.exit_code == 0, planned.err
    assert [note for note in planned.json["notes"] if note.endswith(why)]
    assert [
        note
        for note in planned.json["notes"]
        if "the pilot is loaded and measured by one process, not by 2 load generators" in note
    ]


def variant_at(url: str, schema: str, database: str) -> Variant:
    return Variant("v", parse_target(url), load_schema(schema, operations="sensors", database=database), url, None)


def test_which_loads_are_not_shared() -> None:
    two = LoadGenerators(2)
    cassandra = variant_at("cassandra://a", "by_sensor", "cassandra")
    assert why_undivided_by(two, cassandra) is None
    assert why_undivided_by(LoadGenerators(1), variant_at("sqlite:x", "natural", "sqlite")) is None
    files = replace(cassandra, target=replace(cassandra.target, text="cassandra://a?load=sstables"))
    assert why_undivided_by(two, files) == (
        "v is loaded by one process, not by 2 load generators, because SSTables are written whole, and streamed by one process"
    )
    tool = replace(cassandra, target=replace(cassandra.target, loader="copy"))
    assert "copy is one process" in (why_undivided_by(two, tool) or "")


@pytest.mark.parametrize(
    ("database", "create", "is_divided"),
    [("redis", ["ZADD"], True), ("redis", ["RPUSH"], False), ("prometheus", [], False), ("postgresql", ["RPUSH"], True)],
)
def test_whether_the_order_of_rows_matters(database: str, create: list[str], is_divided: bool) -> None:
    assert (why_undivided(database, [], json.dumps({"write": create})) is None) is is_divided
