from .claim import SCALES, Claim, ClaimsFile, load_claims
from .deciding import decide
from .evidence import QUANTITIES, Evidence, Quantity, Roles, variant_name
from .expression import Expression, Figure
from .figures import LOAD_VARIATION, SIZE_VARIATION, FigureEvidence, NotMeasuredError, RunValues, WindowedSeries, interval_of
from .judgement import NOT_MEASURED, Band, Cell, Judgement, Verdict, all_of, any_of, untested_for, weakest
from .judging import (
    Judge,
    Measured,
    below_scale,
    common_verdict,
    decided,
    judged,
    judged_by,
    judged_claim,
    measured,
    needs,
    not_tested,
)
from .rules import WORDS

__all__ = [
    "LOAD_VARIATION",
    "NOT_MEASURED",
    "QUANTITIES",
    "SCALES",
    "SIZE_VARIATION",
    "WORDS",
    "Band",
    "Cell",
    "Claim",
    "ClaimsFile",
    "Evidence",
    "Expression",
    "Figure",
    "FigureEvidence",
    "Judge",
    "Judgement",
    "Measured",
    "NotMeasuredError",
    "Quantity",
    "Roles",
    "RunValues",
    "Verdict",
    "WindowedSeries",
    "all_of",
    "any_of",
    "below_scale",
    "common_verdict",
    "decide",
    "decided",
    "interval_of",
    "judged",
    "judged_by",
    "judged_claim",
    "load_claims",
    "measured",
    "needs",
    "not_tested",
    "untested_for",
    "variant_name",
    "weakest",
]
