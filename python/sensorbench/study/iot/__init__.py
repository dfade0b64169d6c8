"""The building-sensor study: four queries on the readings of an office building."""

from pathlib import Path

from sensorbench.study.iot.claims import JUDGES
from sensorbench.study.study import Study

IOT = Study.load(Path(__file__).parent, JUDGES)
