"""The sensor-schema study: typed values against byte-array batches, where metadata lie, how wide rows are."""

from pathlib import Path

from sensorbench.studies.sensor_schemas.claims import QUANTITIES
from sensorbench.studies.sensor_schemas.clients import client_caveats, client_sections
from sensorbench.studies.sensor_schemas.sections import series_sections
from sensorbench.studies.study import Study

SENSOR_SCHEMAS = Study.load(
    Path(__file__).parent,
    quantities=QUANTITIES,
    sections=client_sections,
    series_sections=series_sections,
    caveats=client_caveats,
)
