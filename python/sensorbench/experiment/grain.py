"""How close together the readings of a dataset are, for schemas whose stretches of time are as long as so many readings take."""

import duckdb

from sensorbench.dataset.dataset import MEASUREMENTS, readings_of
from sensorbench.errors import UsageError
from sensorbench.schemas.stretches import Grain


def grain_of(workbench: duckdb.DuckDBPyConnection, scale: float) -> Grain:
    """The usual time between two readings of one sensor. Raises UsageError for a dataset that has no two."""
    readings = readings_of([MEASUREMENTS])
    columns, time = ", ".join(readings.series), readings.time
    found = workbench.execute(
        f"""
        SELECT mode(step) FROM (
            SELECT epoch_us(lead({time}) OVER (PARTITION BY {columns} ORDER BY {time})) - epoch_us({time}) AS step
            FROM {readings.relation} SEMI JOIN (SELECT {columns} FROM {readings.relation} LIMIT 1) USING ({columns}))
        WHERE step > 0
        """
    ).fetchall()
    if found[0][0] is None:
        raise UsageError("the dataset has no sensor with two readings, so that nothing can be as long as so many readings take")
    return Grain(int(found[0][0]), scale)
