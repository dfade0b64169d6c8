"""Bundles of results of any kind: making them, and verifying them."""

from pathlib import Path
from typing import Any

from sensorbench.app.remeasured import remeasured_in
from sensorbench.app.reports import REPORTS, kind_at
from sensorbench.bundles import Verification, make_bundle, verify_bundle
from sensorbench.errors import UsageError
from sensorbench.results import has_results
from sensorbench.results.bundle import BundleIndex, check_bundle_is_free
from sensorbench.results.summary.envelope import Summary


def summary_at(folder: Path) -> Summary[Any]:
    """The summary of a folder of results of any kind, computed anew. Raises UsageError, DamagedResultsError."""
    summary: Summary[Any] = REPORTS[kind_at(folder)].summary(folder)
    return summary


def bundle(
    folder: Path, out: Path, *, with_operations: bool = False, key: Path | None = None, replace: bool = False
) -> BundleIndex:
    """Writes a bundle of a results folder; see `bundles.make_bundle`.

    Raises:
        UsageError: there are no results, or something else lies where the bundle is to be written.
        DamagedResultsError: the results are damaged.

    """
    check_bundle_is_free(out, replace=replace)
    if not has_results(folder):
        raise UsageError(f"{folder}: no results are there; expected the folder of a benchmark, with a manifest.json")
    manifest = REPORTS[kind_at(folder)].read(folder).manifest
    return make_bundle(folder, out, manifest, summary_at, with_operations=with_operations, key=key)


def verify(path: Path, *, allowed_signers: Path | None = None) -> Verification:
    """Verifies a bundle; see `bundles.verify_bundle`. Raises UsageError for what is no bundle."""
    return verify_bundle(path, summary_at, remeasured_in, allowed_signers=allowed_signers)
