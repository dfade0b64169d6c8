from .changes import KINDS, OF_ANY_CLUSTER
from .options import ElasticityOptions, ElasticityStudyOptions
from .planning import nodes_of_study, wish_of
from .run import ElasticityBenchmark, planned
from .spec import Wish
from .summary import summarise_elasticity

__all__ = [
    "KINDS",
    "OF_ANY_CLUSTER",
    "ElasticityBenchmark",
    "ElasticityOptions",
    "ElasticityStudyOptions",
    "Wish",
    "nodes_of_study",
    "planned",
    "summarise_elasticity",
    "wish_of",
]
