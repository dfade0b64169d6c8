"""Load generators that share a run: its operations are those of one, and whatever ends one of them ends the run, named."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from shutil import copytree
from typing import Any

import jsonschema
import psutil
import pyarrow as pa
import pytest

from sensorbench import _engine
from sensorbench.errors import EngineUsageError, LostGeneratorError
from sensorbench.hosts.host import HURRIED_S
from sensorbench.results import read_comparison, read_run
from sensorbench.results.engine_plan import EnginePlan
from sensorbench.results.json_schemas import json_schemas
from sensorbench.results.manifest import RunTotals
from sensorbench.results.ownership import Owner
from sensorbench.runner.client_health import bound_generators, late_generators
from sensorbench.runner.generators.load_generator import ShareWork
from sensorbench.runner.generators.local import HEARTBEAT_S, LocalGenerator
from sensorbench.runner.generators.messages import Stop as StopRequest
from sensorbench.runner.generators.messages import Taken
from sensorbench.runner.generators.shared_run import shared_run
from sensorbench.runner.plan import as_json
from tests.conftest import Cli
from tests.slow_connects import interrupted_while_they_connect
from tests.test_stress import check_accounts

EXAMPLE = Path(__file__).parent.parent / "docs" / "example"
GENERATORS = 3
SCHEMA = json.dumps({"operations": [{"name": name} for name in ("look_up", "count")]})
ENDS_WITHIN_S = 120.0

PLAN: EnginePlan = {
    "seed": 5,
    "operations": [
        {
            "weight": 3.0,
            "operation": {"name": "look_up", "parameters": [{"name": "id", "type": "integer"}]},
            "parameters": [{"source": 0, "column": 0}],
        },
        {"weight": 1.0, "operation": {"name": "count"}},
    ],
    "parameter_sources": [{"rows": {"table": 0, "choice": "uniform"}}],
    "phases": [
        {"name": "ramp", "duration_s": 0.3, "pace": {"segments": [{"from_per_s": 100.0, "to_per_s": 600.0, "length_s": 0.3}]}},
        {"name": "measure", "duration_s": 0.6, "pace": {"arrival": "poisson", "segments": [{"from_per_s": 400.0}]}},
    ],
    "concurrency": 8,
    "timeout_s": 5.0,
    "log_every": 1,
}
TABLE = pa.table({"id": pa.array(range(50), pa.int64())})


def null_target(url: str = "null:") -> _engine.Target:
    target = _engine.Target(url)
    target.create(SCHEMA, "", intent="create", owner=Owner("of a test", "").to_json())
    return target


def identities(operations: pa.Table, totals: RunTotals) -> set[tuple[int, int, int, int]]:
    """Of each operation: phase, k, kind and intended start since the phase began."""
    starts = [phase.start_ns or 0 for phase in totals.phases]
    return {
        (row["phase"], row["k"], row["operation"], row["intended_start_ns"] - starts[row["phase"]])
        for row in operations.to_pylist()
    }


def test_together_they_do_what_one_does() -> None:
    alone = null_target().run(as_json(PLAN), [TABLE.to_reader()])
    assert alone.wait(ENDS_WITHIN_S)
    segment, whole = alone.end()
    expected = identities(pa.Table.from_batches([segment["operations"]]), RunTotals.model_validate_json(whole))

    segments = []
    with shared_run(null_target(), PLAN, [TABLE], GENERATORS) as run:
        while not run.wait(0.3):
            segments.append(run.take())
        last, whole = run.end()
    segments.append(last)
    totals = RunTotals.model_validate_json(whole)
    operations = pa.Table.from_batches([segment["operations"] for segment in segments])
    found = identities(operations, totals)
    # What a busy machine dropped at the very end of a phase did not start.
    started = {identity[:2] for identity in expected} & {identity[:2] for identity in found}
    assert len(started) > 200
    assert {identity for identity in expected if identity[:2] in started} == {
        identity for identity in found if identity[:2] in started
    }
    for row in operations.to_pylist():
        assert row["generator"] == row["k"] % GENERATORS + 1
    assert set(operations["slot"].to_pylist()) <= set(range(8))

    # The sums are of all of them, and of what was handed over piece by piece.
    for phase in totals.phases:
        assert phase.started == sum(sum(report["counts"].values()) for report in phase.operations.values())
        assert sum((report["response_ns"] or {"count": 0})["count"] for report in phase.operations.values()) == phase.started
    logged: dict[str, int] = {}
    for segment in segments:
        if segment["histograms"]:
            for interval in _engine.read_interval_log(segment["histograms"]).to_pylist():
                logged[interval["tag"]] = logged.get(interval["tag"], 0) + sum(interval["count"])
    for phase in totals.phases:
        for name, report in phase.operations.items():
            assert logged[f"{phase.name}.{name}.response"] == report["counts"]["ok"]
    assert [generator.number for generator in totals.generators] == [1, 2, 3]
    assert sum(generator.started for generator in totals.generators) == operations.num_rows
    assert {(generator.unknown, generator.lost) for generator in totals.generators} == {(0, None)}


def test_a_changed_rate_is_the_same_for_all_of_them() -> None:
    # It continues until enough was done at the other rate, however late that is set on a busy machine.
    plan: EnginePlan = {
        **PLAN,
        "phases": [{"name": "measure", "duration_s": 120.0, "pace": {"segments": [{"from_per_s": 100.0}]}}],
    }
    segments = []
    with shared_run(null_target(), plan, [TABLE], 2) as run:
        assert not run.wait(0.5)
        run.set_rate(1000.0)
        while sum(segment["operations"].num_rows for segment in segments) < 500:
            assert not run.wait(0.2)
            segments.append(run.take())
        run.stop()
        while not run.wait(0.3):
            pass
        segments.append(run.end()[0])
    (event,) = (event for segment in segments for event in segment["events"])
    assert event[1] == "rate set to 1000/s"
    rows = [row for segment in segments for row in segment["operations"].to_pylist()]
    # One of them stopped earlier than the other: until then both did their share.
    ended = min(max(row["intended_start_ns"] for row in rows if row["generator"] == number) for number in (1, 2))
    intended = sorted(row["intended_start_ns"] for row in rows if event[0] <= row["intended_start_ns"] <= ended)
    assert len(intended) > 100
    assert {round((late - early) / 1e6) for early, late in pairwise(intended)} == {1}


def stress(folder: Path, *more: object) -> list[str]:
    words = ("stress", "--target", "null:", "--records", "20", "--mix", "read=3,write=1", "--generators", GENERATORS)
    return [*map(str, (*words, "--ramp", "100ms", "--warmup", "0", "--no-open", *more, "--out", folder))]


def test_a_run_that_they_share_looks_as_from_one_process(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = cli(*stress(out, "--rates", "300:600:300", "--step-duration", "1200ms", "--arrival", "constant", "--json"))
    assert ended.exit_code == 0, ended.err
    jsonschema.validate(ended.json, json_schemas()["stress-summary"])
    assert ended.json["result"]["workload"]["generators"] == GENERATORS
    for step in ended.json["result"]["steps"]:
        check_accounts(step)
        assert step["counts"]["offered"] == pytest.approx(step["rate_per_s"] * 1.2, abs=1)
    run = read_run(out / "runs" / "001")
    assert run.manifest.plan["generators"] == GENERATORS
    assert run.manifest.totals is not None
    assert [generator.host for generator in run.manifest.totals.generators] == ["local"] * GENERATORS
    resources = run.table("resources")
    assert resources is not None
    assert {f"generator {number}" for number in (1, 2, 3)} <= set(resources["process"].to_pylist())
    assert not any(psutil.pid_exists(generator.pid) for generator in run.manifest.totals.generators)


@pytest.mark.parametrize("schedule", ["{ rate = 400, concurrency = 4 }", "{ concurrency = 4 }"])
def test_an_experiment_that_they_share_reads_back_all_that_they_wrote(cli: Cli, tmp_path: Path, schedule: str) -> None:
    copytree(EXAMPLE, tmp_path / "example")
    changes = [
        f"workload.schedule={schedule}",
        "workload.duration=300ms",
        "workload.warmup=100ms",
        "workload.repetitions=1",
        "workload.log=all",
    ]
    words = [word for change in changes for word in ("--set", change)]
    out = tmp_path / "out"
    experiment = tmp_path / "example" / "experiment.toml"
    ended = cli("run", experiment, *words, "--generators", 2, "--no-open", "--json", "--out", out)
    assert ended.exit_code == 0, ended.err
    assert ended.json["answers_equal"] is True
    assert {checks["wrong"] for checks in ended.json["result"]["contents"].values()} == {0}
    assert min(checks["queried"] for checks in ended.json["result"]["contents"].values()) > 0
    for runs in read_comparison(out).runs.values():
        for run in runs:
            operations = run.table("operations")
            assert operations is not None
            assert {row["generator"] - row["k"] % 2 for row in operations.to_pylist()} == {1}
    # With another number of them, the rest would be another measurement.
    resumed = cli("run", experiment, *words, "--resume", "--no-open", "--out", out)
    assert (resumed.exit_code, "begun with another generators" in resumed.err) == (2, True), resumed.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--target", "duckdb"), "no other may use its data meanwhile"),
        (("--target", "sqlite", "--concurrency", "2"), "each load generator needs one"),
        (("--target", "sqlite", "--mix", "read=1,insert=1"), "what the run itself writes"),
    ],
)
def test_what_they_cannot_share_is_refused(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], expected: str) -> None:
    out = tmp_path / "out"
    ended = cli("stress", *arguments, "--rates", "100", "--generators", GENERATORS, "--no-open", "--out", out)
    assert (ended.exit_code, out.exists()) == (2, False), ended.err
    assert "--generators 3: " in ended.err
    assert expected in " ".join(ended.err.split())


@contextmanager
def long_run(folder: Path) -> Iterator[tuple["subprocess.Popen[str]", list[psutil.Process]]]:
    """A run that would continue for a minute, of which a part is written, and its load generators in their order."""
    command = (sys.executable, "-m", "sensorbench", *stress(folder, "--rates", "200", "--step-duration", "1m"))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            while len(list(folder.glob("runs/001/segments/*.hlog"))) < 1:
                assert process.poll() is None
                time.sleep(0.05)
            children = sorted(psutil.Process(process.pid).children(), key=lambda child: child.pid)
            assert len(children) == GENERATORS
            yield process, children
        finally:
            process.kill()
    _, alive = psutil.wait_procs(children, timeout=ENDS_WITHIN_S)
    assert alive == []


def totals_of(folder: Path) -> RunTotals:
    manifest = read_run(folder / "runs" / "001").manifest
    assert manifest.status == "interrupted"
    assert manifest.totals is not None
    return manifest.totals


def test_a_lost_load_generator_ends_the_run_and_is_named(tmp_path: Path) -> None:
    with long_run(tmp_path / "out") as (process, children):
        children[1].kill()
        _, printed = process.communicate(timeout=ENDS_WITHIN_S)
    assert process.returncode == 1, printed
    assert f"load generator 2 (process {children[1].pid}): it was ended by SIGKILL" in " ".join(printed.split())
    assert "results so far" in printed
    totals = totals_of(tmp_path / "out")
    known = [generator for generator in totals.generators if generator.lost is None]
    assert [generator.number for generator in known] == [1, 3]
    (lost,) = (generator for generator in totals.generators if generator.lost is not None)
    # What it had started, and did not hand over, is counted nowhere else.
    of_lost = lost.started - lost.unknown
    assert of_lost > 0
    started = sum(phase.started for phase in totals.phases)
    assert started == of_lost + sum(generator.started for generator in known)
    assert started == sum(sum(report["counts"].values()) for phase in totals.phases for report in phase.operations.values())
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["status"] == "interrupted"
    assert f"at least {lost.unknown} operations that it had started are unknown" in manifest["reason"]
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    for step in summary["result"]["steps"]:
        check_accounts(step)


def test_an_interruption_ends_all_of_them(tmp_path: Path) -> None:
    with long_run(tmp_path / "out") as (process, _):
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate(timeout=ENDS_WITHIN_S)
    assert process.returncode == 130, printed
    totals = totals_of(tmp_path / "out")
    assert {generator.lost for generator in totals.generators} == {None}
    assert sum(generator.unknown for generator in totals.generators) == 0


def test_ctrl_c_is_not_kept_waiting_by_a_load_generator_that_hangs(tmp_path: Path) -> None:
    with long_run(tmp_path / "out") as (process, children):
        children[1].send_signal(signal.SIGSTOP)
        # Somebody waits for its answer by then.
        time.sleep(1.0)
        interrupted_s = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate(timeout=ENDS_WITHIN_S)
        took_s = time.monotonic() - interrupted_s
    assert process.returncode == 130, printed
    assert took_s < HEARTBEAT_S - HURRIED_S
    said = f"interrupted; load generator 2 (process {children[1].pid}): it did not answer for {HURRIED_S:g} s; at least"
    assert said in " ".join(printed.split())
    assert "Traceback" not in printed
    totals = totals_of(tmp_path / "out")
    assert [generator.number for generator in totals.generators if generator.lost is not None] == [2]


def test_an_interruption_while_they_connect_is_not_kept_waiting(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with interrupted_while_they_connect(monkeypatch, LocalGenerator, 2):
        ended = cli(*stress(out, "--rates", "200", "--step-duration", "1m", "--generators", 2))
    assert (ended.exit_code, "Traceback" in ended.err) == (130, False), ended.err
    for folder in (out, out / "runs" / "001"):
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        assert (manifest["status"], manifest["reason"]) == ("interrupted", "interrupted by the user")


def test_they_end_by_themselves_when_nobody_controls_them(tmp_path: Path) -> None:
    # Leaving the context checks it.
    with long_run(tmp_path / "out") as (process, children):
        process.kill()
        process.wait()
        assert len(children) == GENERATORS


@pytest.fixture
def generator() -> Iterator[LocalGenerator]:
    generator = LocalGenerator(2)
    yield generator
    generator.close()
    assert not psutil.pid_exists(generator.pid)


def test_a_load_generator_that_hangs_is_lost(generator: LocalGenerator) -> None:
    os.kill(generator.pid, signal.SIGSTOP)
    with pytest.raises(LostGeneratorError, match=r"load generator 2 .*did not answer for 0.2 s"):
        generator._ask(StopRequest(cancels=False), Taken, 0.2)


def test_what_is_refused_to_a_load_generator_is_said_by_its_name(generator: LocalGenerator) -> None:
    with pytest.raises(EngineUsageError, match=r"load generator 2 .*unknown database"):
        generator.prepare(ShareWork("nothing://me:secret@host", SCHEMA, as_json(PLAN), [TABLE]))
    command = " ".join(psutil.Process(generator.pid).cmdline())
    assert "secret" not in command
    assert "secret" not in repr(ShareWork("nothing://me:secret@host", SCHEMA, as_json(PLAN), []))


def generator_totals(number: int, **changes: Any) -> dict[str, Any]:
    lag = {"count": 9, "mean": 9.0, "p50": 9, "p90": 9, "p95": 9, "p99": 9, "p999": 9, "max": 9}
    healthy = {"host": "local", "pid": 1, "started": 9, "dropped": 0, "unknown": 0, "lost": None, "start_lag_ns": 0}
    return {"number": number, **healthy, "timer_lag_ns": lag, "client_cpu_ns": 10**8, "duration_ns": 10**9, **changes}


def test_those_that_were_late_or_the_limit_are_named() -> None:
    late_timer = {"count": 9, "mean": 9.0, "p50": 2_000_000, "p90": 9, "p95": 9, "p99": 9, "p999": 9, "max": 9}
    totals = RunTotals.model_validate(
        {
            "phases": [],
            "errors": [],
            "timer_lag_ns": None,
            "client_cpu_ns": 0,
            "process_cpu_ns": 0,
            "clock_drift": 0.0,
            "duration_ns": 10**9,
            "generators": [
                generator_totals(1),
                generator_totals(2, start_lag_ns=3_000_000),
                generator_totals(3, timer_lag_ns=late_timer),
                generator_totals(4, client_cpu_ns=9 * 10**8),
            ],
        }
    )
    assert late_generators([totals]) == [
        "load generator 2 began 3 ms after the common start",
        "the timer of load generator 3 was late by 2 ms (median)",
    ]
    assert bound_generators([totals], 1) == "load generator 4: the client kept 0.90 CPUs busy, with 1 threads for its operations"
    assert bound_generators([totals], 2) is None
