"""The study of TSM-Bench: seven questions of monitoring, asked alone and while rows are written, and what features of values do to storage."""

from pathlib import Path

from sensorbench.studies.study import Study
from sensorbench.studies.tsm.sections import series_sections

TSM = Study.load(Path(__file__).parent, series_sections=series_sections)
