"""Results on disk, as typed objects."""

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

# A row takes about 100 bytes, so a batch takes about 10 MB.
BATCH_ROWS = 100_000


@dataclass(frozen=True)
class Variant:
    """One side of a comparison: a target, a schema and its parameters.

    Attributes:
        id: the ID used in results, such as `sqlite-star`.
        database: name of the database, such as `sqlite`.
        schema: name of the schema.
        parameters: the schema's parameters, by name.
        url: the target's URL without credentials.
        embedded: whether the database runs inside the load generator's process.
        label: distinguishes variants with the same target and schema; empty if there is only one.

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
    """Results on disk, of any kind. Returned by `read`.

    Attributes:
        folder: the results folder.
        kind: the kind of benchmark: `comparison`, `series`, `stress`, `tune`, `factors`, `elasticity`, `elasticity comparison`, `mapreduce`,
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
        """The content of `summary.json` as a typed model. Each kind of results has its own model and JSON Schema.

        If the file is missing, the summary is computed from the other files. That may take a while for long runs.

        Raises:
            DamagedResultsError: if a file is damaged.

        """
        with own_errors():
            stored = stored_summary(self.folder, SUMMARY_BY_KIND[self.kind])
            is_current = stored is not None and stored.status == self._state(stored.status)
            summary: AnySummary = stored if is_current else REPORTS[self.kind].summarise(self._found)  # type: ignore[assignment]
            return summary

    def _state(self, otherwise: str) -> str:
        """How the manifest says that it ended; a summary of another status was written before it continued."""
        return self._found.state if isinstance(self._found, Result) else otherwise

    @property
    def title(self) -> str:
        """The title of the results."""
        return self.summary.title

    @property
    def status(self) -> str:
        """`complete`, `interrupted`, `failed` or `out of space`; `running` until the benchmark ends."""
        return self.summary.status

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The measured variants, in the order of the results; empty for kinds that do not compare variants."""
        return tuple(map(Variant._of, self.summary.variants))

    @property
    def warnings(self) -> tuple[Caveat, ...]:
        """Caveats to read with the figures. Each has a `kind`, a `text`, a suggested `action` and the `variant` it concerns."""
        return tuple(self.summary.warnings)

    @property
    def claims(self) -> tuple[JudgedClaim, ...]:
        """The published findings that these results judge, with their verdicts; empty if there are none."""
        return tuple(self.summary.claims)

    @property
    def published(self) -> tuple[PublishedTable, ...]:
        """The tables of the paper that a study repeats. Each cell has the printed value, the measured value and their ratio, or the
        reason why there is none. Empty for results that are not of a study.
        """
        return tuple(self.summary.published)

    def report(self, *, rewrite: bool = False) -> Path:
        """Returns the HTML report, and writes it first if it does not exist.

        Args:
            rewrite: write report and summary again, with this version of sensorbench.

        Returns:
            The path of `report.html`.

        Raises:
            UsageError: if there is something else at that path.
            DamagedResultsError: if a file is damaged.

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
        """Returns the logged operations, one row per operation.

        The table is held in memory. For long runs, select fewer operations or use `operation_batches`. Of long runs only a sample is
        logged (`workload.log` of an experiment); figures are always computed from all operations.

        Args:
            variants: IDs of the variants to include; all if None.
            repetitions: numbers of the repetitions to include, from 1; all if None.
            operations: names of the operations to include; all if None.

        Returns:
            An Arrow table: `variant`, `repetition`, `phase`, `operation`, `k` (the number of the operation in its run), `outcome`,
            `intended_start_ns`, `start_ns`, `end_ns` (since the start of the run), `response_time_s` (from the intended start),
            `service_time_s` (from the actual start), `rows` (returned or written). Strings are dictionary-encoded.

        Raises:
            NotAvailableError: if this kind of results has no operations.
            UsageError: if a variant, repetition or operation does not exist.
            DamagedResultsError: if a file is damaged.

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
        """Like `operations`, in batches, so that memory does not grow with the length of the runs.

        Args:
            variants: IDs of the variants to include; all if None.
            repetitions: numbers of the repetitions to include, from 1; all if None.
            operations: names of the operations to include; all if None.
            rows: maximum number of rows per batch.

        Returns:
            Record batches with the columns of `operations`, ordered by variant and repetition.

        Raises:
            NotAvailableError: if this kind of results has no operations.
            UsageError: if a variant, repetition or operation does not exist.
            DamagedResultsError: if a file is damaged; raised when its batch is read.

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
        """Like `operations`, as a pandas DataFrame. For figures, use `figures().to_pandas()`.

        Args:
            variants: IDs of the variants to include; all if None.
            repetitions: numbers of the repetitions to include, from 1; all if None.
            operations: names of the operations to include; all if None.

        Returns:
            A DataFrame with the columns of `operations`; strings are categories.

        Raises:
            NotAvailableError: if pandas is not installed, or this kind of results has no operations.
            UsageError: if a variant, repetition or operation does not exist.
            DamagedResultsError: if a file is damaged.

        """
        require_pandas()
        return self.operations(variants=variants, repetitions=repetitions, operations=operations).to_pandas()

    def figures(self, *, variant: str | None = None, operation: str | None = None, metric: str | None = None) -> Rows[Figure]:
        """Returns the latency figures of each operation and variant, with confidence intervals.

        Args:
            variant: ID of a variant; all if None.
            operation: name of an operation; all if None.
            metric: a metric, for example `median` or `p99`; all if None.

        Returns:
            Typed figures, also available as a table.

        Raises:
            NotAvailableError: if the results are not of a comparison.
            UsageError: if the variant, operation or metric does not exist.

        """
        del variant, operation, metric
        raise NotAvailableError(self._without("figures of variants"))

    def _without(self, what: str) -> str:
        """The message for something that this kind of results does not have."""
        return (
            f"{self.folder}: results of kind {self.kind} have no {what}; their figures are in .summary.result, and in .report()"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {str(self.folder)!r}: {self.kind}, {self.status}>"

    def _repr_html_(self) -> str:
        """The representation in a notebook."""
        return html.of_any(self.summary, self.folder)


class MeasuredResults(Results[AnySummary]):
    """Results with logged operations: of kind `stress`, `elasticity`, `ycsb`, `cassandra-stress`, `tsbs` or `comparison`.

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
        """See `Results.operation_batches`. For kinds whose phases have different rates, all phases are included, not only the measured one."""
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
    """Results of a comparison of variants: of an experiment, a study, or one part of a study.

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
        """Returns the latency figures, ordered by operation and variant.

        Args:
            variant: ID of a variant; all if None.
            operation: name of an operation; all if None.
            metric: a metric, for example `median` or `p99`; all if None.

        Returns:
            Typed figures, also available as a table.

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
        """The representation in a notebook: median and p99 of each operation and variant, with intervals, the fastest marked."""
        return html.of_comparison(self.summary, self.figures(), self.folder)


class SeriesResults(Results[SeriesSummary]):
    """Results of a study with several datasets or several parts.

    Attributes:
        parts: the results of each dataset or part that was started, by name.

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
    """Reads results from disk. Incomplete results can be read, too; see `.status`.

    Args:
        folder: the results folder.

    Returns:
        `ComparisonResults` for a comparison, `SeriesResults` for a study with several datasets or parts, `MeasuredResults` for other
        kinds with logged operations, and `Results` for the rest.

    Raises:
        UsageError: if there are no results, or they were written by a newer version of sensorbench.
        DamagedResultsError: if a file is damaged.

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
    """Runs of one target, in the order in which they were started."""
    return [MeasuredRun(run.manifest.variant.id, number, run) for number, run in enumerate(runs, start=1)]


def _check_known(argument: str, wanted: Collection[Any] | None, known: Sequence[Any]) -> None:
    """Raises UsageError if the results do not have a requested name or number."""
    unknown = [value for value in wanted or () if value not in known]
    if unknown:
        raise UsageError(f"{argument}: there is no {unknown[0]!r}; expected one of {', '.join(map(str, dict.fromkeys(known)))}")


def _checked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    with own_errors():
        yield from batches
