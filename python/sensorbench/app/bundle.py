"""Bundles of results of any kind: making them, and verifying them."""

from pathlib import Path
from typing import Any

from sensorbench.app.remeasured import remeasured_in
from sensorbench.app.reports import REPORTS, kind_at
from sensorbench.bundles import BundleHead, Verification, make_bundle, verify_bundle
from sensorbench.errors import UsageError
from sensorbench.results import has_results
from sensorbench.results.bundle import BundleIndex, check_bundle_is_free
from sensorbench.results.elasticity import COMPARISON as CLUSTERS_KIND
from sensorbench.results.elasticity import read_elasticity, works_of
from sensorbench.results.summary.envelope import Summary


def summary_at(folder: Path) -> Summary[Any]:
    """The summary of a folder of results of any kind, recomputed. Raises UsageError, DamagedResultsError."""
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
    kind = kind_at(folder)
    if kind != CLUSTERS_KIND and not has_results(folder):
        raise UsageError(f"{folder}: no results are there; expected the folder of a benchmark, with a manifest.json")
    return make_bundle(folder, out, _head(folder, kind), summary_at, with_operations=with_operations, key=key)


def _head(folder: Path, kind: str) -> BundleHead:
    if kind == CLUSTERS_KIND:
        manifests = [read_elasticity(work).manifest for work in works_of(folder)]
        ends = [manifest.finished for manifest in manifests if manifest.finished]
        first, title = manifests[0], summary_at(folder).title
        return BundleHead(
            first.id, title, kind, min(manifest.created for manifest in manifests), max(ends, default=None), first.version
        )
    manifest = REPORTS[kind].read(folder).manifest
    return BundleHead(manifest.id, manifest.title, kind, manifest.created, manifest.finished, manifest.version)


def verify(path: Path, *, allowed_signers: Path | None = None) -> Verification:
    """Verifies a bundle; see `bundles.verify_bundle`. Raises UsageError for what is not a bundle."""
    return verify_bundle(path, summary_at, remeasured_in, allowed_signers=allowed_signers)
