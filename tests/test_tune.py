"""`sensorbench tune`: search spaces, goals, the search and its judgement on made-up functions, and searches on databases."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from sensorbench.analysis.capacity import Search
from sensorbench.benchmarks.stress.records import RecordWork
from sensorbench.benchmarks.stress.run import Load
from sensorbench.benchmarks.stress.work import Work
from sensorbench.benchmarks.tune import run as tuning
from sensorbench.benchmarks.tune.configured import unknown_settings
from sensorbench.benchmarks.tune.confirm import verdict
from sensorbench.benchmarks.tune.drift import default_at
from sensorbench.benchmarks.tune.goal import CapacityGoal, PercentileGoal, parse_goal
from sensorbench.benchmarks.tune.judging import judged
from sensorbench.benchmarks.tune.measure import Bench, Order, Pruner, measure
from sensorbench.benchmarks.tune.options import parse_start
from sensorbench.benchmarks.tune.run import Budget, TuneBenchmark, TunePlan, next_role
from sensorbench.benchmarks.tune.search import Tried, propose
from sensorbench.benchmarks.tune.space import SPACES, Configuration, Space, load_space
from sensorbench.benchmarks.tune.summary import summarise_tune
from sensorbench.compat.ycsb import overridden
from sensorbench.compat.ycsb.core_workload import parse_core_workload
from sensorbench.errors import FailedError, InterruptedRunError, UsageError
from sensorbench.lifecycle.benchmark import run as run_benchmark
from sensorbench.progress import ProgressReporter
from sensorbench.results.json_schemas import json_schemas
from sensorbench.results.tune import Measurement, TuneResult, read_tune
from sensorbench.runner.variants import parse_target
from tests.conftest import Cli, commands_on

SHIPPED = sorted(path.stem for path in SPACES.glob("*.toml"))
SHORT = ("--step-duration", "600ms", "--ramp", "0", "--warmup", "0", "--no-open", "--json")
NULL_SPACE = """database = "null"
file = "the URL"
line = "{key}={value}"
[settings.delay_ms]
about = "How long each operation takes."
low = 1
high = 20
[settings.session]
about = "How the client waits."
values = ["blocking"]
"""
NULL = (
    "tune",
    "--target",
    "null",
    "--records",
    "1",
    "--server-setting",
    "delay_ms=20",
    "--server-setting",
    "session=blocking",
    *SHORT,
)


def space_of(text: str, tmp_path: Path) -> Space:
    file = tmp_path / "space.toml"
    file.write_text(text, encoding="utf-8")
    return load_space("null", file)[0]


def goal_of(text: str, *, timeout_s: float = 10.0, held_s: float = 1.0) -> Any:
    return parse_goal(text, held_s=held_s, ramp_s=0.0, timeout_s=timeout_s, search=Search(100.0, 0.1, 1, max_per_s=200.0))


# Search spaces


def test_spaces_come_for_these_databases() -> None:
    assert SHIPPED == ["cassandra", "mariadb", "postgresql", "questdb", "redis", "sqlite"]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_settings_of_shipped_spaces_are_known_to_their_databases(name: str) -> None:
    space, _ = load_space(name, None)
    assert space.weaker
    assert len(space.with_durability().settings) >= 3
    for place in (0, -1):
        choices = {key: setting.choices[place] for key, setting in space.settings.items()}
        assert unknown_settings(parse_target(name), space.written(choices)) == {}


def test_values_are_written_as_in_the_servers_file(tmp_path: Path) -> None:
    space = space_of(
        'database = "null"\nfile = "f"\nline = "{key} = \'{value}\'"\n[settings.size]\nabout = "a"\nlow = 1\nhigh = 9\nunit = "MB"\n'
        '[settings.cost]\nabout = "b"\nlow = 1.0\nhigh = 2.0\n[settings.way]\nabout = "c"\nvalues = ["on", "off"]\n',
        tmp_path,
    )
    written = space.written({"size": 4, "cost": 1.23456789, "way": "on"})
    assert written == {"size": "4MB", "cost": "1.23457", "way": "on"}
    assert space.snippet(written) == "size = '4MB'\ncost = '1.23457'\nway = 'on'"


def test_what_is_no_line_of_the_servers_file_is_written_as_its_own_line_says() -> None:
    space, _ = load_space("cassandra", None)
    changed = {"default_compaction": "{class_name: X, parameters: {}}", "jvm.sstable_compression": "false"}
    assert space.snippet(changed).splitlines() == [
        "default_compaction: {class_name: X, parameters: {}}",
        "# in jvm-server.options: -Dcassandra.sstable_compression_default=false",
    ]
    assert space.described().settings["jvm.sstable_compression"].line == space.settings["jvm.sstable_compression"].line


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("values = [1]\nlow = 1", "line 4, settings.x: expected either values, or low and high"),
        ("low = 1", "expected values, or low and high"),
        ("values = []", "settings.x.values"),
        ("low = 2\nhigh = 2", "low must be below high"),
        ("low = 0\nhigh = 2\nlog = true", "log needs numbers above zero"),
        ("low = 1\nhigh = 2\nstep = 5", "step must be above zero and not above high - low"),
        ("values = [1]\nline = 'x'", "line must have {value}"),
        ("values = [1]\ncolour = 1", "line 7, settings.x.colour: unknown key"),
        ("values = [true]", "settings.x.values"),
        ("low = 1\nhigh = 2\ndurability = true", "durability needs values, the safest first"),
    ],
)
def test_a_wrong_space_is_refused_with_file_line_and_key(tmp_path: Path, setting: str, expected: str) -> None:
    with pytest.raises(UsageError) as error:
        space_of(f'database = "null"\nfile = "f"\n\n[settings.x]\nabout = "a"\n{setting}\n', tmp_path)
    assert expected in str(error.value)
    assert str(tmp_path / "space.toml") in str(error.value)


def test_what_trades_durability_is_left_out_and_nothing_else(tmp_path: Path) -> None:
    text = 'database = "null"\nfile = "f"\n[settings.a]\nabout = "a"\nvalues = [1]\ndurability = true\n'
    with pytest.raises(UsageError, match="--allow-durability"):
        space_of(text, tmp_path).with_durability()
    both = space_of(f'{text}[settings.b]\nabout = "b"\nvalues = [1]\n', tmp_path)
    assert (both.weaker, list(both.with_durability().settings)) == (["a"], ["b"])


@pytest.mark.parametrize("texts", [["a"], ["=1"], ["a=1", "a=2"]])
def test_a_start_that_is_none_is_refused(texts: list[str]) -> None:
    with pytest.raises(UsageError, match="--server-setting"):
        parse_start(texts)


# Goals


def test_goals_know_which_way_is_better() -> None:
    assert [goal_of(text).smaller_is_better for text in ("p99@2000", "capacity:p99=20ms", "load", "size")] == [
        True,
        False,
        True,
        True,
    ]
    percentile, capacity = goal_of("p999@2000"), goal_of("capacity:p99=20ms")
    assert isinstance(percentile, PercentileGoal)
    assert (percentile.percentile, percentile.step.rate_per_s) == ("p999", 2000.0)
    assert isinstance(capacity, CapacityGoal)
    assert capacity.search.objective.limit_s == 0.02


@pytest.mark.parametrize(
    "text", ["", "p99", "p42@5", "p99@0", "p99@fast", "p99@inf", "capacity", "capacity:p99", "capacity:p99=20s", "loads"]
)
def test_wrong_goals_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--goal"):
        goal_of(text)


# What is measured


def null_work(target: str = "null", records: int = 1) -> Callable[[Path, int], Work]:
    workload, _ = parse_core_workload(overridden({}, [f"recordcount={records}", "updateproportion=0.5", "readproportion=0.5"]))
    return lambda folder, seed: RecordWork(parse_target(target), workload, folder, seed=seed, replace=False)


def measured(
    goal: Any, folder: Path, configuration: Configuration, *, target: str = "null", timeout_s: float = 10.0
) -> Measurement:
    load = Load(concurrency=2, timeout_s=timeout_s, arrival="constant", pin=False)
    return measure(Bench(null_work(target, 20), load, goal), Order("search", configuration, {}, 1), folder, None)


def test_operations_that_never_started_count_as_the_time_out(tmp_path: Path) -> None:
    """Two workers that take 20 ms each end 50 of 1000 operations in half a second."""
    slow = {"delay_ms": "20", "session": "blocking"}
    goal = goal_of("p50@2000", timeout_s=5.0, held_s=0.5)
    assert measured(goal, tmp_path / "beyond", slow, timeout_s=5.0).value == 5.0
    within = measured(goal_of("p50@10", timeout_s=5.0, held_s=1.0), tmp_path / "within", slow, timeout_s=5.0)
    assert within.value is not None
    assert 0.02 <= within.value < 5.0


def test_capacity_load_and_size_are_figures_of_the_same_measurement(tmp_path: Path) -> None:
    load = measured(goal_of("load"), tmp_path / "load", {"cache_mib": "1"}, target="sqlite")
    assert (load.outcome, load.value) == ("measured", load.load_s)
    size = measured(goal_of("size"), tmp_path / "size", {"cache_mib": "1"}, target="sqlite")
    assert (size.outcome, size.value) == ("measured", size.size_bytes)
    assert size.value is not None
    assert size.value > 20 * 10 * 100
    unknown = measured(goal_of("size"), tmp_path / "none", {"delay_ms": "0"})
    assert (unknown.outcome, unknown.reason) == ("failed", "there is no such figure")
    capacity = measured(goal_of("capacity:p50=9s", held_s=0.2), tmp_path / "capacity", {"delay_ms": "0"})
    assert (capacity.outcome, capacity.value) == ("measured", 200.0)


class FakeRun:
    """A run that can be stopped."""

    stopped = False

    def stop(self) -> None:
        self.stopped = True


def told(now_s: float, *p99_s: float) -> dict[str, Any]:
    operations = {str(place): {"response_ns": {"p50": 0.0, "p99": value * 1e9}} for place, value in enumerate(p99_s)}
    return {"now_ns": now_s * 1e9, "phases": [{"start_ns": 0, "operations": {}}, {"start_ns": 1e9, "operations": operations}]}


@pytest.mark.parametrize(
    ("snapshot", "is_so"),
    [
        (told(1.5, 1.0), False),
        (told(4.0), False),
        (told(4.0, 0.02), False),
        (told(4.0, 1.0, 0.02), False),
        (told(4.0, 1.0, 0.031), True),
    ],
)
def test_only_what_is_far_worse_in_all_operations_after_a_while_is_given_up(snapshot: dict[str, Any], is_so: bool) -> None:
    hopeless, run = Pruner("p99", best_s=0.01, held_s=10.0), FakeRun()
    hopeless.on_snapshot(run, snapshot)  # type: ignore[arg-type]
    assert (hopeless.is_so, run.stopped) == (is_so, is_so)


# The search, on made-up functions

MADE_UP = """database = "null"
file = "f"
[settings.size]
about = "a"
low = 1
high = 1024
log = true
[settings.share]
about = "b"
low = 0.0
high = 1.0
[settings.way]
about = "c"
values = ["slow", "fast"]
"""


def made_up(choices: Any) -> float:
    """Smallest, 0, at size 64, share 0.25, way fast."""
    from math import log2

    return float(
        (log2(int(choices["size"])) - 6.0) ** 2 / 36.0 + (float(choices["share"]) - 0.25) ** 2 + (choices["way"] == "slow")
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_search_comes_near_the_optimum_of_a_known_function(tmp_path: Path, seed: int) -> None:
    space, tried = space_of(MADE_UP, tmp_path), []
    for _ in range(40):
        choices = propose(space, tried, {}, seed)
        tried.append(Tried(choices, made_up(choices)))
    assert min(trial_.cost for trial_ in tried if trial_.cost is not None) < 0.02
    # Of the second half more than at random: half of all would be slow.
    assert sum(trial_.choices["way"] == "slow" for trial_ in tried[20:]) < 7


def test_what_failed_is_avoided_and_a_search_can_go_on_from_what_was_tried(tmp_path: Path) -> None:
    space, tried = space_of(MADE_UP, tmp_path), []
    for _ in range(30):
        choices = propose(space, tried, {}, 5)
        assert choices == propose(space, list(tried), {}, 5)
        tried.append(Tried(choices, None if choices["way"] == "fast" else 1.0))
    assert sum(trial_.choices["way"] == "fast" for trial_ in tried[15:]) < 5


def test_nothing_is_tried_twice_while_there_is_something_new(tmp_path: Path) -> None:
    space = space_of('database = "null"\nfile = "f"\n[settings.x]\nabout = "a"\nvalues = [1, 2, 3, 4]\n', tmp_path)
    tried: list[Tried] = []
    for _ in range(3):
        tried.append(Tried(propose(space, tried, {"x": "4"}, 1), 0.0))
    assert sorted(trial_.choices["x"] for trial_ in tried) == [1, 2, 3]
    assert propose(space, tried, {"x": "4"}, 1)["x"] in (1, 2, 3, 4)


def test_the_default_stands_on_both_sides_of_each_trial() -> None:
    def roles(budget: Budget) -> list[str]:
        trials: list[Measurement] = []
        while role := next_role(trials, budget):
            trials.append(Measurement(role=role, configuration={}, outcome="measured", value=1.0, seed=1, took_s=10.0))
        return [trial.role[0] for trial in trials]

    assert "".join(roles(Budget(3, None))) == "dsd"
    assert "".join(roles(Budget(8, None))) == "dssssdsd"
    assert "".join(roles(Budget(6, None))) == "dssssd"
    assert "".join(roles(Budget(7, None))) == "dssssd"
    assert "".join(roles(Budget(None, 30.0))) == "dssd"
    assert "".join(roles(Budget(None, 5.0))) == "dsd"
    assert "".join(roles(Budget(20, 25.0))) == "dssd"


def test_trials_are_compared_with_the_default_around_them() -> None:
    assert default_at({0: 1.0, 4: 16.0}, 2) == pytest.approx(4.0)
    assert (default_at({0: 1.0, 4: 16.0}, 9), default_at({3: 5.0}, 0)) == (pytest.approx(16.0), pytest.approx(5.0))
    trials = [
        Measurement(role=role, configuration={}, outcome="measured", value=value, seed=1, took_s=1.0)
        for role, value in (("default", 1.0), ("search", 1.0), ("default", 4.0))  # type: ignore[misc]
    ]
    assert [trial.ratio for trial in judged(trials)] == pytest.approx([1.0, 0.5, 1.0])


class MadeUp:
    """Measurements that are a function of the configuration and of how many came before."""

    def __init__(self, figure: Callable[[Configuration, int], float | None]) -> None:
        self.figure = figure
        self.count = 0

    def __call__(self, bench: Bench, order: Order, folder: Path, best: float | None) -> Measurement:
        value = self.figure(dict(order.configuration), self.count)
        self.count += 1
        return Measurement(
            role=order.role,
            choices=dict(order.choices),
            configuration=dict(order.configuration),
            outcome="measured" if value else "failed",
            value=value,
            reason=None if value else "the server ended while it started: out of memory",
            seed=order.seed,
            took_s=1.0,
        )


@pytest.fixture
def carry_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., TuneResult]:
    """Carries out a search on a made-up function."""

    def run(
        figure: Callable[[Configuration, int], float | None],
        space: str = MADE_UP,
        *,
        goal: str = "p99@100",
        start: Configuration | None = None,
        runs: int = 15,
        out: str = "out",
        resume: bool = False,
    ) -> TuneResult:
        monkeypatch.setattr(tuning, "measure", MadeUp(figure))
        bench = Bench(null_work(), Load(2), goal_of(goal))
        folder, work = tmp_path / out, null_work()(tmp_path / out, 1)
        plan = TunePlan(bench, work, space_of(space, tmp_path), [], start or {}, Budget(runs, None), 3, 1)
        run_benchmark(TuneBenchmark(), plan, folder, ProgressReporter(quiet=True), resume=resume)
        return read_tune(folder)

    return run


START = {"size": "2", "share": "0.9", "way": "slow"}


def test_a_gain_is_found_and_confirmed_while_the_machine_becomes_slower(carry_out: Callable[..., TuneResult]) -> None:
    """Each measurement takes 10 % longer than the one before: the last trials look worse than the first default."""
    result = carry_out(lambda at, before: (0.1 + made_up(at)) * 1.1**before, start=START)
    summary = summarise_tune(result)
    found = summary.result
    assert found.verdict == "gain"
    assert made_up(found.best) == min(made_up(trial.configuration) for trial in result.trials)
    assert found.ratio.value == pytest.approx((0.1 + made_up(found.best)) / (0.1 + made_up(START)), rel=0.1)
    assert found.ratio.high < 1
    assert found.drift.last_to_first == pytest.approx(1.1**14)
    assert [warning.kind for warning in summary.warnings] == ["drift", "embedded"]
    assert [measurement.role for measurement in result.confirmation] == ["default", "best", "best", "default", "default", "best"]
    assert [measurement.seed for measurement in result.confirmation] == [2, 2, 3, 3, 4, 4]
    assert {trial.seed for trial in result.trials} == {1}
    assert f"way = {found.best['way']}" in found.snippet


@pytest.mark.parametrize(("safest", "kinds"), [("slow", ["durability", "embedded"]), ("fast", ["embedded"])])
def test_a_gain_by_less_durability_is_told(carry_out: Callable[..., TuneResult], safest: str, kinds: list[str]) -> None:
    values = ["slow", "fast"] if safest == "slow" else ["fast", "slow"]
    space = f'database = "null"\nfile = "f"\n[settings.way]\nabout = "c"\nvalues = {json.dumps(values)}\ndurability = true\n'
    summary = summarise_tune(carry_out(lambda at, _: 1.0 if at["way"] == "fast" else 2.0, space, start={"way": "slow"}, runs=6))
    assert (summary.result.verdict, summary.result.best) == ("gain", {"way": "fast"})
    assert [warning.kind for warning in summary.warnings] == kinds


def test_more_is_better_for_a_capacity(carry_out: Callable[..., TuneResult]) -> None:
    summary = summarise_tune(carry_out(lambda at, _: 1.0 / (0.1 + made_up(at)), goal="capacity:p99=20ms", start=START)).result
    assert summary.verdict == "gain"
    assert summary.ratio.low > 1
    assert summary.best["way"] == "fast"


def test_identical_settings_are_no_gain(carry_out: Callable[..., TuneResult]) -> None:
    identical = 'database = "null"\nfile = "f"\n[settings.x]\nabout = "a"\nvalues = ["same", "same"]\n'
    as_default = summarise_tune(carry_out(lambda _, before: 1.0 - before / 100, identical, start={"x": "same"}, runs=4)).result
    assert (as_default.verdict, as_default.reason) == ("no gain", "the best configuration that was found is the default")
    assert (as_default.snippet, as_default.confirmation) == ("", [])


def test_what_the_search_was_lucky_with_is_no_gain(carry_out: Callable[..., TuneResult]) -> None:
    """The settings do nothing; one trial of the search was fast by chance."""
    lucky = [1.0, 1.02, 0.5, 0.98, 1.01, 1.0]
    noise = [1.0, 1.03, 0.97, 1.01, 1.02, 0.99]
    summary = summarise_tune(carry_out(lambda _, before: [*lucky, *noise][before], runs=6)).result
    assert summary.search_ratio == pytest.approx(0.5)
    assert summary.verdict == "no gain"
    assert summary.ratio.low < 1 < summary.ratio.high
    assert summary.snippet == ""


def test_two_alike_are_called_a_gain_no_oftener_than_the_interval_allows() -> None:
    """A 95 % interval lies below 1 by chance in 2.5 % of confirmations; 4000 of them, 4 standard deviations."""
    random, gains = np.random.default_rng(1), 0
    for _ in range(4000):
        values = np.exp(random.normal(0.0, 0.2, 6))
        roles = ("default", "best", "best", "default", "default", "best")
        runs = [
            Measurement(role=role, configuration={}, outcome="measured", value=value, seed=1, took_s=1.0)  # type: ignore[arg-type]
            for role, value in zip(roles, values, strict=True)
        ]
        gains += verdict(runs, 3, smaller_is_better=True).is_gain
    assert abs(gains / 4000 - 0.025) < 4 * (0.025 * 0.975 / 4000) ** 0.5


def test_a_worse_confirmation_is_no_gain_however_sure(carry_out: Callable[..., TuneResult]) -> None:
    summary = summarise_tune(carry_out(lambda at, before: 0.5 if before < 6 and at else 2.0 if at else 1.0, runs=6)).result
    assert summary.verdict == "no gain"
    assert summary.ratio.low > 1


def test_a_server_that_does_not_start_is_a_failed_trial_with_its_words(carry_out: Callable[..., TuneResult]) -> None:
    result = carry_out(lambda at, _: None if at["way"] == "fast" else 0.1 + made_up(at), start=START)
    failed = [trial for trial in result.trials if trial.outcome == "failed"]
    assert failed
    assert all(measurement.reason and "out of memory" in measurement.reason for measurement in failed)
    summary = summarise_tune(result)
    assert summary.result.best["way"] == "slow"
    assert "failed" in [warning.kind for warning in summary.warnings]


def test_a_default_that_cannot_be_measured_ends_the_search(carry_out: Callable[..., TuneResult], tmp_path: Path) -> None:
    with pytest.raises(FailedError, match=r"the default cannot be measured: .* out of memory"):
        carry_out(lambda *_: None)
    assert read_tune(tmp_path / "out").state == "failed"


def test_a_confirmation_that_fails_is_no_gain(carry_out: Callable[..., TuneResult]) -> None:
    result = carry_out(lambda at, before: None if before == 8 else 0.1 + made_up(at), start=START, runs=6)
    summary = summarise_tune(result).result
    assert (summary.verdict, "1 of 3 pairs" in summary.reason) == ("no gain", True)


@pytest.mark.parametrize("cut_after", [3, 17])
def test_a_search_that_was_cut_short_goes_on_as_it_would_have(
    carry_out: Callable[..., TuneResult], tmp_path: Path, cut_after: int
) -> None:
    def figure(at: Configuration, _: int) -> float:
        return 0.1 + made_up(at)

    def cut(at: Configuration, before: int) -> float:
        if before == cut_after:
            raise KeyboardInterrupt
        return figure(at, before)

    whole = carry_out(figure, start=START, out="whole")
    with pytest.raises(InterruptedRunError, match="--resume goes on"):
        carry_out(cut, start=START, out="cut")
    before = summarise_tune(read_tune(tmp_path / "cut"))
    assert (before.status, before.result.verdict, len(before.result.trials)) == ("interrupted", None, min(cut_after, 15))
    resumed = carry_out(figure, start=START, out="cut", resume=True)
    assert resumed.trials == whole.trials
    assert resumed.confirmation == whole.confirmation
    assert resumed.state == "complete"
    with pytest.raises(UsageError, match="has another start"):
        carry_out(figure, start={**START, "size": "3"}, out="cut", resume=True)
    with pytest.raises(UsageError, match="is not empty"):
        carry_out(figure, start=START, out="cut")


def test_a_confirmation_of_another_best_is_made_again(carry_out: Callable[..., TuneResult]) -> None:
    def figure(at: Configuration, _: int) -> float:
        return 0.1 + made_up(at)

    short = carry_out(figure, start=START, runs=3)
    longer = carry_out(figure, start=START, runs=30, resume=True)
    bests = [
        {str(sorted(measurement.configuration.items())) for measurement in result.confirmation if measurement.role == "best"}
        for result in (short, longer)
    ]
    assert bests[0] != bests[1]
    assert len(bests[1]) == 1


# Databases


def null_space(tmp_path: Path) -> Path:
    file = tmp_path / "null.toml"
    file.write_text(NULL_SPACE, encoding="utf-8")
    return file


def test_a_gain_on_a_database_of_known_speed(cli: Cli, tmp_path: Path) -> None:
    """Operations take what the option says, 20 ms to begin with."""
    out = tmp_path / "out"
    ended = cli(*NULL, "--goal", "p50@50", "--space", null_space(tmp_path), "--budget-runs", "6", "--out", out)
    assert ended.exit_code == 0, ended.err
    summary = ended.json
    result = summary["result"]
    assert (summary["status"], result["verdict"]) == ("complete", "gain")
    assert result["ratio"]["high"] < 1
    assert int(result["best"]["delay_ms"]) < 12
    assert result["snippet"] == f"delay_ms={result['best']['delay_ms']}"
    measured_trials = [trial for trial in result["trials"] if trial["outcome"] == "measured"]
    # What is far worse than the best is given up: not the default, and not the best itself.
    assert len(measured_trials) >= 3
    for measured_trial in measured_trials:
        assert measured_trial["value"] >= int(measured_trial["configuration"]["delay_ms"]) / 1000
    jsonschema.validate(json.loads((out / "manifest.json").read_text(encoding="utf-8")), json_schemas()["tune-manifest"])
    jsonschema.validate(summary, json_schemas()["tune-summary"])
    assert (summary["format"], summary["kind"]) == (2, "tune")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert all(f'data-chart="{name}"' in page for name in ("history", "parallel"))
    assert (out / "charts" / "history.svg").exists()
    assert commands_on(out / "report.html") == [summary["command"]]
    assert summary["command"][:2] == ["sensorbench", "tune"]
    (out / "summary.json").unlink()
    assert "\ndelay_ms=" in cli("report", out, "--no-open").out
    assert json.loads((out / "summary.json").read_text(encoding="utf-8")) == summary
    trial = cli("report", out / "trials" / "001", "--no-open", "--json").json
    assert (trial["kind"], trial["result"]["steps"][0]["rate_per_s"]) == ("stress", 50)


def test_identical_settings_of_a_database_are_no_gain(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "identical.toml"
    file.write_text(
        'database = "null"\nfile = "f"\n[settings.delay_ms]\nabout = "a"\nvalues = [1, 1]\n[settings.session]\nabout = "b"\n'
        'values = ["blocking", "blocking"]\n',
        encoding="utf-8",
    )
    start = ("--server-setting", "delay_ms=1", "--server-setting", "session=blocking", "--records", "1", "--space", file)
    ended = cli("tune", "--target", "null", "--goal", "load", *start, *SHORT, "--budget-runs", "3", "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.err
    result = ended.json["result"]
    assert (result["verdict"], result["ratio"], result["snippet"]) == ("no gain", None, "")
    assert "No gain: the best configuration that was found is the default." in cli("report", tmp_path / "out", "--no-open").out


def test_ctrl_c_leaves_what_was_measured_and_resume_goes_on(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = (*NULL, "--goal", "p50@50", "--space", null_space(tmp_path), "--budget-runs", "3", "--out", out)
    command = (sys.executable, "-m", "sensorbench", *map(str, arguments))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (out / "trials" / "002" / "manifest.json").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert process.returncode == 130, told
    assert "--resume goes on" in told
    assert cli("report", out, "--no-open", "--json").json["status"] == "interrupted"
    first = read_tune(out).trials[0]
    ended = cli(*arguments, "--resume")
    assert ended.exit_code == 0, ended.err
    assert read_tune(out).trials[0] == first
    assert (ended.json["status"], len(ended.json["result"]["trials"])) == ("complete", 3)


def test_options_of_an_embedded_database_are_searched(cli: Cli, tmp_path: Path) -> None:
    """Waiting for the disk with each record takes several times as long."""
    start = ("--server-setting", "synchronous=extra", "--server-setting", "journal_mode=delete")
    arguments = ("--goal", "load", "--records", "300", *start, "--allow-durability", "--budget-runs", "6", *SHORT)
    ended = cli("tune", "--target", "sqlite", *arguments, "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.err
    result = ended.json["result"]
    assert ended.json["status"] == "complete"
    assert result["best"]["synchronous"] == "off"
    assert result["ratio"]["value"] < 0.8
    warned = "durability" in [warning["kind"] for warning in ended.json["warnings"]]
    assert warned == (result["verdict"] == "gain")
    assert not list((tmp_path / "out").glob("**/data"))


def test_a_bad_configuration_of_postgresql_is_mended(cli: Cli, lab_home: Path, tmp_path: Path) -> None:
    """Each commit waits 100 ms for others, of which there may be none."""
    del lab_home
    space = tmp_path / "space.toml"
    space.write_text(
        'database = "postgresql"\nfile = "postgresql.conf"\nline = "{key} = \'{value}\'"\n[settings.commit_delay]\nabout = "a"\n'
        'values = [0, 100000]\n[settings.shared_buffers]\nabout = "b"\nvalues = ["1MB", "32MB"]\n',
        encoding="utf-8",
    )
    start = (
        "--server-setting",
        "commit_delay=100000",
        "--server-setting",
        "commit_siblings=0",
        "--server-setting",
        "shared_buffers=1MB",
    )
    load = ("--goal", "p50@40", "--mix", "write=1", "--records", "100", "--budget-runs", "5", *SHORT)
    ended = cli("tune", "--target", "postgresql", *load, *start, "--space", space, "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.err
    summary = ended.json
    result = summary["result"]
    assert (result["verdict"], result["best"]["commit_delay"]) == ("gain", "0")
    assert result["ratio"]["high"] < 1
    assert "commit_delay = '0'" in result["snippet"]
    servers = json.loads((tmp_path / "out" / "trials" / "001" / "manifest.json").read_text(encoding="utf-8"))["environment"][
        "servers"
    ]
    assert next(iter(servers.values()))["settings"]["commit_delay"] == "100000"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--target", "sqlite", "--goal", "p42@5"), "--goal p42@5: expected a percentile at a rate"),
        (("--goal", "load"), "--target: expected"),
        (("--target", "sqlite:x.db", "--goal", "load"), "tune starts servers with the settings that it tries"),
        (("--target", "fjall", "--goal", "load"), "no search space for fjall comes with sensorbench"),
        (
            ("--target", "sqlite", "--goal", "load", "--server-setting", "speed=9"),
            "--server-setting speed: sqlite does not know it",
        ),
        (
            ("--target", "sqlite", "--goal", "load", "--server-setting", "speed"),
            "--server-setting speed: expected a setting and its value",
        ),
        (("--target", "sqlite", "--goal", "load", "--space", "none.toml"), "none.toml: no such file"),
        (("--target", "sqlite", "--goal", "load", "--budget", "5"), "--budget '5': expected a length of time"),
        (("--target", "sqlite", "--goal", "load", "--resume"), "holds no results to go on with"),
    ],
)
def test_wrong_usage_says_what_was_expected(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], expected: str) -> None:
    ended = cli("tune", *arguments, "--out", tmp_path / "out", "--no-open")
    assert (ended.exit_code, expected in ended.err) == (2, True), ended.err
    assert not (tmp_path / "out").exists()


def test_a_space_for_another_database_or_with_unknown_settings_is_refused(cli: Cli, tmp_path: Path) -> None:
    file = null_space(tmp_path)
    common = ("tune", "--goal", "load", "--space", file, "--out", tmp_path / "out")
    assert "it is for null, and the target is sqlite" in cli(*common, "--target", "sqlite").err
    file.write_text(NULL_SPACE.replace("delay_ms", "delai"), encoding="utf-8")
    ended = cli(*common, "--target", "null")
    assert (ended.exit_code, "settings.delai: null does not know it" in ended.err) == (2, True), ended.err


def test_without_optuna_it_says_what_to_install(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    ended = cli("tune", "--target", "sqlite", "--goal", "load")
    assert (ended.exit_code, "uv pip install 'optuna>=4'" in ended.err) == (2, True), ended.err
