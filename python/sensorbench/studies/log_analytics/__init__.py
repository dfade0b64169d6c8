"""The persistent-log study: loading, look-up, range and count under index levels, sharding and replication."""

from pathlib import Path

from sensorbench.studies.log_analytics.claims import JUDGES, QUANTITIES
from sensorbench.studies.log_analytics.sections import sections
from sensorbench.studies.study import Study

LOG_ANALYTICS = Study.load(Path(__file__).parent, judges=JUDGES, quantities=QUANTITIES, sections=sections)
