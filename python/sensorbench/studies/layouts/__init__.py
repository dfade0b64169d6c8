"""The layouts study: access patterns on layouts from production, and ten rules of thumb."""

from pathlib import Path

from sensorbench.studies.layouts.claims import QUANTITIES
from sensorbench.studies.layouts.sections import series_sections
from sensorbench.studies.study import Study

LAYOUTS = Study.load(Path(__file__).parent, quantities=QUANTITIES, series_sections=series_sections)
