from .cases import Case, all_of
from .claim import NOT_MEASURED, Claim, ClaimsFile, Judgement, Word, load_claims, untested_for
from .evidence import Evidence, Roles, variant_name
from .judging import Judge, Measured, common_verdict, judged, judged_by, judged_claim, measured, needs, not_tested
from .rules import (
    NEAR,
    about,
    at_least_one,
    at_most,
    greater_than_one,
    near_one,
    near_or_above_one,
    ratio_over_runs,
    single_ratio,
)

__all__ = [
    "NEAR",
    "NOT_MEASURED",
    "Case",
    "Claim",
    "ClaimsFile",
    "Evidence",
    "Judge",
    "Judgement",
    "Measured",
    "Roles",
    "Word",
    "about",
    "all_of",
    "at_least_one",
    "at_most",
    "common_verdict",
    "greater_than_one",
    "judged",
    "judged_by",
    "judged_claim",
    "load_claims",
    "measured",
    "near_one",
    "near_or_above_one",
    "needs",
    "not_tested",
    "ratio_over_runs",
    "single_ratio",
    "untested_for",
    "variant_name",
]
