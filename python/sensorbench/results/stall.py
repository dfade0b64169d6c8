"""One stall of a database that was measured by a closed and by an open loop, on disk: a folder of each run, and what is said of both."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from sensorbench.results.reader import RunResult, read_run
from sensorbench.results.stored import is_stored, read_model
from sensorbench.results.summary.comparison import StallFigures, StallLoop
from sensorbench.results.summary.part import SummaryPart

STALL_FILE = "stall.json"
_FOLDER = "coordinated-omission"

Loop = Literal["closed", "open"]


class StallRecord(SummaryPart):
    """`stall.json`: what was stalled, and for how long."""

    variant: str
    operation: str
    title: str = Field(description="The operation's title.")
    rate_per_s: float = Field(description="The rate of the open loop.")
    held_s: dict[Loop, float] = Field(description="For how long the database could not write, by the loop that measured it.")


@dataclass(frozen=True)
class StallResult:
    """A stall on disk: what is said of it, and the run of each loop."""

    record: StallRecord
    runs: dict[Loop, RunResult]

    @property
    def figures(self) -> StallFigures | None:
        """What each loop measured; None if one answered nothing."""
        record, loops = self.record, {}
        for loop, run in self.runs.items():
            of_operation = run.manifest.measured[0].operations[record.operation] if run.manifest.measured else None
            response = of_operation["response_ns"] if of_operation else None
            if response is None:
                return None
            loops[loop] = StallLoop(
                stall_s=record.held_s[loop],
                operations=response["count"],
                p50_s=response["p50"] / 1e9,
                p99_s=response["p99"] / 1e9,
                p999_s=response["p999"] / 1e9,
                max_s=response["max"] / 1e9,
            )
        return StallFigures(
            variant=record.variant, operation=record.operation, title=record.title, rate_per_s=record.rate_per_s, loops=loops
        )


def stall_folder(folder: Path) -> Path:
    """Where a comparison has the runs of a stall."""
    return folder / _FOLDER


def read_stall(folder: Path) -> StallResult | None:
    """The stall of a comparison; None if none was measured to its end. Raises DamagedResultsError."""
    place = stall_folder(folder)
    if not is_stored(place / STALL_FILE):
        return None
    record = read_model(place / STALL_FILE, StallRecord)
    return StallResult(record, {loop: read_run(place / loop) for loop in record.held_s})
