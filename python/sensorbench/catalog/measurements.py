"""Where there are measurements of a database: in the reference that is shipped, and in results of one's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sensorbench.benchmarks.comparison import Gathered
from sensorbench.catalog.entry import Entry
from sensorbench.results.summaries import Measured, measured_below


@dataclass(frozen=True)
class Measurement:
    """What was measured, when, and where it is to be seen: a report or a folder, or the command that tells it."""

    what: str
    date: str
    seen: str
    is_reference: bool


def measured_in(folders: Sequence[Path]) -> list[Measured]:
    """The works below some folders. Raises UsageError where one has none."""
    return [work for folder in folders for work in measured_below(folder)]


def measurements(entry: Entry, works: Sequence[Measured], reference: Gathered) -> list[Measurement]:
    """What there is of a database: own works first, then the reference that is shipped."""
    own = [
        Measurement(work.title, work.created[:10], str(work.report or work.folder), is_reference=False)
        for work in works
        if set(work.databases) & set(entry.targets)
    ]
    return [*own, *_of_reference(entry, reference)]


def _of_reference(entry: Entry, reference: Gathered) -> list[Measurement]:
    found = [candidate for candidate in reference.candidates if candidate.database in entry.targets]
    if not found:
        return []
    dates = sorted({origin.date for origin in reference.origins.values()})
    options = " ".join(f"--target {target}" for target in dict.fromkeys(candidate.target for candidate in found))
    what = f"reference results shipped with sensorbench: {len(found)} layouts of sensor timelines"
    return [
        Measurement(what, dates[-1], f"sensorbench recommend --writes high --reads high --fresh yes {options}", is_reference=True)
    ]
