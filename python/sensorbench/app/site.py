"""A site of bundles: each is verified, gets its trust label, and is shown."""

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sensorbench.app.bundle import summary_at
from sensorbench.app.remeasured import remeasured_in
from sensorbench.bundles import Evidence, stored_summaries, trust_of, verify_unpacked
from sensorbench.bundles.contents import schema_key
from sensorbench.errors import FailedError, UsageError
from sensorbench.paths import check_site_is_free
from sensorbench.progress import ProgressReporter
from sensorbench.report.site import BUNDLES_FOLDER, write_site
from sensorbench.report.site_data import (
    BundleOnSite,
    PricePerHour,
    SiteComparison,
    VariantDetails,
    bundle_details,
    site_bundle,
    site_comparison,
    study_of,
    variant_details,
)
from sensorbench.results import read_comparison
from sensorbench.results.bundle import BUNDLE_SUFFIX, RESULTS_PART, BundleIndex, is_signed, unpack
from sensorbench.results.manifest import now
from sensorbench.results.summary.comparison import ComparisonSummary


@dataclass(frozen=True)
class Site:
    """A site that was written: its page, and how many bundles and variants it shows with each trust label."""

    page: Path
    bundles: int
    variants: int
    trust: dict[str, int]


@dataclass(frozen=True)
class _Gathered:
    """What is known of a bundle before its trust label."""

    path: Path
    identity: str
    evidence: Evidence
    unverified: list[str]
    comparisons: list[SiteComparison]
    variants: dict[str, dict[str, VariantDetails]]


def make_site(
    bundles: Sequence[Path],
    out: Path,
    progress: ProgressReporter,
    *,
    price_per_hour: float | None = None,
    verifies: bool = True,
    replace: bool = False,
) -> Site:
    """Writes a static site of bundles.

    Args:
        bundles: the files.
        out: the folder that it goes into.
        progress: reports what is going on.
        price_per_hour: what an hour of the machine costs; None to show no costs.
        verifies: whether bundles are verified before.
        replace: whether an existing site may be overwritten.

    Raises:
        UsageError: something else lies in the folder, or a file is not a bundle.
        FailedError: a bundle is rejected; nothing is written.

    """
    check_site_is_free(out, replace=replace)
    price = PricePerHour(price_per_hour) if price_per_hour is not None else None
    gathered: list[_Gathered] = []
    for path in bundles:
        progress.say(f"{path}: {'verify and read' if verifies else 'read'}")
        found = _gather(path, price, verifies=verifies)
        if twice := next((other for other in gathered if other.identity == found.identity), None):
            raise UsageError(f"{path} and {twice.path} are bundles of the same results; give one of them")
        gathered.append(found)
    today, evidence = now(), [found.evidence for found in gathered]
    shown: list[BundleOnSite] = []
    for found in gathered:
        trust = trust_of(found.evidence, evidence, today)
        summary = found.evidence.summaries["."]
        entry = site_bundle(
            found.evidence.index,
            summary,
            identity=found.identity,
            file=_file_of(found),
            size=found.path.stat().st_size,
            trust=trust.label,
            why=trust.why,
            is_stale=trust.is_stale,
            is_verified=found.evidence.is_verified,
            is_signed=is_signed(found.path),
            price=price,
        )
        shown.append(BundleOnSite(entry, bundle_details(summary, found.unverified), found.comparisons, found.variants))
    page = write_site(out, shown, {_file_of(found): found.path for found in gathered}, today, price_per_hour)
    labels = [label for on in shown for label in (on.bundle.trust, *(["stale"] if on.bundle.stale else []))]
    variants = sum(len(comparison.variants) for on in shown for comparison in on.comparisons)
    return Site(page, len(shown), variants, {label: labels.count(label) for label in dict.fromkeys(labels)})


def _file_of(found: _Gathered) -> str:
    return f"{BUNDLES_FOLDER}/{found.identity}{BUNDLE_SUFFIX}"


def _gather(path: Path, price: PricePerHour | None, *, verifies: bool) -> _Gathered:
    """Reads a bundle. Raises FailedError if it is rejected."""
    with tempfile.TemporaryDirectory(prefix="sensorbench-site-") as work:
        folder = Path(work)
        index, wrong = unpack(path, folder)
        problems, unverified = list(wrong), ["it was not verified when this page was made"]
        if verifies:
            verification = verify_unpacked(folder, index, wrong, summary_at, remeasured_in)
            problems, unverified = list(map(str, verification.problems)), verification.unverified
        if problems:
            raise FailedError(f"{path} is rejected: {problems[0]}; `sensorbench verify` names all that is wrong")
        summaries = stored_summaries(folder, index)
        identity = f"{_slug(study_of(summaries['.']))}-{_slug(index.id)[:8]}"
        comparisons, variants = [], {}
        for part, summary in summaries.items():
            if not isinstance(summary, ComparisonSummary):
                continue
            result = read_comparison(folder / RESULTS_PART / part)
            name = "" if part == "." else part
            own = "-".join(filter(None, [identity, _slug(name)]))
            comparisons.append(site_comparison(result, summary, identity=own, bundle=identity, part=name, price=price))
            variants[own] = variant_details(result, summary, _schema_texts(folder, index, part, summary))
        return _Gathered(path, identity, Evidence(index, summaries, verifies), unverified, comparisons, variants)


def _schema_texts(folder: Path, index: BundleIndex, part: str, summary: ComparisonSummary) -> dict[str, str]:
    files = {variant.id: index.schema_files.get(schema_key(part, variant.id)) for variant in summary.variants}
    return {variant: (folder / file).read_text(encoding="utf-8", errors="replace") for variant, file in files.items() if file}


def _slug(text: str) -> str:
    """A text as a part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
