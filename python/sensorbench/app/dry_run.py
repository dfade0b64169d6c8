"""Dry runs of benchmarks at one target: what they would do, with a pilot where the target is embedded or the lab's."""

from pathlib import Path
from typing import TYPE_CHECKING

from sensorbench.benchmarks.stress import CapacityOptions, StressOptions, StressPlan, estimate_stress, run_work_pilot
from sensorbench.progress import ProgressReporter
from sensorbench.results.estimate import Estimate

if TYPE_CHECKING:
    from sensorbench.benchmarks.tune import TuneOptions, TunePlan


def dry_run_stress(
    options: StressOptions | CapacityOptions,
    plan: StressPlan,
    folder: Path,
    progress: ProgressReporter,
    *,
    has_pilot: bool = True,
) -> Estimate:
    """What a stress run would do and take. Nothing is written to the folder, and no server of a user's is touched."""
    pilot = run_work_pilot(options, plan.load, progress) if has_pilot else None
    return estimate_stress(plan, pilot, folder)


def dry_run_tune(
    options: "TuneOptions", plan: "TunePlan", folder: Path, progress: ProgressReporter, *, has_pilot: bool = True
) -> Estimate:
    """What a search for server settings would do and take. Nothing is written to the folder."""
    pilot = run_work_pilot(options, plan.bench.load, progress) if has_pilot else None
    # Needs optuna, which is there for `tune` alone.
    from sensorbench.benchmarks.tune import estimate_tune

    return estimate_tune(plan, pilot, folder)
