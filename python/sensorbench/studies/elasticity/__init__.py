"""The study of elastic databases: what was measured of several clusters, beside what the source printed, and its claims."""

from sensorbench.studies.elasticity.study import ELASTICITY, ElasticityStudy, summarise

__all__ = ["ELASTICITY", "ElasticityStudy", "summarise"]
