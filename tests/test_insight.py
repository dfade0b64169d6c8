"""What servers say of themselves in a run: in the same words for every database, and only what they do say."""

import json
import re
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from docsite import lists

from sensorbench import _engine, lab
from sensorbench.analysis.steady import time_to_steady, windowed_hit_rates
from sensorbench.benchmarks.factors.figures import use_of_servers
from sensorbench.errors import FailedError
from sensorbench.lab.databases import cassandra_nodetool as nodetool
from sensorbench.lab.databases.iotdb import figures_of
from sensorbench.lab.state_dirs import server_user
from sensorbench.results import RunManifest, RunResult, read_comparison
from sensorbench.results.insight import Insight, insight, over
from sensorbench.results.quantities import QUANTITIES
from sensorbench.results.sources import FOLDER, CacheSource, Sources
from sensorbench.results.writer import STATUS
from tests.conftest import run_main
from tests.servers import LabServers

ROOT = Path(__file__).parent.parent
S = 1_000_000_000

Told = dict[str, dict[int, float | None]]


def run_that_reported(folder: Path, reported: Told) -> RunResult:
    """A run whose table `status` has numbers by name and second."""
    rows = [{"time_ns": s * S, "name": name, "value": value} for name, of in reported.items() for s, value in of.items()]
    return with_status(folder, rows)


def with_status(folder: Path, rows: list[dict[str, Any]]) -> RunResult:
    pq.write_table(pa.Table.from_pylist(rows, schema=STATUS), folder / "status.parquet")
    return RunResult(folder, cast("RunManifest", None))


def values(found: Insight, name: str) -> list[float]:
    return found.series[name].values.tolist()


def test_quantities_have_the_same_names_whatever_the_database(tmp_path: Path) -> None:
    run = run_that_reported(
        tmp_path,
        {
            "thread_pools.MemtableFlushWriter.active_tasks": {1: 1.0, 2: 1.0},
            "thread_pools.MemtableFlushWriter.pending_tasks": {1: 0.0, 2: 3.0},
            "jmx.GarbageCollector.CollectionTime": {1: 1500.0, 2: 1700.0},
            "Innodb_data_read": {1: 7.0},
        },
    )
    found = insight(run, "cassandra")
    assert set(found.series) == {"pending_flushes", "garbage_collection_s"}
    assert values(found, "pending_flushes") == [1.0, 4.0]
    assert values(found, "garbage_collection_s") == [1.5, 1.7]
    assert found.series["pending_flushes"].times_s.tolist() == [1.0, 2.0]
    assert found.caches == {}
    assert found.nodes == {}
    assert insight(run, "mariadb").series.keys() == {"file_read_bytes"}


def test_a_run_without_a_status_has_nothing_to_tell(tmp_path: Path) -> None:
    assert insight(RunResult(tmp_path, cast("RunManifest", None)), "cassandra") == Insight({}, {})
    assert insight(run_that_reported(tmp_path, {"lab.cpu_s": {1: 0.5}}), "sqlite").series.keys() == {"processor_s"}


def test_the_load_average_is_of_the_machine_and_not_summed_over_nodes(tmp_path: Path) -> None:
    load = {1: 8.0, 2: 6.0, 3: 4.0, 4: 2.0}
    run = run_that_reported(tmp_path, {f"127.77.1.{node}.lab.load_average": load for node in (1, 2, 3)})
    found = insight(run, "cassandra")
    assert values(found, "load_average") == [8.0, 6.0, 4.0, 2.0]
    # It follows by a minute: the end of a time says most about it.
    assert use_of_servers(found, 0.0, 4.0).load_average == 3.0
    before = run_that_reported(tmp_path, {"lab.cpu_s": {1: 0.0, 4: 3.0}})
    assert use_of_servers(insight(before, "cassandra"), 1.0, 4.0).model_dump(exclude_none=True) == {"server_cpu": 1.0}


def test_what_was_not_told_at_a_moment_is_left_out_there(tmp_path: Path) -> None:
    pools = "thread_pools.MemtableFlushWriter"
    run = run_that_reported(
        tmp_path,
        {
            f"{pools}.active_tasks": {1: 1.0, 2: 1.0, 3: 2.0},
            f"{pools}.pending_tasks": {1: 0.0, 3: 5.0},
            "sstable_tasks": {1: None, 2: 4.0},
        },
    )
    found = insight(run, "cassandra")
    assert found.series["pending_flushes"].times_s.tolist() == [1.0, 3.0]
    assert values(found, "pending_flushes") == [1.0, 7.0]
    assert found.series["active_compactions"].times_s.tolist() == [2.0]


def test_a_counter_goes_on_when_its_server_is_started_again_but_a_gauge_may_fall(tmp_path: Path) -> None:
    run = run_that_reported(
        tmp_path,
        {
            "compaction_history.bytes_in": {1: 10.0, 2: 30.0, 3: 5.0, 4: 6.0, 5: 0.0, 6: 1.0},
            "jmx.Table.LiveSSTableCount": {1: 10.0, 2: 30.0, 3: 5.0},
            "caches.keys.hit_count": {1: 8.0, 2: 16.0, 3: 4.0},
            "caches.keys.request_count": {1: 10.0, 2: 20.0, 3: 10.0},
        },
    )
    found = insight(run, "cassandra")
    assert values(found, "compacted_bytes_in") == [10.0, 30.0, 35.0, 36.0, 36.0, 37.0]
    assert values(found, "sstables") == [10.0, 30.0, 5.0]
    assert found.caches["key cache"].hits.tolist() == [8.0, 16.0, 20.0]
    assert over(found, 2.0, 3.0).hit_rates == {"key cache": 0.4}


@pytest.mark.parametrize(
    ("database", "cache", "reported"),
    [
        ("cassandra", "chunk cache", {"caches.chunks.hit_count": (3, 12), "caches.chunks.request_count": (4, 16)}),
        ("postgresql", "shared buffers", {"database.blks_hit": (3, 12), "database.blks_read": (1, 4)}),
        ("mysql", "buffer pool", {"Innodb_buffer_pool_reads": (1, 4), "Innodb_buffer_pool_read_requests": (4, 16)}),
        ("redis+cluster", "keyspace", {"keyspace_hits": (3, 12), "keyspace_misses": (1, 4)}),
    ],
)
def test_every_cache_has_hits_and_requests(
    tmp_path: Path, database: str, cache: str, reported: dict[str, tuple[int, int]]
) -> None:
    run = run_that_reported(tmp_path, {name: {1: float(first), 2: float(second)} for name, (first, second) in reported.items()})
    found = insight(run, database)
    assert found.caches.keys() == {cache}
    assert found.caches[cache].hits.tolist() == [3.0, 12.0]
    assert found.caches[cache].requests.tolist() == [4.0, 16.0]
    assert over(found, 0.0, 9.0).hit_rates == {cache: 0.75}


def test_nodes_are_told_apart_and_summed_or_averaged(tmp_path: Path) -> None:
    gc, sstables, hits, requests = (
        "jmx.GarbageCollector.CollectionTime",
        "jmx.Table.LiveSSTableCount",
        "caches.keys.hit_count",
        "caches.keys.request_count",
    )
    run = run_that_reported(
        tmp_path,
        {
            f"127.77.1.1.{gc}": {1: 1000.0, 2: 2000.0, 3: 3000.0},
            f"127.77.1.2.{gc}": {1: 5000.0, 3: 9000.0},
            f"127.77.1.1.{sstables}": {1: 4.0, 2: 5.0, 3: 6.0},
            f"127.77.1.2.{sstables}": {1: 40.0, 3: 60.0},
            f"fe80::1.{sstables}": {3: 600.0},
            f"127.77.1.1.{hits}": {1: 0.0, 2: 5.0, 3: 10.0},
            f"127.77.1.1.{requests}": {1: 0.0, 2: 10.0, 3: 20.0},
            f"127.77.1.2.{hits}": {1: 100.0, 3: 130.0},
            f"127.77.1.2.{requests}": {1: 100.0, 3: 130.0},
            "client.retries": {1: 7.0, 2: 7.0, 3: 7.0},
        },
    )
    found = insight(run, "cassandra")
    assert found.nodes.keys() == {"127.77.1.1", "127.77.1.2", "fe80::1"}
    assert values(found.nodes["127.77.1.2"], "sstables") == [40.0, 60.0]
    # A gauge is of those nodes that reported it; a counter stands still until its node is back.
    assert values(found, "sstables") == [44.0, 5.0, 666.0]
    assert values(found, "garbage_collection_s") == [3.0, 3.5, 6.0]
    assert found.caches["key cache"].requests.tolist() == [100.0, 110.0, 150.0]
    assert over(found, 1.0, 3.0).hit_rates["key cache"] == pytest.approx(40 / 50)
    assert over(found.nodes["127.77.1.1"], 1.0, 3.0).hit_rates["key cache"] == pytest.approx(0.5)


def test_a_node_that_comes_late_does_not_bring_what_it_counted_before(tmp_path: Path) -> None:
    name = "compaction_history.bytes_in"
    first, late = {1: 10.0, 2: 20.0, 3: 30.0}, {2: 900.0, 3: 905.0}
    run = run_that_reported(tmp_path, {f"127.77.1.1.{name}": {**first}, f"127.77.1.2.{name}": {**late}})
    assert np.diff(values(insight(run, "cassandra"), "compacted_bytes_in")).tolist() == [10.0, 15.0]


def test_the_first_source_that_was_told_counts(tmp_path: Path) -> None:
    coarse: Told = {"disk_usage.mebibytes": {1: 2.0}}
    exact: Told = {"jmx.Table.TotalDiskSpaceUsed": {1: 1_500_000.0}}
    own: Told = {"used_cpu_user": {1: 1.0}, "used_cpu_sys": {1: 0.5}}
    of_lab: Told = {"lab.cpu_s": {1: 9.0}}
    assert values(insight(run_that_reported(tmp_path, {**coarse}), "cassandra"), "table_bytes") == [2_097_152.0]
    assert values(insight(run_that_reported(tmp_path, {**coarse, **exact}), "cassandra"), "table_bytes") == [1_500_000.0]
    assert values(insight(run_that_reported(tmp_path, {**own}), "redis"), "processor_s") == [1.5]
    assert values(insight(run_that_reported(tmp_path, {**own, **of_lab}), "redis"), "processor_s") == [9.0]
    # What a cluster reports about itself as a whole is not added to what the lab knows of each node.
    of_nodes: Told = {"127.77.1.1.lab.cpu_s": {1: 4.0}, "127.77.1.2.lab.cpu_s": {1: 6.0}}
    cluster = insight(run_that_reported(tmp_path, {**own, **of_nodes}), "redis+cluster")
    assert values(cluster, "processor_s") == [10.0]
    assert cluster.nodes.keys() == {"127.77.1.1", "127.77.1.2"}


def test_a_stretch_has_rates_of_counters_and_levels_of_gauges(tmp_path: Path) -> None:
    run = run_that_reported(
        tmp_path,
        {
            "database.blks_hit": {2: 0.0, 4: 100.0, 6: 100.0, 8: 130.0},
            "database.blks_read": {2: 0.0, 4: 100.0, 6: 100.0, 8: 140.0},
            "database.size_bytes": {2: 5.0, 4: 9.0, 6: 1.0, 8: 3.0},
            "lab.cpu_s": {2: 0.0, 4: 3.0, 6: 3.5, 8: 3.5},
        },
    )
    found = insight(run, "postgresql")
    whole = over(found, 0.0, 100.0)
    assert whole.hit_rates["shared buffers"] == pytest.approx(130 / 270)
    assert whole.rates == {"processor_s": pytest.approx(3.5 / 6.0), "file_read_bytes": pytest.approx(140 * 8192 / 6.0)}
    assert (whole.means["table_bytes"], whole.maxima["table_bytes"]) == (4.5, 9.0)
    inner = over(found, 3.0, 5.0)
    assert inner.hit_rates["shared buffers"] == pytest.approx(0.5)
    assert inner.rates["processor_s"] == pytest.approx((3.25 - 1.5) / 2.0)
    assert inner.means == {"table_bytes": 9.0}
    idle = over(found, 4.5, 5.5)
    assert idle.hit_rates == {}
    assert idle.means == {}
    assert idle.rates["file_read_bytes"] == 0.0
    after = over(found, 9.0, 12.0)
    assert (after.hit_rates, after.rates, after.means, after.maxima) == ({}, {}, {}, {})


def test_the_map_of_names_is_sound() -> None:
    databases = [database for file in FOLDER.glob("*.toml") for database in Sources.model_validate(read_toml(file)).databases]
    assert len(databases) == len(set(databases))
    servers = {entry["name"] for entry in json.loads(_engine.databases()) if not entry["embedded"] and entry["name"] != "odbc"}
    assert set(databases) == servers
    with pytest.raises(ValueError, match="expected two of hits, misses and requests"):
        CacheSource(hits=("a",), documented="b")
    with pytest.raises(ValueError, match="unknown quantities: speed"):
        Sources.model_validate({"quantity": {"speed": []}})


def read_toml(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def test_the_page_has_every_quantity_with_its_unit_and_sources() -> None:
    page = lists.quantities()
    rows = {found[1]: found[0] for found in re.finditer(r"^\| `(\w+)` .*$", page, flags=re.MULTILINE)}
    assert rows.keys() == QUANTITIES.keys()
    for file in FOLDER.glob("*.toml"):
        sources = Sources.model_validate(read_toml(file))
        for name, alternatives in sources.quantity.items():
            assert f"| {QUANTITIES[name].unit} | {QUANTITIES[name].kind} |" in rows[name], name
            assert all(source.documented in rows[name] for source in alternatives), name
        for name, cache in sources.cache.items():
            assert re.search(rf"^\| {name} .*{re.escape(cache.documented)}", page, flags=re.MULTILINE), name


# Steadiness


def counters(
    rate_at: Callable[[np.ndarray], np.ndarray], *, seconds: int = 400, a_second: float = 1000.0
) -> tuple[np.ndarray, ...]:
    """Counters, reported once per second, of requests that come evenly and a hit rate that is a function of time."""
    fine_s = np.arange(0.0, seconds, 0.01)
    hits = np.concatenate([[0.0], np.cumsum(rate_at(fine_s + 0.005)) * a_second * 0.01])
    times_s = np.arange(0.0, seconds + 1.0)
    return times_s + 3.0, np.interp(times_s, np.append(fine_s, seconds), hits), times_s * a_second


def drawn(rates: np.ndarray, a_second: int, seed: int) -> tuple[np.ndarray, ...]:
    """Counters of requests that hit by chance, each second with its rate."""
    hits = np.concatenate([[0], np.cumsum(np.random.default_rng(seed).binomial(a_second, rates))]).astype(float)
    times_s = np.arange(len(hits), dtype=float)
    return times_s, hits, times_s * a_second


@pytest.mark.parametrize("constant_s", [10.0, 20.0, 40.0])
def test_an_exponential_approach_is_steady_when_its_constant_says_so(constant_s: float) -> None:
    found = time_to_steady(*counters(lambda t: 0.9 * (1.0 - np.exp(-t / constant_s))), window_s=5.0, within=0.02)
    assert found == pytest.approx(constant_s * np.log(0.9 / 0.02), abs=5.0)


def test_noise_within_the_limit_does_not_delay_it() -> None:
    rates = 0.9 * (1.0 - np.exp(-np.arange(0.5, 400.0) / 20.0))
    found = [time_to_steady(*drawn(rates, 2000, seed), window_s=5.0, within=0.02) for seed in range(20)]
    assert all(value is not None for value in found)
    assert np.mean([value or 0.0 for value in found]) == pytest.approx(20.0 * np.log(0.9 / 0.02), abs=10.0)


def test_a_constant_rate_is_steady_from_the_beginning() -> None:
    assert time_to_steady(*counters(lambda t: np.full(len(t), 0.7))) == 0.0
    assert time_to_steady(*counters(np.zeros_like)) == 0.0


def test_a_rate_that_swings_or_falls_at_the_end_is_never_steady() -> None:
    assert time_to_steady(*counters(lambda t: 0.5 + 0.2 * np.sin(t / 15.0))) is None
    assert time_to_steady(*counters(lambda t: np.where(t < 390.0, 0.9, 0.5))) is None


def test_a_rate_that_still_rises_is_not_steady_though_it_is_near_its_last_level() -> None:
    # Over the last quarter it rises by 0.015, and is never further than 0.0075 from its mean.
    rising = counters(lambda t: 0.5 + 0.06 * t / 400.0)
    assert time_to_steady(*rising, within=0.01) is None
    assert time_to_steady(*rising, within=0.02) is not None


def test_too_few_windows_and_windows_without_requests() -> None:
    times_s, hits, requests = counters(lambda t: np.full(len(t), 0.7), seconds=190)
    assert time_to_steady(times_s, hits, requests, window_s=10.0) is None
    assert time_to_steady(times_s, hits, requests, window_s=5.0) == 0.0
    assert time_to_steady(np.empty(0), np.empty(0), np.empty(0)) is None
    # Nobody asks for the first 100 s.
    quiet = np.concatenate([np.zeros(100), requests])
    starts_s, rates = windowed_hit_rates(np.arange(float(len(quiet))), 0.7 * quiet, quiet, 10.0)
    assert starts_s[0] == 100.0
    assert rates == pytest.approx(np.full(len(rates), 0.7))


def test_only_what_happens_in_a_window_counts_there() -> None:
    starts_s, rates = windowed_hit_rates(
        np.array([0.0, 10.0, 20.0]), np.array([5.0, 5.0, 14.0]), np.array([50.0, 60.0, 70.0]), 10.0
    )
    assert starts_s.tolist() == [0.0, 10.0]
    assert rates.tolist() == [0.0, 0.9]


# Servers of the lab

WATCHED = """
dataset = "beijing-air-quality"
scale = 0.02
{targets}
[workload]
mix = {{ get_sensor_data = 1, insert_reading = 1 }}
schedule = {{ rate = 200 }}
duration = "{duration}"
repetitions = 1
"""
TARGET = """
[[target]]
url = "lab:{name}?namespace=insight"
schema = "{schema}"
"""


def watched(folder: Path, duration: str, schemas: dict[str, str]) -> dict[str, Insight]:
    """Runs on servers of the lab that read and write for a while; what each of them said."""
    targets = "".join(TARGET.format(name=name, schema=schema) for name, schema in schemas.items())
    file = folder / "watched.toml"
    file.write_text(WATCHED.format(targets=targets, duration=duration), encoding="utf-8")
    assert run_main(("run", file, "--out", folder / "out", "--replace", "--no-open")) == 0
    result = read_comparison(folder / "out")
    return {
        variant.id.removesuffix(f"-{variant.schema_name}"): insight(result.runs[variant.id][0], variant.database)
        for variant in result.manifest.variants
    }


def growth(found: Insight, name: str) -> float:
    return float(found.series[name].values[-1] - found.series[name].values[0])


def test_a_node_of_cassandra_tells_of_its_flushes_and_compactions(lab_servers: dict[str, lab.Instance], tmp_path: Path) -> None:
    instance = lab_servers["cassandra"]
    ended = threading.Event()

    def flush_and_compact() -> None:
        while not ended.wait(1.0):
            for words in (("flush", "insight"), ("compact", "insight")):
                try:
                    nodetool.ask(instance, instance.nodes[0], server_user(), *words)
                except FailedError as error:
                    # On a busy machine the keyspace is made later than this begins.
                    if "does not exist" not in str(error):
                        raise

    other = threading.Thread(target=flush_and_compact)
    other.start()
    try:
        found = watched(tmp_path, "12s", {"cassandra": "by_sensor"})["cassandra"]
    finally:
        ended.set()
        other.join()
    for name in ("flushes", "compactions", "compacted_bytes_in", "compacted_bytes_out", "processor_s", "disk_written_bytes"):
        assert growth(found, name) > 0.0, name
    for name in ("sstables", "memtable_heap_bytes", "table_bytes", "disk_bytes", "memory_bytes"):
        assert found.series[name].values.max() > 0.0, name
    # Of these there may have been none in so short a time.
    others = {"garbage_collection_s", "pending_flushes", "pending_compactions", "active_compactions", "memtable_off_heap_bytes"}
    assert others <= found.series.keys()
    window = over(found, 0.0, 12.0)
    assert 0.0 < window.hit_rates["key cache"] <= 1.0
    # The row cache is switched off, and the counter cache is not asked.
    assert "row cache" not in found.caches
    assert "counter cache" not in window.hit_rates


def test_servers_tell_of_their_caches_and_the_lab_of_their_processes(lab_servers: LabServers, tmp_path: Path) -> None:
    schemas = {"mariadb": "natural", "postgresql": "natural", "redis": "by_sensor", "redis-cluster": "by_sensor"}
    lab_servers.start(*schemas)
    caches = {"mariadb": "buffer pool", "postgresql": "shared buffers", "redis": "keyspace", "redis-cluster": "keyspace"}
    of_servers = watched(tmp_path, "4s", schemas)
    assert of_servers.keys() == schemas.keys()
    for name, found in of_servers.items():
        requests = found.caches[caches[name]].requests
        assert requests[-1] > requests[0], name
        assert 0.0 < over(found, 0.0, 4.0).hit_rates[caches[name]] <= 1.0, name
        assert growth(found, "processor_s") > 0.0, name
        assert "disk_bytes" in found.series, name
        assert found.series["load_average"].values.max() > 0.0, name
        assert not found.series.keys() & {"sstables", "pending_compactions", "garbage_collection_s"}, name


METRICS_OF_IOTDB = """# TYPE file_size gauge
file_size{cluster="sensorbench",nodeType="DATANODE",nodeId="1",name="seq",database="a",region="3",} 1000.0
file_size{cluster="sensorbench",nodeType="DATANODE",nodeId="1",name="seq",database="b",region="4",} 24.0
file_size{cluster="sensorbench",nodeType="DATANODE",nodeId="1",name="wal",} 7.0
queue{cluster="sensorbench",nodeType="DATANODE",nodeId="1",name="flush",status="waiting",} 2.0
jvm_gc_pause_seconds_sum{action="end of minor GC",cause="Allocation Failure",} 0.125
jvm_gc_pause_seconds_sum{action="end of major GC",cause="System.gc()",} 1.0
series_scan_cost_seconds_sum{stage="x",} 5.0
"""


def test_iotdb_says_what_its_files_and_queues_are(tmp_path: Path) -> None:
    told = figures_of(METRICS_OF_IOTDB)
    assert told == {
        "metrics.file_size.seq": 1024.0,
        "metrics.file_size.unseq": 0.0,
        "metrics.file_size.wal": 7.0,
        "metrics.file_count.seq": 0.0,
        "metrics.file_count.unseq": 0.0,
        "metrics.queue.flush.waiting": 2.0,
        "metrics.jvm_gc_pause_seconds_sum": 1.125,
    }
    found = insight(run_that_reported(tmp_path, {name: {1: value, 2: value + 1} for name, value in told.items()}), "iotdb")
    assert found.series.keys() == {"table_bytes", "sstables", "pending_flushes", "garbage_collection_s"}
    assert values(found, "table_bytes") == [1024.0, 1026.0]
