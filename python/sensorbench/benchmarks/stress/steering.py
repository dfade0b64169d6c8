"""Changing the rate of a stress run while it is running: another process leaves the wanted rate in a file, the run picks it up."""

from pathlib import Path

from sensorbench.errors import EngineError, UsageError
from sensorbench.results.engine_report import EngineRun, Snapshot
from sensorbench.results.files import write_text
from sensorbench.results.stress import read_stress

RATE_FILE = "rate"
# How the engine's event of a changed rate begins.
MARK = "rate set to"


def request_rate(folder: Path, per_s: float) -> None:
    """Leaves a rate, in operations per second, for the run that writes into `folder`. Raises UsageError when none does."""
    if not per_s > 0.0:
        raise UsageError(f"{per_s:g}: expected a rate above zero, in operations per second")
    stress = read_stress(folder)
    if stress.state != "running":
        raise UsageError(f"{folder}: the stress run there is {stress.state}; a rate can be changed only while it is running")
    if stress.manifest.plan.search is not None:
        raise UsageError(f"{folder}: a search is running there, which chooses the rates itself")
    write_text(folder / RATE_FILE, f"{per_s!r}\n")


class Steering:
    """Looks for a rate that somebody left, and sets it. It holds until the step ends; the engine puts down the event."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / RATE_FILE

    def on_snapshot(self, run: EngineRun, _: Snapshot) -> None:
        """Sets the rate that is wanted, if one is."""
        if not self._file.exists():
            return
        try:
            run.set_rate(float(self._file.read_text(encoding="utf-8")))
        except (ValueError, EngineError) as error:
            # The load continues as it was; what is wrong with a rate that somebody wrote there himself is in the run's events.
            run.annotate(f"rate not set: {error}")
        self._file.unlink()
