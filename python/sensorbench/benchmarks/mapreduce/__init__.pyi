from .options import MapReduceOptions
from .run import MapReduceBenchmark, planned
from .summary import NATIVE, summarise_mapreduce
from .wish import Wish
from .words import word_of

__all__ = ["NATIVE", "MapReduceBenchmark", "MapReduceOptions", "Wish", "planned", "summarise_mapreduce", "word_of"]
