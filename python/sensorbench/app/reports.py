"""The summary and the page of results on disk, by kind."""

import os
from collections.abc import Sequence
from pathlib import Path

from sensorbench.benchmarks.elasticity import summarise_elasticity
from sensorbench.benchmarks.stress import summarise_stress
from sensorbench.benchmarks.tune import summarise_tune
from sensorbench.places import check_summary_is_free
from sensorbench.results.elasticity import COMPARISON, read_elasticity
from sensorbench.results.factors import read_factors
from sensorbench.results.mapreduce import read_mapreduce
from sensorbench.results.stress import read_stress
from sensorbench.results.summary.elasticity import ElasticityComparisonSummary, ElasticitySummary
from sensorbench.results.summary.factors import FactorsSummary
from sensorbench.results.summary.mapreduce import MapReduceSummary
from sensorbench.results.summary.stress import StressSummary
from sensorbench.results.summary.tune import TuneSummary
from sensorbench.results.tune import read_tune
from sensorbench.results.writer import write_typed_summary
from sensorbench.studies import require_factor_study
from sensorbench.studies.elasticity import summarise as summarise_works
from sensorbench.studies.mapreduce import summarise_mapreduce_study


def write_stress_report(folder: Path) -> tuple[StressSummary, Path]:
    """Summarises a stress run on disk and writes its page."""
    # The chart library takes most of a second to import, which commands that draw nothing should not wait for.
    from sensorbench.report.stress import write_stress_page

    result = read_stress(folder)
    summary = summarise_stress(result)
    write_typed_summary(folder, summary)
    return summary, write_stress_page(result, summary)


def write_tune_report(folder: Path) -> tuple[TuneSummary, Path]:
    """Summarises a search for settings on disk and writes its page."""
    from sensorbench.report.tune import write_tune_page

    summary = summarise_tune(read_tune(folder))
    write_typed_summary(folder, summary)
    return summary, write_tune_page(folder, summary)


def write_elasticity_report(folder: Path) -> tuple[ElasticitySummary, Path]:
    """Summarises changes of a cluster on disk and writes their page."""
    from sensorbench.report.elasticity import write_elasticity_page

    summary = summarise_elasticity(read_elasticity(folder))
    write_typed_summary(folder, summary)
    return summary, write_elasticity_page(folder, summary)


def write_elasticity_comparison(folders: Sequence[Path], out: Path) -> tuple[ElasticityComparisonSummary, Path]:
    """Summarises the changes of several clusters on disk side by side, and writes that and its page into `out`."""
    from sensorbench.report.elasticity_comparison import write_elasticity_comparison_page

    check_summary_is_free(out, COMPARISON)
    summary = summarise_elasticity_comparison(folders, out)
    out.mkdir(parents=True, exist_ok=True)
    write_typed_summary(out, summary)
    return summary, write_elasticity_comparison_page(out, summary)


def summarise_elasticity_comparison(folders: Sequence[Path], out: Path) -> ElasticityComparisonSummary:
    """The changes of several clusters on disk side by side, with the claims of the study; `out` is where that is shown."""
    return summarise_works(
        [(str(os.path.relpath(folder, out)), summarise_elasticity(read_elasticity(folder))) for folder in folders]
    )


def write_factors_report(folder: Path) -> tuple[FactorsSummary, Path]:
    """Summarises a study of factors on disk and writes its page."""
    from sensorbench.report.factors import write_factors_page

    summary = summarise_factor_study(folder)
    write_typed_summary(folder, summary)
    return summary, write_factors_page(folder, summary)


def summarise_factor_study(folder: Path) -> FactorsSummary:
    """The summary of a study of factors on disk."""
    result = read_factors(folder)
    return require_factor_study(result.manifest.plan.name).summarise(result)


def write_mapreduce_report(folder: Path) -> tuple[MapReduceSummary, Path]:
    """Summarises a MapReduce study on disk and writes its page."""
    from sensorbench.report.mapreduce import write_mapreduce_page

    summary = summarise_mapreduce_study(read_mapreduce(folder))
    write_typed_summary(folder, summary)
    return summary, write_mapreduce_page(folder, summary)
