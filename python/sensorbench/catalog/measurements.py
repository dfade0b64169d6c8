"""Where there are measurements of a database: in results of one's own, in bundles of evidence, and in the reference that is shipped."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sensorbench.advisor import EvidenceBundle, Source, basis_of
from sensorbench.advisor.reach import INSIDE, Distance
from sensorbench.analysis.candidate import Candidate
from sensorbench.benchmarks.comparison import Gathered
from sensorbench.catalog.entry import Entry
from sensorbench.results.summaries import Measured, measured_below


@dataclass(frozen=True)
class Measurement:
    """What was measured, when, and where it is to be seen: a report or a folder, or the command that shows it.

    `beyond` says how far more data are needed than were measured; empty if that is not known, or not so.
    """

    what: str
    date: str
    seen: str
    is_reference: bool
    beyond: str = ""


def measured_in(folders: Sequence[Path]) -> list[Measured]:
    """The works below some folders. Raises UsageError if one has none."""
    return [work for folder in folders for work in measured_below(folder)]


def measurements(
    entry: Entry,
    works: Sequence[Measured],
    evidence: Sequence[EvidenceBundle],
    reference: Gathered,
    data_bytes: float | None = None,
) -> list[Measurement]:
    """What there is of a database: own works first, then bundles of evidence; the shipped reference where no bundle has it.

    Args:
        entry: the database.
        works: results of the user's own.
        evidence: the user's bundles, and those that are published.
        reference: the small results in the package.
        data_bytes: how much data is needed, if that is known.

    """
    own = [
        Measurement(work.title, work.created[:10], str(work.report or work.folder), is_reference=False)
        for work in works
        if set(work.databases) & set(entry.targets)
    ]
    of_evidence = [found for bundle in evidence for found in _of_bundle(entry, bundle, data_bytes)]
    return [*own, *(of_evidence or _of_reference(entry, reference, data_bytes))]


def _of_bundle(entry: Entry, bundle: EvidenceBundle, data_bytes: float | None) -> list[Measurement]:
    """What a bundle has of a database: on which scale and machine, in which versions."""
    candidates = tuple(candidate for candidate in bundle.gathered.candidates if candidate.database in entry.targets)
    if not candidates:
        return []
    basis = basis_of(Source("evidence", bundle.name, replace(bundle.gathered, candidates=candidates)))
    layouts = f"{len(candidates)} {'layout' if len(candidates) == 1 else 'layouts'}"
    scale = f"scale {' and '.join(f'{scale:g}' for scale in basis.scales)}, {' and '.join(f'{count:,}' for count in basis.readings)} readings"
    what = f"evidence bundle {bundle.name}: {layouts} at {scale}, {', '.join(basis.versions)}, on {' and '.join(basis.machines)}"
    seen = bundle.name if bundle.is_own else f"evidence/{bundle.name}.sbz"
    beyond = _beyond(data_bytes, candidates, max(basis.readings))
    return [Measurement(what, max(basis.dates), seen, is_reference=False, beyond=beyond)]


def _of_reference(entry: Entry, reference: Gathered, data_bytes: float | None) -> list[Measurement]:
    found = [candidate for candidate in reference.candidates if candidate.database in entry.targets]
    if not found:
        return []
    dates = sorted({origin.date for origin in reference.origins.values()})
    options = " ".join(f"--target {target}" for target in dict.fromkeys(candidate.target for candidate in found))
    what = f"reference results shipped with sensorbench: {len(found)} layouts of sensor timelines"
    seen = f"sensorbench recommend --writes high --reads high --fresh yes {options}"
    beyond = _beyond(data_bytes, found, max(origin.readings for origin in reference.origins.values()))
    return [Measurement(what, dates[-1], seen, is_reference=True, beyond=beyond)]


def _beyond(needed_bytes: float | None, candidates: Sequence[Candidate], readings: int) -> str:
    """How far data that are needed lie beyond those that were measured, by the layout that took most space."""
    measured = max((candidate.bytes_a_reading or 0.0 for candidate in candidates), default=0.0) * readings
    if needed_bytes is None or not measured or needed_bytes <= INSIDE * measured:
        return ""
    return Distance("GB of data", "--data", needed_bytes / 1e9, measured / 1e9, needed_bytes / measured).text
