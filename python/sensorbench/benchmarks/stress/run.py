"""Stress: a target under rates that are held one after the other, or searched for the highest that meets an objective."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from sensorbench._engine import Target
from sensorbench.analysis.capacity import Search, Trial, next_rate
from sensorbench.benchmarks.stress.figures import share_within
from sensorbench.benchmarks.stress.objective import Objective
from sensorbench.benchmarks.stress.steering import Steering
from sensorbench.benchmarks.stress.step import Arrival, Step, phases_of
from sensorbench.benchmarks.stress.work import Means, Work
from sensorbench.errors import CancelledError, ClusterLostError, DiskFullError, EngineError, FailedError, UsageError, message_of
from sensorbench.hosts.pool import HostPool
from sensorbench.lifecycle import Benchmark, Description, RunContext, run
from sensorbench.paths import remove_if_empty
from sensorbench.progress import ProgressReporter, Task
from sensorbench.results import RunResult
from sensorbench.results.described import LoadedWork
from sensorbench.results.engine_plan import EnginePlan, KeptPlan, PlannedPhase
from sensorbench.results.engine_report import EngineRun, Snapshot, elapsed_s
from sensorbench.results.ownership import Claim, Owner
from sensorbench.results.planned import PlannedStress, StressManifest, StressObjective, StressSearch
from sensorbench.results.stress import StressResult, StressWriter, read_stress
from sensorbench.runner import (
    ALONE,
    DATA_FOLDER,
    LoadGenerators,
    Observer,
    Servers,
    Variant,
    check_namespace,
    driver_ceiling,
    run_plan,
    running_servers,
)

Figures = TypeVar("Figures")

ANSWERS_WITHIN_S, ASKS_EVERY_S = 60.0, 0.2


@dataclass(frozen=True)
class Load:
    """How operations come: in an open loop, at most this many in flight, each given up after `timeout_s`; how long (s) the first rate
    is held before anything counts; and which load generators share them.
    """

    concurrency: int
    threads: int = 1
    timeout_s: float = 60.0
    arrival: Arrival = "poisson"
    warmup_s: float = 0.0
    pin: bool = True
    generators: LoadGenerators = ALONE

    def described(self, work: Work) -> LoadedWork:
        """What manifests say of work under this load."""
        return {
            **work.described,
            "concurrency": self.concurrency,
            "threads": self.threads,
            "timeout_s": self.timeout_s,
            "arrival": self.arrival,
            "warmup_s": self.warmup_s,
        }


@dataclass(frozen=True)
class CapacitySearch:
    """A search for the highest rate that meets an objective: each trial is a step of this length."""

    objective: Objective
    search: Search
    held_s: float
    ramp_s: float

    def described(self) -> StressSearch:
        """What results say of it."""
        search = self.search
        return StressSearch(
            first_per_s=search.first_per_s,
            precision=search.precision,
            confirm=search.confirm,
            min_per_s=search.min_per_s,
            max_per_s=search.max_per_s,
            held_s=self.held_s,
            ramp_s=self.ramp_s,
        )


@dataclass(frozen=True)
class StepsApart:
    """Steps in a run each. `before` is called with the servers and the number of the step, from 1, before each: so that all begin in
    the same state, or in another one.
    """

    steps: Sequence[Step]
    before: Callable[[Servers, int], None]


Steps = Sequence[Step] | StepsApart | CapacitySearch


@dataclass(frozen=True)
class _ConnectedStress:
    """A stress run whose target is ready."""

    work: Work
    load: Load
    variant: Variant
    target: Target
    started: Servers
    writer: StressWriter
    reporter: ProgressReporter
    observers: Sequence[Observer]

    def hold(self, steps: Sequence[Step], number: int, before: Sequence[int], report: Callable[[str, float], None]) -> RunResult:
        """Carries out steps in one run of the engine. `before`: how many numbers phases before have used for their writes."""
        phases = phases_of(steps, self.load.arrival, self.load.warmup_s if number == 1 else 0.0)
        for place, phase in enumerate(phases):
            # How many operations a phase has is not known before: they alternate, after all that came before.
            phase["numbering"] = {"offset": place, "stride": len(phases), "before": list(before)}
        requested = self.work.plan()
        plan: EnginePlan = {
            "operations": requested["operations"],
            "order": requested.get("order", "random"),
            "parameter_sources": requested.get("parameter_sources", []),
            # Trials of a search at the same rate are not trials of the same moments.
            "seed": self.work.seed + number - 1,
            "phases": phases,
            "concurrency": self.load.concurrency,
            "threads": self.load.threads,
            "timeout_s": self.load.timeout_s,
        }

        def on_snapshot(engine_run: EngineRun, snapshot: Snapshot) -> None:
            for observer in self.observers:
                observer(engine_run, snapshot)
            report(*_progress(snapshot, phases))

        described: KeptPlan = {"steps": [step.described() for step in steps]}
        return run_plan(
            self.target,
            self.variant,
            plan,
            self.work.tables(),
            self.writer.run_folder(number),
            self.started,
            on_snapshot,
            number=number,
            generators=self.load.generators,
            described=described,
        )


@dataclass(frozen=True)
class StressPlan:
    """What is done at a target. With `drop_after`, what it created there is removed when it is complete; `observers` are called some times per
    second with the run and its snapshot.
    """

    work: Work
    load: Load
    steps: Steps
    observers: Sequence[Observer] = ()
    drop_after: bool = False


class StressBenchmark(Benchmark[StressPlan, StressManifest, StressWriter]):
    """Makes a target ready and holds the steps there, if any, or searches."""

    manifest = StressManifest
    writer = StressWriter

    def hosts(self, plan: StressPlan) -> HostPool | None:
        """Those of its load generators."""
        return plan.load.generators.hosts

    def servers(self, plan: StressPlan, progress: ProgressReporter) -> AbstractContextManager[Servers]:
        """The target's server."""
        return running_servers([plan.work.variant], progress, pin=plan.load.pin)

    def check(self, plan: StressPlan, servers: Servers, owner: Owner) -> None:
        """Raises UsageError if the target's namespace is refused."""
        target = servers.at_their_urls([plan.work.variant])[0].engine_target()
        check_namespace(target, Claim(owner, plan.work.intent(target)))

    def describe(self, plan: StressPlan, servers: Servers) -> Description[PlannedStress]:
        """The target, the operations and what is done there."""
        work, database = plan.work, plan.work.variant.target.database
        search = plan.steps if isinstance(plan.steps, CapacitySearch) else None
        return Description(
            title=f"{work.variant.target.label} under stress",
            plan=PlannedStress(
                operations=work.operations,
                workload={
                    **plan.load.described(work),
                    "pin": plan.load.pin,
                    "seed": work.seed,
                    "generators": plan.load.generators.count,
                    "hosts": plan.load.generators.host_names,
                },
                objective=StressObjective(**asdict(search.objective)) if search else None,
                search=search.described() if search else None,
            ),
            variants=[work.variant.manifest({name: work.variant.schema.described_statements(name) for name in work.operations})],
            environment={
                "driver_ceiling_per_s": driver_ceiling(database) if database.embedded else None,
                "servers": servers.described(),
            },
        )

    def execute(self, plan: StressPlan, context: RunContext[StressWriter]) -> None:
        """Puts the data there, then holds the steps or searches."""
        work, steps = plan.work, plan.steps
        variant = context.servers.at_their_urls([work.variant])[0]
        target = variant.engine_target()
        if variant.temporary is not None:
            variant.temporary.parent.mkdir(parents=True, exist_ok=True)
        # A search chooses the rates itself.
        steering = [] if isinstance(steps, CapacitySearch) else [Steering(context.folder).on_snapshot]
        observers = [*steering, *plan.observers]
        connected = _ConnectedStress(
            work, plan.load, variant, target, context.servers, context.writer, context.progress, observers
        )
        means = Means(context.servers, context.writer.populate_folder, context.progress, context.owner, plan.load.generators)
        work.make_ready(variant, target, means)
        if isinstance(steps, CapacitySearch):
            _search(connected, steps)
        elif isinstance(steps, StepsApart):
            _hold_apart(connected, steps)
        elif steps:
            _hold_all(connected, steps)

    def clean_up(self, plan: StressPlan, context: RunContext[StressWriter]) -> None:
        """Removes data in the results folder, and with `drop_after` what was created at the target."""
        variant = context.servers.at_their_urls([plan.work.variant])[0]
        if variant.temporary is not None or plan.drop_after:
            variant.engine_target().remove(owner=context.owner.to_json())
            remove_if_empty(context.folder / DATA_FOLDER)


def stress(plan: StressPlan, folder: Path, progress: ProgressReporter) -> StressResult:
    """Runs a stress benchmark.

    Raises:
        UsageError: before anything is written.
        InterruptedRunError, FailedError, DiskFullError: after what was done until then is on disk.

    """
    run(StressBenchmark(), plan, folder, progress)
    return read_stress(folder)


def attempted(measure: Callable[[], Figures]) -> tuple[Figures | None, str | None]:
    """What was measured; or why nothing could be, where servers not starting, or ending, is an outcome.

    Raises:
        InterruptedRunError, DiskFullError, ClusterLostError: which are none.

    """
    try:
        return measure(), None
    except (DiskFullError, CancelledError, ClusterLostError):
        raise
    except (FailedError, UsageError, EngineError) as error:
        return None, message_of(error)


def _hold_all(connected: _ConnectedStress, steps: Sequence[Step]) -> None:
    """All steps in one run, so that they share its clock and the load never stops."""
    with connected.reporter.task(f"{len(steps)} steps", total=1.0) as task:
        run = connected.hold(steps, 1, [], lambda text, share: task.advance_to(share, text))
        _report_end(task, run)


def _hold_apart(connected: _ConnectedStress, wanted: StepsApart) -> None:
    """A run for each step."""
    begun: list[int] = []
    for number, step in enumerate(wanted.steps, start=1):
        wanted.before(connected.started, number)
        _wait_until_it_answers(connected.target)
        with connected.reporter.task(f"{step.name.replace('_', ' ')}: {step.rate_per_s:,.6g} operations/s", total=1.0) as task:
            run = _hold_one(connected, step, number, begun, task)
            _report_end(task, run)


def _wait_until_it_answers(target: Target) -> None:
    """The connection by which a server says what it is comes back by itself after a restart, but not at once. Raises EngineError."""
    give_up_s = time.monotonic() + ANSWERS_WITHIN_S
    while True:
        try:
            target.describe()
            return
        except EngineError:
            if time.monotonic() > give_up_s:
                raise
        time.sleep(ASKS_EVERY_S)


def _search(connected: _ConnectedStress, wanted: CapacitySearch) -> None:
    """A run for each trial: each begins at rest, so that none pays for what the one before left behind."""
    trials: list[Trial] = []
    begun: list[int] = []
    while (rate := next_rate(trials, wanted.search)) is not None:
        number = len(trials) + 1
        step = Step(f"trial_{number}", rate, wanted.held_s, wanted.ramp_s)
        with connected.reporter.task(f"trial {number}: {rate:,.6g} operations/s", total=1.0) as task:
            run = _hold_one(connected, step, number, begun, task)
            within = share_within(run.histograms(), run.manifest.phase_figures[-1], wanted.objective.limit_s)
            met = wanted.objective.is_met(within)
            task.end(f"{within:.3%} within {wanted.objective.limit_s * 1e3:g} ms: objective {'met' if met else 'missed'}")
        trials.append(Trial(rate, met))


def _hold_one(connected: _ConnectedStress, step: Step, number: int, begun: list[int], task: Task) -> RunResult:
    """A run of one step, after what earlier phases have written: `begun` has how many numbers each of them used, and gets this one's."""
    run = connected.hold([step], number, begun, lambda text, share: task.advance_to(share, text))
    phases = run.manifest.phase_figures
    # Each phase took every n-th number.
    begun += [phase.started + phase.dropped for phase in phases for _ in phases]
    return run


def _progress(snapshot: Snapshot, phases: Sequence[PlannedPhase]) -> tuple[str, float]:
    """What is going on, and which share of the whole is over."""
    number = snapshot["current_phase"]
    if number >= len(phases):
        return "ending", 1.0
    lengths_s = [phase.get("duration_s") or 0.0 for phase in phases]
    over_s = sum(lengths_s[:number]) + min(elapsed_s(snapshot), lengths_s[number])
    pace = phases[number].get("pace")
    per_s = [segment.get("to_per_s") or segment["from_per_s"] for segment in pace["segments"]] if pace else []
    rate = f": {per_s[0]:,.6g}/s" if per_s else ""
    return f"{phases[number]['name'].replace('_', ' ')}{rate}", over_s / sum(lengths_s)


def _report_end(task: Task, run: RunResult) -> None:
    dropped = sum(phase.dropped for phase in run.manifest.phase_figures)
    more = f", {dropped:,} could not start in time" if dropped else ""
    task.end(f"{sum(phase.started for phase in run.manifest.phase_figures):,} operations{more}")
