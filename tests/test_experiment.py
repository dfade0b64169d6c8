"""A user's own question: the example of the documentation, and what an experiment file can say."""

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from sensorbench.results import read_comparison
from tests.conftest import Cli, Outcome

EXAMPLE = Path(__file__).parent.parent / "docs" / "example"
SHORT = ("--set", "workload.duration=500ms", "--set", "workload.warmup=100ms", "--no-open")


@pytest.fixture
def example(tmp_path: Path) -> Path:
    copytree(EXAMPLE, tmp_path / "example")
    return tmp_path / "example"


def run(cli: Cli, experiment: Path, *more: object) -> tuple[Outcome, dict[str, Any]]:
    out = experiment.parent / "out"
    ended = cli("run", experiment, *more, "--out", out)
    return ended, json.loads((out / "summary.json").read_text(encoding="utf-8")) if out.exists() else {}


@pytest.mark.long("the example is run as it is printed, with its durations")
def test_the_worked_example_runs_as_it_is_printed(cli: Cli, example: Path) -> None:
    ended, summary = run(cli, example / "experiment.toml", "--no-open")
    assert ended.exit_code == 0, ended.err
    assert summary["answers_equal"] is True
    # The mix writes: so the contents were read back, with all acknowledged writes.
    assert {checks["wrong"] for checks in summary["result"]["contents"].values()} == {0}
    assert min(checks["queried"] for checks in summary["result"]["contents"].values()) > 0
    assert {figure["operation"] for figure in summary["result"]["figures"]} == {"mean_of_hour", "readings_of_hour", "new_flow"}
    assert len(summary["result"]["client_health"]) == 2
    for facts in summary["result"]["client_health"].values():
        assert facts["started"] == facts["ok"] + facts["errors"] + facts["timeouts"] + facts["cancelled"]
        assert facts["started"] + facts["dropped"] == pytest.approx(3 * 2 * 400, rel=0.2)


def test_keys_of_the_file_are_changed_on_the_command_line(cli: Cli, example: Path) -> None:
    changes = (
        "--set",
        "workload.operations=50",
        "--set",
        "workload.schedule={ concurrency = 2 }",
        "--set",
        "workload.repetitions=1",
    )
    ended, summary = run(cli, example / "experiment.toml", *changes, "--set", "workload.duration=1m", "--no-open")
    assert ended.exit_code == 0, ended.err
    assert {facts["started"] for facts in summary["result"]["client_health"].values()} == {50}
    assert [ranking["excluded"] for ranking in summary["result"]["rankings"]] == [None] * 3
    assert {place["against_best"]["word"] for ranking in summary["result"]["rankings"] for place in ranking["places"][1:]} == {
        "inconclusive"
    }


def test_a_run_that_logs_nothing_has_the_same_figures_from_histograms(cli: Cli, example: Path) -> None:
    ended, summary = run(cli, example / "experiment.toml", *SHORT, "--set", "workload.log=none")
    assert ended.exit_code == 0, ended.err
    assert {figure["operation"] for figure in summary["result"]["figures"]} == {"mean_of_hour", "readings_of_hour", "new_flow"}
    for figure in summary["result"]["figures"]:
        assert figure["latency_s"]["median"]["value"] > 0.0
    result = read_comparison(example / "out")
    runs = [run_result for of_variant in result.runs.values() for run_result in of_variant]
    assert len(runs) == 2 * 3
    assert all(run_result.table("operations") is None or run_result.table("operations").num_rows == 0 for run_result in runs)
    assert 'data-chart="over-time-mean_of_hour"' in (example / "out" / "report.html").read_text(encoding="utf-8")


def test_a_log_of_every_operation_is_written_on_request(cli: Cli, example: Path) -> None:
    ended, summary = run(cli, example / "experiment.toml", *SHORT, "--set", "workload.log=all")
    assert ended.exit_code == 0, ended.err
    of_variants = read_comparison(example / "out").runs
    assert len(of_variants) == 2
    for variant, runs in of_variants.items():
        facts = summary["result"]["client_health"][variant]
        logged = sum(len([row for row in run_result.table("operations").to_pylist() if row["phase"] == 1]) for run_result in runs)
        assert logged == facts["started"] > 0


@pytest.mark.parametrize("concurrency", [1, 1000])
def test_a_stall_is_seen_in_response_times_and_the_report_says_what_hides_it(cli: Cli, example: Path, concurrency: int) -> None:
    (example / "nothing.toml").write_text(
        'database = "null"\nsummary = "Stores nothing."\n[load_query.readings]\nquery = "SELECT zone FROM measurements"\n'
        "[operation.mean_of_hour]\n",
        encoding="utf-8",
    )
    (example / "stall.toml").write_text(
        f"""
dataset = "water.toml"
operations = "operations.toml"
[[target]]
url = "null:?stall_at_ms=500&stall_ms=300"
schema = "nothing.toml"
[workload]
mix = {{ mean_of_hour = 1 }}
schedule = {{ rate = 1000, concurrency = {concurrency} }}
duration = "2s"
repetitions = 1
answers = "none"
""",
        encoding="utf-8",
    )
    ended, summary = run(cli, example / "stall.toml", "--no-open")
    assert ended.exit_code == 0, ended.err
    (figure,) = summary["result"]["figures"]
    ((measured,),) = read_comparison(example / "out").runs.values()
    assert measured.manifest.totals is not None
    timer_lag_ns = measured.manifest.totals.timer_lag_ns
    assert timer_lag_ns is not None
    # A busy machine has operations wait for itself, besides.
    near = 0.015 + timer_lag_ns["max"] / 1e9
    # 300 of 2,000 operations fall into the stall and wait evenly from 0.3 s down: p99 is what 20 of them wait longer than.
    assert figure["latency_s"]["p99"]["value"] > 0.265
    assert figure["latency_s"]["p99"]["value"] == pytest.approx(0.280, abs=near)
    queueing = [warning for warning in summary["warnings"] if warning["kind"] == "queueing"]
    if concurrency == 1:
        assert figure["service_s"]["p99"] < 0.1
        assert "A closed loop would hide this" in queueing[0]["text"]
    else:
        assert figure["service_s"]["p99"] == pytest.approx(0.280, abs=near)
        assert queueing == []


def test_operations_that_could_not_start_are_told(cli: Cli, example: Path) -> None:
    (example / "nothing.toml").write_text(
        'database = "null"\nsummary = "Stores nothing."\n[load_query.readings]\nquery = "SELECT zone FROM measurements"\n'
        "[operation.mean_of_hour]\n",
        encoding="utf-8",
    )
    (example / "slow.toml").write_text(
        """
dataset = "water.toml"
operations = "operations.toml"
[[target]]
url = "null:?delay_ms=50"
schema = "nothing.toml"
[workload]
mix = { mean_of_hour = 1 }
schedule = { rate = 100, concurrency = 2 }
duration = "1s"
repetitions = 1
answers = "none"
""",
        encoding="utf-8",
    )
    ended, summary = run(cli, example / "slow.toml", "--no-open")
    assert ended.exit_code == 0, ended.err
    (facts,) = summary["result"]["client_health"].values()
    # Two in flight of 50 ms each do 40 a second; 100 are due.
    assert facts["started"] + facts["dropped"] == 100
    assert facts["dropped"] == pytest.approx(60, abs=8)
    assert facts["late"] > 30
    (warning,) = [warning for warning in summary["warnings"] if warning["kind"] == "dropped"]
    assert "raise concurrency" in warning["action"]


def test_what_an_interrupted_run_wrote_is_not_left_beside_what_the_run_writes_again(
    cli: Cli, example: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    kept = f"target[1].url=sqlite:{tmp_path / 'kept.db'}"
    few = ("--set", "workload.duration=300ms", "--set", "workload.warmup=0", "--set", "workload.repetitions=2", "--set", kept)
    arguments = ("run", example / "experiment.toml", *few, "--out", out, "--no-open", "--json")
    assert cli(*arguments).exit_code == 0
    first = out / "experiments/sqlite-heap/run-1/manifest.json"
    before = first.read_text()
    # A run that was killed left no manifest, and its rows are at the target.
    (out / "experiments/sqlite-heap/run-2/manifest.json").unlink()
    resumed = cli(*arguments, "--resume")
    assert resumed.exit_code == 0, resumed.err
    assert "loaded again with all of its runs, because a run that was interrupted had written" in resumed.err
    assert resumed.json["answers_equal"] is True
    assert {checks["wrong"] for checks in resumed.json["result"]["contents"].values()} == {0}
    assert first.read_text() != before
