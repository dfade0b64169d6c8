"""Results of one target in a history: stress runs, capacities, searches for settings, and other tools' workloads."""

import json
import shutil
from pathlib import Path

import pytest

from sensorbench.errors import UsageError
from sensorbench.history import collect
from tests.conftest import forget_checksums, run_main


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
