"""The study of MapReduce over databases: its claims, and what its source printed."""

from sensorbench.studies.mapreduce.study import MAPREDUCE, MapReduceStudy, summarise_mapreduce_study

__all__ = ["MAPREDUCE", "MapReduceStudy", "summarise_mapreduce_study"]
