"""The study of cardinality: memory, loading and latency by the number of series, until databases break."""

from pathlib import Path

from sensorbench.studies.cardinality.sections import series_sections
from sensorbench.studies.study import Study

CARDINALITY = Study.load(Path(__file__).parent, series_sections=series_sections)
