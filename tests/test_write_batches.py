"""Loading in batches that are acknowledged one by one: their sizes, writers and rates, what vendors recommend, and what is reported of them."""

import json
import math
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from sensorbench.errors import FailedError, UsageError
from sensorbench.report.batched_loads import backpressure, batched_loads
from sensorbench.results.described import BatchedLoad
from sensorbench.results.page import Chart, Grid
from sensorbench.results.summary.comparison import LoadFigures
from sensorbench.runner.batched_load import MAX_INTERVALS, BatchLoader, in_batches
from sensorbench.runner.prepare import PreparedTable
from sensorbench.runner.registered import databases
from sensorbench.runner.sweep import parse_sweeps, swept
from sensorbench.runner.variants import VariantSpec, parse_target
from sensorbench.runner.write_batches import WriteBatches
from sensorbench.schemas import load_schema
from sensorbench.schemas.recommended_batches import RecommendedBatches, recommended_batches, recommended_for
from tests.conftest import Cli
from tests.servers import LabServers


def rows_of(*lengths: int) -> pa.RecordBatchReader:
    first = [sum(lengths[:place]) for place in range(len(lengths))]
    parts = [
        pa.record_batch({"n": pa.array(range(start, start + length), pa.int64())})
        for start, length in zip(first, lengths, strict=True)
    ]
    return pa.RecordBatchReader.from_batches(pa.schema({"n": pa.int64()}), parts)


@pytest.mark.parametrize(
    ("lengths", "batch_rows", "found"),
    [((10,), 4, [4, 4, 2]), ((3, 3, 3), 4, [4, 4, 1]), ((5, 0, 5), 5, [5, 5]), ((2,), 100, [2]), ((), 4, [])],
)
def test_all_rows_come_in_their_order_in_batches_of_so_many(lengths: tuple[int, ...], batch_rows: int, found: list[int]) -> None:
    batches = list(in_batches(rows_of(*lengths), batch_rows))
    assert [batch.num_rows for batch in batches] == found
    assert [number for batch in batches for number in batch["n"].to_pylist()] == list(range(sum(lengths)))
    assert all(batch["n"].num_chunks == 1 for batch in batches), "drivers send a batch for each chunk"


class SlowLoad:
    """A load that takes this long, and may fail. Each sent one request again."""

    def __init__(self, rows: int, length_s: float, error: Exception | None) -> None:
        self.rows, self._length_s, self._error = rows, length_s, error
        self.is_stopped = False

    def wait(self, timeout_s: float) -> bool:
        time.sleep(min(timeout_s, self._length_s))
        return True

    def stop(self) -> None:
        self.is_stopped = True

    def result(self) -> str:
        if self._error is not None:
            raise self._error
        return json.dumps({"rows": self.rows, "duration_s": self._length_s, "batches": 1, "batch_s": {}, "retries": 1})


class SlowTarget:
    """Takes batches in, each for this long; the one with number `fails` fails. Several of them share what came in."""

    _lock = threading.Lock()

    def __init__(self, came: list[int], length_s: float, fails: int | None = None) -> None:
        self._came, self._length_s, self._fails = came, length_s, fails

    def load(self, table: str, rows: pa.RecordBatchReader) -> SlowLoad:
        assert table == "readings"
        batch = rows.read_all()
        with self._lock:
            number = len(self._came)
            self._came.append(batch.num_rows)
        return SlowLoad(batch.num_rows, self._length_s, FailedError("disk full") if number == self._fails else None)


@pytest.fixture
def table(tmp_path: Path) -> PreparedTable:
    """A table of a thousand rows."""
    file = tmp_path / "readings.arrows"
    rows = rows_of(600, 400)
    with pa.ipc.new_stream(str(file), rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)
    return PreparedTable("readings", file, 1000, file.stat().st_size, 0.0)


def loader(targets: list[SlowTarget], batches: WriteBatches, note: Any = lambda _: None) -> BatchLoader:
    sizes = iter(range(1000, 10**9, 1000))
    return BatchLoader(targets, batches, lambda: next(sizes), note)  # type: ignore[arg-type]


def test_writers_share_the_batches_and_each_is_counted_once(table: PreparedTable) -> None:
    came: list[int] = []
    loads = loader([SlowTarget(came, 0.001), SlowTarget(came, 0.001)], WriteBatches(30, writers=2))
    loaded = [loads.load(table), loads.load(table)]
    assert [entry["rows"] for entry in loaded] == [1000, 1000]
    assert [entry["batches"] for entry in loaded] == [34, 34]
    assert sorted(came) == sorted([30] * 66 + [10] * 2)
    report = loads.report(5000)
    assert (report["batches"], report["recommended_rows"]) == (68, 5000)
    assert ([entry["retries"] for entry in loaded], report["retries"]) == ([34, 34], 68)
    assert sum(interval["batches"] for interval in report["intervals"]) == 68
    assert report["intervals"][-1]["rows"] == 2000
    assert "last_lag_s" not in report, "without a rate no batch has an intended start"
    assert [report["sizes"][0]["rows"], report["sizes"][-1]["rows"]] == [0, 2000]


def test_results_keep_a_bounded_number_of_intervals(table: PreparedTable) -> None:
    loads = loader([SlowTarget([], 0.0)], WriteBatches(1))
    loads.load(table)
    intervals = loads.report(None)["intervals"]
    assert len(intervals) == MAX_INTERVALS
    assert {interval["batches"] for interval in intervals} == {1000 // MAX_INTERVALS}


def test_a_batch_that_waits_for_those_before_is_behind_its_intended_start(table: PreparedTable) -> None:
    loads = loader([SlowTarget([], 0.02)], WriteBatches(100, rate=1e6))
    loads.load(table)
    report = loads.report(None)
    # Nine batches came before the last one, whose intended start is 0.9 ms after the first one's.
    assert report["last_lag_s"] >= 9 * 0.02 - 0.0009
    assert report["max_lag_s"] >= report["last_lag_s"]
    assert report["response_s"]["max"] >= 10 * 0.02 - 0.0009, "a response time counts from the intended start"
    assert report["batch_s"]["max"] == 0.02, "a batch's own time does not"
    assert backpressure(report).startswith("fell behind 1,000,000 rows per second")


def test_a_batch_does_not_begin_before_its_intended_start(table: PreparedTable) -> None:
    loads = loader([SlowTarget([], 0.0)], WriteBatches(100, rate=10_000))
    start_s = time.monotonic()
    loads.load(table)
    assert time.monotonic() - start_s >= 9 * 0.01


def test_keeping_up_is_said() -> None:
    kept: BatchedLoad = {
        "batch_rows": 100,
        "writers": 1,
        "rate": 1000.0,
        "recommended_rows": None,
        "batches": 10,
        "batch_s": {"p50": 0.01},
        "intervals": [{"end_s": 1.0, "rows": 1000, "batches": 10, "lag_s": 0.15, "batch_s": {"p50": 0.01}}],
        "sizes": [],
        "max_lag_s": 0.15,
        "last_lag_s": 0.0,
    }
    assert backpressure(kept) == "kept up with 1,000 rows per second; batches began at most 150 ms after their intended starts."
    behind: BatchedLoad = {**kept, "last_lag_s": 0.5}
    assert "fell behind" in backpressure(behind)
    assert backpressure({**behind, "retries": 1}).endswith(
        "The driver sent writes again 1 time, because nodes were busy or away."
    )
    assert "again" not in backpressure({**behind, "retries": 0})


@pytest.mark.parametrize(
    ("sizes", "title"),
    [
        ([(0, 1), (500, 900), (1000, 2000)], "megabytes stored"),
        ([(0, 1), (500, 9000), (1000, 2000)], "rows stored"),
        ([], "rows stored"),
    ],
)
def test_growth_is_over_the_size_where_that_grows(sizes: list[tuple[int, int]], title: str) -> None:
    batched: BatchedLoad = {
        "batch_rows": 500,
        "writers": 1,
        "rate": None,
        "recommended_rows": None,
        "batches": 2,
        "batch_s": {"p50": 0.01},
        "intervals": [
            {"end_s": end_s, "rows": rows, "batches": 1, "lag_s": 0.0, "batch_s": {"p50": 0.01, "max": 0.01}}
            for end_s, rows in ((0.1, 500), (0.3, 1000))
        ],
        "sizes": [{"elapsed_s": 0.0, "rows": rows, "bytes": size} for rows, size in sizes],
    }
    blocks = batched_loads({"duckdb": LoadFigures.model_construct(batched=batched)}, ["duckdb"])
    (grid,) = [block for block in blocks if isinstance(block, Grid)]
    rate = next(block.specification for block in grid.blocks if isinstance(block, Chart))
    assert title in rate["encoding"]["x"]["title"]
    (rows,) = rate["datasets"].values()
    assert [round(row["per_s"]) for row in rows] == [5000, 2500]


@pytest.mark.parametrize("writers", [1, 2])
def test_no_batch_begins_after_one_that_failed(table: PreparedTable, writers: int) -> None:
    came: list[int] = []
    targets = [SlowTarget(came, 0.01, fails=2) for _ in range(writers)]
    with pytest.raises(FailedError, match="disk full"):
        loader(targets, WriteBatches(10, writers=writers)).load(table)
    assert len(came) < 100


def test_a_load_that_takes_too_long_ends(table: PreparedTable) -> None:
    def note(rows: int) -> None:
        raise FailedError(f"stopped after {rows} rows")

    came: list[int] = []
    with pytest.raises(FailedError, match="stopped after"):
        loader([SlowTarget(came, 0.05)], WriteBatches(10), note).load(table)
    assert len(came) < 100


# What vendors recommend.


def test_each_recommendation_is_of_a_database_that_is_known() -> None:
    known = databases().values()
    assert not recommended_batches().keys() - {name for entry in known for name in (entry.name, entry.dialect)}
    wanted = ["questdb", "influxdb", "victoriametrics", "prometheus", "iotdb", "opentsdb", "clickhouse", "duckdb"]
    wanted += ["postgresql", "timescaledb", "cassandra", "mariadb"]
    for name in wanted:
        assert recommended_for(name, databases()[name].dialect) is not None, name


def test_a_recommendation_without_a_source_is_refused() -> None:
    with pytest.raises(ValidationError, match="source"):
        RecommendedBatches(rows=10, kind="advice", says="ten", source="somebody", sent_as="a request")


def test_a_number_of_writers_may_go_by_the_cpus() -> None:
    known = recommended_for("victoriametrics", "victoriametrics")
    assert known is not None
    assert known.writers_with(4) == 8
    assert known.writers_with(1) == 2


def spec_of(target: str, schema: str, database: str) -> VariantSpec:
    return VariantSpec(parse_target(target), load_schema(schema, operations="sensors", database=database))


def test_a_recommended_number_is_that_of_each_database_and_once() -> None:
    chosen = [
        spec_of("influxdb://127.0.0.1", "by_sensor", "influxdb"),
        spec_of("opentsdb://127.0.0.1", "by_sensor", "opentsdb"),
    ]
    sides = swept(chosen, {"batch_rows": ["5000", "recommended"]})
    assert [(side.target.label, side.label, side.batches) for side in sides] == [
        ("influxdb", "batch_rows=5000", WriteBatches(5000)),
        ("opentsdb", "batch_rows=5000", WriteBatches(5000)),
        ("opentsdb", "batch_rows=50", WriteBatches(50)),
    ]
    with_writers = swept(chosen[1:], {"writers": ["2"], "write_rate": ["1000"]})
    assert [side.batches for side in with_writers] == [WriteBatches(50, 2, 1000.0)], "of the rows that are recommended"


@pytest.mark.parametrize(
    ("target", "schema", "key", "levels", "basis"),
    [
        (
            "influxdb://127.0.0.1",
            "by_sensor",
            "batch_rows",
            [500, 5000, 50_000],
            "influxdb: batch_rows at 500, 5,000 and 50,000: the recommended number (the documentation: 5,000 to 10,000 points; of InfluxDB 2: "
            "5,000 lines are the optimum), a tenth of it and ten times as many",
        ),
        (
            "sqlite:x.db",
            "natural",
            "batch_rows",
            [1000, 10_000, 100_000],
            "sqlite: batch_rows at 1,000, 10,000 and 100,000: 10,000, since no number is recommended, a tenth of it and ten times as many",
        ),
        (
            "clickhouse://127.0.0.1",
            "natural",
            "writers",
            [1, 10],
            "clickhouse: writers at 1 and 10: the recommended number (the documentation: at least 1,000 rows, at best 10,000 to 100,000, and about "
            "one insert per second), and ten times as many",
        ),
        ("duckdb:x.db", "by_time", "writers", [1], "duckdb: writers at 1, because the process that loads owns its database"),
    ],
)
def test_default_levels_are_around_what_is_recommended(target: str, schema: str, key: str, levels: list[int], basis: str) -> None:
    sides = swept([spec_of(target, schema, target.partition(":")[0])], parse_sweeps([key]))
    chosen = [side.batches for side in sides if side.batches is not None]
    assert [of.rows if key == "batch_rows" else of.writers for of in chosen] == levels
    assert {default.basis for of in chosen for default in of.default_levels} == {basis}


def test_each_target_has_default_levels_of_its_own_and_named_levels_have_none() -> None:
    chosen = [
        spec_of("influxdb://127.0.0.1", "by_sensor", "influxdb"),
        spec_of("opentsdb://127.0.0.1", "by_sensor", "opentsdb"),
    ]
    sides = swept(chosen, {"batch_rows": [], "writers": ["2"]})
    found = [(side.batches.rows, side.batches.writers) for side in sides if side.batches is not None]
    assert found == [(rows, 2) for rows in (500, 5000, 50_000, 5, 50, 500)]
    assert all([default.key for default in side.batches.default_levels] == ["batch_rows"] for side in sides if side.batches)


@pytest.mark.parametrize(
    ("target", "schema", "factors", "problem"),
    [
        ("duckdb:x.db", "by_time", {"batch_rows": ["0"]}, "expected a whole number above 0, or recommended"),
        ("duckdb:x.db", "by_time", {"write_rate": []}, "expected KEY=VALUE,VALUE.* batch_rows and writers alone have levels"),
        ("duckdb:x.db", "by_time", {"batch_rows": ["some"]}, "expected a whole number above 0, or recommended"),
        ("duckdb:x.db", "by_time", {"write_rate": ["recommended"]}, "no number is recommended for duckdb; expected a number"),
        (
            "sqlite:x.db",
            "natural",
            {"batch_rows": ["recommended"]},
            "no number is recommended for sqlite; it is known of questdb",
        ),
        ("postgresql://127.0.0.1", "natural", {"batch_rows": ["recommended"]}, "no number is recommended for postgresql"),
        ("duckdb:x.db", "by_time", {"writers": ["2"]}, "duckdb has one writer, because the process that loads owns"),
        ("prometheus://127.0.0.1", "by_sensor", {"writers": ["2"]}, "prometheus has one writer, because it takes the samples"),
    ],
)
def test_batches_that_make_no_sense_are_refused(target: str, schema: str, factors: dict[str, list[str]], problem: str) -> None:
    database = target.partition(":")[0]
    with pytest.raises(UsageError, match=problem):
        swept([spec_of(target, schema, database)], factors)


# On real databases.

EXPERIMENT = """
dataset = "beijing-air-quality"
scale = 0.0005
operations = "sensors"
[[target]]
url = "{target}"
schema = "{schema}"
[workload]
mix = {{ get_peak_data = 1 }}
operations = 20
repetitions = 1
"""


def run_experiment(cli: Cli, folder: Path, target: str, schema: str, *sweeps: str) -> dict[str, Any]:
    """The summary of a comparison of swept batches, all of whose answers are right."""
    file, out = folder / "batches.toml", folder / "out"
    file.write_text(EXPERIMENT.format(target=target, schema=schema), encoding="utf-8")
    outcome = cli("run", file, *(part for sweep in sweeps for part in ("--sweep", sweep)), "--out", out, "--no-open")
    assert outcome.exit_code == 0, outcome.err
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert summary["answers_equal"] is True
    return summary


def batches_of(load: dict[str, Any], rows: int) -> int:
    """How many batches of this many rows the tables of a load have."""
    return sum(math.ceil(table["rows"] / rows) for table in load["tables"])


def test_duckdb_is_loaded_in_batches_and_the_report_has_them(cli: Cli, tmp_path: Path) -> None:
    summary = run_experiment(cli, tmp_path, "duckdb", "by_time", "batch_rows=200,recommended", "writers", "write_rate=100000000")
    loads = summary["result"]["load"]
    names = [f"duckdb-by_time-batch_rows={rows}-writers=1-write_rate=100000000" for rows in (200, 204800)]
    assert list(loads) == names
    assert len({load["rows"] for load in loads.values()}) == 1
    small, whole = (loads[name]["batched"] for name in names)
    assert small["batches"] == batches_of(loads[names[0]], 200) > whole["batches"]
    assert whole["batches"] == len(loads[names[1]]["tables"])
    assert small["intervals"][-1]["rows"] == loads[names[0]]["rows"]
    assert small["recommended_rows"] == whole["batch_rows"] == 204_800
    assert small["sizes"][-1]["bytes"] >= small["sizes"][0]["bytes"] > 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "fell behind 100,000,000 rows per second" in page
    assert "Time of a batch while the data grow" in page
    assert page.count("Default levels of duckdb: writers at 1, because the process that loads owns its database.") == 1


def test_writers_load_a_server_in_batches(cli: Cli, tmp_path: Path, lab_servers: LabServers) -> None:
    lab_servers.start("postgresql")
    target = "lab:postgresql?namespace=sensorbench_write_batches"
    summary = run_experiment(cli, tmp_path, target, "natural", "batch_rows=100", "writers=3")
    (load,) = summary["result"]["load"].values()
    assert load["batched"]["writers"] == 3
    assert load["batched"]["batches"] == batches_of(load, 100) > 3
