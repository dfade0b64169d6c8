from .changes import KINDS, OF_ANY_CLUSTER, ONCE, Change, parse_change, why_unavailable
from .estimate import estimate_elasticity
from .options import REQUESTS_OF_A_SET, ElasticityOptions, ElasticityStudyOptions
from .planning import nodes_of_study, spec_of
from .run import ElasticityBenchmark, planned
from .spec import ElasticitySpec
from .summary import keeps_memory, request_sums_of, summarise_elasticity

__all__ = [
    "KINDS",
    "OF_ANY_CLUSTER",
    "ONCE",
    "REQUESTS_OF_A_SET",
    "Change",
    "ElasticityBenchmark",
    "ElasticityOptions",
    "ElasticitySpec",
    "ElasticityStudyOptions",
    "estimate_elasticity",
    "keeps_memory",
    "nodes_of_study",
    "parse_change",
    "planned",
    "request_sums_of",
    "spec_of",
    "summarise_elasticity",
    "why_unavailable",
]
