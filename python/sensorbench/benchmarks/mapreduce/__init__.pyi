from .run import MapReduceBenchmark, planned
from .summary import NATIVE, summarise_mapreduce
from .wish import Wish, parse_workers
from .words import word_of

__all__ = ["NATIVE", "MapReduceBenchmark", "Wish", "parse_workers", "planned", "summarise_mapreduce", "word_of"]
