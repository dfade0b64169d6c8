"""Which studies there are."""

from sensorbench.errors import UsageError
from sensorbench.study.iot import IOT
from sensorbench.study.layouts import LAYOUTS
from sensorbench.study.log_analytics import LOG_ANALYTICS
from sensorbench.study.sensor_schemas import SENSOR_SCHEMAS
from sensorbench.study.study import Study

STUDIES: dict[str, Study] = {study.name: study for study in (IOT, LOG_ANALYTICS, SENSOR_SCHEMAS, LAYOUTS)}


def require_study(name: str) -> Study:
    """A study by its name."""
    if name not in STUDIES:
        raise UsageError(f"there is no study {name!r}; expected one of {', '.join(STUDIES)}")
    return STUDIES[name]
