"""One stall, measured by a closed and by an open loop."""

from dataclasses import replace
from pathlib import Path

import pytest

from sensorbench.app.comparison import run_comparison_and_report
from sensorbench.errors import FailedError
from sensorbench.progress import ProgressReporter
from sensorbench.results.stall import STALL_FILE, read_stall, stall_folder
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.runner import Comparison, StallTest
from sensorbench.studies import StudyOptions, plan_study, require_study

STALL = StallTest("sqlite-natural", "insert_reading", rate_per_s=200.0, duration="1500ms", stall_after_s=0.3, stall_s=0.4)


def planned(folder: Path) -> Comparison:
    options = StudyOptions(
        datasets=("beijing-air-quality",), scale=0.002, operations=20, repetitions=1, targets=("sqlite",), schemas=("natural",)
    )
    return plan_study(require_study("iot"), options, folder, ProgressReporter(quiet=True))[0].comparison


def measured(folder: Path, stall: StallTest | None) -> ComparisonSummary:
    return run_comparison_and_report(replace(planned(folder), stall=stall), folder, ProgressReporter(quiet=True))[0]


def test_an_open_loop_shows_the_stall_that_a_closed_loop_hides(tmp_path: Path) -> None:
    stall = measured(tmp_path / "out", STALL).result.stall
    assert stall is not None
    closed, opened = stall.loops["closed"], stall.loops["open"]
    # Both saw it: a request waited for about as long as the lock was held.
    assert min(closed.stall_s, opened.stall_s) >= STALL.stall_s
    assert closed.max_s > STALL.stall_s / 2
    assert opened.p99_s > STALL.stall_s / 2
    assert closed.p99_s < opened.p99_s
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert 'id="coordinated-omission"' in page
    assert 'data-chart="stall"' in page
    assert (tmp_path / "out" / "charts" / "stall.svg").exists()
    assert not (tmp_path / "out" / "data").exists()


def test_without_one_nothing_is_said_of_it(tmp_path: Path) -> None:
    assert measured(tmp_path / "out", None).result.stall is None
    assert read_stall(tmp_path / "out") is None
    assert "coordinated-omission" not in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_a_stall_that_cannot_be_made_spoils_no_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> float:
        raise FailedError("no lock")

    monkeypatch.setattr("sensorbench.benchmarks.comparison.stall._held_s", refuse)
    found = run_comparison_and_report(replace(planned(tmp_path / "out"), stall=STALL), tmp_path / "out", ProgressReporter())[0]
    assert found.status == "complete"
    assert found.result.stall is None
    assert not (stall_folder(tmp_path / "out") / STALL_FILE).exists()
    assert "coordinated omission could not be shown: no lock" in capsys.readouterr().err
