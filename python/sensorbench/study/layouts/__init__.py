"""The layouts study: access patterns on layouts from production, and ten rules of thumb."""

from pathlib import Path

from sensorbench.study.layouts.claims import JUDGES
from sensorbench.study.layouts.sections import series_sections
from sensorbench.study.study import Study

LAYOUTS = Study.load(Path(__file__).parent, JUDGES, series_sections=series_sections)
