"""The claims of a study of several parts: those about one of them, those about several together, and those about each."""

from sensorbench.results.summary.claims import JudgedClaim
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.studies.judging import Measured, common_verdict, judged, not_tested
from sensorbench.studies.study import Claim, Study


def claims_over_parts(study: Study, by: dict[str, Measured], summaries: dict[str, ComparisonSummary]) -> list[JudgedClaim]:
    """Each claim with its verdict, by what was measured in the parts that were run, and by the summary of each."""
    return [_over_parts(claim, study, by, summaries) for claim in study.claims] if by else []


def _over_parts(claim: Claim, study: Study, by: dict[str, Measured], summaries: dict[str, ComparisonSummary]) -> JudgedClaim:
    absent = [part for part in claim.parts if part not in by]
    if absent:
        return not_tested(claim, study, claim.lacks or _why_not(claim, absent))
    if len(claim.parts) > 1:
        return judged(claim, study, [by[part] for part in claim.parts])
    if claim.parts:
        return _in_part(claim, summaries[claim.parts[0]])
    return _in_each({part: _in_part(claim, summary) for part, summary in summaries.items()})


def _why_not(claim: Claim, absent: list[str]) -> str:
    if len(claim.parts) == 1:
        return f"part {absent[0]} was not run"
    return f"needs {' and '.join(f'part {part}' for part in absent)}"


def _in_part(claim: Claim, summary: ComparisonSummary) -> JudgedClaim:
    return next(one for one in summary.claims if one.id == claim.id)


def _in_each(of_parts: dict[str, JudgedClaim]) -> JudgedClaim:
    """A claim that names no part, by what each says of it."""
    told = "; ".join(f"{part}: {of_part.verdict} ({of_part.reason})" for part, of_part in of_parts.items())
    verdict = common_verdict([of_part.verdict for of_part in of_parts.values()], "differs by part")
    first = next(iter(of_parts.values()))
    return first.model_copy(update={"verdict": verdict, "reason": told, "measured": None, "substitute": None})
