"""Which kinds of summaries there are."""

from typing import Any

from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.results.summary.elasticity import ElasticityComparisonSummary, ElasticitySummary
from sensorbench.results.summary.envelope import Summary
from sensorbench.results.summary.factors import FactorsSummary
from sensorbench.results.summary.mapreduce import MapReduceSummary
from sensorbench.results.summary.replay import ReplaySummary
from sensorbench.results.summary.series import SeriesSummary
from sensorbench.results.summary.stress import StressSummary
from sensorbench.results.summary.tools import CassandraStressSummary, YcsbSummary
from sensorbench.results.summary.tsbs import TsbsSummary
from sensorbench.results.summary.tune import TuneSummary

SUMMARIES: tuple[type[Summary[Any]], ...] = (
    ComparisonSummary,
    SeriesSummary,
    StressSummary,
    TuneSummary,
    FactorsSummary,
    ElasticitySummary,
    ElasticityComparisonSummary,
    MapReduceSummary,
    YcsbSummary,
    CassandraStressSummary,
    TsbsSummary,
    ReplaySummary,
)
SUMMARY_BY_KIND = {summary.model_fields["kind"].default: summary for summary in SUMMARIES}
