"""DuckDB as a target: its driver keeps the contract, its schemas give the answers of SQLite, what is not its own it leaves, and what it has acknowledged
outlives a process that is killed.
"""

import json
import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from sensorbench import _engine
from sensorbench.schemas import load_operations, load_schema, shipped_schemas
from tests.conftest import TEST_OWNER, Cli
from tests.contract import keeps_the_contract

SMALL = ("--dataset", "beijing-air-quality", "--scale", "0.003", "--operations", "40", "--repetitions", "1")
SENSORS = ("by_time", "keyed", "natural", "star")
SERIES: dict[str, Any] = {
    "create": {"statements": ["CREATE TABLE series (time TIMESTAMP PRIMARY KEY, value DOUBLE)"]},
    "tables": {"series": [{"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"}]},
    "operations": [],
}
COLUMNS = pa.schema({"time": pa.timestamp("us"), "value": pa.float64()})
PUT = {
    "name": "put",
    "parameters": SERIES["tables"]["series"],
    "columns": [],
    "statement": {"statement": "INSERT INTO series (time, value) VALUES (:time, :value)"},
}
# What another process does with a database: it writes rows one by one, and says of each that it was acknowledged.
WRITER = f"""
import json, sys, pyarrow as pa
from sensorbench import _engine
target = _engine.Target("duckdb:" + sys.argv[1])
target.create({json.dumps(json.dumps(SERIES))}, "", intent="create", owner={json.dumps(TEST_OWNER.to_json())})
columns = pa.schema({{"time": pa.timestamp("us"), "value": pa.float64()}})
for number in range(1_000_000):
    row = pa.record_batch([pa.array([number], columns.field("time").type), pa.array([float(number)])], schema=columns)
    target.execute_once({json.dumps(json.dumps(PUT))}, pa.RecordBatchReader.from_batches(columns, [row]))
    print(number, flush=True)
"""


def rows(first: int, count: int, value: float | None = None) -> pa.RecordBatch:
    times = pa.array(np.arange(first, first + count), pa.int64()).cast(COLUMNS.field("time").type)
    values = np.full(count, value) if value is not None else np.arange(count, dtype=np.float64)
    return pa.record_batch([times, pa.array(values)], schema=COLUMNS)


def reader(*batches: pa.RecordBatch) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(COLUMNS, batches)


def created(url: str) -> _engine.Target:
    target = _engine.Target(url)
    target.create(json.dumps(SERIES), "", intent="create", owner=TEST_OWNER.to_json())
    return target


def load(target: _engine.Target, *batches: pa.RecordBatch) -> None:
    started = target.load("series", reader(*batches))
    assert started.wait(60)
    started.result()


def summary_of(cli: Cli, out: Path, *arguments: object) -> dict[str, Any]:
    ended = cli(*arguments, "--no-open", "--out", out)
    assert ended.exit_code == 0, ended.err
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    return summary


def schemas(*names: str) -> list[str]:
    return [word for name in names for word in ("--schema", name)]


def test_it_keeps_the_contract(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.db"
    with duckdb.connect(str(theirs)) as connection:
        connection.execute("CREATE TABLE sensorbench (mark VARCHAR)").execute("INSERT INTO sensorbench VALUES ('mine'), ('too')")
    library = find_spec("_duckdb")
    assert library is not None
    python = Path(sysconfig.get_config_var("LIBDIR")) / sysconfig.get_config_var("INSTSONAME")
    keeps_the_contract(
        "duckdb",
        {
            "SENSORBENCH_TEST_DUCKDB": str(library.origin),
            "SENSORBENCH_TEST_PYTHON": str(python),
            "SENSORBENCH_TEST_FOREIGN": str(theirs),
        },
    )


def test_readings_give_the_answers_of_sqlite(cli: Cli, tmp_path: Path) -> None:
    summary = summary_of(
        cli, tmp_path / "out", "study", "run", "iot", "--target", "duckdb", "--target", "sqlite", *schemas(*SENSORS), *SMALL
    )
    assert summary["answers_equal"] is True
    assert {variant["id"] for variant in summary["variants"]} == {
        *(f"duckdb-{schema}" for schema in SENSORS), "sqlite-natural", "sqlite-star",
    }  # fmt: skip
    assert {checks["wrong"] for checks in summary["result"]["known_answers"].values()} == {0}
    told = summary["result"]["load"]["duckdb-natural"]
    assert told["description"]["database"] == "DuckDB"
    assert told["description"]["version"] == duckdb.__version__
    assert told["description"]["settings"]["fsync_mode"] == "STANDARD"
    assert 0 < sum(told["size"]["parts"].values()) <= told["size"]["total_bytes"]


def test_logs_give_the_answers_of_sqlite(cli: Cli, tmp_path: Path) -> None:
    summary = summary_of(
        cli, tmp_path / "out", "study", "run", "log-analytics", "--target", "duckdb", "--target", "sqlite",
        "--dataset", "machine-log-1gb", "--scale", "0.0005", "--operations", "34", "--repetitions", "1",
    )  # fmt: skip
    assert summary["answers_equal"] is True
    assert summary["result"]["failures"] == {}
    assert {"duckdb-sorted-key", "duckdb-sorted-value"} <= {variant["id"] for variant in summary["variants"]}


@pytest.mark.parametrize(
    ("operations", "mix", "names"),
    [
        ("patterns", "get_range = 1, get_recent = 1, get_latest = 1", ("row_per_value", "by_time", "keyed")),
        ("patterns", "append_reading = 1, get_written_reading = 1", ("row_per_value", "compacted", "rollups")),
        ("patterns", "get_minute_counts = 1, get_hour_counts = 1, get_day_counts = 1", ("row_per_value", "rollups")),
        ("starter", "latest_reading = 1, hourly_means = 1, insert_reading = 1", ("by_sensor", "by_time")),
    ],
)
def test_layouts_give_the_answers_of_the_dataset(
    cli: Cli, tmp_path: Path, operations: str, mix: str, names: tuple[str, ...]
) -> None:
    targets = "".join(f'[[target]]\nurl = "duckdb"\nschema = "{name}"\n' for name in names)
    file = tmp_path / "experiment.toml"
    file.write_text(
        f'dataset = "cu-bems"\nscale = 0.0004\noperations = "{operations}"\n{targets}'
        f"[workload]\nmix = {{ {mix} }}\noperations = 60\nschedule = {{ concurrency = 2 }}\nrepetitions = 1\n",
        encoding="utf-8",
    )
    summary = summary_of(cli, tmp_path / "out", "run", file)
    assert summary["answers_equal"] is True
    assert summary["result"]["failures"] == {}


@pytest.mark.parametrize(("operations", "names"), [("sensors", SENSORS), ("logs", ("relational", "sorted"))])
def test_there_are_several_schemas(operations: str, names: tuple[str, ...]) -> None:
    assert tuple(sorted(shipped_schemas(operations, "duckdb"))) == names
    questions = {name for name in load_operations(operations).operation if not name.startswith(("insert", "get_written"))}
    for name in names:
        assert questions <= set(load_schema(name, operations=operations, database="duckdb").file.operation)


def test_a_key_that_is_there_is_refused_and_nothing_of_its_load_stays(tmp_path: Path) -> None:
    target = created(f"duckdb:{tmp_path / 'keys.db'}")
    load(target, rows(0, 3000))
    with pytest.raises(_engine.DataError, match=r"table series: .*Duplicate key"):
        load(target, rows(5000, 10), rows(2999, 10))
    assert target.count("series") == 3000
    upsert = {**PUT, "statement": {"statement": "INSERT OR REPLACE INTO series (time, value) VALUES (:time, :value)"}}
    for value in (1.5, 2.5):
        target.execute_once(json.dumps(upsert), reader(rows(7, 1, value)))
    read = {
        **PUT,
        "columns": [SERIES["tables"]["series"][1]],
        "statement": {"statement": "SELECT value FROM series WHERE time = :time"},
    }
    assert json.loads(target.execute_once(json.dumps(read), reader(rows(7, 1)))) == [[2.5]]
    assert target.count("series") == 3000


def test_what_was_acknowledged_outlives_a_process_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "killed.db"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) == 20:
                os.kill(writer.pid, signal.SIGKILL)
                break
        acknowledged = 1 + max([20, *(int(line) for line in writer.stdout)])
    assert Path(f"{path}.wal").exists(), "the log was not written into the database"
    target = _engine.Target(f"duckdb:{path}")
    target.attach(json.dumps(SERIES), intent="resume", owner=TEST_OWNER.to_json())
    assert acknowledged <= target.count("series") <= acknowledged + 1
    target.clean()
    assert not list(tmp_path.iterdir()), "the log belongs to the database"


def test_a_database_that_another_process_has_open_is_told_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "open.db"
    holder = f"import duckdb, sys; held = duckdb.connect({str(path)!r}); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(_engine.TargetError, match=rf"open\.db: .*Conflicting lock is held in .* \(PID {process.pid}\)"):
            created(f"duckdb:{path}")
        process.communicate()


def test_somebodys_database_stays_as_it_is(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE wages (name VARCHAR, wage DOUBLE)")
    before = path.read_bytes()
    ended = cli(
        "study",
        "run",
        "iot",
        "--target",
        f"duckdb:{path}",
        "--schema",
        "natural",
        *SMALL,
        "--replace",
        "--no-open",
        "--out",
        tmp_path / "out",
    )
    assert ended.exit_code == 2
    assert "it is somebody's DuckDB database" in ended.err
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("speed=fast", "unknown option speed; expected one of checkpoint_threshold, fsync_mode, memory_limit, threads"),
        ("fsync_mode=maybe", "option fsync_mode=maybe: expected one of standard, none, full"),
        ("memory_limit=lots", "option memory_limit=lots: expected a number and a unit"),
        ("threads=0", "option threads=0: expected a number of threads"),
    ],
)
def test_a_wrong_option_is_told_before_anything_is_written(cli: Cli, tmp_path: Path, options: str, told: str) -> None:
    out = tmp_path / "out"
    ended = cli("study", "run", "iot", "--target", f"duckdb:{tmp_path / 'x.db'}?{options}", *SMALL, "--no-open", "--out", out)
    assert ended.exit_code == 2
    assert told in " ".join(ended.err.split())
    assert not out.exists()


def test_a_memory_limit_that_is_reached_is_told_in_its_words(tmp_path: Path) -> None:
    target = created(f"duckdb:{tmp_path / 'small.db'}?memory_limit=12MiB&threads=1")
    with pytest.raises(_engine.TargetError, match=r"(?i)out of memory|memory limit|could not allocate"):
        load(target, *(rows(first, 100_000) for first in range(0, 2_000_000, 100_000)))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own that is soon full. This needs root, as the README says of the tests."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_is_told_and_nothing_of_the_load_is_counted(small_disk: Path) -> None:
    target = created(f"duckdb:{small_disk / 'full.db'}")
    random = np.random.default_rng(1)
    batches = [
        pa.record_batch([batch.column("time"), pa.array(random.random(batch.num_rows))], schema=COLUMNS)
        for batch in (rows(first, 100_000) for first in range(0, 1_000_000, 100_000))
    ]
    with pytest.raises(_engine.TargetError, match=r"full\.db.*[Nn]o space left|[Nn]o space left.*full\.db"):
        load(target, *batches)


def test_a_load_that_is_stopped_leaves_the_table_empty(tmp_path: Path) -> None:
    target = created(f"duckdb:{tmp_path / 'stopped.db'}")

    def endless() -> Iterator[pa.RecordBatch]:
        yield from (rows(first, 10_000) for first in range(0, 10**10, 10_000))

    started = target.load("series", pa.RecordBatchReader.from_batches(COLUMNS, endless()))
    while started.rows < 50_000:
        assert not started.wait(0.01)
    started.stop()
    assert started.wait(60)
    with pytest.raises(_engine.CancelledError):
        started.result()
    assert target.count("series") == 0


def test_records_are_loaded_and_read_by_their_keys(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    counts = ("-p", "recordcount=500", "-p", "operationcount=600", "-p", "fieldcount=3")
    target = ("--target", f"duckdb:{path}")
    loaded = cli("ycsb", "load", *target, *counts, "--out", tmp_path / "load")
    assert loaded.exit_code == 0, loaded.err
    ran = cli(
        "ycsb", "run", *target, *counts, "-p", "readproportion=0.5", "-p", "updateproportion=0.5", "--out", tmp_path / "run"
    )
    assert ran.exit_code == 0, ran.err
