from .options import StudyOptions
from .registry import (
    FACTOR_STUDIES,
    OTHER_STUDIES,
    STUDIES,
    ListedStudy,
    all_claims,
    kinds_of_studies,
    listed_studies,
    require_factor_study,
    require_study,
)
from .run import Part, plan_study, summarise
from .study import Study
from .widths import without_refused

__all__ = [
    "FACTOR_STUDIES",
    "OTHER_STUDIES",
    "STUDIES",
    "ListedStudy",
    "Part",
    "Study",
    "StudyOptions",
    "all_claims",
    "kinds_of_studies",
    "listed_studies",
    "plan_study",
    "require_factor_study",
    "require_study",
    "summarise",
    "without_refused",
]
