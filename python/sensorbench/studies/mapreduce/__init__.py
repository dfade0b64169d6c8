"""The study of MapReduce over databases: its claims, and what its source printed."""

from sensorbench.studies.mapreduce.budget import ChosenBudget, choose, expected_s
from sensorbench.studies.mapreduce.study import MAPREDUCE, MapReduceStudy, summarise_mapreduce_study

__all__ = ["MAPREDUCE", "ChosenBudget", "MapReduceStudy", "choose", "expected_s", "summarise_mapreduce_study"]
