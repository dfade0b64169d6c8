"""What the report of the persistent-log study says beside its claims: its paper's tables, and its own sections."""

import json
from pathlib import Path

import pytest

from sensorbench.claims import Evidence
from sensorbench.dataset.machine_log import records_of
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.comparison import ComparisonFigures, ComparisonSummary, OperationFigures, OutcomeCounts
from sensorbench.studies.log_analytics import LOG_ANALYTICS
from sensorbench.studies.log_analytics.claims import FETCH
from sensorbench.studies.log_analytics.sections import rating, sections
from sensorbench.studies.log_analytics.systems import SIZES
from sensorbench.studies.published_comparison import published_tables
from tests.conftest import Cli
from tests.log_results import CLAIMS, EVERYTHING, fake_result, id_of, run_of_r1

# Sections.


@pytest.mark.parametrize(
    ("ratio", "word"),
    [(1.0, "very good"), (2.0, "very good"), (2.001, "good"), (5.0, "good"), (5.001, "medium"), (20.0, "medium"), (20.01, "bad"),
     (100.0, "bad"), (100.1, "very bad")],
)  # fmt: skip
def test_ratings_go_by_the_ratio_to_the_best(ratio: float, word: str) -> None:
    assert rating(ratio) == word


def of_variants(times_s: dict[str, float], size: str = "4GB", failing: str = "") -> tuple[Evidence, ComparisonSummary]:
    """Evidence and summary of variants each of which takes this long for everything."""
    loads = {
        id_of(name): {"load_s": time, "settle_s": 0.0, "size": {"total_bytes": time * 1e9}} for name, time in times_s.items()
    }
    plans = {
        id_of(name): {name: {"access": "scan" if name[-1] in "567" else "index log_value"} for name in FETCH} for name in times_s
    }
    records = records_of(size) if size in SIZES else 1000
    result = fake_result(size, variants=times_s, loads=loads, plans=plans, records=records)
    figures = [
        OperationFigures.model_construct(
            variant=id_of(name),
            operation=operation,
            counts=OutcomeCounts(ok=0 if name == failing else 3, error=3 if name == failing else 0, timeout=0, cancelled=0),
            rows_per_operation=None,
            latency_s={} if name == failing else {"mean": MeasuredFigure(value=time, low=None, high=None)},
        )
        for name, time in times_s.items()
        for operation in EVERYTHING[2:]
    ]
    found = ComparisonFigures.model_construct(metric="mean", figures=figures, load=loads, dataset=result.manifest.plan.dataset)
    return Evidence(result, {}, "mean"), ComparisonSummary.model_construct(result=found)


MARIADB_KEY, CASSANDRA_KEY, REDIS = "mariadb/relational/key", "cassandra/source/key", "redis/source"


def test_ratings_stand_beside_the_words_of_the_source() -> None:
    found = {
        section.title: section
        for section in sections(*of_variants({MARIADB_KEY: 1.0, CASSANDRA_KEY: 30.0, REDIS: 4.0}, failing=REDIS))
    }
    table = found["Ratings in words"]
    rows = {
        row[1]: dict(zip([f"{column.title} {number}" for number, column in enumerate(table.columns)], row, strict=True))
        for row in table.rows
    }
    assert all(len(row) == len(table.columns) for row in table.rows)
    cassandra = rows["cassandra-source-key"]
    assert cassandra["Indexes 0"] == "key"
    assert cassandra["Load 2"] == "bad (30 ×)"
    assert cassandra["source 3"] == "bad"
    assert cassandra["Q2 small 6"] == "bad (30 ×)"
    assert cassandra["source 7"] == "very bad"
    assert rows["mariadb-relational-key"]["Q3 10"] == "very good (1 ×)"
    # What failed is said to have, and the source's two words are distinguished.
    redis = rows["redis-source"]
    assert redis["Q1 4"] == "failed"
    assert (redis["source 7"], redis["source 9"]) == ("good", "bad")


def test_what_was_published_stands_beside_what_was_measured() -> None:
    evidence, summary = of_variants({MARIADB_KEY: 1.0, CASSANDRA_KEY: 30.0, REDIS: 4.0}, failing=CASSANDRA_KEY)
    tables = published_tables(LOG_ANALYTICS, {"": evidence.result}, {"": summary})
    cells = {(table.title, cell.row, cell.column): cell for table in tables for cell in table.cells}
    loading, fetching = (
        "Appendix F, tables 1 to 3: time of bulk loading",
        "Appendices H and I, Q2 (App.H Table 11): sensor-key, 4GB",
    )
    r7 = "r7 0<mv<16.72; selectivity 64%"
    redis = cells[fetching, r7, "Redis"]
    assert (redis.value, redis.measured, redis.ratio) == (167.158, 4.0, pytest.approx(4.0 / 167.158))
    assert (redis.variant, redis.is_substitute, redis.state) == ("redis-source", False, "measured")
    # Of two systems, the ratio of the ratios.
    mariadb, both = cells[fetching, r7, "DB-O"], cells[fetching, r7, "Redis / DB-O"]
    assert mariadb.value is not None
    assert (both.measured, both.ratio) == (4.0, pytest.approx(4.0 / (167.158 / mariadb.value)))
    # Each without a figure says why.
    assert cells[fetching, r7, "DB-C"].state == "not run"
    assert "postgresql/relational/key" in cells[fetching, r7, "DB-C"].why
    assert cells["Appendix E, tables 1 to 3: size of the loaded database", "no-index, 4GB", "CA"].state == "not applicable"
    assert cells[loading, "sensor-key, 4GB", "CA"].measured == 30.0
    # Of other sizes nothing is said, here or of another log.
    assert not [place for place in cells if place[1].endswith("1GB") or "1GB" in place[0]]
    other, of_other = of_variants({MARIADB_KEY: 1.0}, size="azure-vm-noise")
    assert not any(table.is_measured for table in published_tables(LOG_ANALYTICS, {"": other.result}, {"": of_other}))


def test_a_variant_that_failed_says_why_in_its_cells() -> None:
    cluster, single, redis = "cassandra_4/source/key", "mariadb/relational/key", "redis/source"
    result = fake_result(
        variants=[cluster, single, redis],
        loads={id_of(name): {"load_s": 1.0, "settle_s": 0.0} for name in (cluster, single)},
        runs={
            id_of(cluster): [run_of_r1("too many tombstones", error=3)],
            id_of(single): [run_of_r1("gone away", ok=2, error=1)],
            id_of(redis): [],
        },
        failures={id_of(redis): {"step": "loading", "cause": "it does not fit into memory"}},
    )
    _, summary = of_variants({single: 1.0}, size="1GB")
    tables = published_tables(LOG_ANALYTICS, {"": result}, {"": summary})
    r1 = {
        cell.column: cell
        for table in tables
        if table.title == "Appendices H and I, Q2 (App.H Table 9): sensor-key, 1GB"
        for cell in table.cells
        if cell.row.startswith("r1")
    }
    assert (r1["CA-SH"].state, r1["CA-SH"].why) == ("failed", "too many tombstones")
    assert (r1["Redis"].state, r1["Redis"].why) == ("failed", "it does not fit into memory")
    assert (r1["DB-O"].measured, r1["DB-O"].why) == (1.0, "1 of 3 requests failed: gone away")


def test_the_five_questions_are_answered_from_the_figures() -> None:
    times = {
        "mariadb/relational/none": 1.0, MARIADB_KEY: 2.0, "mariadb/relational/key_value": 3.0, "mariadb_relaxed/relational/key": 1.0,
        CASSANDRA_KEY: 10.0, "cassandra_4/source/key": 15.0, "cassandra_4_rf3_one/source/key": 20.0, "cassandra_4_rf3_all/source/key": 60.0,
    }  # fmt: skip
    table = next(section for section in sections(*of_variants(times)) if section.title == "The paper's five questions")
    suitable, indexes, optimizers, consistency, processes = (answer for _, answer in table.rows)
    assert "60 × as long with cassandra_4_rf3_all-source-key" in suitable
    assert "Not measured: a commercial database, Redis." in suitable
    assert "with the key: 2 × (mariadb)" in indexes
    assert "fetching r7 with it: 1.5 × (mariadb)" in indexes
    assert "mariadb plans a scan for fetching r5 to r7" in optimizers
    assert "3 × for Q1" in consistency
    assert "2 × for Load" in consistency
    assert "Four nodes of Cassandra instead of one take 1.5 × for Load" in processes
    assert "not what distribution gains" in processes
    alone = next(section for section in sections(*of_variants({REDIS: 1.0})) if section.title == "The paper's five questions")
    assert all(answer for _, answer in alone.rows)
    assert "was not measured" in alone.rows[3][1]


def test_a_study_has_claims_sections_and_cells(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "log"
    arguments = (
        "--target",
        "sqlite",
        "--dataset",
        "machine-log-1gb",
        "--scale",
        "0.0002",
        "--operations",
        "68",
        "--repetitions",
        "1",
    )
    assert cli("study", "run", "log-analytics", *arguments, "--no-open", "--out", out).exit_code == 0
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert [claim["id"] for claim in summary["claims"]] == list(CLAIMS)
    assert all(claim["reason"] for claim in summary["claims"])
    assert [section["title"] for section in summary["result"]["sections"]] == ["The paper's five questions", "Ratings in words"]
    shown = cli("study", "show", "log-analytics", out, "--json").json["published"]
    assert {cell["state"] for table in shown for cell in table["cells"]} == {"not run", "not applicable", "no measurement"}
    assert cli("study", "show", "iot", out).exit_code == 2
    # Of several sizes, those that have results.
    parts = {"machine-log-1gb": "log", "machine-log-2gb": "not there yet"}
    series = {"format": 1, "name": "log-analytics", "title": "", "of": "datasets", "parts": parts}
    (tmp_path / "series.json").write_text(json.dumps(series), encoding="utf-8")
    of_series = cli("study", "show", "log-analytics", tmp_path, "--json").json["published"]
    assert [table["title"] for table in of_series] == [table["title"] for table in shown]


def test_what_the_paper_printed_is_shown_in_some_tens_of_lines(cli: Cli) -> None:
    shown = cli("study", "show", "log-analytics").out
    assert "1,677 values that the paper printed" in shown
    assert len(cli("study", "show", "log-analytics", "--json").json["published"]) == 50


def test_results_of_something_else_are_refused(cli: Cli, study_folder: Path) -> None:
    outcome = cli("study", "show", "log-analytics", study_folder)
    assert outcome.exit_code == 2
    assert "expected the study log-analytics" in outcome.err
