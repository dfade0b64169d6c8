"""Reading results, whole ones and what is left of those that were cut short."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa

from sensorbench.errors import UsageError
from sensorbench.results.block_sums import BLOCK_SUMS_FILE, SAMPLED_FILE, Blocks, read_block_sums
from sensorbench.results.described import DescribedServer
from sensorbench.results.format_1 import SERIES_FILE, kind_in, of_format_2, series_of_format_2
from sensorbench.results.latency_blocks import COLUMNS as LATENCY_COLUMNS
from sensorbench.results.latency_blocks import LatencyBlocks, latency_blocks
from sensorbench.results.manifest import FORMAT, MANIFEST_FILE, MEASURE, ManifestHead, RunManifest, Status, VariantManifest
from sensorbench.results.planned import ComparisonManifest
from sensorbench.results.request_sums import REQUEST_SUMS_FILE, RequestSums
from sensorbench.results.stored import (
    DamagedResultsError,
    Model,
    NumberedRows,
    as_model,
    is_stored,
    parquet_batches,
    read_histogram_log,
    read_json,
    read_model,
    read_parquet,
    read_text,
    stored_in,
)
from sensorbench.results.summary.comparison import (
    AnswerChecks,
    Block,
    ComparisonSummary,
    Failure,
    LoadFigures,
    QueryPlan,
    QueryPlans,
)
from sensorbench.results.summary.envelope import SUMMARY_FORMAT, Summary
from sensorbench.results.summary.gate import GATE_FILE, GateResult
from sensorbench.results.writer import (
    CHECKS_FILE,
    CONTENTS_FILE,
    EXPERIMENTS_FOLDER,
    FAILURE_FILE,
    HISTOGRAM_FILE,
    LOAD_FILE,
    PLANS_FILE,
    REFERENCE_FILE,
    SEGMENTS_FOLDER,
    SUMMARY_FILE,
    joined_logs,
    variant_folder,
)

Manifest = TypeVar("Manifest", bound=ManifestHead)
AnySummary = TypeVar("AnySummary", bound=Summary[Any])

# Without these, only what is drawn from them is missing: figures are of operations, histograms and the manifest.
DISPENSABLE = frozenset({"intervals", "events", "resources", "status"})
# What is read of each table.
_COLUMNS = {
    "operations": ("phase", "operation", "k", "outcome", "intended_start_ns", "start_ns", "end_ns", "rows"),
    "answers": ("phase", "operation", "k", "rows", "hash", "in_order", "computed"),
    "intervals": ("phase", "operation", "start_ns", "length_ns", "ok"),
    "events": ("time_ns", "name"),
    "resources": ("time_ns", "process", "cpu_s", "memory_bytes"),
    "status": ("time_ns", "name", "value"),
    "reference": ("operation", "k", "rows", "hash"),
}
_SMALL_BYTES = 64 * 1024
# Histograms are text, which takes long to read, and are wanted once for each kind of operation and chart; a comparison may have dozens of runs.
_HISTOGRAM_BYTES = 4 << 20
_RUN_NUMBER = re.compile(r"run-(\d+)")


@dataclass(frozen=True)
class Result(Generic[Manifest]):
    """Results on disk: their folder, and what its manifest says."""

    folder: Path
    manifest: Manifest

    @property
    def state(self) -> Status:
        """How it ended."""
        return self.manifest.state


@dataclass(frozen=True)
class RunResult(Result[RunManifest]):
    """One run on disk. Tables in `dispensable` that are damaged count as not written."""

    dispensable: frozenset[str] = frozenset()

    @cached_property
    def damaged(self) -> dict[str, DamagedResultsError]:
        """Of the dispensable tables, those that are damaged."""
        problems = {name: self._problem(name) for name in sorted(self.dispensable)}
        return {name: problem for name, problem in problems.items() if problem is not None}

    def table(self, name: str) -> pa.Table | None:
        """One of its tables: operations, answers, intervals, events, resources, status; None when nothing was written.

        Raises DamagedResultsError.
        """
        if name in self.dispensable and name in self.damaged:
            return None
        if name in self._small_tables:
            return self._small_tables[name]
        files = self._files(name)
        tables = [read_parquet(file, _COLUMNS.get(name, ())) for file in files]
        found = pa.concat_tables(tables) if tables else None
        # In one file it is finished, and grows no more.
        if found is not None and files == [self._whole(name)] and found.nbytes <= _SMALL_BYTES:
            self._small_tables[name] = found
        return found

    @cached_property
    def _small_tables(self) -> dict[str, pa.Table]:
        """What was read already, for a report asks for each table many times; large ones are read each time, so as not to fill the memory."""
        return {}

    def operation_batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """The logged operations of all its phases, this many at a time; none when nothing was logged.

        Raises DamagedResultsError.
        """
        for file in self._files("operations"):
            yield from parquet_batches(file, _COLUMNS["operations"], rows)

    @cached_property
    def operation_count(self) -> int:
        """How many operations its measured phase has; where the engine could not count at the end, how many were logged."""
        if self.manifest.totals is not None:
            return sum(phase.started for phase in self.manifest.measured)
        return self.numbered("operations").count

    def latency_blocks(self, end: int | None = None) -> dict[str, LatencyBlocks]:
        """The logged response times of its measured phase in blocks, by kind of operation; of the operations before number `end` alone, if given.

        Raises DamagedResultsError.
        """
        if end not in self._latency_blocks:
            rows = NumberedRows(self._files("operations"), LATENCY_COLUMNS)
            found = latency_blocks(rows, self.manifest.phases.index(MEASURE), end) if MEASURE in self.manifest.phases else {}
            self._latency_blocks[end] = {self.manifest.operations[kind]: blocks for kind, blocks in found.items()}
        return self._latency_blocks[end]

    @cached_property
    def _latency_blocks(self) -> dict[int | None, dict[str, LatencyBlocks]]:
        """What was summed up already: the log is read once for all kinds of operations."""
        return {}

    @cached_property
    def block_sums(self) -> dict[str, Blocks] | None:
        """Its latencies by kind of operation and block, where a bundle has them in the place of its log; None elsewhere.

        Raises DamagedResultsError.
        """
        path = self.folder / BLOCK_SUMS_FILE
        return read_block_sums(path) if is_stored(path) else None

    @cached_property
    def request_sums(self) -> RequestSums | None:
        """The measurements of its request sets, where a bundle of `elasticity` has them in the place of its log; None elsewhere.

        Raises DamagedResultsError.
        """
        path = self.folder / REQUEST_SUMS_FILE
        return read_model(path, RequestSums) if is_stored(path) else None

    def sampled_operations(self) -> pa.Table | None:
        """Some of its logged operations: all where the log is there, those of the sample where a bundle has one in its place; None if
        nothing was logged. Raises DamagedResultsError.
        """
        path = self.folder / SAMPLED_FILE
        return read_parquet(path, _COLUMNS["operations"]) if is_stored(path) else self.table("operations")

    def numbered(self, name: str) -> NumberedRows:
        """The rows of its table of operations or answers, of which a part at a time is read. Raises DamagedResultsError."""
        return NumberedRows(self._files(name), _COLUMNS[name])

    def histograms(self) -> pa.Table | None:
        """Its histograms: tag, start_ns, length_ns, value_ns, count; None when nothing was written. Raises DamagedResultsError."""
        if HISTOGRAM_FILE in self._small_tables:
            return self._small_tables[HISTOGRAM_FILE]
        whole = self.folder / HISTOGRAM_FILE
        logs = [whole] if is_stored(whole) else stored_in(self.folder / SEGMENTS_FOLDER, "histograms-*.hlog")
        if not logs:
            return None
        # Each by itself first, which says which one is damaged.
        texts = [read_text(log) for log in logs]
        tables = [read_histogram_log(joined_logs([text]), log) for text, log in zip(texts, logs, strict=True)]
        found = pa.concat_tables(tables)
        if logs == [whole] and found.nbytes <= _HISTOGRAM_BYTES:
            self._small_tables[HISTOGRAM_FILE] = found
        return found

    def _files(self, name: str) -> list[Path]:
        """Where a table is: in one file, or in those of its segments."""
        whole = self._whole(name)
        return [whole] if is_stored(whole) else stored_in(self.folder / SEGMENTS_FOLDER, f"{name}-*.parquet")

    def _whole(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"

    def _problem(self, name: str) -> DamagedResultsError | None:
        try:
            for file in self._files(name):
                read_parquet(file, _COLUMNS[name])
        except DamagedResultsError as error:
            return error
        return None


@dataclass(frozen=True)
class ComparisonResult(Result[ComparisonManifest]):
    """A comparison on disk."""

    runs: dict[str, list[RunResult]] = field(default_factory=dict)
    loads: dict[str, LoadFigures] = field(default_factory=dict)
    checks: dict[str, AnswerChecks] = field(default_factory=dict)
    contents: dict[str, AnswerChecks] = field(default_factory=dict)
    plans: dict[str, dict[str, QueryPlan]] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    reference: pa.Table | None = None
    summary: ComparisonSummary | None = None
    blocks: list[Block] = field(default_factory=list)
    left_out: dict[str, list[DamagedResultsError]] = field(default_factory=dict)
    gate: GateResult | None = None

    @property
    def damage(self) -> list[tuple[str, str]]:
        """What is damaged and was left out: the variant that it is of, and file and problem."""
        return list(self._damage())

    def _damage(self) -> Iterator[tuple[str, str]]:
        for variant, runs in self.runs.items():
            for error in self.left_out.get(variant, []):
                yield variant, f"{error.path}: {error.problem}; this run is left out"
            for run in runs:
                yield from ((variant, text) for text in described_damage(run))

    def loaded_s(self, variant: str) -> float | None:
        """The time until everything of a variant was loaded and settled; None when it was not."""
        load = self.loads.get(variant)
        return load.load_s + load.settle_s if load else None

    def size_bytes(self, variant: str) -> float | None:
        """What the loaded data of a variant take, on disk or in memory; None when that is not known."""
        load = self.loads.get(variant)
        return None if load is None or load.size.total_bytes is None else float(load.size.total_bytes)

    def snapshot_bytes(self, variant: str) -> float | None:
        """What a snapshot of a variant's data takes on disk; None if its server wrote none."""
        load = self.loads.get(variant)
        return None if load is None or load.snapshot is None else float(load.snapshot["total_bytes"])

    def bytes_a_reading(self, variant: str) -> float | None:
        """What a variant takes for each reading of the dataset, all copies and repetitions; None when that is not known."""
        size, load = self.size_bytes(variant), self.loads.get(variant)
        return size / load.readings if size and load and load.readings else None

    def largest_partition_bytes(self, variant: str) -> int | None:
        """The largest partition of any table of a variant; None if the database has none or does not report it."""
        load = self.loads.get(variant)
        return max(load.size.largest_partitions.values(), default=None) if load else None

    def access(self, variant: str, operation: str) -> str | None:
        """How the database of a variant plans to go about an operation: an index, or a scan; None if it does not say."""
        plan = self.plans.get(variant, {}).get(operation)
        return plan.access if plan else None

    def server(self, variant: VariantManifest) -> DescribedServer | None:
        """The server of the lab that a variant is at; None if it is another one."""
        return self.manifest.environment.get("servers", {}).get(variant.url.partition("?")[0])

    def usable_runs(self, variant: str) -> list[RunResult]:
        """The runs that figures are taken from: complete ones; when there are none, what is left of the others."""
        complete = [run for run in self.runs[variant] if run.state == "complete"]
        return complete or self.runs[variant]


def described_damage(run: RunResult) -> list[str]:
    """The dispensable parts of a run that are damaged, file and problem each."""
    return [f"{error.path}: {error.problem}; what is drawn from it is left out" for error in run.damaged.values()]


def read_run(folder: Path) -> RunResult:
    """A run. Raises UsageError when there is none, DamagedResultsError."""
    return RunResult(folder, read_manifest(folder, RunManifest))


def read_tolerant_run(folder: Path) -> RunResult:
    """The same, for a reader that says what is damaged and continues without it. Where the engine could not count at the end, the
    intervals are what its counts are taken from.
    """
    run = read_run(folder)
    needed = frozenset() if run.manifest.totals is not None else frozenset({"intervals"})
    return RunResult(folder, run.manifest, DISPENSABLE - needed)


def runs_below(folder: Path) -> list[Path]:
    """The folders of runs in a folder, in their order. Raises DamagedResultsError for one that has lost its manifest."""
    return [run for run in sorted(folder.glob("*")) if is_stored(run / MANIFEST_FILE)]


def runs_anywhere_below(folder: Path) -> list[RunResult]:
    """The runs of the engine in results of any kind, in the order in which they began. Raises DamagedResultsError."""
    runs = [read_run(manifest.parent) for manifest in folder.rglob(MANIFEST_FILE) if kind_of(manifest.parent) == "run"]
    return sorted(runs, key=lambda run: (run.manifest.created, run.folder))


def has_results(folder: Path) -> bool:
    """Whether results, or what is left of some, are in a folder: of a run, or of a benchmark."""
    return (folder / MANIFEST_FILE).exists() or (folder / SERIES_FILE).exists()


def kind_of(folder: Path) -> str | None:
    """What kind of results a folder's manifest is of; None when there is none.

    Raises DamagedResultsError.
    """
    content = _manifest_content(folder)
    return kind_in(content) if content is not None else None


def _manifest_content(folder: Path) -> dict[str, Any] | None:
    """The manifest of a folder as it is, or that of a series of format 1, which had a file of its own; None when there is none."""
    if is_stored(folder / MANIFEST_FILE):
        return read_json(folder / MANIFEST_FILE, ["kind"])
    if not is_stored(folder / SERIES_FILE):
        return None
    series = read_json(folder / SERIES_FILE, ["name", "title", "parts"])
    begun = [folder / part for part in series["parts"].values() if is_stored(folder / part / MANIFEST_FILE)]
    return series_of_format_2(series, [read_manifest(part, ComparisonManifest) for part in begun])


def read_loads(folder: Path, variants: list[str]) -> dict[str, LoadFigures]:
    """How variants were loaded, of those that were. Raises DamagedResultsError."""
    return _of_variants(folder, variants, LOAD_FILE, LoadFigures)


def read_reference(folder: Path) -> pa.Table | None:
    """The reference answers of a benchmark; None if there are none. Raises DamagedResultsError."""
    reference = folder / REFERENCE_FILE
    return read_parquet(reference, _COLUMNS["reference"]) if is_stored(reference) else None


def read_comparison(folder: Path) -> ComparisonResult:
    """An experiment or study. Raises UsageError when there is none, DamagedResultsError."""
    manifest = read_manifest(folder, ComparisonManifest)
    variants = [variant.id for variant in manifest.variants]
    # Results may come from somebody else: nothing outside of their folder is read.
    if odd := next((variant for variant in variants if "/" in variant or variant in {"", ".", ".."}), None):
        raise DamagedResultsError(folder / MANIFEST_FILE, f"variants: {odd!r} is not a name of a folder")
    runs, left_out = {}, {}
    for variant in variants:
        runs[variant], left_out[variant] = _runs(folder, variant)
    return ComparisonResult(
        folder,
        manifest,
        runs,
        read_loads(folder, variants),
        _of_variants(folder, variants, CHECKS_FILE, AnswerChecks),
        _of_variants(folder, variants, CONTENTS_FILE, AnswerChecks),
        {variant: plans.root for variant, plans in _of_variants(folder, variants, PLANS_FILE, QueryPlans).items()},
        _of_variants(folder, variants, FAILURE_FILE, Failure),
        read_reference(folder),
        stored_summary(folder, ComparisonSummary),
        sorted((block for variant in variants for block in read_blocks(folder, variant)), key=lambda block: block.number),
        left_out,
        read_model(folder / GATE_FILE, GateResult) if is_stored(folder / GATE_FILE) else None,
    )


def read_blocks(folder: Path, variant: str) -> list[Block]:
    """The blocks of a variant that are over, in their order; none where variants were not measured one at a time. Raises DamagedResultsError."""
    blocks = [read_model(file, Block) for file in stored_in(variant_folder(folder, variant), "block-*.json")]
    return sorted(blocks, key=lambda block: block.round)


def stored_summary(folder: Path, model: type[AnySummary]) -> AnySummary | None:
    """The summary that was written; None if none is there, a damaged one, or one of an earlier format: it can be computed again from all
    else.
    """
    try:
        path = folder / SUMMARY_FILE
        content = read_json(path) if is_stored(path) else {}
        return as_model(path, content, model) if content.get("format") == SUMMARY_FORMAT else None
    except DamagedResultsError:
        return None


def _runs(folder: Path, variant: str) -> tuple[list[RunResult], list[DamagedResultsError]]:
    """The runs of a variant, and what was to be one and has lost its manifest."""
    runs, lost = [], []
    for place in variant_folder(folder, variant).glob("run-*"):
        try:
            if not is_stored(place / MANIFEST_FILE):
                continue
        except DamagedResultsError as error:
            lost.append(error)
            continue
        run = read_tolerant_run(place)
        _check_belongs(run, variant)
        runs.append(run)
    return sorted(runs, key=lambda run: run.manifest.repetition), sorted(lost, key=lambda error: error.path)


def _check_belongs(run: RunResult, variant: str) -> None:
    """Raises UsageError for a manifest of another run."""
    number = _RUN_NUMBER.fullmatch(run.folder.name)
    repetition = run.manifest.repetition
    if run.manifest.variant.id != variant or (number and int(number[1]) != repetition):
        raise UsageError(
            f"{run.folder / MANIFEST_FILE}: belongs to another run, run {repetition} of {run.manifest.variant.id}; "
            f"expected that of {variant}/{run.folder.name}"
        )


def _of_variants(folder: Path, variants: list[str], name: str, model: type[Model]) -> dict[str, Model]:
    """What a file of each variant holds, where it is there. Raises DamagedResultsError."""
    files = {variant: variant_folder(folder, variant) / name for variant in variants}
    return {variant: read_model(file, model) for variant, file in files.items() if is_stored(file)}


def read_manifest(folder: Path, model: type[Manifest]) -> Manifest:
    """The manifest of a folder of results. Raises UsageError when there is none, or one of something else; DamagedResultsError."""
    content = _manifest_content(folder)
    if content is None:
        inner = f"; its experiments are in {EXPERIMENTS_FOLDER}/" if (folder / EXPERIMENTS_FOLDER).exists() else ""
        raise UsageError(f"{folder}: no results are there ({MANIFEST_FILE} is missing){inner}")
    path = folder / (MANIFEST_FILE if (folder / MANIFEST_FILE).exists() else SERIES_FILE)
    found, kind, expected = content.get("format", 0), kind_in(content), model.model_fields["kind"].default
    if not isinstance(found, int):
        raise DamagedResultsError(path, f"format: {found!r} is not a number")
    if found > FORMAT:
        raise UsageError(f"{path}: written by a newer version of sensorbench (format {found}); this one reads {FORMAT}")
    if kind != expected:
        raise UsageError(f"{path}: these are results of kind {kind!r}; expected {expected!r}")
    return as_model(path, content if found == FORMAT else of_format_2(content), model)
