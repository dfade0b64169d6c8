from .changes import KINDS, OF_ANY_CLUSTER
from .estimate import estimate_elasticity
from .options import ElasticityOptions, ElasticityStudyOptions
from .planning import nodes_of_study, spec_of
from .run import ElasticityBenchmark, planned
from .spec import ElasticitySpec
from .summary import summarise_elasticity

__all__ = [
    "KINDS",
    "OF_ANY_CLUSTER",
    "ElasticityBenchmark",
    "ElasticityOptions",
    "ElasticitySpec",
    "ElasticityStudyOptions",
    "estimate_elasticity",
    "nodes_of_study",
    "planned",
    "spec_of",
    "summarise_elasticity",
]
