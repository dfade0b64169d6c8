"""The search of `sensorbench tune` and its judgement, on made-up functions."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sensorbench import lab
from sensorbench.benchmarks.stress.run import Load
from sensorbench.benchmarks.tune import run as tuning
from sensorbench.benchmarks.tune.confirm import verdict
from sensorbench.benchmarks.tune.drift import default_at
from sensorbench.benchmarks.tune.judging import judged
from sensorbench.benchmarks.tune.measure import Bench, Order
from sensorbench.benchmarks.tune.run import Budget, TuneBenchmark, TunePlan, next_role
from sensorbench.benchmarks.tune.search import Tried, propose
from sensorbench.benchmarks.tune.space import Configuration
from sensorbench.benchmarks.tune.summary import summarise_tune
from sensorbench.errors import FailedError, InterruptedRunError, LostHostError, UsageError
from sensorbench.hosts.dask_host import DaskHost
from sensorbench.hosts.pool import HostPool
from sensorbench.lab import placement
from sensorbench.lifecycle.benchmark import run as run_benchmark
from sensorbench.progress import ProgressReporter
from sensorbench.results.tune import Measurement, TuneResult, read_tune
from tests.tuning import goal_of, null_work, space_of

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
        hosts: HostPool | None = None,
    ) -> TuneResult:
        monkeypatch.setattr(tuning, "measure", MadeUp(figure))
        bench = Bench(null_work(), Load(2), goal_of(goal))
        folder, work = tmp_path / out, null_work()(tmp_path / out, 1)
        plan = TunePlan(bench, work, space_of(space, tmp_path), [], start or {}, Budget(runs, None), 3, 1, hosts=hosts)
        run_benchmark(TuneBenchmark(), plan, folder, ProgressReporter(quiet=True), resume=resume)
        return read_tune(folder)

    return run


START = {"size": "2", "share": "0.9", "way": "slow"}


def test_a_gain_is_found_and_confirmed_while_the_machine_becomes_slower(carry_out: Callable[..., TuneResult]) -> None:
    """Each measurement takes 10% longer than the one before: the last trials look worse than the first default."""
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
    """A 95% interval lies below 1 by chance in 2.5% of confirmations; 4000 of them, 4 standard deviations."""
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
    with pytest.raises(InterruptedRunError, match="--resume continues"):
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


class MadeUpHosts(HostPool):
    """Hosts that nobody has to reach."""

    def _reached(self, stack: ExitStack) -> list[DaskHost]:
        del stack
        return []


def test_hosts_are_those_of_all_measurements_and_no_others_go_on_with_them(
    carry_out: Callable[..., TuneResult], tmp_path: Path
) -> None:
    def hosts(text: str) -> HostPool:
        return MadeUpHosts(lab.chosen_hosts(text), ProgressReporter(quiet=True))

    def figure(_: Configuration, before: int) -> float:
        # The lab places nodes on the hosts of the search, and reaches none for itself.
        assert set(placement._connected) == {"local:2"}
        if before == 2:
            raise LostHostError("host local-2: it did not answer for 30 s")
        return 1.0

    # That is not an interruption by the user.
    with pytest.raises(LostHostError, match=r"host local-2: it did not answer for 30 s; .*--resume continues") as lost:
        carry_out(figure, hosts=hosts("local:2"))
    assert lost.value.exit_code == 1
    assert placement._connected == {}
    manifest = read_tune(tmp_path / "out").manifest
    assert (manifest.status, manifest.reason) == ("interrupted", "host local-2: it did not answer for 30 s")
    assert manifest.plan.hosts == ["local-1", "local-2"]
    for others in (None, hosts("local:3")):
        with pytest.raises(UsageError, match="has another hosts"):
            carry_out(figure, resume=True, hosts=others)


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
