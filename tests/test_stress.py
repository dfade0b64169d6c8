"""`sensorbench stress`: steps and their accounting, the search for capacity, steering, and what can be looked at meanwhile."""

import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest
from docsite import lists
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from sensorbench import lab
from sensorbench.benchmarks.stress.objective import Objective, parse_objective
from sensorbench.benchmarks.stress.steering import RATE_FILE, Steering, request_rate
from sensorbench.benchmarks.stress.step import Step, parse_rates, phases_of
from sensorbench.errors import EngineError, UsageError
from sensorbench.results.json_schemas import json_schemas
from sensorbench.results.manifest import Process
from sensorbench.results.stress import read_stress
from sensorbench.runner.monitor import Watcher
from sensorbench.runner.openmetrics import LoadMetrics, endpoint
from tests.conftest import Cli, commands_on, forget_checksums, run_main
from tests.servers import LabServers

FIXTURES = Path(__file__).parent / "fixtures"
DASHBOARD = Path(__file__).parents[1] / "docs" / "grafana" / "sensorbench-load.json"
SHORT = ("--step-duration", "500ms", "--ramp", "100ms", "--warmup", "0", "--no-open", "--json")


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("5000:30000:5000", [5000, 10000, 15000, 20000, 25000, 30000]),
        ("1:2:0.25", [1, 1.25, 1.5, 1.75, 2]),
        ("300:100:100", [300, 200, 100]),
        ("100:350:100", [100, 200, 300]),
        ("7", [7]),
        ("7,3.5", [7, 3.5]),
    ],
)
def test_rates(text: str, rates: list[float]) -> None:
    assert parse_rates(text) == pytest.approx(rates)


@pytest.mark.parametrize("text", ["", "fast", "1:2", "1:2:0", "0:5:1", "-1", "1,,2", "inf", "nan", "1:1e9:1"])
def test_wrong_rates_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--rates"):
        parse_rates(text)


def test_an_objective_counts_what_never_came() -> None:
    objective = parse_objective("p99=20ms", timeout_s=1.0)
    assert objective == Objective("p99", 0.02)
    assert (objective.is_met(0.99), objective.is_met(0.9899)) == (True, False)


@pytest.mark.parametrize("text", ["p99", "p42=5ms", "p99=5", "p99=0ms", "p99=2s"])
def test_wrong_objectives_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--objective"):
        parse_objective(text, timeout_s=2.0)


def test_each_step_is_reached_by_a_ramp_from_the_one_before() -> None:
    steps = [Step("step_1", 100.0, 5.0, 1.0), Step("step_2", 300.0, 5.0, 2.0), Step("step_3", 50.0, 5.0)]
    phases = phases_of(steps, "constant")
    assert [(phase["name"], phase["duration_s"], phase["pace"]["segments"][0]) for phase in phases] == [
        ("ramp_to_step_1", 1.0, {"from_per_s": 0.0, "to_per_s": 100.0, "length_s": 1.0}),
        ("step_1", 5.0, {"from_per_s": 100.0}),
        ("ramp_to_step_2", 2.0, {"from_per_s": 100.0, "to_per_s": 300.0, "length_s": 2.0}),
        ("step_2", 5.0, {"from_per_s": 300.0}),
        ("step_3", 5.0, {"from_per_s": 50.0}),
    ]


def test_warming_up_is_at_the_first_rate_and_needs_no_ramp_to_it() -> None:
    phases = phases_of([Step("step_1", 100.0, 5.0, 1.0), Step("step_2", 200.0, 5.0, 1.0)], "poisson", warmup_s=7.0)
    assert [(phase["name"], phase["duration_s"]) for phase in phases] == [
        ("warm_up", 7.0),
        ("step_1", 5.0),
        ("ramp_to_step_2", 1.0),
        ("step_2", 5.0),
    ]
    assert phases[0]["pace"]["segments"] == [{"from_per_s": 100.0}]


def check_accounts(step: dict[str, Any]) -> None:
    assert step["counts"]["offered"] == step["counts"]["started"] + step["counts"]["dropped"]
    assert (
        step["counts"]["started"]
        == step["counts"]["ok"] + step["counts"]["error"] + step["counts"]["timeout"] + step["counts"]["cancelled"]
    )
    for outcome in ("ok", "error", "timeout", "cancelled", "late"):
        assert step["counts"][outcome] == sum(of_name[outcome] for of_name in step["operations"].values())


@pytest.fixture(scope="module")
def stepped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("stress") / "out"
    arguments = ("stress", "--target", "sqlite", "--rates", "200:600:200", "--records", "300", "--mix", "read=3,write=1")
    assert run_main((*arguments, *SHORT, "--arrival", "constant", "--out", out)) == 0
    return out


def test_every_operation_of_a_step_is_accounted_for(stepped: Path) -> None:
    summary = json.loads((stepped / "summary.json").read_text(encoding="utf-8"))
    jsonschema.validate(summary, json_schemas()["stress-summary"])
    assert summary["status"] == "complete"
    assert [step["rate_per_s"] for step in summary["result"]["steps"]] == [200, 400, 600]
    for step in summary["result"]["steps"]:
        check_accounts(step)
        # At a constant rate the number of arrivals in a step is not a matter of chance.
        assert step["counts"]["offered"] == round(step["rate_per_s"] * 0.5)
        assert step["counts"]["error"] == 0
    reads, writes = (sum(step["operations"][name]["ok"] for step in summary["result"]["steps"]) for name in ("read", "update"))
    # 600 operations, 5 standard deviations.
    assert abs(reads - 0.75 * (reads + writes)) < 5 * (600 * 0.75 * 0.25) ** 0.5
    assert not (stepped / "data").exists()


def test_what_a_stress_run_leaves_keeps_to_its_published_schemas(stepped: Path) -> None:
    manifest = json.loads((stepped / "manifest.json").read_text(encoding="utf-8"))
    jsonschema.validate(manifest, json_schemas()["stress-manifest"])
    runs = list(stepped.glob("*/**/manifest.json"))
    assert len(runs) == 2
    for run in runs:
        jsonschema.validate(json.loads(run.read_text(encoding="utf-8")), json_schemas()["run-manifest"])


def test_the_page_is_written_again_from_the_results(cli: Cli, stepped: Path) -> None:
    before = json.loads((stepped / "summary.json").read_text(encoding="utf-8"))
    (stepped / "report.html").unlink()
    ended = cli("report", stepped, "--no-open", "--json")
    assert ended.exit_code == 0, ended.err
    assert ended.json == before
    page = (stepped / "report.html").read_text(encoding="utf-8")
    assert all(f'data-chart="{name}"' in page for name in ("curve", "completed", "rate", "latency"))
    assert (stepped / "charts" / "curve.svg").exists()
    (command,) = commands_on(stepped / "report.html")
    assert command == before["command"]
    assert command[:6] == ["sensorbench", "stress", "--target", "sqlite", "--rates", "200:600:200"]
    printed = cli("report", stepped, "--no-open").out
    assert all(f"\n{rate}" in printed or f" {rate} " in printed for rate in (200, 400, 600))


def test_beyond_capacity_all_is_counted_and_the_step_ends(cli: Cli, tmp_path: Path) -> None:
    """Two workers that take 20 ms each are asked for fifty times as much as they can do."""
    target = "null:?delay_ms=20&session=blocking"
    arguments = ("--rates", "5000", "--records", "1", "--concurrency", "2", "--arrival", "constant", "--out", tmp_path / "out")
    # So long that what a busy machine takes from the workers is little of it.
    ended = cli("stress", "--target", target, *arguments, "--step-duration", "2s", *SHORT[2:])
    assert ended.exit_code == 0, ended.err
    step = ended.json["result"]["steps"][0]
    check_accounts(step)
    assert step["counts"]["offered"] == 10_000
    # The step takes 2 s and lets start what is due a little after: each worker can begin 101 times at the most.
    assert 0 < step["counts"]["started"] <= 2 * 102
    assert step["counts"]["dropped"] == 10_000 - step["counts"]["started"]
    assert step["at_concurrency_limit"]
    assert ended.json["warnings"][0]["kind"] == "concurrency-limit"
    run = read_stress(tmp_path / "out").runs[0]
    totals = run.manifest.totals
    assert totals is not None
    assert totals.phases[-1].end_ns == (totals.phases[-1].start_ns or 0) + 2_000_000_000


def test_operations_that_time_out_are_counted(cli: Cli, tmp_path: Path) -> None:
    """From 500 to 800 ms after the beginning the database holds every call until then; those of the first 250 ms are given up."""
    arguments = ("--rates", "200", "--records", "1", "--timeout", "50ms", "--arrival", "constant", "--out", tmp_path / "out")
    ended = cli("stress", "--target", "null:?stall_at_ms=500&stall_ms=300", *arguments, "--step-duration", "1s", *SHORT[2:])
    assert ended.exit_code == 0, ended.err
    step = ended.json["result"]["steps"][0]
    check_accounts(step)
    assert step["counts"]["offered"] == 200
    assert step["counts"]["timeout"] > 10
    assert step["response_s"]["max"] >= 0.05


def test_records_that_steps_and_trials_add_never_meet(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "records.db"
    common = ("--target", f"sqlite:{place}?synchronous=off", "--records", "50", "--mix", "read=1,insert=1")
    stepping = cli("stress", *common, "--rates", "200,400", *SHORT, "--out", tmp_path / "steps")
    assert stepping.exit_code == 0, stepping.err
    assert [step["counts"]["error"] for step in stepping.json["result"]["steps"]] == [0, 0]
    again = cli("stress", *common, "--rates", "200", *SHORT, "--out", tmp_path / "again")
    assert (again.exit_code, "--replace" in again.err) == (2, True), again.err
    limits = ("--objective", "p50=100ms", "--from", "100", "--max-rate", "200", "--confirm", "2")
    searching = cli("capacity", *common, *limits, *SHORT, "--replace", "--out", tmp_path / "search")
    assert searching.exit_code == 0, searching.err
    assert {step["counts"]["error"] for step in searching.json["result"]["steps"]} == {0}
    inserted = 0
    for run in read_stress(tmp_path / "search").runs:
        phases = run.manifest.totals.phases if run.manifest.totals else []
        inserted += sum(phase.operations["insert"]["counts"]["ok"] for phase in phases)
    assert inserted > 0
    with sqlite3.connect(place) as database:
        assert database.execute("SELECT count(*) FROM usertable").fetchone() == (50 + inserted,)


def test_records_that_are_there_are_not_added_again(cli: Cli, tmp_path: Path) -> None:
    common = ("--target", f"sqlite:{tmp_path}/records.db", "--rates", "100", *SHORT)
    for number, (records, expected) in enumerate([("40", 0), ("40", 0), ("41", 2)]):
        ended = cli("stress", *common, "--records", records, "--out", tmp_path / str(number))
        assert ended.exit_code == expected, ended.err
        assert ("are there already" in ended.err) == (number == 1)
    assert "--replace" in ended.err


def test_the_capacity_of_the_null_database_is_below_what_its_workers_can_do(cli: Cli, tmp_path: Path) -> None:
    """How near it comes is a matter of the machine and measured by `make bench`; that it is never above is arithmetic."""
    arguments = ("--objective", "p90=50ms", "--concurrency", "4", "--arrival", "constant", "--confirm", "2")
    target = "null:?delay_ms=5&session=blocking"
    ended = cli(
        "capacity", "--target", target, "--records", "1", *arguments, "--precision", "10", *SHORT, "--out", tmp_path / "out"
    )
    assert ended.exit_code == 0, ended.err
    found, steps = ended.json["result"]["capacity"], ended.json["result"]["steps"]
    in_theory = 4 / 0.005
    assert found["met_per_s"] is not None
    # In half a second a queue may grow to 50 ms, a tenth of what the workers do.
    assert found["met_per_s"] <= in_theory * 1.15
    assert found["met_per_s"] < found["missed_per_s"]
    assert found["trials"] == len(steps)
    # At each end as many trials as were asked for, or more.
    for end, met in ((found["met_per_s"], True), (found["missed_per_s"], False)):
        at_end = [step["met"] for step in steps if step["rate_per_s"] == end]
        assert len(at_end) >= 2
        assert set(at_end) == {met}
    for step in steps:
        check_accounts(step)
        assert step["met"] == (step["share_within"] >= 0.9)
    assert re.search(r"keep p90 within 50.0 ms", cli("report", tmp_path / "out", "--no-open").out)


def test_an_experiment_files_own_data_and_operations(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        'dataset = "beijing-air-quality"\nscale = 0.02\n[[target]]\nurl = "sqlite"\nschema = "natural"\n[[target]]\nurl = "fjall"\n'
        'schema = "by_sensor"\n[workload]\nmix = { get_peak_data = 1, insert_reading = 1 }\nschedule = { concurrency = 1 }\noperations = 1\n',
        encoding="utf-8",
    )
    common = ("stress", "--experiment", file, "--rates", "50,100", *SHORT)
    ambiguous = cli(*common, "--out", tmp_path / "none")
    assert (ambiguous.exit_code, "name a target" in ambiguous.err) == (2, True), ambiguous.err
    ended = cli(*common, "--target", "sqlite", "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.err
    assert set(ended.json["result"]["operations"]) == {"get_peak_data", "insert_reading"}
    assert [step["rate_per_s"] for step in ended.json["result"]["steps"]] == [50, 100]
    for step in ended.json["result"]["steps"]:
        check_accounts(step)
        assert (step["counts"]["error"], step["counts"]["ok"] > 0) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--target", "sqlite"), "--rates: expected rates"),
        (("--rates", "5"), "--target: expected a database's name"),
        (("--target", "sqlite", "--rates", "5", "--mix", "raed=5"), "'raed': expected one of read, write"),
        (("--target", "sqlite", "--rates", "5", "--mix", "read"), "--mix read: expected operations with weights"),
        (("--target", "sqlite", "--rates", "5", "--mix", "read=0"), "one of them above zero"),
        (("--target", "sqlite", "--rates", "5", "--step-duration", "5"), "--step-duration '5': expected a length of time"),
        (("--target", "sqlite", "--rates", "5", "--arrival", "even"), "--arrival even: expected poisson or constant"),
        (("--target", "sqlite", "--rates", "5", "-p", "recordcount=0"), "recordcount is 0"),
        (("--target", "sqlite", "--rates", "5", "--distribution", "normal"), "expected one of uniform, zipfian"),
        (("--target", "sqlite", "--rates", "5", "--metrics", "here"), "--metrics here: expected a port"),
        (("--target", "sqlite", "--rates", "5", "--metrics", "192.0.2.1:9095"), "--metrics 192.0.2.1:9095: Cannot assign"),
        (("--target", "sqlite", "--rates", "5", "--experiment", "none.toml"), "none.toml: no such file"),
        (("--experiment", "x.toml", "--rates", "5", "--records", "5"), "its data are the file's"),
    ],
)  # fmt: skip
def test_wrong_usage_says_what_was_expected(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], expected: str) -> None:
    ended = cli("stress", *arguments, "--out", tmp_path / "out", "--no-open")
    assert (ended.exit_code, expected in ended.err) == (2, True), ended.err
    assert not (tmp_path / "out").exists()


@contextmanager
def long_load(folder: Path, *arguments: object) -> Iterator[None]:
    """A stress run of a minute on a database that answers at once, in a process of its own, of which a part is written: however busy the machine is,
    it continues until the context ends, when it is interrupted.
    """
    whole = ("stress", "--target", "null:", "--records", "1", "--warmup", "0", *arguments, "--no-open", "--out", folder)
    command = [sys.executable, "-m", "sensorbench", *map(str, whole)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            until(lambda: len(list(folder.glob("runs/001/segments/*.hlog"))) >= 2, process)
            yield
            process.send_signal(signal.SIGINT)
            _, said = process.communicate()
        finally:
            process.kill()
    assert process.returncode == 130, said
    assert "results so far" in said


def until(is_so: Callable[[], bool], process: "subprocess.Popen[str] | None" = None) -> None:
    while not is_so():
        assert process is None or process.poll() is None
        time.sleep(0.05)


def test_the_rate_can_be_changed_while_it_runs(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with long_load(folder, "--rates", "100", "--step-duration", "1m", "--ramp", "0", "--arrival", "constant"):
        request_rate(folder, 2000.0)
        until(lambda: not (folder / RATE_FILE).exists())
        # A segment that begins at the new rate.
        seen = len(list(folder.glob("runs/001/segments/*.hlog")))
        until(lambda: len(list(folder.glob("runs/001/segments/*.hlog"))) >= seen + 2)
    step = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["result"]["steps"][0]
    check_accounts(step)
    assert step["steered"] == ["rate set to 2000/s"]
    # At 100/s it would be a hundred a second.
    assert step["counts"]["offered"] > 110 * (step["end_s"] - step["start_s"])
    with pytest.raises(UsageError, match="the stress run there is interrupted"):
        request_rate(folder, 100.0)


def test_results_of_the_first_format_have_the_same_figures(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    shutil.copytree(FIXTURES / "format-1-stress", folder)
    before = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert "format" not in before
    after = cli("report", folder, "--no-open", "--json").json
    assert (after["format"], after["status"]) == (2, before["state"])
    assert len(after["result"]["steps"]) == len(before["steps"]) == 2
    for old, new in zip(before["steps"], after["result"]["steps"], strict=True):
        for key in ("rate_per_s", "start_s", "end_s", "completed_per_s", "response_s", "service_s"):
            assert new[key] == old[key], key
        counts = {"unstarted" if key == "dropped" else key: count for key, count in new["counts"].items()}
        assert counts == {key: old[key] for key in counts}


def test_what_was_measured_until_ctrl_c_stays_readable(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with long_load(folder, "--rates", "300,400", "--step-duration", "1m", "--ramp", "100ms"):
        pass
    summary = cli("report", folder, "--no-open", "--json").json
    assert summary["status"] == "interrupted"
    assert summary["result"]["steps"][0]["counts"]["ok"] > 0
    for step in summary["result"]["steps"]:
        check_accounts(step)


class Quiet:
    """A target of which nothing is to be known."""

    url = "null:"

    def status(self) -> str:
        return "{}"


def test_the_clients_processor_time_is_not_that_of_servers_which_it_started() -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        server = psutil.Process(busy.pid)
        used_before_s = server.cpu_times().user
        watcher = Watcher(Quiet(), {"server": lab.WatchedProcess.of(busy.pid)})  # type: ignore[arg-type]
        while server.cpu_times().user < used_before_s + 0.5:
            time.sleep(0.02)
        watcher.read_once_more(asks=False)
    finally:
        busy.kill()
        busy.wait()
    used_s = {row.process: row.cpu_s for row in watcher.take()[0]}
    assert used_s["server"] >= 0.45
    assert used_s["client"] < 0.4


class FakeRun:
    """A run that has its rate set and takes annotations."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.marks: list[str] = []

    def set_rate(self, per_s: float) -> None:
        if per_s < 0.0:
            raise EngineError("a rate below zero")
        self.rates.append(per_s)

    def annotate(self, name: str) -> None:
        self.marks.append(name)


def test_what_is_no_rate_is_told_and_the_load_goes_on(tmp_path: Path) -> None:
    steering, run = Steering(tmp_path), FakeRun()
    for text in ("", "fast\n", "-1\n", "250.5\n"):
        (tmp_path / RATE_FILE).write_text(text, encoding="utf-8")
        steering.on_snapshot(run, {})  # type: ignore[arg-type]
        assert not (tmp_path / RATE_FILE).exists()
    steering.on_snapshot(run, {})  # type: ignore[arg-type]
    assert run.rates == [250.5]
    assert [mark.partition(":")[0] for mark in run.marks] == ["rate not set"] * 3


def test_a_rate_cannot_be_set_where_nothing_runs(cli: Cli, stepped: Path, tmp_path: Path) -> None:
    searching = tmp_path / "searching"
    searching.mkdir()
    manifest = json.loads((stepped / "manifest.json").read_text(encoding="utf-8"))
    search = {"first_per_s": 1, "precision": 1, "confirm": 1, "min_per_s": 1, "max_per_s": None, "held_s": 1, "ramp_s": 1}
    running = {
        "status": "running",
        "plan": {**manifest["plan"], "search": search},
        "process": Process.this().model_dump(),
    }
    (searching / "manifest.json").write_text(json.dumps({**manifest, **running}), encoding="utf-8")
    wrong = [
        (stepped, 5, "is complete"),
        (tmp_path, 5, "no results are there"),
        (stepped, 0, "above zero"),
        (searching, 5, "chooses the rates"),
    ]
    for folder, rate, expected in wrong:
        ended = cli("set-rate", folder, rate)
        assert (ended.exit_code, expected in ended.err) == (2, True), ended.err
    going_on = tmp_path / "going-on"
    shutil.copytree(stepped, going_on)
    forget_checksums(going_on)
    (going_on / "manifest.json").write_text(json.dumps({**manifest, **running, "plan": manifest["plan"]}), encoding="utf-8")
    ended = cli("set-rate", going_on, 5, "--json")
    assert ended.exit_code == 0, ended.err
    assert ended.json == {"folder": str(going_on), "rate_per_s": 5.0}


def samples_of(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def figures(ok: int, *, late: int = 0, timeout: int = 0) -> dict[str, Any]:
    times = (
        {"count": ok + timeout, "mean": 2e6, "p50": 1e6, "p95": 3e6, "p99": 4e6, "p999": 5e6, "max": 6e6}
        if ok + timeout
        else None
    )
    counts = {"ok": ok, "error": 0, "timeout": timeout, "cancelled": 0}
    return {"counts": counts, "late": late, "response_ns": times, "service_ns": times}


def snapshot_of(*phases: tuple[int, int, dict[str, Any]]) -> dict[str, Any]:
    told = [{"started": started, "dropped": dropped, "operations": {"read": read}} for started, dropped, read in phases]
    return {"now_ns": 1_500_000_000, "current_phase": len(phases) - 1, "phases": told}


def scraped(metrics: LoadMetrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in metrics.collect()
        for sample in family.samples
    }


def test_counters_go_on_over_phases_and_runs() -> None:
    metrics = LoadMetrics()
    assert list(metrics.collect()) == []
    first, second = object(), object()
    metrics.on_snapshot(first, snapshot_of((10, 0, figures(7, late=1)), (5, 3, figures(4, timeout=1))))  # type: ignore[arg-type]
    found = scraped(metrics)
    assert found["sensorbench_operations_total", (("operation", "read"), ("outcome", "ok"))] == 11
    assert found["sensorbench_operations_started_total", ()] == 15
    assert found["sensorbench_operations_in_flight", ()] == 15 - 12
    assert found["sensorbench_response_seconds_sum", (("operation", "read"),)] == pytest.approx(12 * 0.002)
    metrics.on_snapshot(second, snapshot_of((2, 1, figures(2))))  # type: ignore[arg-type]
    found = scraped(metrics)
    assert found["sensorbench_operations_total", (("operation", "read"), ("outcome", "ok"))] == 13
    assert found["sensorbench_operations_total", (("operation", "read"), ("outcome", "timeout"))] == 1
    assert found["sensorbench_operations_dropped_total", ()] == 4
    assert found["sensorbench_operations_late_total", (("operation", "read"),)] == 1
    assert found["sensorbench_operations_in_flight", ()] == 0
    assert found["sensorbench_response_seconds", (("operation", "read"), ("quantile", "0.99"))] == pytest.approx(0.004)


def test_the_endpoint_speaks_openmetrics_and_has_what_dashboard_and_docs_name() -> None:
    with endpoint("0") as metrics:
        metrics.on_snapshot(object(), snapshot_of((3, 0, figures(3))))  # type: ignore[arg-type]
        request = urllib.request.Request(
            f"http://127.0.0.1:{metrics.port}/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
        )
        with urllib.request.urlopen(request) as answer:
            text = answer.read().decode()
            assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    served = {name for name, _ in samples_of(text)}
    in_dashboard = set(re.findall(r"sensorbench_[a-z_]+", DASHBOARD.read_text(encoding="utf-8")))
    assert in_dashboard <= served
    assert len(in_dashboard) > 7
    documented = set(re.findall(r"`(sensorbench_[a-z_]+)", lists.openmetrics()))
    assert {re.sub("_(count|sum)$", "", name) for name in served} == documented


def test_the_running_load_can_be_scraped(tmp_path: Path) -> None:
    with endpoint("0") as free:
        port = free.port
    with (
        long_load(tmp_path / "out", "--rates", "500", "--step-duration", "1m", "--metrics", port),
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer,
    ):
        text = answer.read().decode()
    assert float(re.findall(r"^sensorbench_operations_started_total (\S+)", text, re.MULTILINE)[0]) > 0


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (
            "cassandra",
            {"rates": {"garbage_collection_s", "processor_s", "flushes"}, "means": {"memtable_heap_bytes", "sstables"}},
        ),
        ("postgresql", {"rates": {"file_read_bytes", "processor_s"}, "hit_rates": {"shared buffers"}}),
    ],
)
def test_what_a_server_says_stands_beside_each_step(
    cli: Cli, lab_servers: LabServers, tmp_path: Path, server: str, said: dict[str, set[str]]
) -> None:
    lab_servers.start(server)
    load = (
        "--rates",
        "100,200",
        "--step-duration",
        "4s",
        "--ramp",
        "500ms",
        "--warmup",
        "1s",
        "--records",
        "200",
        "--mix",
        "read=1,write=1",
    )
    target = f"lab:{server}?namespace=sensorbench_stress"
    ended = cli("stress", "--target", target, *load, "--replace", "--no-open", "--json", "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.err
    assert [step["rate_per_s"] for step in ended.json["result"]["steps"]] == [100, 200]
    for step in ended.json["result"]["steps"]:
        check_accounts(step)
        assert step["counts"]["ok"] > 0
        for kind, names in said.items():
            assert names <= step["servers"][kind].keys(), kind
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert 'data-chart="server-processor_s"' in page
