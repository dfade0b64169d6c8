"""How the claims of a study are judged by what was measured: in one comparison, or in several parts of the study together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sensorbench.claims.claim import Claim, Judgement, untested_for
from sensorbench.claims.evidence import Evidence, Roles, variant_name
from sensorbench.results import ComparisonResult
from sensorbench.results.manifest import MEASURE
from sensorbench.results.summary.claims import JudgedClaim, MeasuredFigure, SubstituteVerdict
from sensorbench.results.summary.comparison import ComparisonSummary

E = TypeVar("E")

Judge = Callable[[Evidence], Judgement]

_TESTED = {"holds", "does not hold", "no difference seen", "inconclusive"}


class HasJudges(Protocol):
    """A study as far as its claims need it: who plays which role, the metric, and the judge of each claim by its id."""

    @property
    def roles(self) -> Roles:
        """Which variants play the roles that claims speak of."""

    @property
    def metric(self) -> str:
        """The figure of latencies that is compared."""

    @property
    def judges(self) -> Mapping[str, Judge]:
        """Who judges each claim, by its id."""


@dataclass(frozen=True)
class Measured:
    """What was measured in one comparison: with the claims' own roles, and with substitutes where those were not measured."""

    own: Evidence
    with_substitutes: Evidence
    answers_equal: bool | None


def measured(
    study: HasJudges, results: Mapping[str, ComparisonResult], summaries: Mapping[str, ComparisonSummary]
) -> dict[str, Measured]:
    """What was measured in each of some comparisons, which are the parts of a study if there is more than one."""
    own: dict[str, Evidence] = {}
    with_substitutes: dict[str, Evidence] = {}
    for name, result in results.items():
        published = _roles(study.roles.published, result)
        own[name] = Evidence(result, published, study.metric, own)
        roles = {**_roles(study.roles.substitute, result), **published}
        with_substitutes[name] = Evidence(result, roles, study.metric, with_substitutes)
    return {name: Measured(own[name], with_substitutes[name], summaries[name].answers_equal) for name in results}


def _roles(wanted: dict[str, list[str]], result: ComparisonResult) -> dict[str, str]:
    """For each role, the first of its variants that has complete runs."""
    complete = {
        variant_name(variant): variant.id
        for variant in result.manifest.variants
        if any(run.state == "complete" and MEASURE in run.manifest.phases for run in result.runs[variant.id])
    }
    found = {role: next((complete[name] for name in names if name in complete), None) for role, names in wanted.items()}
    return {role: variant for role, variant in found.items() if variant is not None}


def judged(claim: Claim, study: HasJudges, by: Sequence[Measured]) -> JudgedClaim:
    """A claim with its verdict, and what it is with substitutes where the claim's own databases were not measured. It is judged by
    one comparison, or by those of all parts that it names.
    """
    own, with_substitutes = [measurement.own for measurement in by], [measurement.with_substitutes for measurement in by]
    differ = any(measurement.answers_equal is False for measurement in by)
    substitute = None
    if not claim.blocked_by and not _has_roles(claim, own) and _has_roles(claim, with_substitutes):
        judgement = _judgement(claim, study, with_substitutes, answers_differ=differ)
        substitute = SubstituteVerdict(
            roles={
                f"{role}{_place(substitute, by)}": substitute.roles[role]
                for substitute in with_substitutes
                for role in claim.requires
            },
            verdict=judgement.word,
            reason=judgement.reason,
            measured=_figure(judgement),
        )
    return judged_claim(claim, _requirement(claim, study), _judgement(claim, study, own, answers_differ=differ), substitute)


def not_tested(claim: Claim, study: HasJudges, reason: str) -> JudgedClaim:
    """A claim about something that was not measured."""
    return judged_claim(claim, _requirement(claim, study), untested_for(reason))


def common_verdict(verdicts: Sequence[str], differing: str) -> str:
    """What several verdicts on one claim say together: what all that could test it say, else that they are `differing`."""
    words = {word for word in verdicts if word in _TESTED} or set(verdicts[:1])
    return words.pop() if len(words) == 1 else differing


def judged_claim(
    claim: Claim, requires: Sequence[str], judgement: Judgement, substitute: SubstituteVerdict | None = None
) -> JudgedClaim:
    """What summaries say of a claim."""
    return JudgedClaim(
        id=claim.id,
        text=claim.text,
        form=claim.form,
        published=claim.published,
        requires=list(requires),
        parts=claim.parts,
        verdict=judgement.word,
        reason=judgement.reason,
        measured=_figure(judgement),
        substitute=substitute,
    )


def _figure(judgement: Judgement) -> MeasuredFigure | None:
    return MeasuredFigure(**judgement.measured) if judgement.measured else None


def _requirement(claim: Claim, study: HasJudges) -> list[str]:
    needed = [_variants_of(role, study) for role in claim.requires]
    return [*needed, *needs(claim)]


def judged_by(judges: Mapping[str, Callable[[E], Judgement]], claim: Claim, evidence: E) -> JudgedClaim:
    """What summaries say of a claim that has one judge and needs no variants of a comparison."""
    judgement = untested_for(claim.blocked_by) if claim.blocked_by else judges[claim.id](evidence)
    return judged_claim(claim, needs(claim), judgement)


def needs(claim: Claim) -> list[str]:
    """What a claim needs besides variants that were measured, in words."""
    return [*([claim.blocked_by] if claim.blocked_by else []), *([f"scale {claim.min_scale:g}"] if claim.min_scale else [])]


def _variants_of(role: str, study: HasJudges) -> str:
    return " or ".join(study.roles.published[role])


def _place(evidence: Evidence, among: Sequence[Any]) -> str:
    """In which part something was measured, where that has to be said."""
    return f" in part {evidence.result.manifest.plan.part}" if len(among) > 1 else ""


def _has_roles(claim: Claim, evidence: Sequence[Evidence]) -> bool:
    return all(set(claim.requires) <= each.roles.keys() for each in evidence)


def _judgement(claim: Claim, study: HasJudges, evidence: Sequence[Evidence], *, answers_differ: bool) -> Judgement:
    missing = [
        f"{_variants_of(role, study)}{_place(own_evidence, evidence)}"
        for own_evidence in evidence
        for role in claim.requires
        if role not in own_evidence.roles
    ]
    if missing:
        return untested_for(f"needs {' and '.join(missing)}")
    if claim.blocked_by:
        return untested_for(claim.blocked_by)
    if any(own_evidence.result.manifest.plan.dataset.get("scale", 1.0) < claim.min_scale for own_evidence in evidence):
        why = f": {claim.scale_matters}" if claim.scale_matters else ""
        return Judgement("not tested at this scale", None, f"needs scale {claim.min_scale:g}{why}")
    if answers_differ:
        return Judgement("inconclusive", None, "the databases did not give equal answers")
    return study.judges[claim.id](evidence[0])
