"""The examination: readings, measurements, readings again."""

from pathlib import Path

from sensorbench.benchmarks.doctor import ceilings
from sensorbench.benchmarks.doctor.checks import Timers, check_machine
from sensorbench.benchmarks.doctor.diagnosis import Check
from sensorbench.benchmarks.doctor.machine import clock_resolution_s, read_machine, wakeup_floor_s
from sensorbench.progress import ProgressReporter
from sensorbench.runner import timer_lag_s


def examine(
    folder: Path, reporter: ProgressReporter, *, quick: bool
) -> tuple[list[Check], Timers, dict[str, ceilings.Figure | None]]:
    """Examines this machine.

    Args:
        folder: where results would go.
        reporter: reports what is measured.
        quick: measure about a tenth as long.

    Returns:
        The checks, the timers, and the client's ceilings.

    """
    before = read_machine(folder)
    with reporter.task("timers") as task:
        timers = Timers(clock_resolution_s(), wakeup_floor_s(300 if quick else 3000), timer_lag_s(0.5 if quick else 5.0))
        task.end("done")
    figures = ceilings.measure(reporter, quick=quick)
    return check_machine(before, read_machine(folder), timers, figures), timers, figures
