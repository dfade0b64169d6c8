from .options import MapReduceOptions
from .run import MapReduceBenchmark, planned
from .spec import Wish
from .summary import NATIVE, summarise_mapreduce
from .words import word_of

__all__ = ["NATIVE", "MapReduceBenchmark", "MapReduceOptions", "Wish", "planned", "summarise_mapreduce", "word_of"]
