"""The study of elastic databases: what was measured of several clusters, beside what the source printed, and its claims."""

from sensorbench.studies.elasticity.budget import ChosenBudget, Deadline, choose, expected
from sensorbench.studies.elasticity.parts import StudyPart, notes_of, parts_of, without_unavailable
from sensorbench.studies.elasticity.study import ELASTICITY, ElasticityStudy, summarise
from sensorbench.studies.elasticity.study_file import StudyFile

__all__ = [
    "ELASTICITY",
    "ChosenBudget",
    "Deadline",
    "ElasticityStudy",
    "StudyFile",
    "StudyPart",
    "choose",
    "expected",
    "notes_of",
    "parts_of",
    "summarise",
    "without_unavailable",
]
