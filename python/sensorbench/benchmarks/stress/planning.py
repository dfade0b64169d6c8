"""From options to what is done: the work at a target, how operations come, and the plan of a stress benchmark."""

from collections.abc import Callable, Sequence
from dataclasses import replace as replaced
from pathlib import Path

from sensorbench.analysis.capacity import Search
from sensorbench.benchmarks.stress.objective import parse_objective
from sensorbench.benchmarks.stress.options import RECORDS, CapacityOptions, LoadOptions, StressOptions, WorkOptions
from sensorbench.benchmarks.stress.records import RecordWork, with_mix
from sensorbench.benchmarks.stress.run import CapacitySearch, Load, StressPlan
from sensorbench.benchmarks.stress.step import Step, steps_of
from sensorbench.benchmarks.stress.user_workload import UserWorkload
from sensorbench.benchmarks.stress.work import Work
from sensorbench.compat.ycsb import CoreWorkload, overridden, parse_core_workload, read_all_properties
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.runner import (
    MAX_CONCURRENCY,
    MAX_CONCURRENCY_EMBEDDED,
    Observer,
    TargetSpec,
    check_can_share,
    check_can_share_operations,
    load_generators,
    parse_target,
    placed_on,
)


def plan_stress(
    options: StressOptions | CapacityOptions,
    folder: Path,
    reporter: ProgressReporter,
    *,
    observers: Sequence[Observer] = (),
    replace: bool = False,
    drop_after: bool = False,
) -> StressPlan:
    """The plan of what options ask for. Raises UsageError for what makes no sense."""
    steps = _capacity_search(options) if isinstance(options, CapacityOptions) else _steps(options)
    work = work_maker(options, reporter, replace=replace)(folder, options.seed)
    load = replaced(load_of(options, work), generators=load_generators(options, reporter))
    check_can_share(load.generators, load.concurrency, [work.variant.target.database])
    check_can_share_operations(load.generators, work.plan())
    return StressPlan(work, load, steps, observers, drop_after=drop_after)


def work_maker(
    options: WorkOptions, reporter: ProgressReporter, *, replace: bool = False, at: TargetSpec | None = None
) -> Callable[[Path, int], Work]:
    """What makes the work that options ask for, of a folder for its data and a seed; `at` a target, if options name none. Raises UsageError."""
    file, target, mix = options.experiment, options.target, options.mix
    if file is not None:
        if options.files or options.properties or options.records or options.distribution:
            raise UsageError("--experiment: its data are the file's; leave out -P, -p, --records and --distribution")
        return lambda folder, seed: UserWorkload(
            file, target, mix, folder, reporter, seed=seed, replace=replace, hosts=options.hosts
        )
    if target is None and at is None:
        raise UsageError("--target: expected a database's name, lab:NAME or a URL")
    spec, workload = placed_on(at or parse_target(str(target)), options.hosts), _workload(options, reporter)
    return lambda folder, seed: RecordWork(spec, workload, folder, seed=seed, replace=replace)


def load_of(options: LoadOptions, work: Work) -> Load:
    """How operations come that options ask for."""
    limit = MAX_CONCURRENCY_EMBEDDED if work.variant.target.database.embedded else MAX_CONCURRENCY
    return Load(options.concurrency or limit, options.threads, options.timeout, options.arrival, options.warmup)


def _workload(options: WorkOptions, reporter: ProgressReporter) -> CoreWorkload:
    """The core workload of files and properties, with what options say besides; whole records are written if nothing else is said."""
    more = [
        *([f"recordcount={options.records}"] if options.records else []),
        *([f"requestdistribution={options.distribution}"] if options.distribution else []),
    ]
    said = overridden(read_all_properties(options.files), [*options.properties, *more])
    defaults = {"recordcount": str(RECORDS), "requestdistribution": "zipfian", "writeallfields": "true"}
    missing = [f"{key}={value}" for key, value in defaults.items() if key not in said]
    workload, notes = parse_core_workload(overridden(said, missing))
    for note in notes:
        reporter.say(f"  {note}")
    return with_mix(workload, options.mix) if options.mix else workload


def _steps(options: StressOptions) -> list[Step]:
    if options.rates is None:
        raise UsageError("--rates: expected rates, for example 5000:30000:5000; `sensorbench capacity` searches the highest")
    return steps_of(options.rates, options.step_duration, options.ramp)


def _capacity_search(options: CapacityOptions) -> CapacitySearch:
    if options.objective is None:
        raise UsageError("--objective: expected a percentile and a limit of the response time, for example p99=20ms")
    search = Search(options.first, options.precision / 100.0, options.confirm, max_per_s=options.max_rate)
    return CapacitySearch(parse_objective(options.objective, options.timeout), search, options.step_duration, options.ramp)
