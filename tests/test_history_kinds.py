"""Results of one target in a history: stress runs, capacities, searches for settings, and other tools' workloads."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from sensorbench.errors import UsageError
from sensorbench.history import collect
from sensorbench.results.history_entries import HistoryFigure, HistoryResult
from tests.conftest import Cli, forget_checksums, run_main

# Manifests and summaries of small results, as these commands left them (the folder's README has them all).
FIXTURES = Path(__file__).parent / "fixtures" / "history-kinds"


@pytest.fixture(scope="module")
def stressed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("stress") / "out"
    steps = ("--step-duration", "500ms", "--ramp", "0", "--warmup", "0", "--no-open")
    assert run_main(("stress", "--target", "sqlite", "--rates", "100,200", "--records", "50", *steps, "--out", out)) == 0
    return out


def test_a_stress_run_goes_in_with_each_of_its_rates(stressed: Path) -> None:
    (result,) = collect(stressed, "v1")
    (again,) = collect(stressed)
    assert (result.id, result.experiment) == (again.id, again.experiment)
    assert result.variants[0].database_version
    steps = json.loads((stressed / "summary.json").read_text(encoding="utf-8"))["result"]["steps"]
    figures = {(figure.operation, figure.metric): figure for figure in result.figures}
    for step in steps:
        found = figures[f"(all) at {step['rate_per_s']:g} per s", "p99"]
        assert (found.value, found.is_main, found.runs) == (step["response_s"]["p99"], True, 1)
        completed = figures[f"(all) at {step['rate_per_s']:g} per s", "throughput"]
        assert (completed.value, completed.unit, completed.higher_is_better) == (step["completed_per_s"], "per s", True)
    assert {operation.partition(" ")[0] for operation, _ in figures} == {"(all)", *steps[0]["operations"]}


def test_other_rates_are_another_experiment_and_what_is_cut_short_is_refused(stressed: Path, tmp_path: Path) -> None:
    (result,) = collect(stressed)
    summary = json.loads((stressed / "summary.json").read_text(encoding="utf-8"))
    for name, change, reason in (
        ("slower", lambda: summary["result"]["steps"][0].update(rate_per_s=50.0), None),
        ("cut", lambda: summary.update(status="interrupted"), "these results are interrupted"),
        ("damaged", lambda: summary.update(format=99), "sensorbench report"),
    ):
        shutil.copytree(stressed, tmp_path / name)
        change()
        forget_checksums(tmp_path / name)
        (tmp_path / name / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
        if reason is None:
            (changed,) = collect(tmp_path / name)
            assert changed.experiment != result.experiment
        else:
            with pytest.raises(UsageError, match=reason):
                collect(tmp_path / name)


def content(folder: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return summary


def with_summary(name: str, copy: Path, change: Callable[[dict[str, Any]], None]) -> HistoryResult:
    """What goes into a history of a fixture whose summary is changed."""
    shutil.copytree(FIXTURES / name, copy)
    summary = content(copy)
    change(summary)
    (copy / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    (result,) = collect(copy)
    return result


def figures_of(result: HistoryResult) -> dict[tuple[str, str, str], HistoryFigure]:
    return {(figure.variant, figure.operation, figure.metric): figure for figure in result.figures}


def test_a_capacity_goes_in_as_one_figure() -> None:
    (result,) = collect(FIXTURES / "capacity", "v1")
    summary = content(FIXTURES / "capacity")
    (figure,) = result.figures
    assert (figure.operation, figure.metric, figure.unit) == ("(all)", "capacity", "per s")
    assert figure.value == summary["result"]["capacity"]["met_per_s"] > 0.0
    assert (figure.higher_is_better, figure.is_main, figure.low) == (True, True, None)
    assert (result.label, result.doctor.aa_variation) == ("v1", None)


def test_a_search_for_settings_goes_in_with_its_goal_for_default_and_best() -> None:
    (result,) = collect(FIXTURES / "tune")
    found = content(FIXTURES / "tune")["result"]
    assert found["verdict"] == "gain"
    (variant,) = (each["id"] for each in content(FIXTURES / "tune")["variants"])
    goal = found["goal"]["text"]
    for role in ("default", "best"):
        values = [each["value"] for each in found["confirmation"] if each["role"] == role]
        figure = figures_of(result)[f"{variant} {role}", "(all)", goal]
        assert (figure.value, figure.runs) == (median(values), len(values))
        assert (figure.unit, figure.higher_is_better, figure.is_main) == ("s", False, True)
    assert len(result.figures) == 2
    assert [each.distinct for each in result.variants] == [f"{variant} best", f"{variant} default"], "each is a series of its own"
    cells = [np.log(found["drift"]["values"])]
    cells += [np.log([each["value"] for each in found["confirmation"] if each["role"] == role]) for role in ("default", "best")]
    pooled = sum(((cell - cell.mean()) ** 2).sum() for cell in cells) / sum(len(cell) - 1 for cell in cells)
    assert result.doctor.aa_variation == pytest.approx(np.expm1(np.sqrt(pooled)))


@pytest.mark.parametrize("name", ["ycsb", "cassandra-stress"])
def test_another_tools_workload_goes_in_by_kind_of_operation(name: str) -> None:
    (result,) = collect(FIXTURES / name)
    summary = content(FIXTURES / name)
    (variant,) = (each["id"] for each in summary["variants"])
    found, kinds = figures_of(result), summary["result"]["kinds"]
    assert len(kinds) > 1
    assert {operation for _, operation, _ in found} == set(kinds)
    for kind, figures in kinds.items():
        for metric in ("mean", "median", "p95", "p99"):
            figure = found[variant, kind, metric]
            assert (figure.value, figure.unit, figure.is_main) == (figures["response_s"][metric], "s", metric == "p99")
        throughput = found[variant, kind, "throughput"]
        assert throughput.value == pytest.approx(figures["ok"] / summary["result"]["run_s"])
        assert (throughput.unit, throughput.higher_is_better) == ("per s", True)


def other_objective(summary: dict[str, Any]) -> None:
    summary["result"]["objective"]["limit_s"] *= 2


def other_goal(summary: dict[str, Any]) -> None:
    summary["result"]["goal"]["text"] += " other"


def other_properties(summary: dict[str, Any]) -> None:
    summary["result"]["plan"]["properties"]["recordcount"] += 1


def other_operations(summary: dict[str, Any]) -> None:
    summary["result"]["plan"]["weights"]["insert"] = 2.0


@pytest.mark.parametrize(
    ("name", "another_work"),
    [
        ("capacity", other_objective),
        ("tune", other_goal),
        ("ycsb", other_properties),
        ("cassandra-stress", other_operations),
    ],
)
def test_results_of_one_work_are_one_series_and_those_of_another_are_not(
    cli: Cli, tmp_path: Path, name: str, another_work: Callable[[dict[str, Any]], None]
) -> None:
    def next_day(summary: dict[str, Any]) -> None:
        summary["created"] = summary["created"].replace("2026-", "2027-")

    (result,) = collect(FIXTURES / name)
    assert result.variants[0].database_version
    assert result.variants[0].target
    later = with_summary(name, tmp_path / "later", next_day)
    other = with_summary(name, tmp_path / "other", another_work)
    assert later.id != result.id != other.id
    assert later.experiment == result.experiment != other.experiment
    store = tmp_path / "history.duckdb"
    for is_new in (True, False):
        added = cli("history", "add", FIXTURES / name, tmp_path / "later", "--store", store, "--json")
        assert added.exit_code == 0, added.err
        assert [entry["is_new"] for entry in added.json] == [is_new, is_new]
    shown = cli("history", "show", "--store", store, "--json").json
    assert shown
    assert {len(series["points"]) for series in shown} == {2}


def test_a_profile_is_the_same_wherever_its_file_lies(tmp_path: Path) -> None:
    def moved(summary: dict[str, Any]) -> None:
        summary["result"]["plan"]["profile"] = "/elsewhere/readings.yaml"

    (result,) = collect(FIXTURES / "cassandra-stress")
    assert with_summary("cassandra-stress", tmp_path / "moved", moved).experiment == result.experiment
