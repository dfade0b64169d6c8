"""Bundles of evidence that commands go by."""

from collections.abc import Sequence
from pathlib import Path

from sensorbench.advisor import EvidenceBundle


def own_evidence(places: Sequence[Path] | None) -> list[EvidenceBundle]:
    """What the bundles of `--evidence` measured. Raises UsageError, and FailedError for a bundle that is rejected."""
    if not places:
        return []
    # Verifying takes all kinds of benchmarks; who gives no bundle should not wait for them.
    from sensorbench.app.evidence import read_evidence

    return read_evidence(places)
