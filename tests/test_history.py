"""The history of results: what goes in, what is refused, series and their changes."""

import csv
import json
import shutil
from datetime import timedelta
from pathlib import Path

import duckdb
import numpy as np
import pytest
from benches.history import false_alarms, found_share
from benches.own_history import keep_and_compare, own_result
from benches.real_variation import EVIDENCE, noises_of

from sensorbench.analysis.level_shifts import level_shifts, variation_within
from sensorbench.history import HistoryStore, Selection, collect, series_of
from sensorbench.history.simulated import detectable_step, simulated_histories
from sensorbench.results.history_entries import HistoryResult
from tests.conftest import Cli, forget_checksums

NOISE = 0.02


@pytest.fixture(scope="module")
def collected(study_folder: Path) -> HistoryResult:
    (result,) = collect(study_folder)
    return result


def later(result: HistoryResult, number: int, factor: float, **changes: object) -> HistoryResult:
    """The same experiment, measured days later, all figures this many times as large."""
    figures = [figure.model_copy(update={"value": figure.value * factor}) for figure in result.figures]
    measured = result.measured + timedelta(days=number)
    return result.model_copy(update={"id": f"{number}", "measured": measured, "figures": figures, "histograms": [], **changes})


def test_a_folder_goes_in_once(cli: Cli, study_folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "history.duckdb"
    first = cli("history", "add", study_folder, "--store", store, "--label", "v1", "--json")
    assert first.exit_code == 0, first.err
    assert [entry["is_new"] for entry in first.json] == [True]
    shutil.copytree(study_folder, tmp_path / "moved", ignore=shutil.ignore_patterns("data"))
    again = cli("history", "add", study_folder, tmp_path / "moved", "--store", store, "--json")
    assert [entry["is_new"] for entry in again.json] == [False, False], "a folder is known by its content, wherever it lies"
    (listed,) = cli("history", "list", "--store", store, "--json").json
    assert listed["label"] == "v1"
    assert listed["figures"] > 100
    shown = cli("history", "show", "--store", store, "--operation", "get_sensor_data", "--json").json
    summary = json.loads((study_folder / "summary.json").read_text(encoding="utf-8"))
    figures = {
        figure["variant"]: figure["latency_s"][summary["result"]["metric"]]
        for figure in summary["result"]["figures"]
        if figure["operation"] == "get_sensor_data"
    }
    assert len(shown) == len(figures)
    assert sorted(series["points"][0]["value"] for series in shown) == sorted(figure["value"] for figure in figures.values())
    assert all(series["points"][0]["versions"]["database_version"] for series in shown)


def test_histograms_are_kept_whole(collected: HistoryResult, study_folder: Path) -> None:
    summary = json.loads((study_folder / "summary.json").read_text(encoding="utf-8"))
    for figure in summary["result"]["figures"]:
        kept = [
            histogram
            for histogram in collected.histograms
            if (histogram.variant, histogram.operation) == (figure["variant"], figure["operation"])
        ]
        assert len(kept) == figure["runs"]
        assert sum(sum(histogram.counts) for histogram in kept) == figure["counts"]["ok"] + figure["counts"]["timeout"]
        assert all(histogram.values_ns == sorted(set(histogram.values_ns)) for histogram in kept)


def test_the_same_work_is_one_experiment_whatever_it_is_called(study_folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "renamed"
    shutil.copytree(study_folder, other, ignore=shutil.ignore_patterns("data"))
    forget_checksums(other)
    manifest = json.loads((other / "manifest.json").read_text(encoding="utf-8"))
    manifest["title"] = manifest["plan"]["name"] = "another name"
    manifest["plan"]["workload"]["repetitions"] = 9
    (other / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (same,), (first,) = collect(other), collect(study_folder)
    assert same.experiment == first.experiment
    manifest["plan"]["workload"]["seed"] += 1
    (other / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert collect(other)[0].experiment != first.experiment


def test_a_damaged_folder_leaves_the_history_as_it_was(cli: Cli, study_folder: Path, tmp_path: Path) -> None:
    store, broken = tmp_path / "history.duckdb", tmp_path / "broken"
    shutil.copytree(study_folder, broken, ignore=shutil.ignore_patterns("data"))
    log = next(broken.glob("experiments/*/run-*/histograms.hlog"))
    log.write_text("broken", encoding="utf-8")
    ended = cli("history", "add", study_folder, broken, "--store", store)
    assert ended.exit_code != 0
    assert str(log) in ended.err.replace("\n", "")
    assert not store.exists(), "the sound folder before it is not there either"


def test_what_is_no_result_is_refused(cli: Cli, tmp_path: Path) -> None:
    ended = cli("history", "add", tmp_path, "--store", tmp_path / "history.duckdb")
    assert ended.exit_code == 2
    assert "no results are there" in " ".join(ended.err.split())
    assert cli("history", "list", "--store", tmp_path / "history.duckdb").exit_code == 2


@pytest.mark.parametrize(
    "words", [("add", "{folder}"), ("list",), ("show",), ("plot", "--no-open"), ("export", "--out", "x.csv")]
)
def test_a_foreign_database_is_refused_and_stays(
    cli: Cli, study_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    store = tmp_path / "mine.duckdb"
    with duckdb.connect(str(store)) as mine:
        mine.execute("CREATE TABLE results AS SELECT 42 AS answer")
    before = store.read_bytes()
    ended = cli("history", *(word.format(folder=study_folder) for word in words), "--store", store)
    assert ended.exit_code == 2, ended.err
    assert "no ownership marker" in " ".join(ended.err.split())
    assert store.read_bytes() == before


def test_a_file_that_is_no_database_is_refused(cli: Cli, study_folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "notes.txt"
    store.write_text("mine" * 5000, encoding="utf-8")
    ended = cli("history", "add", study_folder, "--store", store)
    assert ended.exit_code == 2, ended.err
    assert store.read_text(encoding="utf-8") == "mine" * 5000


def test_what_fails_within_leaves_nothing(collected: HistoryResult, tmp_path: Path) -> None:
    store = tmp_path / "history.duckdb"
    broken = later(collected, 2, 1.0)
    bad = broken.figures[0].model_copy(update={"runs": "many"})
    with HistoryStore.open(store, "write") as history:
        with pytest.raises(duckdb.Error):
            history.add([later(collected, 1, 1.0), broken.model_copy(update={"figures": [bad]})])
        assert history.results() == []


def test_a_change_is_found_with_its_version(cli: Cli, collected: HistoryResult, tmp_path: Path) -> None:
    generator = np.random.default_rng(4)
    store = tmp_path / "history.duckdb"
    factors = np.exp(np.log1p(NOISE) * generator.standard_normal(25))
    factors[20:] *= 1.25
    changed = [
        variant.model_copy(update={"schema_digest": f"{'new' if number >= 20 else 'old'} {variant.schema_name}"})
        for number in range(25)
        for variant in collected.variants
    ]
    width = len(collected.variants)
    results = [
        later(collected, number, factor, variants=changed[number * width : (number + 1) * width], label=f"c{number}")
        for number, factor in enumerate(factors)
    ]
    with HistoryStore.open(store, "write") as history:
        history.add(results)
        (series,) = series_of(history, Selection(variant="sqlite star", operation="get_sensor_data"))
    (change,) = series.changes
    assert (change.place, change.direction, change.is_worse) == (20, "slower", True)
    assert change.low is not None
    assert change.high is not None
    assert change.low < 1.25 < change.high
    assert {each.what: (each.before, each.after) for each in change.versions} == {
        "label": ("c19", "c20"),
        "schema_digest": ("old star", "new star"),
    }
    shown = cli("history", "show", "--changes", "--operation", "get_sensor_data", "--store", store)
    assert "slower" in shown.out
    failed = cli("history", "show", "--fail-on", "worse", "--store", store)
    assert failed.exit_code == 1
    assert "--fail-on worse" in failed.err
    page = cli("history", "plot", "--operation", "get_sensor_data", "--store", store, "--out", tmp_path / "page", "--no-open")
    assert page.exit_code == 0, page.err
    text = (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    assert "c19 → c20" in text


def test_a_renamed_schema_goes_on_with_its_series(collected: HistoryResult, tmp_path: Path) -> None:
    variants = [variant.model_copy(update={"schema_name": f"{variant.schema_name}-renamed"}) for variant in collected.variants]
    with HistoryStore.open(tmp_path / "history.duckdb", "write") as history:
        history.add([later(collected, 1, 1.0), later(collected, 2, 1.0, variants=variants)])
        found = series_of(history)
    assert {len(series.points) for series in found} == {2}
    assert not [series.variant for series in found if "renamed" in series.variant]


def test_machines_are_apart_unless_normalised(collected: HistoryResult, tmp_path: Path) -> None:
    slow = [
        variant.model_copy(update={"no_op_per_s": variant.no_op_per_s and variant.no_op_per_s / 2})
        for variant in collected.variants
    ]
    results = [
        later(
            collected,
            number,
            2.0 if number % 2 else 1.0,
            machine="b" if number % 2 else "a",
            **({"variants": slow} if number % 2 else {}),
        )
        for number in range(12)
    ]
    with HistoryStore.open(tmp_path / "history.duckdb", "write") as history:
        history.add(results)
        apart = series_of(history, Selection(variant="sqlite star", operation="get_sensor_data"))
        (together,) = series_of(history, Selection(variant="sqlite star", operation="get_sensor_data"), machines="normalised")
    assert [len(series.points) for series in apart] == [6, 6]
    assert len(together.points) == 12
    values = [point.value for point in together.points]
    assert max(values) == pytest.approx(min(values)), "twice as slow on a machine that is twice as slow is not a change"


def test_figures_are_exported(cli: Cli, study_folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "history.duckdb"
    cli("history", "add", study_folder, "--store", store)
    for name in ("figures.csv", "figures.parquet"):
        ended = cli("history", "export", "--store", store, "--out", tmp_path / name, "--json")
        assert ended.exit_code == 0, ended.err
    with (tmp_path / "figures.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == ended.json["rows"]
    assert duckdb.sql(f"SELECT count(*) FROM '{tmp_path / 'figures.parquet'}'").fetchall() == [(len(rows),)]
    assert cli("history", "export", "--store", store, "--out", tmp_path / "figures.csv").exit_code == 2, "it is there already"


# The statistic. `make bench-history` simulates ten times as many.


def test_few_false_alarms_and_most_steps_found() -> None:
    generator = np.random.default_rng(7)
    noise = np.log1p(0.025)
    alarms = sum(
        len(level_shifts(np.exp(noise * generator.standard_normal(110)), seed=trial, from_value=10)) for trial in range(20)
    )
    # At 0.85 in a hundred values, more than 28 in two thousand have a probability of 0.005.
    assert alarms <= 28
    found = 0
    for trial in range(100):
        logs = noise * generator.standard_normal(55)
        logs[50:] += np.log(1.05)
        found += any(abs(shift.place - 50) <= 3 for shift in level_shifts(np.exp(logs), seed=trial, from_value=50))
    # Nine of ten are found; fewer than 82 of a hundred have a probability of 0.005.
    assert found >= 82


def test_the_stored_simulation_keeps_what_is_promised() -> None:
    stored = simulated_histories()
    assert max(stored.false_alarms_per_100.values()) <= 1.0
    assert all(share >= 0.9 for variation, share in stored.found.items() if float(variation) <= 0.025)
    assert [power.before for power in stored.smallest] == sorted(power.before for power in stored.smallest)


def test_noise_of_real_results_raises_few_false_alarms_and_hides_no_step_that_is_called_detectable() -> None:
    for noise in noises_of(EVIDENCE / "iot-embedded.sbz"):
        assert len(noise.variations) >= 40
        assert {len(cell) for cell in noise.cells} == {3}
        assert 0.05 < np.median(noise.variations) < 1.0
        middle = float(np.median(noise.variations))
        # As above: more than 28 false alarms in two thousand values have a probability of 0.005.
        assert false_alarms(noise.of_all(), 20, middle) * 20 <= 28
        step = detectable_step(middle, 50)
        assert step is not None
        assert found_share(np.log1p(step), middle, 50, 100, noise.near(middle)) >= 0.82
        assert found_share(np.log1p(0.05), 0.025, 50, 100, noise.near(0.025)) >= 0.82


def test_the_stored_simulation_with_real_noise_keeps_what_is_promised() -> None:
    stored = simulated_histories().real
    assert {(each.source, each.metric) for each in stored} >= {("iot-embedded.sbz", "median"), ("iot-embedded.sbz", "p99")}
    for each in stored:
        assert each.false_alarms_per_100 <= 1.0
        assert each.found >= 0.9
        for step in each.steps:
            printed = detectable_step(step.variation, 50)
            assert step.detectable == pytest.approx(printed, rel=0.01), "what is simulated is what is printed"
            # Nine of ten and four of five, less three standard errors of a thousand simulations.
            assert step.found >= 0.87
        assert each.gate_slower <= 0.05
        assert each.gate_found >= 0.76


def test_noisy_days_count_less_and_raise_no_more_false_alarms() -> None:
    generator = np.random.default_rng(8)
    alarms = 0
    for trial in range(20):
        variations = np.where(generator.random(110) < 0.2, 0.25, 0.02)
        values = np.exp(variations * generator.standard_normal(110))
        alarms += len(level_shifts(values, weights=(0.02 / variations) ** 2, seed=trial, from_value=10))
    assert alarms <= 28
    # Two noisy days that come one after the other look like a step.
    values = np.exp(0.02 * generator.standard_normal(30))
    values[28:] *= 1.4
    quiet, noisy = np.ones(30), np.ones(30)
    noisy[28:] = 0.01
    assert (
        [shift.place for shift in level_shifts(values, weights=quiet)] == [28] == [shift.place for shift in level_shifts(values)]
    )
    assert level_shifts(values, weights=noisy) == []
    with pytest.raises(ValueError, match="weights above zero"):
        level_shifts(values, weights=np.zeros(30))


def test_shifts_are_those_of_the_values() -> None:
    values = np.array([1.0, 1.01, 0.99] * 8 + [2.0, 2.02, 1.98] * 4)
    (shift,) = level_shifts(values)
    assert (shift.place, shift.before, shift.after) == (24, 24, 12)
    assert shift.ratio == pytest.approx(2.0, rel=0.01)
    assert shift.low < shift.ratio < shift.high
    assert variation_within(values, [24]) == pytest.approx(0.0083, rel=0.1)
    assert level_shifts(values) == level_shifts(values)
    spike = np.array([1.0, 1.01, 0.99] * 10)
    spike[15] = 50.0
    assert level_shifts(spike) == []
    assert level_shifts(np.ones(30)) == []
    with pytest.raises(ValueError, match="above zero"):
        level_shifts(np.array([1.0, 0.0]))


def test_our_own_benches_are_set_beside_the_last_time(tmp_path: Path) -> None:
    store = tmp_path / "own.duckdb"
    measured = {
        "null_ops_per_s": 8e6,
        "open_loop_p99_us": {"timer": 60.0, "spinning": 0.0},
        "quick": True,
        "driver_ceiling": {"a": None},
    }
    first = keep_and_compare(own_result(measured, quick=True, commit="one"), store)
    assert [next(iter(column.cells)) for column in first.columns][:3] == ["null_ops_per_s", "8e+06 per s", "–"]
    second = keep_and_compare(own_result({**measured, "null_ops_per_s": 4e6}, quick=True, commit="two"), store)
    rows = list(zip(*(column.cells for column in second.columns), strict=True))
    assert [row[0] for row in rows] == ["null_ops_per_s", "open_loop_p99_us timer"]
    assert rows[0][3] == "0.500"
    assert str(rows[0][4]).startswith("one, ")
    # What another type of machine did last is not a last time of this one, nor is what was measured at another time alone.
    other = own_result({**measured, "null_ops_per_s": 1e6}, quick=True, commit="other machine")
    keep_and_compare(other.model_copy(update={"machine": "another"}), store)
    third = keep_and_compare(own_result({"null_ops_per_s": 8e6}, quick=True, commit="three"), store)
    (row,) = zip(*(column.cells for column in third.columns), strict=True)
    assert (row[0], row[3]) == ("null_ops_per_s", "2.000")
    assert str(row[4]).startswith("two, ")
    # Full runs are another experiment.
    assert "first entry" in next(
        zip(
            *(column.cells for column in keep_and_compare(own_result(measured, quick=False, commit=""), store).columns),
            strict=True,
        )
    )
