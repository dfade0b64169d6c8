"""Reference answers: small relations are read from their files once, large ones for each question."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pytest

from sensorbench.analysis.equality import Answer
from sensorbench.app.comparison import run_comparison_and_report
from sensorbench.benchmarks.comparison import checking
from sensorbench.dataset.dataset import workbench as dataset_workbench
from sensorbench.progress import ProgressReporter
from sensorbench.results import RunResult
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.runner import plan_experiment
from sensorbench.schemas import Operations
from sensorbench.verification import answers

QUESTION = "SELECT count(*), sum(length(site)), sum(octet_length(raw)) FROM readings"
ROWS = 1000


@pytest.fixture
def workbench(tmp_path: Path) -> duckdb.DuckDBPyConnection:
    connection, file = duckdb.connect(), tmp_path / "readings.parquet"
    columns = f"'a\\b' || range AS site, ('c' || range)::BLOB AS raw FROM range({ROWS})"
    connection.execute(f"COPY (SELECT range AS number, {columns}) TO '{file}' (FORMAT parquet)")
    connection.read_parquet(str(file)).create_view("original_readings")
    connection.execute("CREATE VIEW readings AS FROM original_readings UNION ALL FROM original_readings LIMIT 10")
    return connection


def plan_of(workbench: duckdb.DuckDBPyConnection) -> str:
    return str(workbench.sql(QUESTION).explain())


def test_small_relations_are_kept_in_memory_while_they_are_needed(workbench: duckdb.DuckDBPyConnection) -> None:
    expected, plan = workbench.execute(QUESTION).fetchall(), plan_of(workbench)
    assert "PARQUET" in plan.upper()
    with answers._small_relations_in_memory(workbench):
        assert "PARQUET" not in plan_of(workbench).upper()
        assert workbench.execute(QUESTION).fetchall() == expected
    assert plan_of(workbench) == plan
    with pytest.raises(duckdb.Error, match="no_such"), answers._small_relations_in_memory(workbench):
        workbench.execute("FROM no_such")
    assert plan_of(workbench) == plan


def test_what_comes_from_a_series_of_times_is_not_compared_with_all_rows() -> None:
    query = """
        WITH grid AS (SELECT unnest(generate_series(1, 1000)) AS t), known AS (SELECT range AS t FROM range(10000))
        SELECT grid.t, known.t FROM grid ASOF JOIN known ON grid.t >= known.t
    """
    usual, ours = (str(connection.sql(query).explain()) for connection in (duckdb.connect(), dataset_workbench()))
    assert "Nested Loop Join" in usual
    assert "Nested Loop Join" not in ours


def test_operations_take_turns_until_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(answers, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(answers, "reference_answer", lambda *_: Answer(1, 7, None, ()))
    operations = cast("Operations", SimpleNamespace(operation=dict.fromkeys("ab", SimpleNamespace(parameters={}))))
    numbers_of, reported = {0: [4, 5, 6], 1: [8, 9]}, list[int]()

    def answered(max_s: float | None) -> list[tuple[int, int]]:
        table = answers.reference_table(
            duckdb.connect(),
            operations,
            ["a", "b"],
            cast("Any", {}),
            cast("Any", None),
            0,
            numbers_of,
            max_s=max_s,
            report=reported.append,
        )
        return list(zip(table["operation"].to_pylist(), table["k"].to_pylist(), strict=True))

    # The clock is read before each answer.
    assert answered(2.5) == [(0, 4), (1, 8)]
    assert reported == [1, 2]
    assert answered(None) == [(0, 4), (1, 8), (0, 5), (1, 9), (0, 6)]


@pytest.mark.parametrize("columns", ["number", "site", "number, site"])
@pytest.mark.parametrize("rows", [0, 10])
def test_relations_of_any_columns_are_kept(workbench: duckdb.DuckDBPyConnection, columns: str, rows: int) -> None:
    workbench.execute(f"CREATE VIEW other AS SELECT {columns} FROM original_readings LIMIT {rows}")
    with answers._small_relations_in_memory(workbench):
        assert "PARQUET" not in str(workbench.sql("FROM other").explain()).upper()
        assert len(workbench.execute("FROM other").fetchall()) == rows


@pytest.mark.parametrize(("limit", "value"), [("_MAX_ROWS_IN_MEMORY", 9), ("_MAX_BYTES_IN_MEMORY", 10 * 24)])
def test_large_ones_are_not(
    workbench: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(answers, limit, value)
    with answers._small_relations_in_memory(workbench):
        assert "PARQUET" in plan_of(workbench).upper()


def test_what_written_rows_were_added_to_is_not_kept_a_second_time(workbench: duckdb.DuckDBPyConnection) -> None:
    with answers._small_relations_in_memory(workbench):
        kept = workbench.execute("SELECT table_name FROM duckdb_tables() WHERE temporary").fetchall()
    assert kept == [("readings",)]


IN_TURN = """
dataset = "tsbs-cpu-only:hosts=3,duration=13h"
operations = "tsbs_cpu"
[[target]]
url = "sqlite"
schema = "wide"
[[target]]
url = "duckdb"
schema = "wide"
[workload]
mix = { single-groupby-1-1-1 = 1, cpu-max-all-1 = 1, lastpoint = 1 }
order = "in turn"
operations = 24
repetitions = 1
"""


def compared_with_fewer(folder: Path) -> ComparisonSummary:
    """A comparison in which one variant cannot answer the last of three kinds."""
    (folder / "experiment.toml").write_text(IN_TURN, encoding="utf-8")
    reporter = ProgressReporter(quiet=True)
    planned = plan_experiment(folder / "experiment.toml", [], folder / "out", reporter)
    first, second = planned.variants
    fewer = replace(second, operations=("single-groupby-1-1-1", "cpu-max-all-1"))
    summary, _ = run_comparison_and_report(replace(planned, variants=[first, fewer]), folder / "out", reporter)
    return summary


def test_a_variant_whose_rounds_are_shorter_is_compared_by_its_own_questions(tmp_path: Path) -> None:
    """Its k-th operation can be of the same kind as that of another variant, and yet another question of that kind."""
    compared = compared_with_fewer(tmp_path).result.answers["cpu-max-all-1"]
    # Of both variants some were compared with DuckDB's; 8 of SQLite's and 12 of DuckDB's, but for those whose number both have.
    assert compared.equal
    assert 8 < compared.compared_with_reference < 20


def test_a_number_that_only_a_later_run_reaches_has_no_reference_of_another_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that time ends have lengths of their own: references are chosen by the first one, and the answers of all are compared with them."""
    answered = checking._answered

    def of_a_short_run(run: RunResult, operation: str) -> list[int]:
        return [k for k in answered(run, operation) if len(run.manifest.operations) > 2 or k < 4]

    monkeypatch.setattr(checking, "_answered", of_a_short_run)
    compared = compared_with_fewer(tmp_path).result.answers["cpu-max-all-1"]
    assert compared.equal, compared.mismatches
    assert compared.compared_with_reference >= 6
