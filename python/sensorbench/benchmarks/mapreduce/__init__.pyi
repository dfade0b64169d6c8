from .estimate import EXECUTION_S, estimate_mapreduce
from .options import MapReduceOptions
from .run import MapReduceBenchmark, planned
from .spec import MapReduceSpec
from .summary import NATIVE, summarise_mapreduce
from .words import word_of

__all__ = [
    "EXECUTION_S",
    "NATIVE",
    "MapReduceBenchmark",
    "MapReduceOptions",
    "MapReduceSpec",
    "estimate_mapreduce",
    "planned",
    "summarise_mapreduce",
    "word_of",
]
