"""The doctor's figures in a history: what of the day goes in with each result, what it is shown for, and histories from before it was kept."""

import csv
import json
import shutil
from pathlib import Path

import duckdb
import numpy as np
import pytest

from sensorbench.benchmarks.doctor import Diagnosis, Noise, OperationNoise
from sensorbench.history import HistoryStore, Selection, collect, series_of
from sensorbench.history.tables import FORMAT
from sensorbench.report import formatting
from sensorbench.report.history import version_words
from sensorbench.results.history_entries import DoctorFigures, HistoryResult
from tests.conftest import Cli, forget_checksums
from tests.test_history import NOISE, later

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(scope="module")
def collected(study_folder: Path) -> HistoryResult:
    (result,) = collect(study_folder)
    return result


WANTED = Selection(variant="sqlite star", operation="get_sensor_data")


@pytest.fixture(scope="module")
def small(collected: HistoryResult) -> HistoryResult:
    """The same with the figures of one series alone."""
    figures = [
        figure
        for figure in collected.figures
        if (figure.operation, figure.is_main) == ("get_sensor_data", True) and figure.variant == "sqlite-star"
    ]
    assert len(figures) == 1
    return collected.model_copy(update={"figures": figures})


def test_the_doctors_figures_of_the_day_are_kept_and_shown(
    cli: Cli, collected: HistoryResult, study_folder: Path, tmp_path: Path
) -> None:
    client = json.loads((study_folder / "manifest.json").read_text(encoding="utf-8"))["environment"]["client"]
    assert (collected.doctor.timer_lag_s, collected.doctor.null_ops_per_s) == (client["timer_lag_s"], client["null_ops_per_s"])
    assert 0.0 < client["timer_lag_s"] < 1.0 < client["null_ops_per_s"]
    store, lag = tmp_path / "history.duckdb", formatting.duration(client["timer_lag_s"])
    assert cli("history", "add", study_folder, "--store", store).exit_code == 0
    shown = cli("history", "show", "--operation", "get_sensor_data", "--store", store, "--json").json
    assert [point["doctor"] for series in shown for point in series["points"]] == [collected.doctor.model_dump()] * len(shown)
    page = ("history", "plot", "--operation", "get_sensor_data", "--store", store, "--out", tmp_path / "page", "--no-open")
    assert cli(*page).exit_code == 0
    assert f"{lag}, no-op rate of the client" in (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    assert cli("history", "export", "--store", store, "--out", tmp_path / "figures.csv").exit_code == 0
    with (tmp_path / "figures.csv").open(encoding="utf-8") as file:
        assert {float(row["timer_lag_s"]) for row in csv.DictReader(file)} == {client["timer_lag_s"]}


def test_the_a_a_variation_is_that_of_repetitions(study_folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "median"
    shutil.copytree(study_folder, other, ignore=shutil.ignore_patterns("data"))
    forget_checksums(other)
    manifest = json.loads((other / "manifest.json").read_text(encoding="utf-8"))
    manifest["plan"]["metric"] = "median"
    (other / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (result,) = collect(other)
    medians: dict[tuple[str, str], list[float]] = {}
    for histogram in result.histograms:
        latencies = np.repeat(histogram.values_ns, histogram.counts)
        cell = medians.setdefault((histogram.variant, histogram.operation), [])
        cell.append(float(np.log(np.quantile(latencies, 0.5, method="inverted_cdf"))))
    assert {len(values) for values in medians.values()} == {manifest["plan"]["workload"]["repetitions"]}
    pooled = np.mean([np.var(values, ddof=1) for values in medians.values()])
    assert result.doctor.aa_variation == pytest.approx(np.expm1(np.sqrt(pooled)), rel=0.02)


def test_a_diagnosis_of_the_day_stands_in_the_place_of_what_results_have(
    cli: Cli, study_folder: Path, collected: HistoryResult, tmp_path: Path
) -> None:
    pair = OperationNoise(operation="a", a_s=1.0, b_s=1.1, ratio=0.91, low=None, high=None, verdict="inconclusive")
    diagnosis = Diagnosis(
        quick=False,
        checks=[],
        trusted_above_s=0.001,
        timer_lag_s=9e-5,
        verdict="",
        ceilings={"null_ops_per_s": None},
        noise=Noise(experiment="own", operations=[pair], different=[], detectable=None, report=""),
    )
    store, file = tmp_path / "history.duckdb", tmp_path / "doctor.json"
    file.write_text(diagnosis.model_dump_json(), encoding="utf-8")
    assert cli("history", "add", study_folder, "--store", store, "--doctor", file).exit_code == 0
    with HistoryStore.open(store) as history:
        doctor = history.figures()[0].doctor
    assert doctor.timer_lag_s == 9e-5
    assert doctor.aa_variation == pytest.approx(np.expm1(np.log(1.1) / np.sqrt(2.0)))
    assert doctor.null_ops_per_s == collected.doctor.null_ops_per_s
    file.write_text("{}", encoding="utf-8")
    for path, reason in ((file, "quick: Field required"), (tmp_path / "nothing.json", "No such file")):
        refused = cli("history", "add", study_folder, "--store", store, "--doctor", path)
        said = " ".join(refused.err.split())
        assert (refused.exit_code, reason in said) == (2, True), refused.err
        assert "expected what `sensorbench doctor --json` printed" in said


def test_a_machine_that_is_another_than_it_was_is_named_at_a_change(cli: Cli, small: HistoryResult, tmp_path: Path) -> None:
    generator, store = np.random.default_rng(5), tmp_path / "history.duckdb"
    factors = np.exp(np.log1p(NOISE) * generator.standard_normal(25))
    factors[20:] *= 1.25
    before, after = DoctorFigures(timer_lag_s=60e-6, aa_variation=0.02), DoctorFigures(timer_lag_s=300e-6, aa_variation=0.03)
    results = [later(small, number, factor, doctor=after if number >= 20 else before) for number, factor in enumerate(factors)]
    with HistoryStore.open(store, "write") as history:
        history.add(results)
        (series,) = series_of(history, WANTED)
    (change,) = series.changes
    assert [each.what for each in change.versions] == ["timer_lag_s"]
    assert "timer lag 60.0 µs → 300 µs" in version_words(change)


def test_noisy_days_make_no_change_of_a_normalised_series(small: HistoryResult, tmp_path: Path) -> None:
    generator, store = np.random.default_rng(6), tmp_path / "history.duckdb"
    factors = np.exp(np.log1p(NOISE) * generator.standard_normal(25))
    factors[23:] *= 1.4
    for noise, changes in ((0.02, [23]), (0.4, [])):
        days = [DoctorFigures(aa_variation=noise if number >= 23 else 0.02) for number in range(25)]
        results = [later(small, number, factor, doctor=days[number]) for number, factor in enumerate(factors)]
        with HistoryStore.open(store.with_suffix(f".{noise}"), "write") as history:
            history.add(results)
            (split,), (normalised,) = series_of(history, WANTED), series_of(history, WANTED, machines="normalised")
        assert [change.place for change in split.changes] == [23]
        assert [change.place for change in normalised.changes] == changes


def test_a_series_without_a_no_op_of_its_driver_is_normalised_by_that_of_the_client(small: HistoryResult, tmp_path: Path) -> None:
    variants = [variant.model_copy(update={"no_op_per_s": None}) for variant in small.variants]
    results = [
        later(small, number, 1.0 + number, variants=variants, doctor=DoctorFigures(null_ops_per_s=1e6 / (1.0 + number)))
        for number in range(3)
    ]
    with HistoryStore.open(tmp_path / "history.duckdb", "write") as history:
        history.add([*results, later(small, 4, 1.0, variants=variants, doctor=DoctorFigures())])
        (series,) = series_of(history, WANTED, machines="normalised")
    values = [point.value for point in series.points]
    assert len(values) == 3, "a result without a no-op is left out"
    assert max(values) == pytest.approx(min(values))


def history_of_format_1(path: Path) -> None:
    """Makes the history that the first version with histories made of `tests/fixtures/format-1`, of what DuckDB exported of it as text."""
    with duckdb.connect(str(path)) as made:
        made.execute((FIXTURES / "history-1" / "schema.sql").read_text(encoding="utf-8"))
        for file in (FIXTURES / "history-1").glob("*.csv"):
            made.execute(f"COPY {file.stem} FROM '{file}' (FORMAT csv, HEADER, QUOTE '\"', ALLOW_QUOTED_NULLS false)")


def test_a_history_of_format_1_is_read_as_it_is_and_goes_on(cli: Cli, collected: HistoryResult, tmp_path: Path) -> None:
    store = tmp_path / "history.duckdb"
    history_of_format_1(store)
    before = store.read_bytes()
    shown = cli("history", "show", "--store", store, "--json")
    assert shown.exit_code == 0, shown.err
    assert {point["doctor"]["timer_lag_s"] for series in shown.json for point in series["points"]} == {None}
    assert cli("history", "export", "--store", store, "--out", tmp_path / "figures.csv").exit_code == 0
    with HistoryStore.open(store) as history:
        old = history.figures()
    assert len(old) == 36
    assert store.read_bytes() == before, "who only reads it changes nothing"
    again = cli("history", "add", FIXTURES / "format-1", "--store", store, "--json")
    assert [entry["is_new"] for entry in again.json] == [False], "its results are still known"
    with HistoryStore.open(store, "write") as history:
        history.add([later(collected, 1, 1.0)])
        figures = history.figures()
        assert history.connection.execute("SELECT format FROM sensorbench_history").fetchall() == [(FORMAT,)]
        assert history.connection.execute("SELECT count(*) FROM histograms").fetchall() == [(12,)]
    assert [figure for figure in figures if figure.result != "1"] == old
    assert {figure.doctor for figure in figures if figure.result == "1"} == {collected.doctor}


def test_a_history_of_a_later_version_is_refused_and_stays(cli: Cli, study_folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "history.duckdb"
    history_of_format_1(store)
    with duckdb.connect(str(store)) as later_version:
        later_version.execute("UPDATE sensorbench_history SET format = 99")
    before = store.read_bytes()
    ended = cli("history", "add", study_folder, "--store", store)
    assert ended.exit_code == 2
    assert "has format 99, and this version of sensorbench reads formats up to" in " ".join(ended.err.split())
    assert store.read_bytes() == before
