"""Tuning: the default and what the search proposes are measured in turn under a budget; then the best is confirmed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorbench import __version__
from sensorbench.errors import FailedError, UsageError
from sensorbench.experiment.ending import written_down
from sensorbench.lifecycle.command import command_line
from sensorbench.places import check_is_free
from sensorbench.progress import Teller
from sensorbench.results.environment import environment
from sensorbench.results.manifest import Process, TuneManifest, now
from sensorbench.results.tune import (
    CONFIRMATION_FOLDER,
    TRIALS_FOLDER,
    Measurement,
    Role,
    TuneResult,
    TuneWriter,
    read_measurements,
    read_tune,
    resumed,
)
from sensorbench.tuning import confirm
from sensorbench.tuning.configured import unknown_settings
from sensorbench.tuning.judging import best_of, cost, judged
from sensorbench.tuning.measure import Bench, Order, measure
from sensorbench.tuning.search import Tried, propose
from sensorbench.tuning.space import Configuration, Space

# The default is measured first, then again as every so many-th trial.
DEFAULT_EVERY = 5


@dataclass(frozen=True)
class Budget:
    """How much a search may take, without the confirmation: runs, the repeats of the default among them, and time (s)."""

    runs: int | None
    time_s: float | None


@dataclass(frozen=True)
class Tuning:
    """A search: what is measured, where it looks, from which configuration it starts, and how many pairs confirm what it
    found.
    """

    bench: Bench
    space: Space
    left_out: Sequence[str]
    start: Configuration
    budget: Budget
    pairs: int
    seed: int


def check_settings(wanted: Tuning, space_file: Path, folder: Path) -> None:
    """Raises UsageError for a target that is not started here, and for settings that it does not know."""
    target = wanted.bench.make_work(folder, wanted.seed).setting.target
    if target.is_url:
        raise UsageError(
            f"--target {target.text}: tune starts servers with the settings that it tries; "
            f"expected the name of a database ({target.database.name})"
        )
    for key, why in unknown_settings(target, wanted.start).items():
        raise UsageError(f"--start {key}: {target.database.name} does not know it: {why}")
    number = max(len(setting.choices) for setting in wanted.space.settings.values())
    for place in range(number):
        choices = {key: setting.choices[min(place, len(setting.choices) - 1)] for key, setting in wanted.space.settings.items()}
        for key, why in unknown_settings(target, wanted.space.written(choices)).items():
            raise UsageError(f"{space_file}, settings.{key}: {target.database.name} does not know it: {why}")


def next_role(trials: Sequence[Measurement], budget: Budget) -> Role | None:
    """What the next trial is; None when the budget is spent. The default has the last word, so that it stands on both sides
    of each trial.
    """
    is_spent = (budget.runs is not None and len(trials) >= budget.runs - 1) or (
        budget.time_s is not None and sum(one.took_s for one in trials) >= budget.time_s
    )
    # However short the time, one trial is searched.
    if is_spent and len(trials) > 1:
        return None if trials[-1].role == "default" else "default"
    return "default" if len(trials) % DEFAULT_EVERY == 0 else "search"


def tune(wanted: Tuning, folder: Path, teller: Teller, shown: Callable[[float], str], *, resume: bool) -> TuneResult:
    """Searches and confirms; `shown` is how the goal's figure is told.

    Raises UsageError before anything is written; FailedError, InterruptedRunError and DiskFullError after what was done
    until then is on disk.
    """
    manifest = _manifest(wanted, folder)
    if not resume:
        check_is_free(folder, ", or go on with --resume")
    writer = resumed(folder, manifest) if resume else TuneWriter(folder, manifest)
    at_work = _AtWork(wanted, writer, teller, shown)
    with written_down(writer, "; --resume goes on"):
        at_work.search()
        at_work.confirm()
    return read_tune(folder)


def next_order(wanted: Tuning, trials: Sequence[Measurement], role: Role) -> Order:
    """What is measured next: the default, or what the search proposes by all trials so far."""
    if role == "default":
        return Order(role, wanted.start, {}, wanted.seed)
    smaller = wanted.bench.goal.smaller_is_better
    tried = [
        Tried(
            one.trial.choices,
            cost(one.ratio, smaller_is_better=smaller) if one.ratio is not None and one.trial.outcome == "measured" else None,
        )
        for one in judged(trials)
        if one.trial.role == "search"
    ]
    choices = propose(wanted.space, tried, wanted.start, wanted.seed)
    return Order(role, {**wanted.start, **wanted.space.written(choices)}, choices, wanted.seed)


@dataclass(frozen=True)
class _AtWork:
    """A search that goes on."""

    wanted: Tuning
    writer: TuneWriter
    teller: Teller
    shown: Callable[[float], str]

    def search(self) -> None:
        """Measures until the budget is spent."""
        trials = read_measurements(self.writer.folder, TRIALS_FOLDER)
        while (role := next_role(trials, self.wanted.budget)) is not None:
            if trials and trials[0].outcome == "failed":
                raise FailedError(f"the default cannot be measured: {trials[0].reason}")
            measured = [one.value for one in trials if one.value is not None and one.outcome == "measured"]
            # The default is never given up: all others are compared with it.
            best = min(measured, default=None) if role == "search" else None
            trials.append(self._measure(next_order(self.wanted, trials, role), TRIALS_FOLDER, len(trials) + 1, best))

    def confirm(self) -> None:
        """Measures the default and the best in turn, if there is something to confirm."""
        smaller = self.wanted.bench.goal.smaller_is_better
        best = best_of(judged(read_measurements(self.writer.folder, TRIALS_FOLDER)), smaller_is_better=smaller)
        if best is None or confirm.why_not_worth_it(self.wanted.start, best, smaller_is_better=smaller):
            return
        orders = confirm.orders(self.wanted.start, best, self.wanted.pairs, self.wanted.seed)
        done = read_measurements(self.writer.folder, CONFIRMATION_FOLDER)
        # A search that went on may have found another best.
        if any(one.role == "best" and one.configuration != best.configuration for one in done):
            self.writer.forget(CONFIRMATION_FOLDER)
            done = []
        for number, order in enumerate(orders[len(done) :], start=len(done) + 1):
            self._measure(order, CONFIRMATION_FOLDER, number, None)

    def _measure(self, order: Order, kind: str, number: int, best: float | None) -> Measurement:
        name = f"{'trial' if kind == TRIALS_FOLDER else 'confirmation'} {number}: {_told(order, self.wanted.start)}"
        with self.teller.task(name) as task:
            folder = self.writer.new_folder(kind, number)
            measured = measure(self.wanted.bench, order, folder, best)
            self.writer.write_measurement(folder, measured)
            if measured.outcome == "measured" and measured.value is not None:
                task.end(self.shown(measured.value))
            else:
                task.end(f"{measured.outcome}: {measured.reason}")
        return measured


def _told(order: Order, start: Mapping[str, str]) -> str:
    if order.role == "default":
        return "default"
    changed = [f"{key}={value}" for key, value in order.configuration.items() if start.get(key) != value]
    return ", ".join(changed) or "as the default"


def _manifest(wanted: Tuning, folder: Path) -> TuneManifest:
    work = wanted.bench.make_work(folder, wanted.seed)
    goal = wanted.bench.goal
    load: dict[str, Any] = {
        key: getattr(wanted.bench.load, key) for key in ("in_flight", "threads", "timeout_s", "arrival", "warm_up_s")
    }
    return TuneManifest(
        title=f"{work.setting.target.label} tuned for {goal.text}",
        process=Process.this(),
        created=now(),
        version=__version__,
        command=command_line(),
        setting=work.setting.manifest({}),
        operations=work.operations,
        workload={**work.described, **load},
        goal=goal.described(),
        space=wanted.space.described(),
        left_out=list(wanted.left_out),
        start=wanted.start,
        seed=wanted.seed,
        budget={"runs": wanted.budget.runs, "time_s": wanted.budget.time_s},
        pairs=wanted.pairs,
        environment=environment(folder),
    )
