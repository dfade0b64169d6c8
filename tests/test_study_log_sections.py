"""What the report of the persistent-log study says beside its claims: the cells of its paper, and its own sections."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from sensorbench.claims import Evidence
from sensorbench.dataset.machine_log import records_of
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.comparison import ComparisonFigures, ComparisonSummary, OperationFigures, OutcomeCounts
from sensorbench.studies.log_analytics.claims import FETCH
from sensorbench.studies.log_analytics.published import (
    FOLDER,
    LEVELS,
    SIZES,
    SYSTEMS,
    Place,
    is_measurement,
    places,
    published,
    published_figures,
)
from sensorbench.studies.log_analytics.sections import rating, sections
from sensorbench.studies.study import PublishedFigure, grouped
from tests.conftest import Cli
from tests.log_results import CLAIMS, EVERYTHING, fake_result, id_of, run_of_r1

CLUSTER = "cassandra_4/source/key"

# Cells.


def test_every_figure_of_the_source_has_a_cell() -> None:
    with (FOLDER / "published.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row.place for row in published()} <= set(places())
    assert len(published()) == sum(map(is_measurement, rows))
    metrics = {"response-time", "load-time", "database-size", "RAM-size", "disk-size"}
    of_systems = [row for row in rows if row["metric"] in metrics and row["system"] in SYSTEMS and row["dataset_size"] in SIZES]
    # An estimate of what a replica would need, and one of a size that does not fit.
    assert [row["value"] for row in of_systems if not is_measurement(row)] == ["14", "34"]
    numbers = [row.value for row in published() if row.value is not None]
    assert len(numbers) > 1300
    assert {row.word for row in published() if row.value is None} == {"Not apply", "can't execute", "Not Fit", "Not Calculated"}
    assert (
        next(row.value for row in published() if row.place == Place("1GB", "key", "CA", "load") and row.table == "App.B Table 1")
        == 3.77 * 60
    )


def test_there_is_a_cell_for_each_factor() -> None:
    counts = Counter(place.operation for place in places())
    each = len(SIZES) * len(LEVELS) * len(SYSTEMS)
    assert counts == {
        "load": each + 2 * len(SIZES), "Q1": each, "Q2": 7 * each + 6, "Q3": 7 * each + 6, "size": each, "RAM": 24, "disk": 24,
    }  # fmt: skip
    assert len(set(places())) == len(places())


def test_no_cell_is_without_state_and_reason() -> None:
    planned = published_figures(None)
    assert len(planned) == len(places())
    assert all(figure.state in {"run", "not applicable"} and figure.why for figure in planned)
    states = {(figure.system, figure.level, figure.operation): figure.state for figure in planned}
    assert states["CA-SH", "none", "Q2"] == "not applicable"
    assert states["DB-C", "key", "load"] == "not applicable"
    assert (
        states["Redis", "none", "Q3"] == states["Redis-SH", "hash only", "RAM"] == states["CA-SH", "key, by COPY", "Q2"] == "run"
    )
    assert states["Redis", "both structures", "disk"] == states["Redis-SH", "key", "size"] == "run"


def test_cells_say_what_results_have() -> None:
    cluster, single, redis = CLUSTER, "mariadb/relational/none", "redis/source"
    result = fake_result(
        variants=[cluster, single, redis],
        loads={id_of(cluster): {}, id_of(single): {}},
        runs={
            id_of(cluster): [run_of_r1("too many tombstones", error=3)],
            id_of(single): [run_of_r1("gone away", ok=2, error=1)],
            id_of(redis): [],
        },
        failures={id_of(redis): {"step": "loading", "cause": "it does not fit into memory"}},
    )
    found = {(figure.system, figure.level, figure.operation, figure.range): figure for figure in published_figures(result)}
    assert {figure.size for figure in found.values()} == {"1GB"}
    assert all(figure.why for figure in found.values())
    failed = found["CA-SH", "key", "Q2", "r1"]
    assert (failed.state, failed.why) == ("failed", "too many tombstones")
    assert found["CA-SH", "key", "load", ""].state == "run"
    assert found["CA-SH", "key", "Q3", "r1"].state == "not applicable"
    partly = found["DB-O", "none", "Q2", "r1"]
    assert partly.state == "run"
    assert "1 of 3 requests failed: gone away" in partly.why
    assert {found["Redis", level, "Q1", ""].why for level in LEVELS} == {"it does not fit into memory"}
    assert found["Redis", "none", "load", ""].state == "failed"
    assert found["CA", "key", "load", ""].state == "not applicable"
    assert found["CA", "none", "load", ""].state == "not applicable"
    other = published_figures(fake_result("azure-vm-noise"))
    assert {figure.state for figure in other} == {"not applicable"}


def test_a_snapshot_fills_the_cells_of_what_lies_on_disk() -> None:
    written, user = "redis/source", "redis_cluster/source"
    snapshot = {"total_bytes": 500, "took_s": 0.1}
    result = fake_result(
        variants=[written, user],
        loads={id_of(written): {"snapshot": snapshot}, id_of(user): {}},
        runs={id_of(written): [], id_of(user): []},
    )
    found = {(figure.system, figure.level, figure.operation): figure for figure in published_figures(result)}
    assert found["Redis", "both structures", "disk"].state == found["Redis", "none", "size"].state == "run"
    assert found["Redis-SH", "both structures", "disk"].state == "not applicable"
    assert "snapshot" in found["Redis-SH", "both structures", "disk"].why
    assert found["Redis-SH", "both structures", "RAM"].state == "run"


def test_equal_neighbours_are_grouped_and_nothing_else() -> None:
    assert len(grouped(published_figures(None))) < 60

    def of(size: str, name: str, why: str = "there") -> PublishedFigure:
        return PublishedFigure(size, "key", "CA", "Q2", name, "run", why)

    row = ("CA", "key")
    among = ["r1", "r2", "r3", "r4"]
    assert grouped([of("1GB", name) for name in among]) == [(*row, "1GB", "Q2 r1 to r4", "run", "there")]
    gap = [of("1GB", name, "elsewhere" if name == "r2" else "there") for name in among]
    assert grouped(gap) == [(*row, "1GB", "Q2 r1, r3, r4", "run", "there"), (*row, "1GB", "Q2 r2", "run", "elsewhere")]


# Sections.


@pytest.mark.parametrize(
    ("ratio", "word"),
    [(1.0, "very good"), (2.0, "very good"), (2.001, "good"), (5.0, "good"), (5.001, "medium"), (20.0, "medium"), (20.01, "bad"),
     (100.0, "bad"), (100.1, "very bad")],
)  # fmt: skip
def test_ratings_go_by_the_ratio_to_the_best(ratio: float, word: str) -> None:
    assert rating(ratio) == word


def of_variants(times_s: dict[str, float], size: str = "4GB", failing: str = "") -> tuple[Evidence, ComparisonSummary]:
    """Evidence and summary of variants each of which takes so long for everything."""
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
    found = {section.title: section for section in sections(*of_variants({MARIADB_KEY: 1.0, CASSANDRA_KEY: 30.0, REDIS: 4.0}))}
    times = found["Published beside measured: times"]
    rows = {(row[0], row[1], row[2]): row[3:] for row in times.rows}
    # That of the loader that is meant here, which the source's main table has another time for.
    assert rows["load", "key", "CA"] == [13.58 * 60, 30.0, "1 of 3", "3 of 3"]
    assert rows["Q2 r7", "key", "Redis"] == [167.158, 4.0, "2 of 3", "2 of 3"]
    assert rows["Q2 r7", "none", "Redis"][2:] == ["1 of 1", "1 of 1"]
    assert ("load", "key", "DB-C") not in rows
    assert "111" not in times.text
    assert "74,550,000" in times.text
    sizes = {(row[0], row[1], row[2]): row[3:] for row in found["Published beside measured: sizes"].rows}
    assert sizes["size", "key", "DB-O"] == [3.96e9, 1e9, "1 of 2", "1 of 2"]
    # A server that wrote no snapshot has no size on disk.
    assert not [row for row in sizes if row[0] == "size" and row[2] == "Redis"]
    other = sections(*of_variants({MARIADB_KEY: 1.0}, size="azure-vm-noise"))
    assert [section.title for section in other] == ["The source's five questions", "Ratings in words"]


def test_the_five_questions_are_answered_from_the_figures() -> None:
    times = {
        "mariadb/relational/none": 1.0, MARIADB_KEY: 2.0, "mariadb/relational/key_value": 3.0, "mariadb_relaxed/relational/key": 1.0,
        CASSANDRA_KEY: 10.0, "cassandra_4/source/key": 15.0, "cassandra_4_rf3_one/source/key": 20.0, "cassandra_4_rf3_all/source/key": 60.0,
    }  # fmt: skip
    table = next(section for section in sections(*of_variants(times)) if section.title == "The source's five questions")
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
    alone = next(section for section in sections(*of_variants({REDIS: 1.0})) if section.title == "The source's five questions")
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
    assert [section["title"] for section in summary["result"]["sections"]] == ["The source's five questions", "Ratings in words"]
    shown = cli("study", "show", "log-analytics", out, "--json").json["cells"]
    assert len(shown) == sum(place.size == "1GB" for place in places())
    assert {figure["state"] for figure in shown} == {"not applicable"}
    assert cli("study", "show", "iot", out).exit_code == 2
    # Of several sizes, those that have results.
    parts = {"machine-log-1gb": "log", "machine-log-2gb": "not there yet"}
    series = {"format": 1, "name": "log-analytics", "title": "", "of": "datasets", "parts": parts}
    (tmp_path / "series.json").write_text(json.dumps(series), encoding="utf-8")
    assert cli("study", "show", "log-analytics", tmp_path, "--json").json["cells"] == shown


def test_cells_are_shown_in_some_tens_of_lines(cli: Cli) -> None:
    shown = cli("study", "show", "log-analytics").out
    assert "1,700 figures of the source" in shown
    assert "not applicable" in shown
    assert len(cli("study", "show", "log-analytics", "--json").json["cells"]) == 1700
    assert "cells" not in cli("study", "show", "iot", "--json").json


def test_results_of_something_else_are_refused(cli: Cli, study_folder: Path) -> None:
    outcome = cli("study", "show", "log-analytics", study_folder)
    assert outcome.exit_code == 2
    assert "expected the study log-analytics" in outcome.err
