"""The study of Cassandra's settings: key cache, memtables, and a draft of both."""

from pathlib import Path

from sensorbench.study.cassandra_tuning.claims import JUDGES
from sensorbench.study.cassandra_tuning.published import published
from sensorbench.study.factors import FactorStudy

CASSANDRA_TUNING = FactorStudy.load(Path(__file__).parent, JUDGES, published)
