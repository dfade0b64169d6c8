"""How close together the readings of a dataset are, for schemas whose stretches of time are as long as so many readings take."""

import duckdb

from sensorbench.errors import UsageError
from sensorbench.schemas.stretches import Grain


def grain_of(workbench: duckdb.DuckDBPyConnection, scale: float) -> Grain:
    """The usual time between two readings of one sensor. Raises UsageError for a dataset that has no two."""
    step = workbench.execute("SELECT usual_step()").fetchall()[0][0]
    if step is None:
        raise UsageError("the dataset has no sensor with two readings, so that nothing can be as long as so many readings take")
    return Grain(int(step), scale)
