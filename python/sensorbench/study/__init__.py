"""Studies: grids of experiments, their analysis and their claims."""

from sensorbench.study.registry import FACTOR_STUDIES, OTHER_STUDIES, STUDIES, require_factor_study, require_study
from sensorbench.study.run import Part, StudyOptions, plan_study, summarise
from sensorbench.study.study import Claim, Evidence, Study

__all__ = [
    "FACTOR_STUDIES",
    "OTHER_STUDIES",
    "STUDIES",
    "Claim",
    "Evidence",
    "Part",
    "Study",
    "StudyOptions",
    "plan_study",
    "require_factor_study",
    "require_study",
    "summarise",
]
