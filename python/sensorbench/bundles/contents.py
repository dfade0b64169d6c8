"""What of a results folder goes into a bundle: all that figures follow from, without secrets; sums replace logs. Of many answers only some keep
the values that are compared within a tolerance.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sensorbench._engine import summed_interval_log
from sensorbench.benchmarks.comparison import block_sums_of
from sensorbench.benchmarks.elasticity import request_sums_of
from sensorbench.errors import UsageError
from sensorbench.results import RunResult, kind_of, read_comparison, read_run
from sensorbench.results.block_sums import BLOCK_SUMS_FILE, SAMPLED_FILE, write_block_sums
from sensorbench.results.bundle import RESULTS_PART, Content
from sensorbench.results.checksums import CHECKSUMS_FILE, new_checksum_of
from sensorbench.results.files import write_result
from sensorbench.results.history import HISTORY_TABLE_FILE, history_in
from sensorbench.results.insight import used_status
from sensorbench.results.latencies import is_logged_whole
from sensorbench.results.manifest import MANIFEST_FILE
from sensorbench.results.request_sums import REQUEST_SUMS_FILE
from sensorbench.results.stored import check_sound
from sensorbench.results.writer import HISTOGRAM_FILE, REFERENCE_FILE, SEGMENTS_FOLDER, write_table
from sensorbench.schemas import shipped_operations
from sensorbench.schemas.operations import operations_file

# Of each run this many operations are kept in the place of its log, evenly chosen, and the slowest; of a bundle with many runs, this many of all together.
SAMPLED, SAMPLED_OF_ALL = 5_000, 25_000
SLOWEST = 20
# Averages and sums of readings do not compress: up to this many of a bundle are kept, of evenly chosen operations, those that have a reference first.
VALUES_OF_ALL = 100_000
# Nor do the times of operations on registers, of which nothing follows but what their clients saw: histories of more than this many are left out.
HISTORIES_OF_ALL = 150_000
# Spreads numbers of operations, whose kinds may come in a fixed order (Knuth's multiplicative hash).
_SPREAD = np.uint64(2_654_435_761)

Numbers = NDArray[np.uint64]

# Kinds whose figures are of whole phases: of their histograms, one for each phase has all that figures follow from, in a fraction of the space of
# one for each second.
_OF_PHASES = {"stress", "tune", "factors"}

_KEPT = re.compile(
    r"(manifest|series|summary|load|known_answers|contents|query_plans|failure|measurement|stall|study|block-\d+|\d{4})\.json"
    r"|(answers|intervals|events|resources|status)(-\d{6})?\.parquet|(reference|freshness|retention)\.parquet|histograms(-\d{6})?\.hlog"
)
_ANSWERS = re.compile(r"answers(-\d{6})?\.parquet")
_LOGS = re.compile(r"operations(-\d{6})?\.parquet|history\.jsonl")
# Of variants what their folders say stands in the summary of the whole; and what databases have themselves is not a result.
_NOT_AGAIN = re.compile(r"(.*/)?experiments/[^/]+/summary\.json|(.*/)?data/.*")
_TEXTS = {".json", ".jsonl"}
_USER_INFO = re.compile(r"(?<=://)[^/@\s\"'<>]+@")
_PASSWORD = re.compile(r"(?i)(?<=[?&])((?:password|passwd|pwd|token|secret|api_?key|credentials)=)[^&\s\"']+")
SCHEMAS_PART = "schemas"
OPERATIONS_PART = "operations"
STATUS_FILE = "status.parquet"


@dataclass(frozen=True)
class Contents:
    """The entries of a bundle but for its index; the entry of each variant's schema file, by part and variant; how many answers have their values
    left out; and how many operations on registers the histories have that are left out.
    """

    entries: dict[str, Content]
    schema_files: dict[str, str]
    answers_without_values: int
    register_operations_left_out: int


def without_secrets(text: str) -> str:
    """A text whose URLs have no user, and no option that is a secret."""
    return _PASSWORD.sub(r"\1…", _USER_INFO.sub("", text))


def contents_of(folder: Path, work: Path, *, with_operations: bool) -> Contents:
    """What of a results folder goes into a bundle.

    Args:
        folder: of the results.
        work: an empty folder for what is made of them.
        with_operations: whether logs of operations go in, and all values of answers; else sums, and samples of them.

    Raises:
        UsageError: a schema file is not the one any more that was run.
        DamagedResultsError: the results are damaged.

    """
    entries: dict[str, Content] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        name = path.relative_to(folder).as_posix()
        is_wanted = _KEPT.fullmatch(path.name) or (with_operations and _LOGS.fullmatch(path.name))
        if _NOT_AGAIN.fullmatch(name) or not is_wanted or (not with_operations and _is_answer_of_change(path, folder)):
            continue
        check_sound(path)
        entries[f"{RESULTS_PART}/{name}"] = (
            without_secrets(path.read_text(encoding="utf-8")).encode() if path.suffix in _TEXTS else path
        )
    without_values = left_out = 0
    if not with_operations:
        histories, left_out = _histories(folder)
        entries |= _in_place_of_logs(folder, work / "sums", histories)
        answers, without_values = _compact_answers(folder, work / "answers")
        entries |= answers
        if kind_of(folder) in _OF_PHASES:
            entries |= _summed_histograms(folder, work / "histograms")
    schema_files: dict[str, str] = {}
    for part in comparison_parts(folder):
        _add_sources(folder, part, entries, schema_files)
    return Contents(entries, schema_files, without_values, left_out)


def comparison_parts(folder: Path) -> list[str]:
    """The parts of results that are comparisons, as paths inside their folder; `.` for the whole."""
    if kind_of(folder) == "comparison":
        return ["."]
    found = (path.parent for path in sorted(folder.glob(f"*/{MANIFEST_FILE}")) if kind_of(path.parent) == "comparison")
    return [part.relative_to(folder).as_posix() for part in found]


def schema_key(part: str, variant: str) -> str:
    """By which an index has the schema file of a variant."""
    return variant if part == "." else f"{part}/{variant}"


def _runs_in(folder: Path) -> list[Path]:
    return [path.parent for path in sorted(folder.rglob(MANIFEST_FILE)) if kind_of(path.parent) == "run"]


def _histories(folder: Path) -> tuple[dict[Path, pa.Table], int]:
    """The history of each run in which a cluster changed, by its folder, and 0; none, and how many operations all have, if these are too many."""
    histories: dict[Path, pa.Table] = {}
    operations = 0
    for run in _runs_in(folder):
        if _is_change(run, folder) and (history := history_in(run)) is not None:
            operations += history.num_rows
            if operations <= HISTORIES_OF_ALL:
                histories[run] = history
    return (histories, 0) if operations <= HISTORIES_OF_ALL else ({}, operations)


def _in_place_of_logs(folder: Path, work: Path, histories: Mapping[Path, pa.Table]) -> Iterator[tuple[str, Content]]:
    """For each run that has a log, what figures follow from: in most kinds block sums, and a sample of its operations."""
    runs = _runs_in(folder)
    sampled = min(SAMPLED, SAMPLED_OF_ALL // max(1, len(runs)))
    for run_folder in runs:
        run = read_run(run_folder)
        log = run.table("operations")
        if log is None:
            continue
        name = run_folder.relative_to(folder).as_posix()
        place = work / name
        place.mkdir(parents=True)
        if _is_change(run_folder, folder):
            _write_sums_of_change(run, histories.get(run_folder), place)
        else:
            write_table(place / SAMPLED_FILE, _sample(log, sampled))
            if is_logged_whole(run):
                write_block_sums(place / BLOCK_SUMS_FILE, block_sums_of(run))
        yield from (
            (f"{RESULTS_PART}/{name}/{path.name}", path) for path in sorted(place.glob("*.*")) if path.name != CHECKSUMS_FILE
        )


def _is_change(run_folder: Path, folder: Path) -> bool:
    """Whether a cluster changed in a run: it lies in `runs/` of results of such changes. What lies around the folder of all results is not looked at."""
    results = run_folder.parent.parent
    return results.is_relative_to(folder) and kind_of(results) == "elasticity"


def _is_answer_of_change(path: Path, folder: Path) -> bool:
    """Whether a file has the answers of such a run: those on registers are in its history, and no figure follows from the others."""
    of_segments = path.parent.name == SEGMENTS_FOLDER
    return bool(_ANSWERS.fullmatch(path.name)) and _is_change(path.parent.parent if of_segments else path.parent, folder)


def _write_sums_of_change(run: RunResult, history: pa.Table | None, place: Path) -> None:
    """Writes the measurements of request sets, the history of registers, of what servers reported that of which figures are made, and one
    histogram of each phase: figures follow from request sums and from the series per second.
    """
    sums, status = request_sums_of(run), run.table("status")
    if sums is not None:
        write_result(place / REQUEST_SUMS_FILE, sums.model_dump_json() + "\n")
    if history is not None:
        write_table(place / HISTORY_TABLE_FILE, history)
    if status is not None:
        write_table(place / STATUS_FILE, used_status(status, run.manifest.variant.database))
    if (log := run.folder / HISTOGRAM_FILE).exists():
        _write_summed(log, place / HISTOGRAM_FILE)


def _sample(log: pa.Table, count: int) -> pa.Table:
    """About this many operations of a log, evenly chosen, and the slowest."""
    every = max(1, log.num_rows // max(1, count))
    took = log["end_ns"].to_numpy().astype(np.int64) - log["intended_start_ns"].to_numpy().astype(np.int64)
    slowest = np.argsort(took, kind="stable")[-SLOWEST:]
    chosen = np.unique(np.concatenate([np.arange(0, log.num_rows, every), slowest]))
    return log.take(pa.array(chosen))


def _compact_answers(folder: Path, work: Path) -> tuple[dict[str, Content], int]:
    """Answers in the order of their numbers, which takes a fraction of the space of the order in which they came; with references, their values
    if all together have many, else some of them; and how many answers have theirs left out. All keep the values of the same operations, so that they
    can be compared.
    """
    references = sorted(folder.rglob(REFERENCE_FILE))
    answers_files = [path for path in sorted(folder.rglob("answers*.parquet")) if _ANSWERS.fullmatch(path.name)]
    files = [*references, *(path for path in answers_files if not _is_answer_of_change(path, folder))]
    sizes = [pq.read_table(path, columns=["k", "computed"]) for path in files]
    numbers = [table["k"].to_numpy().astype(np.uint64) for table in sizes]
    values = [_values_of_each(table) for table in sizes]
    has_many = sum(int(each.sum()) for each in values) > VALUES_OF_ALL
    with_reference = np.concatenate([*numbers[: len(references)], np.empty(0, np.uint64)])
    kept = _kept_numbers(np.concatenate(numbers), np.concatenate(values), with_reference) if has_many else None
    entries: dict[str, Content] = {}
    without_values = 0
    for path, of_file, lengths in zip(files, numbers, values, strict=True):
        answers = pq.read_table(path)
        if kept is not None:
            is_kept = np.isin(of_file, kept)
            if path.name != REFERENCE_FILE:
                without_values += int(np.count_nonzero(lengths[~is_kept]))
            place = answers.schema.get_field_index("computed")
            computed = answers["computed"].combine_chunks()
            fewer = pc.if_else(is_kept, computed, pa.scalar(None, computed.type))
            answers = answers.set_column(place, answers.schema.field(place), fewer)
        name = path.relative_to(folder).as_posix()
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        order = [(column, "ascending") for column in ("phase", "operation", "k") if column in answers.column_names]
        write_table(work / name, answers.sort_by(order))
        entries[f"{RESULTS_PART}/{name}"] = work / name
    return entries, without_values


def _summed_histograms(folder: Path, work: Path) -> Iterator[tuple[str, Content]]:
    """Of each run that came to its end, one histogram of each phase, operation and kind of latency."""
    for log in sorted(folder.rglob(HISTOGRAM_FILE)):
        name = log.relative_to(folder).as_posix()
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        _write_summed(log, work / name)
        yield f"{RESULTS_PART}/{name}", work / name


def _write_summed(log: Path, summed: Path) -> None:
    write_result(summed, summed_interval_log(log.read_text(encoding="utf-8")))


def _kept_numbers(numbers: Numbers, values: Numbers, with_reference: Numbers) -> Numbers:
    """The operations whose values are kept: first those that have a reference, in an even order, as long as there is room for all values of one."""
    each, places = np.unique(numbers, return_inverse=True)
    cost = np.bincount(places, values.astype(np.float64))
    spread = (each * _SPREAD) % np.uint64(1 << 32)
    kept, left = [], float(VALUES_OF_ALL)
    for place in np.lexsort((spread, ~np.isin(each, with_reference))):
        if cost[place] <= left:
            kept.append(each[place])
            left -= cost[place]
    return np.array(kept, dtype=np.uint64)


def _values_of_each(answers: pa.Table) -> Numbers:
    lengths: Numbers = pc.fill_null(pc.list_value_length(answers["computed"]), 0).to_numpy().astype(np.uint64)
    return lengths


def _add_sources(folder: Path, part: str, entries: dict[str, Content], schema_files: dict[str, str]) -> None:
    """Adds the schema file of each variant, and the operation set, as they were run."""
    result = read_comparison(folder / part)
    for variant in result.manifest.variants:
        path, load = Path(variant.schema_file), result.loads.get(variant.id)
        if load is None:
            continue
        if not path.is_file():
            raise UsageError(f"{path}: the schema file of {variant.id} is not there any more; put it back, as it was run")
        checksum = new_checksum_of(path)
        if load.schema_sha256 is not None and load.schema_sha256 != checksum:
            raise UsageError(f"{path}: the schema file of {variant.id} was changed since it was run; put it back, as it was run")
        name = f"{SCHEMAS_PART}/{checksum[:12]}/{path.name}"
        entries[name] = path
        schema_files[schema_key(part, variant.id)] = name
    named = result.manifest.plan.dataset["operations"]
    operations = operations_file(named) if named in shipped_operations() else Path(named)
    if operations.is_file():
        entries[f"{OPERATIONS_PART}/{named.removesuffix('.toml').rpartition('/')[2]}.toml"] = operations
