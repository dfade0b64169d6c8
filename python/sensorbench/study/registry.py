"""Which studies there are: those that compare databases and schemas; those of factors, whose levels are settings of a server; and those with ways of
their own, of clusters that grow and of MapReduce.
"""

from sensorbench.errors import UsageError
from sensorbench.study.cassandra_tuning import CASSANDRA_TUNING
from sensorbench.study.elasticity import ELASTICITY, ElasticityStudy
from sensorbench.study.factors import FactorStudy
from sensorbench.study.iot import IOT
from sensorbench.study.layouts import LAYOUTS
from sensorbench.study.log_analytics import LOG_ANALYTICS
from sensorbench.study.mapreduce import MAPREDUCE, MapReduceStudy
from sensorbench.study.sensor_schemas import SENSOR_SCHEMAS
from sensorbench.study.study import Study

STUDIES: dict[str, Study] = {study.name: study for study in (IOT, LOG_ANALYTICS, SENSOR_SCHEMAS, LAYOUTS)}
FACTOR_STUDIES: dict[str, FactorStudy] = {study.name: study for study in (CASSANDRA_TUNING,)}
OTHER_STUDIES: dict[str, ElasticityStudy | MapReduceStudy] = {study.name: study for study in (ELASTICITY, MAPREDUCE)}


def require_study(name: str) -> Study:
    """A study that compares databases and schemas, by its name."""
    if name not in STUDIES:
        known = [*STUDIES, *FACTOR_STUDIES, *OTHER_STUDIES]
        raise UsageError(f"there is no study {name!r}; expected one of {', '.join(known)}")
    return STUDIES[name]


def require_factor_study(name: str) -> FactorStudy:
    """A study of factors by its name."""
    if name not in FACTOR_STUDIES:
        raise UsageError(f"there is no study of factors {name!r}; expected one of {', '.join(FACTOR_STUDIES)}")
    return FACTOR_STUDIES[name]
