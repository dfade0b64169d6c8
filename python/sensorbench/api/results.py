"""Results on disk as typed objects."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

from sensorbench.api import html
from sensorbench.api.errors import NotAvailableError, own_errors
from sensorbench.api.figures import Figure, figures_of
from sensorbench.api.operations import SCHEMA, MeasuredRun, operation_batches
from sensorbench.api.rows import Rows, require_pandas, rows_of
from sensorbench.app.reports import REPORTS, Series, kind_at, write_report
from sensorbench.errors import UsageError
from sensorbench.paths import REPORT_FILE
from sensorbench.results import ComparisonResult, RunResult, VariantManifest
from sensorbench.results.elasticity import ElasticityResult
from sensorbench.results.manifest import MEASURE
from sensorbench.results.reader import Result, stored_summary
from sensorbench.results.stress import StressResult
from sensorbench.results.summary.claims import JudgedClaim
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.results.summary.envelope import Caveat, Summary
from sensorbench.results.summary.kinds import SUMMARY_BY_KIND
from sensorbench.results.summary.published import PublishedTable
from sensorbench.results.summary.series import SeriesSummary
from sensorbench.results.tools import ToolResult
from sensorbench.results.tsbs import TsbsResult

if TYPE_CHECKING:
    import pandas as pd

AnySummary = TypeVar("AnySummary", bound=Summary[Any], covariant=True)

# Of an operation a row has about 100 bytes, so that a batch of so many is a small part of any machine's memory.
BATCH_ROWS = 100_000


@dataclass(frozen=True)
class Variant:
    """One side of a comparison: a target, a schema and its parameters.

    Attributes:
        id: what results call it.
        database: the database, by its driver's name.
        schema: name of the schema.
        parameters: the schema's parameters, by name.
        url: where it was, without anything secret.
        embedded: whether the database runs in the process of the load generator.
        label: what tells it from variants with the same target and schema; empty where nothing must.

    Examples:
        >>> import sensorbench as sb
        >>> variant = sb.read("results/iot").variants[0]
        >>> variant.id, variant.schema, variant.embedded
        ('sqlite-star', 'star', True)

    """

    id: str
    database: str
    schema: str
    parameters: Mapping[str, object]
    url: str
    embedded: bool
    label: str

    @classmethod
    def _of(cls, manifest: VariantManifest) -> "Variant":
        parameters = MappingProxyType(dict(manifest.schema_parameters))
        return cls(
            manifest.id,
            manifest.database,
            manifest.schema_name,
            parameters,
            manifest.url,
            manifest.embedded,
            manifest.label,
        )


class Results(Generic[AnySummary]):
    """Results on disk, of any kind. `read` makes them.

    Attributes:
        folder: where they are.
        kind: what was run: `comparison`, `series`, `stress`, `tune`, `factors`, `elasticity`, `elasticity comparison`, `mapreduce`,
            `ycsb`, `cassandra-stress` or `tsbs`.

    Examples:
        >>> import sensorbench as sb
        >>> results = sb.read("results/iot")
        >>> results.kind, results.status, results.summary.answers_equal
        ('comparison', 'complete', True)

    """

    def __init__(self, folder: Path, kind: str, found: object) -> None:
        self.folder = folder
        self.kind = kind
        self._found = found

    @cached_property
    def summary(self) -> AnySummary:
        """What was found: the content of `summary.json` as a model, which depends on the kind.

        Its JSON Schema is among those of result files. It is computed from all else where it is not on disk, which may take a while.

        Raises:
            DamagedResultsError: for a file of results that is damaged.

        """
        with own_errors():
            stored = stored_summary(self.folder, SUMMARY_BY_KIND[self.kind])
            is_current = stored is not None and stored.status == self._state(stored.status)
            summary: AnySummary = stored if is_current else REPORTS[self.kind].summarise(self._found)  # type: ignore[assignment]
            return summary

    def _state(self, otherwise: str) -> str:
        """How the manifest says that it ended; a summary of another status was written before it went on."""
        return self._found.state if isinstance(self._found, Result) else otherwise

    @property
    def title(self) -> str:
        """The headline."""
        return self.summary.title

    @property
    def status(self) -> str:
        """How it ended: `complete`, `interrupted`, `failed` or `out of space`; `running` while it goes on."""
        return self.summary.status

    @property
    def variants(self) -> tuple[Variant, ...]:
        """What was measured, in the order of the results; empty for kinds that do not compare variants."""
        return tuple(map(Variant._of, self.summary.variants))

    @property
    def warnings(self) -> tuple[Caveat, ...]:
        """What a reader of the figures must know: each has a `kind`, a `text`, an `action`, and the `variant` that it is about."""
        return tuple(self.summary.warnings)

    @property
    def claims(self) -> tuple[JudgedClaim, ...]:
        """The published findings that these results judge, with their verdicts; empty where they judge none."""
        return tuple(self.summary.claims)

    @property
    def published(self) -> tuple[PublishedTable, ...]:
        """The tables of the paper that a study repeats: each cell has the printed value, what was measured in its place, and their
        ratio, or why there is none. Empty for what is no study.
        """
        return tuple(self.summary.published)

    def report(self, *, rewrite: bool = False) -> Path:
        """The page that shows these results, which is written where it is not there.

        Args:
            rewrite: whether it is written again, by this version of sensorbench, with the summary.

        Returns:
            The path of `report.html`.

        Raises:
            UsageError: where something else lies at its place.
            DamagedResultsError: for a file of results that is damaged.

        Examples:
            >>> import sensorbench as sb
            >>> sb.read("results/iot").report().name
            'report.html'

        """
        page = self.folder / REPORT_FILE
        if page.exists() and not rewrite:
            return page
        with own_errors():
            _, written = write_report(self.folder)
        # What was read before is of another state of the files.
        self.__dict__.pop("summary", None)
        return written

    def operations(
        self,
        *,
        variants: Collection[str] | None = None,
        repetitions: Collection[int] | None = None,
        operations: Collection[str] | None = None,
    ) -> pa.Table:
        """The operations that were measured and logged, a row for each.

        All that is selected is in memory: for long runs select less, or take `operation_batches`. Of long runs only a sample is logged,
        as `workload.log` of an experiment says; figures are of all operations.

        Args:
            variants: ids of the variants that are wanted; all if None.
            repetitions: numbers of the repetitions that are wanted, from 1; all if None.
            operations: names of the operations that are wanted; all if None.

        Returns:
            An Arrow table: `variant`, `repetition`, `phase`, `operation`, `k` (the number of the operation in its run), `outcome`,
            `intended_start_ns`, `start_ns`, `end_ns` (since the beginning of the run), `response_time_s` (from the intended start),
            `service_time_s` (from the start), `rows` (returned or written). Texts are dictionary-encoded.

        Raises:
            NotAvailableError: for kinds of results that have no operations of their own.
            UsageError: for a variant, repetition or operation that is not there.
            DamagedResultsError: for a file of results that is damaged.

        Examples:
            >>> import sensorbench as sb
            >>> results = sb.read("results/iot")
            >>> table = results.operations(variants=["sqlite-star"], repetitions=[1])
            >>> table.num_rows, table.column_names[:4]
            (120, ['variant', 'repetition', 'phase', 'operation'])

        """
        batches = self.operation_batches(variants=variants, repetitions=repetitions, operations=operations)
        return pa.Table.from_batches(batches, SCHEMA)

    def operation_batches(
        self,
        *,
        variants: Collection[str] | None = None,
        repetitions: Collection[int] | None = None,
        operations: Collection[str] | None = None,
        rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """The same as `operations`, some rows at a time, so that memory does not grow with the length of the runs.

        Args:
            variants: ids of the variants that are wanted; all if None.
            repetitions: numbers of the repetitions that are wanted, from 1; all if None.
            operations: names of the operations that are wanted; all if None.
            rows: rows of a batch at most.

        Returns:
            Record batches with the columns of `operations`, variant by variant, repetition by repetition.

        Raises:
            NotAvailableError: for kinds of results that have no operations of their own.
            UsageError: for a variant, repetition or operation that is not there.
            DamagedResultsError: while batches are taken, for a file that is damaged.

        Examples:
            >>> import sensorbench as sb
            >>> batches = sb.read("results/iot").operation_batches(rows=50)
            >>> max(batch.num_rows for batch in batches) <= 50
            True

        """
        del variants, repetitions, operations, rows
        raise NotAvailableError(self._without("operations of their own"))

    def to_pandas(
        self,
        *,
        variants: Collection[str] | None = None,
        repetitions: Collection[int] | None = None,
        operations: Collection[str] | None = None,
    ) -> "pd.DataFrame":
        """The same as `operations`, as a pandas DataFrame. Figures have a `to_pandas` of their own.

        Args:
            variants: ids of the variants that are wanted; all if None.
            repetitions: numbers of the repetitions that are wanted, from 1; all if None.
            operations: names of the operations that are wanted; all if None.

        Returns:
            A frame with the columns of `operations`; texts are categories.

        Raises:
            NotAvailableError: where pandas is not installed, and for kinds of results that have no operations of their own.
            UsageError: for a variant, repetition or operation that is not there.
            DamagedResultsError: for a file of results that is damaged.

        """
        require_pandas()
        return self.operations(variants=variants, repetitions=repetitions, operations=operations).to_pandas()

    def figures(self, *, variant: str | None = None, operation: str | None = None, metric: str | None = None) -> Rows[Figure]:
        """The figures of each operation at each variant, with their confidence intervals.

        Args:
            variant: id of the one variant that is wanted; all if None.
            operation: name of the one operation that is wanted; all if None.
            metric: the one metric that is wanted, for example `median` or `p99`; all if None.

        Returns:
            Typed figures, which are also a table.

        Raises:
            NotAvailableError: for kinds of results other than comparisons.
            UsageError: for a variant, operation or metric that is not there.

        """
        del variant, operation, metric
        raise NotAvailableError(self._without("figures of variants"))

    def _without(self, what: str) -> str:
        """What a message says of a thing that results of this kind do not have."""
        return (
            f"{self.folder}: results of kind {self.kind} have no {what}; their figures are in .summary.result, and in .report()"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {str(self.folder)!r}: {self.kind}, {self.status}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return html.of_any(self.summary, self.folder)


class MeasuredResults(Results[AnySummary]):
    """Results whose operations were logged: of kind `stress`, `elasticity`, `ycsb`, `cassandra-stress` or `tsbs`; comparisons are some, too.

    Examples:
        >>> import sensorbench as sb
        >>> isinstance(sb.read("results/iot"), sb.MeasuredResults)
        True

    """

    def __init__(self, folder: Path, kind: str, found: object, runs: Sequence[MeasuredRun], phase: str | None = None) -> None:
        super().__init__(folder, kind, found)
        self._runs = runs
        self._phase = phase

    def operation_batches(
        self,
        *,
        variants: Collection[str] | None = None,
        repetitions: Collection[int] | None = None,
        operations: Collection[str] | None = None,
        rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """See `Results.operation_batches`. Phases other than the measured one are there for kinds whose phases have rates of their own."""
        for argument, wanted in (("variants", variants), ("operations", operations)):
            if isinstance(wanted, str):
                raise UsageError(f"{argument}={wanted!r}: expected a list of names, as in {argument}=[{wanted!r}]")
        known = {name: None for run in self._runs for name in run.result.manifest.operations}
        _check_known("variants", variants, [run.variant for run in self._runs])
        _check_known("repetitions", repetitions, [run.repetition for run in self._runs])
        _check_known("operations", operations, list(known))
        chosen = [
            run
            for run in self._runs
            if (variants is None or run.variant in variants) and (repetitions is None or run.repetition in repetitions)
        ]
        if chosen and all(run.result.manifest.plan["log_every"] is None for run in chosen):
            raise NotAvailableError(
                f'{self.folder}: no operations were logged; run it with workload.log = "auto" or "all", or take .figures()'
            )
        return _checked(operation_batches(chosen, operations, self._phase, rows))


class ComparisonResults(MeasuredResults[ComparisonSummary]):
    """Results of variants that were compared with one another: of an experiment, of a study, or of one part of a study.

    Examples:
        >>> import sensorbench as sb
        >>> results = sb.read("results/iot")
        >>> figures = results.figures(operation="get_sensor_data", metric=results.metric)
        >>> len(figures.where(lambda figure: figure.is_fastest)) >= 1
        True

    """

    def __init__(self, folder: Path, found: ComparisonResult) -> None:
        runs = [
            MeasuredRun(variant, run.manifest.repetition, run) for variant in found.runs for run in found.usable_runs(variant)
        ]
        super().__init__(folder, "comparison", found, runs, MEASURE)

    @property
    def metric(self) -> str:
        """The metric by which variants are ranked, for example `median`."""
        return self.summary.result.metric

    def figures(self, *, variant: str | None = None, operation: str | None = None, metric: str | None = None) -> Rows[Figure]:
        """The figures by operation, then in the order of the variants.

        Args:
            variant: id of the one variant that is wanted; all if None.
            operation: name of the one operation that is wanted; all if None.
            metric: the one metric that is wanted, for example `median` or `p99`; all if None.

        Returns:
            Typed figures, which are also a table.

        Examples:
            >>> import sensorbench as sb
            >>> figures = sb.read("results/iot").figures(operation="get_peak_data", metric="p99")
            >>> [figure.variant for figure in figures]
            ['sqlite-star', 'sqlite-natural', 'fjall-by_sensor', 'fjall-by_sensor_day']

        """
        found = list(figures_of(self.summary))
        for name, wanted in (("variant", variant), ("operation", operation), ("metric", metric)):
            if wanted is not None:
                _check_known(name, [wanted], [getattr(figure, name) for figure in found])
                found = [figure for figure in found if getattr(figure, name) == wanted]
        return rows_of(found)

    def _repr_html_(self) -> str:
        """What a notebook shows: median and p99 of each operation at each variant, with intervals, the fastest marked."""
        return html.of_comparison(self.summary, self.figures(), self.folder)


class SeriesResults(Results[SeriesSummary]):
    """Results of a study of several datasets or of several parts. Each has results of its own.

    Attributes:
        parts: the results of each dataset or part that was begun, by its name.

    Examples:
        >>> import sensorbench as sb
        >>> small = {"targets": ["sqlite"], "scale": 0.005, "operations": 20}
        >>> results = sb.study("iot", out="results/two", datasets=["beijing-air-quality", "example/water.toml"], **small)
        >>> isinstance(results, sb.SeriesResults), list(results.parts)
        (True, ['beijing-air-quality', 'water'])
        >>> results.parts["water"].operations().num_rows
        120

    """

    def __init__(self, folder: Path, found: Series) -> None:
        super().__init__(folder, "series", found)
        self.parts: Mapping[str, ComparisonResults] = MappingProxyType(
            {name: ComparisonResults(result.folder, result) for name, result in found.results.items()}
        )

    def _without(self, what: str) -> str:
        parts = ", ".join(map(repr, self.parts))
        return f"{self.folder}: a series has no {what}; its parts have: take .parts[NAME], of {parts or 'which none was begun'}"

    def _state(self, otherwise: str) -> str:
        series = self._found
        return series.manifest.state if isinstance(series, Series) else otherwise


AnyResults = Results[Summary[Any]]


def read(folder: str | Path) -> AnyResults:
    """Reads results on disk, of whatever kind. Those that were cut short are read, too: `.status` says so.

    Args:
        folder: the folder of the results.

    Returns:
        `ComparisonResults` of a comparison, `SeriesResults` of a study of several datasets or parts, `MeasuredResults` of other kinds
        whose operations were logged, and `Results` of all else.

    Raises:
        UsageError: where there are no results, or some of a newer version of sensorbench.
        DamagedResultsError: for a file of results that is damaged.

    Examples:
        >>> import sensorbench as sb
        >>> sb.read("results/iot")
        <ComparisonResults 'results/iot': comparison, complete>

    """
    place = Path(folder)
    with own_errors():
        kind = kind_at(place)
        found = REPORTS[kind].read(place)
    match found:
        case ComparisonResult():
            return ComparisonResults(place, found)
        case Series():
            return SeriesResults(place, found)
        case StressResult() | ElasticityResult() | TsbsResult():
            return MeasuredResults(place, kind, found, _numbered(found.runs))
        case ToolResult():
            return MeasuredResults(place, kind, found, _numbered([found.run] if found.run else []))
    return Results(place, kind, found)


def _numbered(runs: Sequence[RunResult]) -> list[MeasuredRun]:
    """Runs of one target, in the order in which they were made."""
    return [MeasuredRun(run.manifest.variant.id, number, run) for number, run in enumerate(runs, start=1)]


def _check_known(argument: str, wanted: Collection[Any] | None, known: Sequence[Any]) -> None:
    """Raises UsageError for a name or a number that results do not have."""
    unknown = [value for value in wanted or () if value not in known]
    if unknown:
        raise UsageError(f"{argument}: there is no {unknown[0]!r}; expected one of {', '.join(map(str, dict.fromkeys(known)))}")


def _checked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    with own_errors():
        yield from batches
