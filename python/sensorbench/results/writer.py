"""Writing results while they come: numbered, closed segments, so that whatever ends the process leaves readable ones."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from sensorbench.results.checksums import CHECKSUMS_FILE
from sensorbench.results.described import LoadedRows, LoadReport
from sensorbench.results.files import (
    RESERVE_FILE,
    release_reserve,
    remove_result,
    reserve,
    whole_file,
    write_result,
    write_result_lines,
)
from sensorbench.results.manifest import MANIFEST_FILE, BaseManifest, ManifestHead, RunManifest, RunTotals, Status, now
from sensorbench.results.ownership import Owner
from sensorbench.results.planned import ComparisonManifest
from sensorbench.results.summary.comparison import AnswerChecks, Block, ComparisonSummary, Failure, QueryPlans
from sensorbench.results.summary.envelope import Summary


def write_table(path: Path, table: pa.Table) -> None:
    """Writes a Parquet file of results, all of it or nothing, and its checksum."""
    write_tables(path, [table])


def write_tables(path: Path, tables: Iterable[pa.Table]) -> None:
    """Writes tables with equal columns as one Parquet file, one after the other, so that no more than one is in memory."""
    with whole_file(path, is_result=True) as unfinished:
        remaining = iter(tables)
        first = next(remaining)
        rising = [name for name in first.schema.names if name in _RISING]
        with pq.ParquetWriter(
            unfinished,
            first.schema,
            compression="zstd",
            use_dictionary=[name for name in first.schema.names if name not in _RISING],
            column_encoding=dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
        ) as writer:
            for table in chain([first], remaining):
                writer.write_table(table, ROWS_A_GROUP)


if TYPE_CHECKING:
    from sensorbench._engine import Segment

Manifest = TypeVar("Manifest", bound=BaseManifest[Any])
Model = TypeVar("Model", bound=BaseModel)

SEGMENTS_FOLDER = "segments"
RUNS_FOLDER = "runs"
HISTOGRAM_FILE = "histograms.hlog"
# Readers that take some operations at a time read a group of rows as a whole.
ROWS_A_GROUP = 125_000
# Columns whose values rise from row to row, or nearly so: they are written by their differences, which takes a fraction of the space.
_RISING = {"k", "intended_start_ns", "start_ns", "end_ns", "invoked_ns", "ended_ns"}
TABLES = ("operations", "answers", "intervals", "events", "resources", "status")


class ResourceRow(NamedTuple):
    """What a process has used by a moment of a run: CPU time in s since its beginning, the rest as it is then."""

    time_ns: int
    process: str
    cpu_s: float
    memory_bytes: int
    threads: int
    read_bytes: int | None
    written_bytes: int | None


class StatusRow(NamedTuple):
    """What a server reported of itself at a moment of a run."""

    time_ns: int
    name: str
    value: float


_EVENTS = pa.schema([("time_ns", pa.uint64()), ("name", pa.string())])
RESOURCES = pa.schema(
    [
        ("time_ns", pa.uint64()),
        ("process", pa.string()),
        ("cpu_s", pa.float64()),
        ("memory_bytes", pa.uint64()),
        ("threads", pa.uint32()),
        ("read_bytes", pa.uint64()),
        ("written_bytes", pa.uint64()),
    ]
)
STATUS = pa.schema([("time_ns", pa.uint64()), ("name", pa.string()), ("value", pa.float64())])


def write_manifest(folder: Path, manifest: ManifestHead) -> None:
    """Writes the manifest of a run or a benchmark."""
    write_result(folder / MANIFEST_FILE, manifest.model_dump_json(indent=2) + "\n")


class RunWriter:
    """Writes one run."""

    def __init__(self, folder: Path, manifest: RunManifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._segments = 0
        (folder / SEGMENTS_FOLDER).mkdir(parents=True)
        write_manifest(self.folder, self.manifest)

    def write(self, segment: "Segment", resources: Sequence[ResourceRow], status: Sequence[StatusRow]) -> None:
        """Writes what was recorded since the segment before. Raises DiskFullError when it does not fit."""
        events = [{"time_ns": time_ns, "name": name} for time_ns, name in segment["events"]]
        tables = {
            "operations": pa.Table.from_batches([segment["operations"]]),
            "answers": pa.Table.from_batches([segment["answers"]]),
            "intervals": pa.Table.from_batches([segment["intervals"]]),
            "events": pa.Table.from_pylist(events, schema=_EVENTS),
            "resources": pa.Table.from_pylist([row._asdict() for row in resources], schema=RESOURCES),
            "status": pa.Table.from_pylist([row._asdict() for row in status], schema=STATUS),
        }
        self._segments += 1
        for name, table in tables.items():
            if table.num_rows:
                write_table(self._segment_file(name, "parquet"), table)
        if segment["histograms"]:
            write_result(self._segment_file("histograms", "hlog"), segment["histograms"])

    def finish(self, status: Status, totals: RunTotals | None, reason: str | None = None) -> None:
        """Says how the run ended. A complete one is compacted: one file for each table."""
        if status == "complete":
            self._compact()
        self.manifest = self.manifest.ended(status, totals, reason)
        write_manifest(self.folder, self.manifest)

    def _segment_file(self, name: str, suffix: str) -> Path:
        return self.folder / SEGMENTS_FOLDER / f"{name}-{self._segments:06}.{suffix}"

    def _compact(self) -> None:
        segments = self.folder / SEGMENTS_FOLDER
        for name in TABLES:
            files = sorted(segments.glob(f"{name}-*.parquet"))
            if files:
                write_tables(self.folder / f"{name}.parquet", joined_tables(files))
        logs = sorted(segments.glob("histograms-*.hlog"))
        if logs:
            write_result_lines(self.folder / HISTOGRAM_FILE, joined_logs(log.read_text(encoding="utf-8") for log in logs))
        for file in segments.iterdir():
            file.unlink()
        segments.rmdir()


def joined_tables(files: list[Path]) -> Iterator[pa.Table]:
    """The rows of segments, some of them at a time: whole groups of a Parquet file, and at last what is left."""
    waiting = pq.read_schema(files[0]).empty_table()
    for file in files:
        waiting = pa.concat_tables([waiting, pq.read_table(file)])
        if whole := waiting.num_rows - waiting.num_rows % ROWS_A_GROUP:
            yield waiting.slice(0, whole)
            waiting = waiting.slice(whole)
    if waiting.num_rows:
        yield waiting


def joined_logs(logs: Iterable[str]) -> Iterator[str]:
    """The lines of interval logs as those of one: the header of the first, and the lines of all."""
    for number, log in enumerate(logs):
        for line in log.splitlines():
            if number == 0 or line.startswith("Tag="):
                yield f"{line}\n"


class ManifestWriter(Generic[Manifest]):
    """Writes the manifest of a whole work, into a folder in which some space is kept for its end."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._is_new, self._is_new_folder = not (folder / MANIFEST_FILE).exists(), not folder.exists()
        self._is_withdrawn = False
        folder.mkdir(parents=True, exist_ok=True)
        reserve(folder)
        write_manifest(self.folder, self.manifest)

    @property
    def owner(self) -> Owner:
        """In whose name namespaces at targets are created."""
        return Owner.of(self.manifest.id, self.folder)

    def update(self, **changes: Any) -> None:
        """Changes the manifest."""
        self.manifest = _changed(self.manifest, changes)
        write_manifest(self.folder, self.manifest)

    def update_plan(self, **changes: Any) -> None:
        """Changes the part of the manifest that is the kind's own."""
        self.update(plan=_changed(self.manifest.plan, changes))

    def withdraw_if_bare(self) -> bool:
        """Removes the manifest that was begun here where nothing else was written, as if nothing had begun. Returns whether that was so."""
        own = (MANIFEST_FILE, CHECKSUMS_FILE, RESERVE_FILE)
        if not self._is_new or any(entry.name not in own for entry in self.folder.iterdir()):
            return False
        for name in own:
            (self.folder / name).unlink(missing_ok=True)
        if self._is_new_folder:
            self.folder.rmdir()
        self._is_withdrawn = True
        return True

    def finish(self, status: Status, reason: str | None = None) -> None:
        """Says how it ended, unless it was withdrawn."""
        if self._is_withdrawn:
            return
        release_reserve(self.folder)
        self.update(status=status, reason=reason, finished=now())


class RunsWriter(ManifestWriter[Manifest]):
    """The same of a benchmark whose runs are numbered; hands out their folders."""

    def run_folder(self, number: int) -> Path:
        """Where the run with this number, from 1, goes."""
        return self.folder / RUNS_FOLDER / f"{number:03}"


class ComparisonWriter(ManifestWriter[ComparisonManifest]):
    """Writes what belongs to an experiment or study as a whole, and hands out the folders of its variants and runs."""

    def variant_folder(self, variant: str) -> Path:
        """The folder of a variant's results."""
        return variant_folder(self.folder, variant)

    def run_folder(self, variant: str, repetition: int) -> Path:
        """The folder of a run; repetitions count from 1."""
        return run_folder(self.folder, variant, repetition)

    def write_load(self, variant: str, load: LoadReport) -> None:
        """Writes how loading went."""
        write_load(self.variant_folder(variant), load)

    def write_plans(self, variant: str, plans: QueryPlans) -> None:
        """Writes how the database goes about each operation, where it reports that."""
        self._write(variant, PLANS_FILE, plans)

    def write_failure(self, variant: str, failure: Failure) -> None:
        """Writes why a variant was left out."""
        self._write(variant, FAILURE_FILE, failure)

    def forget_failure(self, variant: str) -> None:
        """Says that what failed before did not fail again."""
        remove_result(self.variant_folder(variant) / FAILURE_FILE)

    def write_block(self, block: Block) -> None:
        """Writes that a block is over, and how it went."""
        self._write(block.variant, block_file(block.round), block)

    def write_checks(self, variant: str, checks: AnswerChecks) -> None:
        """Writes how the known answers compared."""
        self._write(variant, CHECKS_FILE, checks)

    def write_contents(self, variant: str, checks: AnswerChecks) -> None:
        """Writes how the contents compared after runs that wrote."""
        self._write(variant, CONTENTS_FILE, checks)

    def _write(self, variant: str, name: str, content: BaseModel) -> None:
        """Writes what is known of a variant, in the words that were given."""
        folder = self.variant_folder(variant)
        folder.mkdir(parents=True, exist_ok=True)
        write_result(folder / name, content.model_dump_json(indent=2, exclude_unset=True) + "\n")

    def write_reference(self, table: pa.Table) -> None:
        """Writes the reference answers."""
        write_table(self.folder / REFERENCE_FILE, table)


EXPERIMENTS_FOLDER = "experiments"
LOAD_FILE = "load.json"
CHECKS_FILE = "known_answers.json"
CONTENTS_FILE = "contents.json"
PLANS_FILE = "query_plans.json"
FAILURE_FILE = "failure.json"
REFERENCE_FILE = "reference.parquet"
SUMMARY_FILE = "summary.json"


def write_load(folder: Path, load: LoadReport | Mapping[str, LoadedRows]) -> None:
    """Writes how loading went: of one variant, or of each by its name."""
    folder.mkdir(parents=True, exist_ok=True)
    write_result(folder / LOAD_FILE, json.dumps(load, indent=2) + "\n")


def variant_folder(folder: Path, variant: str) -> Path:
    """The folder of a variant's results."""
    return folder / EXPERIMENTS_FOLDER / variant


def run_folder(folder: Path, variant: str, repetition: int) -> Path:
    """The folder of a run; repetitions count from 1."""
    return variant_folder(folder, variant) / f"run-{repetition}"


def block_file(round_: int) -> str:
    """Where a variant's block of a round is; rounds count from 1."""
    return f"block-{round_}.json"


def write_typed_summary(folder: Path, summary: Summary[Any]) -> None:
    """Writes the summary of a benchmark."""
    write_result(folder / SUMMARY_FILE, summary.model_dump_json(indent=2) + "\n")


def write_summary(folder: Path, summary: ComparisonSummary) -> None:
    """Writes the summary of a comparison, and that of each variant in its folder."""
    write_typed_summary(folder, summary)
    for variant in summary.variants:
        of_variant = variant_folder(folder, variant.id)
        if of_variant.exists():
            write_typed_summary(of_variant, summary_of_variant(summary, variant.id))


def summary_of_variant(summary: ComparisonSummary, variant: str) -> ComparisonSummary:
    """The part of a summary that is about one variant."""
    result = summary.result
    by_variant = {
        name: {key: value for key, value in getattr(result, name).items() if key == variant}
        for name in (
            "runs",
            "load",
            "rate_changes",
            "query_plans",
            "failures",
            "known_answers",
            "contents",
            "guarantees",
            "client_health",
        )
    }
    own = {
        **by_variant,
        "figures": [figure for figure in result.figures if figure.variant == variant],
        "rankings": [],
        "models": [],
        "sections": [],
        "stall": None,
        "blocks": [block for block in result.blocks if block.variant == variant],
    }
    return summary.model_copy(
        update={
            "variants": [variant_manifest for variant_manifest in summary.variants if variant_manifest.id == variant],
            "warnings": [caveat for caveat in summary.warnings if caveat.variant in ("", variant)],
            "claims": [],
            "result": result.model_copy(update=own),
        }
    )


def _changed(model: Model, changes: Mapping[str, Any]) -> Model:
    """A part of a manifest with other values. pydantic would take names that it does not have, too, and drop them when it writes."""
    unknown = changes.keys() - type(model).model_fields
    if unknown:
        raise AssertionError(f"{type(model).__name__} has no {', '.join(sorted(unknown))}")
    return model.model_copy(update=dict(changes))
