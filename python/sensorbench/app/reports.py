"""How the summary and the page of results on disk come about, for each kind."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from sensorbench import report
from sensorbench.app.run import Show
from sensorbench.benchmarks.elasticity import summarise_elasticity
from sensorbench.benchmarks.replay import summarise_replay
from sensorbench.benchmarks.stress import summarise_stress
from sensorbench.benchmarks.tune import summarise_tune
from sensorbench.catalog import classification_claims
from sensorbench.compat.cassandra_stress import as_text as cassandra_stress_text
from sensorbench.compat.cassandra_stress import summarise_cassandra_stress
from sensorbench.compat.tsbs import as_text as tsbs_text
from sensorbench.compat.tsbs import summarise_tsbs
from sensorbench.compat.ycsb import as_text as ycsb_text
from sensorbench.compat.ycsb import summarise_ycsb
from sensorbench.paths import REPORT_FILE, check_summary_is_free
from sensorbench.results import ComparisonResult, kind_of, read_comparison, write_summary
from sensorbench.results.elasticity import COMPARISON as CLUSTERS_KIND
from sensorbench.results.elasticity import parts_left, read_elasticity, works_of
from sensorbench.results.factors import FactorsResult, read_factors
from sensorbench.results.files import write_text
from sensorbench.results.mapreduce import read_mapreduce
from sensorbench.results.page import Page
from sensorbench.results.planned import SeriesManifest
from sensorbench.results.replay import read_replay
from sensorbench.results.series import parts_with_results, read_series
from sensorbench.results.stress import read_stress
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.results.summary.elasticity import ElasticityComparisonSummary
from sensorbench.results.summary.envelope import Summary as AnySummary
from sensorbench.results.summary.factors import FactorsSummary
from sensorbench.results.summary.series import SeriesSummary
from sensorbench.results.tools import read_cassandra_stress, read_ycsb
from sensorbench.results.tsbs import read_tsbs
from sensorbench.results.tune import read_tune
from sensorbench.results.writer import write_typed_summary
from sensorbench.studies import require_factor_study, summarise
from sensorbench.studies.elasticity import summarise as summarise_works
from sensorbench.studies.mapreduce import summarise_mapreduce_study
from sensorbench.studies.series import summarise_series

Result = TypeVar("Result")
Summary = TypeVar("Summary", bound=AnySummary[Any])


@dataclass(frozen=True)
class Report(Generic[Result, Summary]):
    """How results of a kind are read and summarised, and which page shows them."""

    read: Callable[[Path], Result]
    summarise: Callable[[Result], Summary]
    # Imports the chart library, which takes most of a second: commands that draw nothing should not wait for it.
    page: Callable[[Summary, Result], Page]
    store: Callable[[Path, Summary], None] = write_typed_summary

    def summary(self, folder: Path) -> Summary:
        """What results on disk say."""
        return self.summarise(self.read(folder))

    def write(self, folder: Path, show: Show[Summary] | None = None) -> tuple[Summary, Path]:
        """Writes summary and page of results on disk."""
        return self.write_of(self.read(folder), folder, show)

    def write_of(self, result: Result, folder: Path, show: Show[Summary] | None = None) -> tuple[Summary, Path]:
        """Writes summary and page of results into a folder. `show` gets both between them; the page is written even when it fails."""
        summary = self.summarise(result)
        self.store(folder, summary)
        page = folder / REPORT_FILE
        try:
            if show is not None:
                show(summary, page)
        finally:
            report.write_page(self.page(summary, result), folder)
        return summary, page


@dataclass(frozen=True)
class Series:
    """The comparisons of a series that have a summary."""

    manifest: SeriesManifest
    results: dict[str, ComparisonResult]


def _summarise_comparison(result: ComparisonResult) -> ComparisonSummary:
    """The summary of a comparison, with the claims of its study, else those of the classification that it can judge."""
    summary = summarise(result)
    return summary if summary.claims else summary.model_copy(update={"claims": classification_claims(result, summary)})


def _read_series(folder: Path) -> Series:
    begun = {name: read_comparison(part) for name, part in parts_with_results(folder).items()}
    # Each part was summed up when it ended, however it did; one that could not be is left out.
    return Series(read_series(folder), {name: result for name, result in begun.items() if result.summary is not None})


def _summarise_series(series: Series) -> SeriesSummary:
    summaries = {name: result.summary for name, result in series.results.items() if result.summary is not None}
    return summarise_series(series.manifest, series.results, summaries)


@dataclass(frozen=True)
class Clusters:
    """Results of changes of clusters, and the folder in which they are compared."""

    works: Sequence[Path]
    folder: Path


def _summarise_clusters(clusters: Clusters) -> ElasticityComparisonSummary:
    return summarise_works(
        [(os.path.relpath(work, clusters.folder), summarise_elasticity(read_elasticity(work))) for work in clusters.works],
        left=parts_left(clusters.folder),
    )


def _summarise_factors(result: FactorsResult) -> FactorsSummary:
    return require_factor_study(result.manifest.plan.name).summarise(result)


def _storing_text(as_text: Callable[[Summary], str]) -> Callable[[Path, Summary], None]:
    """What writes a summary, and in a file beside it what the other tool prints."""

    def store(folder: Path, summary: Summary) -> None:
        write_typed_summary(folder, summary)
        write_text(folder / f"{summary.kind}.txt", as_text(summary))

    return store


STRESS = Report(read_stress, summarise_stress, lambda summary, result: report.stress_page(summary, result))
TUNE = Report(read_tune, summarise_tune, lambda summary, _: report.tune_page(summary))
FACTORS = Report(read_factors, _summarise_factors, lambda summary, _: report.factors_page(summary))
ELASTICITY = Report(read_elasticity, summarise_elasticity, lambda summary, _: report.elasticity_page(summary))
CLUSTERS = Report(
    lambda folder: Clusters(works_of(folder), folder),
    _summarise_clusters,
    lambda summary, _: report.elasticity_comparison_page(summary),
)
MAPREDUCE = Report(read_mapreduce, summarise_mapreduce_study, lambda summary, _: report.mapreduce_page(summary))
COMPARISON = Report(
    read_comparison, _summarise_comparison, lambda summary, result: report.comparison_page(summary, result), write_summary
)
SERIES = Report(_read_series, _summarise_series, lambda summary, _: report.series_page(summary))
YCSB = Report(
    read_ycsb,
    summarise_ycsb,
    lambda summary, result: report.tool_page(summary, result, ycsb_text(summary)),
    _storing_text(ycsb_text),
)
CASSANDRA_STRESS = Report(
    read_cassandra_stress,
    summarise_cassandra_stress,
    lambda summary, result: report.tool_page(summary, result, cassandra_stress_text(summary)),
    _storing_text(cassandra_stress_text),
)
TSBS = Report(
    read_tsbs,
    summarise_tsbs,
    lambda summary, result: report.tsbs_page(summary, result, tsbs_text(summary)),
    _storing_text(tsbs_text),
)
REPLAY = Report(read_replay, summarise_replay, lambda summary, result: report.replay_page(summary, result))

REPORTS: dict[str, Report[Any, Any]] = {
    "stress": STRESS,
    "tune": TUNE,
    "factors": FACTORS,
    "elasticity": ELASTICITY,
    CLUSTERS_KIND: CLUSTERS,
    "mapreduce": MAPREDUCE,
    "comparison": COMPARISON,
    "series": SERIES,
    "ycsb": YCSB,
    "cassandra-stress": CASSANDRA_STRESS,
    "tsbs": TSBS,
    "replay": REPLAY,
}


def kind_at(folder: Path) -> str:
    """Of which kind results on disk are. What is none of the others is taken for a comparison, which says what is missing there."""
    if works_of(folder):
        return CLUSTERS_KIND
    kind = kind_of(folder)
    return kind if kind in REPORTS else "comparison"


def write_report(folder: Path) -> tuple[Any, Path]:
    """Writes summary and page of results on disk, of whatever kind; of a series, those of its parts, too."""
    kind = kind_at(folder)
    if kind == "series":
        for part in parts_with_results(folder).values():
            COMPARISON.write(part)
    if kind == CLUSTERS_KIND:
        return write_elasticity_comparison(works_of(folder), folder)
    return REPORTS[kind].write(folder)


def write_elasticity_comparison(folders: Sequence[Path], out: Path) -> tuple[ElasticityComparisonSummary, Path]:
    """Summarises the changes of several clusters on disk side by side, and writes that and its page into `out`."""
    check_summary_is_free(out, CLUSTERS_KIND)
    out.mkdir(parents=True, exist_ok=True)
    return CLUSTERS.write_of(Clusters(folders, out), out)
