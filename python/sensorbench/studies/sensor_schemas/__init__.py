"""The sensor-schema study: typed values against byte-array batches, where metadata lie, how wide rows are."""

from pathlib import Path

from sensorbench.studies.sensor_schemas.claims import QUANTITIES
from sensorbench.studies.sensor_schemas.sections import series_sections
from sensorbench.studies.study import Study

SENSOR_SCHEMAS = Study.load(Path(__file__).parent, quantities=QUANTITIES, series_sections=series_sections)
