"""Verifying a bundle: hashes, signature, every figure that follows from the records, and whether the records agree."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sensorbench.bundles.checks.accounting import check_accounting, check_answers, check_counts, check_rows, check_runs
from sensorbench.bundles.checks.caches import check_result_caches, check_warmup
from sensorbench.bundles.checks.histograms import check_latencies
from sensorbench.bundles.checks.problem import Problem
from sensorbench.bundles.checks.questions import check_questions, check_variants
from sensorbench.bundles.checks.request_sums import check_request_sums
from sensorbench.bundles.checks.schema_files import check_schema_files
from sensorbench.bundles.checks.times import check_schedule, check_times
from sensorbench.bundles.contents import comparison_parts, schema_key
from sensorbench.bundles.figures import Remeasured, computed_count, differences, may_need_logs, needs_history
from sensorbench.bundles.make import Summarise
from sensorbench.bundles.signature import signer_of
from sensorbench.errors import FailedError, SensorbenchError
from sensorbench.results import ComparisonResult, kind_of, read_comparison, read_run
from sensorbench.results.bundle import INDEX_FILE, RESULTS_PART, SIGNATURE_FILE, BundleIndex, UnreadableBundleError, unpack
from sensorbench.results.elasticity import COMPARISON as CLUSTERS_KIND
from sensorbench.results.manifest import MANIFEST_FILE
from sensorbench.results.stored import read_model
from sensorbench.results.summary.envelope import Summary
from sensorbench.results.summary.kinds import SUMMARY_BY_KIND
from sensorbench.results.writer import SUMMARY_FILE

FILES, SIGNATURE, FIGURES, HEALTH, RECORDS = "files", "signature", "figures", "health", "records"
_CHECKS: Mapping[str, Callable[[ComparisonResult], Iterator[Problem]]] = {
    "all runs are there": check_runs,
    "offered = started + dropped; started = ok + error + timeout + cancelled": check_accounting,
    "an answer for each operation": check_answers,
    "all rows are there": check_rows,
    "histograms, block sums, totals and sampled operations agree": check_latencies,
    "times are in order": check_times,
    "arrivals follow the schedule": check_schedule,
    "all variants had the questions of the seed": check_questions,
    "runs are of their variant": check_variants,
    "cold, warm and hot as they say": check_warmup,
    "no cache of results": check_result_caches,
}
# What stands in summaries and was measured once, so that nothing in a bundle can confirm it.
_OF_ALL = (
    "what servers say of their version and settings",
    "machine and environment",
    "CPU, memory and disk of servers over time",
)
_OF_COMPARISONS = ("load times and rates", "sizes of loaded data", "query plans")
_CLUSTERS = ("elasticity", CLUSTERS_KIND)
_OF_CLUSTERS = ("where the data were", "when the change of the cluster began and ended", "load times and rates")
_MEASURED_ONCE: Mapping[str, tuple[str, ...]] = {
    "comparison": _OF_COMPARISONS,
    "series": _OF_COMPARISONS,
    "tsbs": ("load times and rates", "sizes of loaded data"),
    "stress": ("hit rates and other figures that servers report of themselves",),
    "tune": ("load times and sizes of loaded data", "how long each trial took", "whether a server started with a configuration"),
    "factors": (
        "figures that servers report of themselves",
        "how long each cell took",
        "whether a server started with a configuration",
    ),
    **dict.fromkeys(_CLUSTERS, _OF_CLUSTERS),
    "mapreduce": ("times of executions and of their phases", "rows and bytes that connectors read", "placement of data"),
}
# The same of runs in the words of another tool.
_OF_TOOLS = ("rows that answers had",)
Remeasure = Callable[[Path], Iterator[Remeasured]]
# Anything that reading recorded data can raise when they are not what they should be.
_UNREADABLE = (SensorbenchError, ValueError, KeyError, IndexError, TypeError, AttributeError, ArithmeticError, OSError)


@dataclass(frozen=True)
class Verification:
    """What verifying a bundle found.

    Attributes:
        index: what the bundle says of itself.
        figures: how many figures were computed again.
        checks: what was checked, in words.
        problems: what is wrong.
        unverified: what does not follow from what is in the bundle.
        signer: who signed it; None if no signers were given, or it is not signed.

    """

    index: BundleIndex
    figures: int
    checks: list[str]
    problems: list[Problem]
    unverified: list[str]
    signer: str | None = None
    summaries: dict[str, Summary[Any]] = field(default_factory=dict, repr=False)

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify_bundle(path: Path, summarise: Summarise, remeasure: Remeasure, *, allowed_signers: Path | None = None) -> Verification:
    """Verifies a bundle.

    Args:
        path: the bundle.
        summarise: gives the summary of a folder of results of any kind.
        remeasure: gives the figures of measurements in such a folder as they follow from what was recorded.
        allowed_signers: a file of allowed signers, as ssh-keygen(1) has it; one of them must have signed the bundle.

    Raises:
        UnreadableBundleError: for a file that is not a bundle, or is not safe to unpack.
        UsageError: the file of allowed signers is not there.

    """
    with tempfile.TemporaryDirectory(prefix="sensorbench-verify-") as folder:
        index, wrong = unpack(path, Path(folder))
        return verify_unpacked(Path(folder), index, wrong, summarise, remeasure, allowed_signers)


def verify_unpacked(
    folder: Path,
    index: BundleIndex,
    wrong: list[str],
    summarise: Summarise,
    remeasure: Remeasure,
    allowed_signers: Path | None = None,
) -> Verification:
    """Verifies a bundle that was unpacked.

    Args:
        folder: what it was unpacked into.
        index: its index.
        wrong: what is wrong with its entries by the index.
        summarise: gives the summary of a folder of results of any kind.
        remeasure: as for `verify_bundle`.
        allowed_signers: as for `verify_bundle`.

    """
    problems = [Problem(FILES, *text.split(": ", 1)) for text in wrong]
    checks = ["SHA-256 of every file"]
    signer = None
    if allowed_signers is not None:
        try:
            signer = _signer(folder, allowed_signers)
            checks.append(f"signature by {signer}")
        except FailedError as error:
            problems.append(Problem(SIGNATURE, INDEX_FILE, str(error)))
    results = folder / RESULTS_PART
    parts = comparison_parts(results) if results.is_dir() else []
    for part in parts:
        problems += _part(folder, index, part)
    if not parts and results.is_dir():
        problems += _runs(results)
        checks.append("started = ok + error + timeout + cancelled in each run")
        if index.results in _CLUSTERS:
            checks.append("operations by second around each change of a cluster")
    if parts:
        checks += [*_CHECKS, "schema files are those that were run"]
    inner = [*(part for part in parts if part != "."), *_inner_results(results)]
    summaries, figures, unverified, odd = _figures(results, index, [*inner, "."], summarise)
    if figures:
        checks.append("every figure that follows from histograms, block sums and counts")
    again, differing = _remeasured(results, remeasure) if results.is_dir() else ([], [])
    if again:
        checks.append("figures of each measurement follow from its run")
    figures += sum(each.count for each in again)
    if index.answers_without_values:
        unverified.append(f"values within a tolerance of {index.answers_without_values:,} answers, which are left out")
    if index.register_operations_left_out:
        unverified.append(
            f"what clients saw in {index.register_operations_left_out:,} operations on registers, whose histories are left out"
        )
    if index.results in _CLUSTERS and not index.with_operations:
        unverified.append("times of request sets, which were summed up from the log of operations")
    once = [*_MEASURED_ONCE.get(index.results, _OF_TOOLS), *_OF_ALL]
    return Verification(index, figures, checks, [*problems, *odd, *differing], [*unverified, *once], signer, summaries)


def stored_summaries(folder: Path, index: BundleIndex) -> dict[str, Summary[Any]]:
    """The summaries of a bundle that was unpacked, by part, `.` for the whole.

    Raises:
        UnreadableBundleError: the results are of a kind that is not known here.
        DamagedResultsError: a summary is damaged.

    """
    results = folder / RESULTS_PART
    places = [*(part for part in comparison_parts(results) if part != "."), "."]
    return {place: _stored_summary(results, index, place) for place in places}


def _stored_summary(results: Path, index: BundleIndex, place: str) -> Summary[Any]:
    kind = index.results if place == "." else kind_of(results / place)
    model = SUMMARY_BY_KIND.get(kind or "comparison")
    if model is None:
        raise UnreadableBundleError(f"{INDEX_FILE}: results: {index.results!r} is not a kind of results")
    return read_model(results / place / SUMMARY_FILE, model)


def _signer(folder: Path, allowed: Path) -> str:
    signature = folder / SIGNATURE_FILE
    if not signature.is_file():
        raise FailedError("the bundle is not signed")
    return signer_of((folder / INDEX_FILE).read_bytes(), signature.read_bytes(), allowed)


def _part(folder: Path, index: BundleIndex, part: str) -> Iterator[Problem]:
    """What is wrong in a comparison."""
    try:
        result = read_comparison(folder / RESULTS_PART / part)
    except _UNREADABLE as error:
        yield Problem(RECORDS, part, _described(error))
        return
    for path in (error.path for errors in result.left_out.values() for error in errors):
        yield Problem(RECORDS, part, f"{path.relative_to(folder)} cannot be read")
    for words, check in _CHECKS.items():
        try:
            yield from check(result)
        except _UNREADABLE as error:
            yield Problem(RECORDS, part, f"it could not be checked whether {words}: {_described(error)}")
    files = {
        variant.id: folder / index.schema_files[key]
        for variant in result.manifest.variants
        if (key := schema_key(part, variant.id)) in index.schema_files
    }
    yield from check_schema_files(result, files)


def _runs(results: Path) -> Iterator[Problem]:
    """What is wrong in runs of kinds that are not comparisons."""
    for manifest in sorted(results.rglob(MANIFEST_FILE)):
        try:
            if kind_of(manifest.parent) == "run":
                run = read_run(manifest.parent)
                yield from check_counts(run)
                yield from check_request_sums(run)
        except _UNREADABLE as error:
            yield Problem(RECORDS, manifest.parent.relative_to(results).as_posix(), _described(error))


def _inner_results(results: Path) -> list[str]:
    """The results of other kinds than comparisons and runs that results have inside, such as the stress run of each trial, with a summary of their own."""
    return [
        summary.parent.relative_to(results).as_posix()
        for summary in sorted(results.rglob(SUMMARY_FILE))
        if summary.parent != results and kind_of(summary.parent) in SUMMARY_BY_KIND.keys() - {"comparison"}
    ]


def _remeasured(results: Path, remeasure: Remeasure) -> tuple[list[Remeasured], list[Problem]]:
    """The figures of measurements, and what keeps them from being computed again."""
    try:
        again = list(remeasure(results))
    except _UNREADABLE as error:
        return [], [Problem(FIGURES, "measurements", _described(error))]
    return again, [Problem(FIGURES, each.file, str(difference)) for each in again for difference in each.differences]


def _figures(
    results: Path, index: BundleIndex, places: list[str], summarise: Summarise
) -> tuple[dict[str, Summary[Any]], int, list[str], list[Problem]]:
    """The summaries, how many of their figures were computed again, those that could not be, and those that came out otherwise."""
    summaries: dict[str, Summary[Any]] = {}
    problems: list[Problem] = []
    unverified: list[str] = []
    figures = 0
    for place in places:
        where = "/".join(filter(None, [place.strip("."), SUMMARY_FILE]))
        try:
            stored = _stored_summary(results, index, place)
            computed = summarise(results / place)
        except UnreadableBundleError:
            raise
        except _UNREADABLE as error:
            problems.append(Problem(FIGURES, where, _described(error)))
            continue
        summaries[place] = stored
        figures += computed_count(stored)
        listed = set(index.unverifiable)
        for difference in differences(stored, computed):
            name = "/".join(filter(None, [place.strip("."), difference.path]))
            if name in listed and not index.with_operations and may_need_logs(difference.path, computed):
                unverified.append(f"{name} (it needs the log of operations)")
            elif index.results in _CLUSTERS and index.register_operations_left_out and needs_history(difference):
                figures -= computed_count(stored, difference.path)
            else:
                problems.append(Problem(FIGURES, where, str(difference)))
    return summaries, figures - len(unverified), unverified, problems


def _described(error: Exception) -> str:
    return (
        str(error) if isinstance(error, SensorbenchError) else f"what was recorded is not sound ({type(error).__name__}: {error})"
    )
