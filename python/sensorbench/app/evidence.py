"""Bundles of evidence: verified, and what they measured as candidates for a recommendation."""

import hashlib
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from sensorbench.advisor import EvidenceBundle
from sensorbench.app.bundle import summary_at
from sensorbench.app.remeasured import remeasured_in
from sensorbench.benchmarks.comparison import gather, has_several_datasets
from sensorbench.bundles import verify_unpacked
from sensorbench.errors import FailedError, UsageError
from sensorbench.results.bundle import BUNDLE_SUFFIX, RESULTS_PART, unpack

# Kinds of results that have layouts to recommend.
_WITH_LAYOUTS = {"comparison", "series"}


def read_evidence(places: Sequence[Path]) -> list[EvidenceBundle]:
    """What the user's own bundles measured.

    Args:
        places: bundles, and folders of bundles.

    Raises:
        UsageError: a file is not a bundle, a folder has none, or nothing was measured there that could be recommended.
        FailedError: a bundle is rejected.

    """
    found: list[EvidenceBundle] = []
    for file in [file for place in places for file in _files(place)]:
        bundle = read_evidence_bundle(file, name=str(file), is_own=True)
        if bundle is None:
            raise UsageError(
                f"--evidence {file}: its results have no layouts to recommend, or several datasets; expected a bundle of `run`, or of "
                "`study run` with one dataset"
            )
        found.append(bundle)
    return found


def read_evidence_bundle(file: Path, *, name: str, is_own: bool) -> EvidenceBundle | None:
    """What a bundle measured, after it was verified; None for results of a kind without layouts, and of several datasets. Raises UsageError,
    FailedError.
    """
    with tempfile.TemporaryDirectory(prefix="sensorbench-evidence-") as work:
        folder = Path(work)
        index, wrong = unpack(file, folder)
        if index.results not in _WITH_LAYOUTS:
            return None
        verification = verify_unpacked(folder, index, wrong, summary_at, remeasured_in)
        if not verification.is_sound:
            raise FailedError(f"{file} is rejected: {verification.problems[0]}; `sensorbench verify` names all that is wrong")
        results = folder / RESULTS_PART
        if has_several_datasets(results):
            return None
        return EvidenceBundle(name, hashlib.sha256(file.read_bytes()).hexdigest(), gather(results), is_own)


def _files(place: Path) -> Iterable[Path]:
    if not place.is_dir():
        return [place]
    files = sorted(place.glob(f"*{BUNDLE_SUFFIX}"))
    if not files:
        raise UsageError(f"--evidence {place}: expected a bundle, or a folder that has files NAME{BUNDLE_SUFFIX}")
    return files
