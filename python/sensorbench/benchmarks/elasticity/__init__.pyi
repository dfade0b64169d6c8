from .changes import KINDS, OF_ANY_CLUSTER, Change, parse_change
from .course import Lengths
from .run import ElasticityBenchmark, planned
from .summary import summarise_elasticity
from .wish import USUAL_LENGTHS, USUAL_LOAD, USUAL_SCHEMA, Load, OwnCommands, Wish

__all__ = [
    "KINDS",
    "OF_ANY_CLUSTER",
    "USUAL_LENGTHS",
    "USUAL_LOAD",
    "USUAL_SCHEMA",
    "Change",
    "ElasticityBenchmark",
    "Lengths",
    "Load",
    "OwnCommands",
    "Wish",
    "parse_change",
    "planned",
    "summarise_elasticity",
]
