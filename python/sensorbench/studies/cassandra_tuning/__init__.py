"""The study of Cassandra's settings: key cache, memtables, and a draft of both."""

from pathlib import Path

from sensorbench.studies.cassandra_tuning.claims import QUANTITIES
from sensorbench.studies.factors import FactorStudy

CASSANDRA_TUNING = FactorStudy.load(Path(__file__).parent, QUANTITIES)
