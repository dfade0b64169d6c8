"""From options to the plan of a search for settings."""

from pathlib import Path

from sensorbench import lab
from sensorbench.analysis.capacity import Search
from sensorbench.benchmarks.stress import load_of, work_maker
from sensorbench.benchmarks.tune.goal import parse_goal
from sensorbench.benchmarks.tune.measure import Bench
from sensorbench.benchmarks.tune.options import RUNS, TuneOptions
from sensorbench.benchmarks.tune.run import Budget, TunePlan, check_settings
from sensorbench.benchmarks.tune.space import load_space
from sensorbench.errors import UsageError
from sensorbench.hosts.pool import HostPool
from sensorbench.progress import ProgressReporter
from sensorbench.runner import TargetSpec, cluster_target, require_on

# Trials of a capacity, as a part of a search, need not be as near as one that is looked for by itself.
PRECISION, CONFIRM_ENDS = 0.1, 2


def _cluster_of(options: TuneOptions) -> TargetSpec | None:
    """The cluster of the user's that is tuned. Raises UsageError if something else is named, too."""
    if options.cluster is None:
        return None
    for flag, given in (("--target", options.target), ("--experiment", options.experiment)):
        if given is not None:
            raise UsageError(f"{flag} {given}: the file of --cluster names the target; leave out {flag}, or --cluster")
    return cluster_target(options.cluster)


def plan_tune(options: TuneOptions, folder: Path, reporter: ProgressReporter, *, allow_durability: bool = False) -> TunePlan:
    """The plan of what options ask for. Raises UsageError for what makes no sense."""
    search = Search(options.first, PRECISION, CONFIRM_ENDS)
    goal = parse_goal(options.goal, held_s=options.step_duration, ramp_s=options.ramp, timeout_s=options.timeout, search=search)
    make_work = work_maker(options, reporter, at=_cluster_of(options))
    work = make_work(folder, options.seed)
    # There are no load generators that hosts could be for, too.
    require_on(work.variant.target, options.hosts)
    whole, space_file = load_space(work.variant.target.database.name, options.space)
    plan = TunePlan(
        Bench(make_work, load_of(options, work), goal),
        work,
        whole if allow_durability else whole.with_durability(),
        [] if allow_durability else whole.weaker,
        options.start,
        Budget(options.budget_runs or (None if options.budget else RUNS), options.budget),
        options.confirm,
        options.seed,
        hosts=None if options.hosts is None else HostPool(lab.chosen_hosts(options.hosts), reporter),
    )
    check_settings(plan, space_file)
    reporter.say(f"{work.described['data']}, {len(plan.space.settings)} settings of {space_file}, results go to {folder}")
    if plan.left_out:
        reporter.say(f"left out, because they trade durability for speed (--allow-durability): {', '.join(plan.left_out)}")
    return plan
