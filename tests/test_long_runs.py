"""Runs with more operations than are analysed one by one: summed up in blocks, read some operations at a time."""

from functools import partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sensorbench.analysis import sample
from sensorbench.benchmarks.comparison import block_sums_of, sample_of
from sensorbench.benchmarks.comparison import summary as comparison_summary
from sensorbench.benchmarks.comparison.prefixes import common_samples
from sensorbench.results import latencies, latency_blocks, read_comparison
from sensorbench.results.block_sums import read_block_sums, write_block_sums
from sensorbench.results.stored import DamagedResultsError, NumberedRows
from sensorbench.results.writer import write_table
from tests.conftest import Cli, run_main

OPERATIONS = 3000
SCHEMAS = ("natural", "star")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of which every operation is logged, with two runs of each variant."""
    folder = tmp_path_factory.mktemp("long")
    targets = "".join(f'[[target]]\nurl = "sqlite"\nschema = "{schema}"\n' for schema in SCHEMAS)
    workload = f'mix = {{ get_sensor_data = 1, get_peak_data = 1 }}\noperations = {OPERATIONS}\nwarmup = "50ms"\nrepetitions = 2\nlog = "all"'
    experiment = folder / "long.toml"
    experiment.write_text(f'dataset = "beijing-air-quality"\nscale = 0.002\n{targets}[workload]\n{workload}\n', encoding="utf-8")
    assert run_main(("run", experiment, "--out", folder / "out", "--no-open")) == 0
    return folder / "out"


@pytest.fixture
def _few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("MAX_HELD", "MAX_EXACT"):
        monkeypatch.setattr(latencies, limit, 100)
    monkeypatch.setattr(latency_blocks, "AT_ONCE", 700)
    monkeypatch.setattr(latency_blocks, "BLOCKS", 20)


@pytest.mark.usefixtures("_few_at_once")
def test_blocks_say_what_single_latencies_say(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = read_comparison(results)
    for variant, runs in result.runs.items():
        for operation in ("get_sensor_data", "get_peak_data"):
            summed = sample_of(runs, operation)
            with monkeypatch.context() as each:
                each.setattr(latencies, "MAX_EXACT", OPERATIONS)
                single = sample_of(runs, operation)
            assert summed is not None
            assert single is not None
            assert (summed.count, summed.runs) == (single.count, 2), variant
            assert summed.block_count <= 40
            for metric in ("mean", "median", "p95", "p99"):
                assert summed.figure(metric) == pytest.approx(single.figure(metric), rel=6e-4), metric


@pytest.mark.usefixtures("_few_at_once")
def test_the_report_of_long_runs_has_no_requests_one_by_one(cli: Cli, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison_summary, "ANSWERS_AT_ONCE", 700)
    before = read_comparison(results).summary
    assert cli("report", results, "--no-open").exit_code == 0
    after = read_comparison(results).summary
    assert before is not None
    assert after is not None
    assert after.answers_equal is True
    assert after.result.answers == before.result.answers
    page = (results / "report.html").read_text(encoding="utf-8")
    assert "over-time-get_sensor_data" in page
    assert "over-run-get_sensor_data" not in page


@pytest.mark.usefixtures("_few_at_once")
def test_long_runs_that_did_different_operations_are_compared_on_the_common_ones(results: Path) -> None:
    result = read_comparison(results)
    star, natural = (result.runs[f"sqlite-{schema}"] for schema in SCHEMAS)
    # As if time had been over for one of them.
    vars(star[0])["operation_count"] = 1000
    both = common_samples(star, natural, "get_sensor_data")
    assert both is not None
    assert both[0].count == both[1].count < sample_of(natural, "get_sensor_data").count  # type: ignore[union-attr]


@pytest.mark.parametrize("limit", [0, OPERATIONS])
def test_block_sums_are_read_as_they_were_written(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Of long runs bins, each once in a block; of others each latency."""
    monkeypatch.setattr(latencies, "MAX_EXACT", limit)
    for run in read_comparison(results).runs["sqlite-natural"]:
        sums, file = block_sums_of(run), tmp_path / f"{run.manifest.repetition}.parquet"
        write_block_sums(file, sums)
        assert ("bin" in pq.read_schema(file).names) == (limit == 0)
        read = read_block_sums(file)
        assert read.keys() == sums.keys() == {"get_sensor_data", "get_peak_data"}
        for operation, blocks in sums.items():
            assert len(blocks) == len(read[operation]) > 1
            for (values, counts), (own, own_counts) in zip(blocks, read[operation], strict=True):
                order = np.argsort(values, kind="stable")
                assert np.round(own * 1e9 * 2048).tolist() == np.round(values[order] * 1e9 * 2048).tolist()
                assert own_counts.tolist() == counts[order].tolist()


@pytest.mark.usefixtures("_few_at_once")
def test_figures_of_joined_blocks_follow_from_their_sums(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long samples are drawn from a table whose bins depend on how often a latency is in a block."""
    monkeypatch.setattr(sample, "BINS", 8)
    monkeypatch.setattr(latency_blocks.LatencyBlocks, "joined", partialmethod(longer, latency_blocks.LatencyBlocks.joined))
    runs = read_comparison(results).runs["sqlite-natural"]
    of_log = sample_of(runs, "get_peak_data")
    assert of_log is not None
    sums = []
    for run in runs:
        write_block_sums(tmp_path / "sums.parquet", block_sums_of(run))
        sums.append(read_block_sums(tmp_path / "sums.parquet")["get_peak_data"])
    of_sums = sample.Sample.of_histograms(sums)
    weights = np.random.default_rng(1).integers(0, 3, (50, of_log.block_count)).astype(np.float64)
    assert of_log.block_count == of_sums.block_count
    assert of_log.figures("sd", weights) == pytest.approx(of_sums.figures("sd", weights), rel=1e-12)


def longer(blocks: latency_blocks.LatencyBlocks, joined: Any, length: float) -> list[tuple[Any, Any]]:
    """Each two blocks as one."""
    found: list[tuple[Any, Any]] = joined(blocks, 2.0 * OPERATIONS / latency_blocks.BLOCKS / 2)
    return found


def test_joined_blocks_are_at_least_as_long_as_their_latencies_depend_on_one_another() -> None:
    blocks = [(np.array([0.1, 0.2]), np.array([3.0, 2.0])) for _ in range(10)]
    summed = latency_blocks.LatencyBlocks(np.empty(0), blocks)
    assert [len(summed.joined(length)) for length in (1.0, 5.0, 5.1, 12.0, 1000.0)] == [10, 10, 5, 4, 1]
    assert sum(counts.sum() for _, counts in summed.joined(12.0)) == 50.0


def test_rows_of_some_operations_are_read(tmp_path: Path) -> None:
    numbers = np.random.default_rng(3).permutation(1000).astype(np.uint64)
    files = [tmp_path / f"{number}.parquet" for number in range(2)]
    for file, part in zip(files, (numbers[:600], numbers[600:]), strict=True):
        write_table(file, pa.table({"k": part, "rows": part * 2, "more": part}))
    rows = NumberedRows(files, ("k", "rows"))
    assert (rows.end, rows.count) == (1000, 1000)
    found = rows.between(250, 260)
    assert found is not None
    assert sorted(found["k"].to_pylist()) == list(range(250, 260))
    assert found.column_names == ["k", "rows"]
    assert rows.between(1000, 2000) is None
    with pytest.raises(DamagedResultsError, match="no column 'hash'"):
        NumberedRows(files, ("k", "hash"))
