"""Tuning: the default and what the search proposes are measured under a budget; then the best is confirmed."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from sensorbench.benchmarks.stress import Work
from sensorbench.benchmarks.tune import confirm
from sensorbench.benchmarks.tune.configured import check_settings as check_known
from sensorbench.benchmarks.tune.judging import best_of, cost, judged
from sensorbench.benchmarks.tune.measure import Bench, Order, measure
from sensorbench.benchmarks.tune.search import Tried, propose
from sensorbench.benchmarks.tune.space import Configuration, Space
from sensorbench.errors import FailedError, UsageError
from sensorbench.hosts.pool import HostPool
from sensorbench.lifecycle import Benchmark, Description, RunContext
from sensorbench.progress import ProgressReporter
from sensorbench.results.ownership import Claim, Owner
from sensorbench.results.planned import PlannedTune, TuneBudget, TuneGoal, TuneManifest
from sensorbench.results.tune import (
    CONFIRMATION_FOLDER,
    TRIALS_FOLDER,
    Measurement,
    Role,
    TuneWriter,
    continued,
    read_measurements,
)
from sensorbench.runner import Servers, addresses_of, borrowed_cluster, check_namespace

# The default is measured first, then again as every n-th trial.
DEFAULT_EVERY = 5


@dataclass(frozen=True)
class Budget:
    """How much a search may take, without the confirmation: runs, the repetitions of the default among them, and time (s)."""

    runs: int | None
    time_s: float | None


@dataclass(frozen=True)
class TunePlan:
    """A search: what is measured, where it looks, from which configuration it starts, and how many pairs confirm what it
    found. `work` is the bench's with this seed, which results describe; `shown` formats the goal's figure for progress. `hosts` get the nodes of
    servers; where there are none, these are on this machine.
    """

    bench: Bench
    work: Work
    space: Space
    left_out: Sequence[str]
    start: Configuration
    budget: Budget
    pairs: int
    seed: int
    shown: Callable[[float], str] = str
    hosts: HostPool | None = None


def check_settings(plan: TunePlan, space_file: Path) -> None:
    """Raises UsageError for a target that is not started here, and for settings that it does not know."""
    target = plan.work.variant.target
    if target.is_url and target.cluster is None:
        raise UsageError(
            f"--target {target.text}: tune starts servers with the settings that it tries; "
            f"expected the name of a database ({target.database.name}), or say with --cluster FILE how the servers are set and restarted"
        )
    check_known(target, plan.start, "--server-setting {key}")
    number = max(len(setting.choices) for setting in plan.space.settings.values())
    for place in range(number):
        choices = {key: setting.choices[min(place, len(setting.choices) - 1)] for key, setting in plan.space.settings.items()}
        check_known(target, plan.space.written(choices), f"{space_file}, settings.{{key}}")


def next_role(trials: Sequence[Measurement], budget: Budget) -> Role | None:
    """What the next trial is; None when the budget is spent. The default has the last word, so that it stands on both sides
    of each trial.
    """
    is_spent = (budget.runs is not None and len(trials) >= budget.runs - 1) or (
        budget.time_s is not None and sum(trial.took_s for trial in trials) >= budget.time_s
    )
    # However short the time, one trial is searched.
    if is_spent and len(trials) > 1:
        return None if trials[-1].role == "default" else "default"
    return "default" if len(trials) % DEFAULT_EVERY == 0 else "search"


class TuneBenchmark(Benchmark[TunePlan, TuneManifest, TuneWriter]):
    """Searches under the budget, then confirms. Servers are started for each measurement."""

    manifest = TuneManifest
    writer = TuneWriter
    can_resume = True

    def hosts(self, plan: TunePlan) -> HostPool | None:
        """Those of the servers' nodes, for all measurements."""
        return plan.hosts

    def servers(self, plan: TunePlan, progress: ProgressReporter) -> AbstractContextManager[Servers]:
        """A cluster of the user's, which is put back at the end; all else is started for each measurement."""
        return borrowed_cluster(plan.work.variant.target, progress)

    def check(self, plan: TunePlan, servers: Servers, owner: Owner) -> None:
        """Raises UsageError if the namespace at servers of the user's is taken, before anything is set there."""
        if plan.work.variant.target.cluster is not None:
            check_namespace(plan.work.variant.engine_target(), Claim(owner, "create"))

    def describe(self, plan: TunePlan, servers: Servers) -> Description[PlannedTune]:
        """The goal, the space, and what is done at the servers."""
        work, goal, load = plan.work, plan.bench.goal, plan.bench.load
        planned = PlannedTune(
            operations=work.operations,
            workload=load.described(work),
            goal=TuneGoal(text=goal.text, kind=goal.kind, smaller_is_better=goal.smaller_is_better),
            space=plan.space.described(),
            left_out=list(plan.left_out),
            start=plan.start,
            seed=plan.seed,
            budget=TuneBudget(runs=plan.budget.runs, time_s=plan.budget.time_s),
            pairs=plan.pairs,
            cluster=addresses_of(work.variant.target),
            hosts=[] if plan.hosts is None else plan.hosts.chosen.names,
        )
        title = f"{work.variant.target.label} tuned for {goal.text}"
        return Description(title, planned, [work.variant.manifest({})])

    def check_same(self, before: TuneManifest, after: TuneManifest, folder: Path) -> TuneManifest:
        """The manifest of the resumed search, with another budget if that is planned."""
        return continued(before, after, folder)

    def execute(self, plan: TunePlan, context: RunContext[TuneWriter]) -> None:
        """Searches, and confirms the best."""
        at_work = _AtWork(plan, context.writer, context.progress)
        at_work.search()
        at_work.confirm()


def next_order(plan: TunePlan, trials: Sequence[Measurement], role: Role) -> Order:
    """What is measured next: the default, or what the search proposes by all trials so far."""
    if role == "default":
        return Order(role, plan.start, {}, plan.seed)
    smaller = plan.bench.goal.smaller_is_better
    tried = [
        Tried(
            trial.trial.choices,
            cost(trial.ratio, smaller_is_better=smaller)
            if trial.ratio is not None and trial.trial.outcome == "measured"
            else None,
        )
        for trial in judged(trials)
        if trial.trial.role == "search"
    ]
    choices = propose(plan.space, tried, plan.start, plan.seed)
    return Order(role, {**plan.start, **plan.space.written(choices)}, choices, plan.seed)


@dataclass(frozen=True)
class _AtWork:
    """A resumed search."""

    plan: TunePlan
    writer: TuneWriter
    progress: ProgressReporter

    def search(self) -> None:
        """Measures until the budget is spent."""
        trials = read_measurements(self.writer.folder, TRIALS_FOLDER)
        while (role := next_role(trials, self.plan.budget)) is not None:
            if trials and trials[0].outcome == "failed":
                raise FailedError(f"the default cannot be measured: {trials[0].reason}")
            measured = [trial.value for trial in trials if trial.value is not None and trial.outcome == "measured"]
            # The default is never given up: all others are compared with it.
            best = min(measured, default=None) if role == "search" else None
            trials.append(self._measure(next_order(self.plan, trials, role), TRIALS_FOLDER, len(trials) + 1, best))

    def confirm(self) -> None:
        """Measures the default and the best, interleaved, if there is something to confirm."""
        smaller = self.plan.bench.goal.smaller_is_better
        best = best_of(judged(read_measurements(self.writer.folder, TRIALS_FOLDER)), smaller_is_better=smaller)
        if best is None or confirm.why_not_worth_it(self.plan.start, best, smaller_is_better=smaller):
            return
        orders = confirm.orders(self.plan.start, best, self.plan.pairs, self.plan.seed)
        done = read_measurements(self.writer.folder, CONFIRMATION_FOLDER)
        # A resumed search may have found another best.
        if any(measurement.role == "best" and measurement.configuration != best.configuration for measurement in done):
            self.writer.forget(CONFIRMATION_FOLDER)
            done = []
        for number, order in enumerate(orders[len(done) :], start=len(done) + 1):
            self._measure(order, CONFIRMATION_FOLDER, number, None)

    def _measure(self, order: Order, kind: str, number: int, best: float | None) -> Measurement:
        name = f"{'trial' if kind == TRIALS_FOLDER else 'confirmation'} {number}: {_described(order, self.plan.start)}"
        with self.progress.task(name) as task:
            folder = self.writer.new_folder(kind, number)
            measured = measure(self.plan.bench, order, folder, best)
            self.writer.write_measurement(folder, measured)
            if measured.outcome == "measured" and measured.value is not None:
                task.end(self.plan.shown(measured.value))
            else:
                task.end(f"{measured.outcome}: {measured.reason}")
        return measured


def _described(order: Order, start: Mapping[str, str]) -> str:
    if order.role == "default":
        return "default"
    changed = [f"{key}={value}" for key, value in order.configuration.items() if start.get(key) != value]
    return ", ".join(changed) or "as the default"
