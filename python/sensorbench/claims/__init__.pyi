from .claim import Claim, claims_in, load_claims
from .deciding import decide
from .evidence import Evidence, Quantity, Roles, variant_name
from .expression import Expression, Figure
from .figures import LOAD_VARIATION, SIZE_VARIATION, FigureEvidence, NotMeasuredError, RunValues, WindowedSeries
from .judgement import NOT_MEASURED, Cell, Judgement, Verdict, all_of, untested_for
from .judging import (
    Judge,
    Measured,
    common_verdict,
    judged,
    judged_at_looks,
    judged_by,
    judged_claim,
    measured,
    needs,
    not_tested,
    roles_of,
)
from .looks import look_at
from .rules import MIN_EFFECT, Equal, Greater

__all__ = [
    "LOAD_VARIATION",
    "MIN_EFFECT",
    "NOT_MEASURED",
    "SIZE_VARIATION",
    "Cell",
    "Claim",
    "Equal",
    "Evidence",
    "Expression",
    "Figure",
    "FigureEvidence",
    "Greater",
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
    "claims_in",
    "common_verdict",
    "decide",
    "judged",
    "judged_at_looks",
    "judged_by",
    "judged_claim",
    "load_claims",
    "look_at",
    "measured",
    "needs",
    "not_tested",
    "roles_of",
    "untested_for",
    "variant_name",
]
