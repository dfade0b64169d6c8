"""Studies: grids of experiments, their analysis and their claims."""

from sensorbench.study.registry import STUDIES, require_study
from sensorbench.study.run import Part, StudyOptions, plan_study, summarise
from sensorbench.study.study import Claim, Evidence, Study

__all__ = ["STUDIES", "Claim", "Evidence", "Part", "Study", "StudyOptions", "plan_study", "require_study", "summarise"]
