"""TSBS (Time Series Benchmark Suite): its use cases on time-series databases, and what was published with it."""

from pathlib import Path

from sensorbench.studies.study import Study
from sensorbench.studies.tsbs.claims import QUANTITIES
from sensorbench.studies.tsbs.sections import sections

TSBS = Study.load(Path(__file__).parent, quantities=QUANTITIES, sections=sections)
