"""The building-sensor study: four queries on the readings of an office building."""

from pathlib import Path

from sensorbench.studies.iot.claims import QUANTITIES
from sensorbench.studies.iot.sections import sections
from sensorbench.studies.study import Study

IOT = Study.load(Path(__file__).parent, quantities=QUANTITIES, sections=sections)
