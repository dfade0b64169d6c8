"""How the claims of a study are judged by what was measured: in one comparison, or in several parts of the study together."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Protocol, TypeVar

from sensorbench.analysis.intervals import CONFIDENCE, Interval
from sensorbench.analysis.sequential import confidences
from sensorbench.claims.claim import SCALES, Claim
from sensorbench.claims.deciding import decide
from sensorbench.claims.evidence import Evidence, Quantity, Roles, variant_name
from sensorbench.claims.expression import Expression
from sensorbench.claims.figures import FigureEvidence, NotMeasuredError
from sensorbench.claims.judgement import Cell, Judgement, untested_for
from sensorbench.claims.looks import EvidenceUpTo, look_at
from sensorbench.claims.simulated import fingerprint, simulated_claims
from sensorbench.results import ComparisonResult, VariantManifest
from sensorbench.results.manifest import MEASURE
from sensorbench.results.summary.claims import AgreementBand, JudgedCell, JudgedClaim, MeasuredFigure
from sensorbench.results.summary.comparison import ComparisonSummary

E = TypeVar("E", bound=FigureEvidence)

Judge = Callable[[Evidence], Judgement]

_SAYING_SOMETHING = {"reproduced", "partly reproduced", "not reproduced", "inconclusive"}


class HasClaims(Protocol):
    """A study as far as its claims need it: who plays which role, the metric, quantities of its own, and the claims that functions judge."""

    @property
    def roles(self) -> Roles:
        """Which variants play the roles that claims speak of."""

    @property
    def metric(self) -> str:
        """The figure of latencies that is compared."""

    @property
    def judges(self) -> Mapping[str, Judge]:
        """Who judges the claims that no rule fits, by id."""

    @property
    def quantities(self) -> Mapping[str, Quantity]:
        """What claims of this study alone speak of."""


@dataclass(frozen=True)
class Measured:
    """What was measured in one comparison, and which roles are played by substitutes."""

    evidence: Evidence
    substitutes: Mapping[str, str]
    answers_equal: bool | None


def measured(
    study: HasClaims, results: Mapping[str, ComparisonResult], summaries: Mapping[str, ComparisonSummary]
) -> dict[str, Measured]:
    """What was measured in each of some comparisons, which are the parts of a study if there is more than one."""
    evidence: dict[str, Evidence] = {}
    found = {}
    for name, result in results.items():
        names = _names(study.roles, result)
        published, others = _roles(study.roles.published, result, names), _roles(study.roles.substitute, result, names)
        substitutes = {role: variant for role, variant in others.items() if role not in published}
        evidence[name] = Evidence(result, {**published, **substitutes}, study.metric, evidence, study.quantities)
        found[name] = Measured(evidence[name], substitutes, summaries[name].answers_equal)
    return found


def _roles(wanted: dict[str, list[str]], result: ComparisonResult, names: Mapping[str, str]) -> dict[str, str]:
    """For each role, the first of its variants that has complete runs."""
    complete = {
        names[variant.id]: variant.id
        for variant in result.manifest.variants
        if any(run.state == "complete" and MEASURE in run.manifest.phases for run in result.runs[variant.id])
    }
    found = {role: next((complete[name] for name in names if name in complete), None) for role, names in wanted.items()}
    return {role: variant for role, variant in found.items() if variant is not None}


def _names(roles: Roles, result: ComparisonResult) -> dict[str, str]:
    """How roles name each variant, by its id."""
    wanted = [*roles.published.values(), *roles.substitute.values()]
    databases = {name.partition("/")[0] for names in wanted for name in names}
    return {variant.id: _name(variant, result, databases) for variant in result.manifest.variants}


def _name(variant: VariantManifest, result: ComparisonResult, databases: Collection[str]) -> str:
    """How roles name a variant. Where several databases answer to one kind of URL, the one that did answer counts."""
    load = result.loads.get(variant.id)
    answered = load.description.database.lower() if load and not variant.system else variant.database
    if answered not in databases:
        return variant_name(variant)
    return variant_name(variant.model_copy(update={"database": answered}))


def judged(claim: Claim, study: HasClaims, by: Sequence[Measured]) -> JudgedClaim:
    """A claim with its verdict, by one comparison or by those of all parts that it names."""
    judgement = _judgement(claim, study, by)
    used = roles_of(claim)
    played = [
        (role, _place(measurement.evidence, by), variant)
        for measurement in by
        for role, variant in measurement.substitutes.items()
        if role in used
    ]
    substitutes = {f"{role}{place}": variant for role, place, variant in played}
    named = ", ".join(
        f"{variant} for {' or '.join(study.roles.published.get(role, [role]))}{place}" for role, place, variant in played
    )
    if judgement.verdict in _SAYING_SOMETHING and substitutes:
        return judged_claim(
            claim, _requirement(claim, study), judgement, substitutes=substitutes, note=f"; measured with substitutes: {named}"
        )
    return judged_claim(claim, _requirement(claim, study), judgement)


def roles_of(claim: Claim) -> set[str]:
    """The roles that a claim speaks of."""
    figures = [
        figure
        for rule in claim.rules
        for instance in rule.expanded()
        for expression in instance.expressions
        for figure in expression.figures
    ]
    return {*claim.requires, *(figure.arguments[0].rpartition(":")[2].strip() for figure in figures)}


def not_tested(claim: Claim, study: HasClaims, reason: str) -> JudgedClaim:
    """A claim about something that was not measured."""
    return judged_claim(claim, _requirement(claim, study), untested_for(reason))


def common_verdict(verdicts: Sequence[str], differing: str) -> str:
    """What several verdicts on one claim say together: what all that could test it say, else that they are `differing`."""
    words = {word for word in verdicts if word in _SAYING_SOMETHING} or set(verdicts[:1])
    return words.pop() if len(words) == 1 else differing


def judged_claim(
    claim: Claim,
    requires: Sequence[str],
    judgement: Judgement,
    *,
    substitutes: Mapping[str, str] = MappingProxyType({}),
    note: str = "",
) -> JudgedClaim:
    """What summaries say of a claim."""
    return JudgedClaim(
        id=claim.id,
        text=claim.text,
        sentence=claim.sentence,
        note=claim.note,
        form=claim.form,
        published=claim.published,
        requires=list(requires),
        parts=claim.parts,
        verdict=judgement.verdict,
        reason=f"{judgement.reason}{note}",
        measured=_figure(judgement.measured),
        cells=[_cell(cell) for cell in judgement.cells],
        substitutes=dict(substitutes),
        repetitions=_repetitions(claim),
    )


def _repetitions(claim: Claim) -> dict[str, int | None]:
    """From how many repetitions on a claim is decidable, where its rules are those that were simulated."""
    found = simulated_claims().claims.get(claim.id)
    return found.repetitions() if found and found.rules == fingerprint(claim) else {}


def _cell(cell: Cell) -> JudgedCell:
    return JudgedCell(
        name=cell.name,
        verdict=cell.verdict,
        reason=cell.reason,
        measured=_figure(cell.measured),
        published=cell.published,
        band=AgreementBand(low=cell.band.low, high=cell.band.high) if cell.band else None,
        is_ratio=cell.is_ratio,
    )


def _figure(interval: Interval | None) -> MeasuredFigure | None:
    return MeasuredFigure(**asdict(interval)) if interval else None


def _requirement(claim: Claim, study: HasClaims) -> list[str]:
    needed = [_variants_of(role, study) for role in claim.requires]
    return [*needed, *needs(claim)]


def judged_by(claim: Claim, evidence: E, judges: Mapping[str, Callable[[E], Judgement]]) -> JudgedClaim:
    """What summaries say of a claim that needs no variants of a comparison."""
    if claim.blocked_by:
        return judged_claim(claim, needs(claim), untested_for(claim.blocked_by))
    return judged_claim(claim, needs(claim), below_scale(claim, evidence) or decided(claim, evidence, judges))


def judged_at_looks(claim: Claim, evidence: EvidenceUpTo, looks: Sequence[int], runs: int) -> JudgedClaim:
    """What summaries say of a claim that is judged by looks (see `look_at`)."""
    if claim.blocked_by:
        return judged_claim(claim, needs(claim), untested_for(claim.blocked_by))
    if too_small := below_scale(claim, evidence(looks[-1])):
        return judged_claim(claim, needs(claim), too_small)
    looked = look_at(claim.rules, evidence, looks, runs)
    confidence = confidences(tuple(looks), CONFIDENCE)[looks.index(looked.runs)]
    more = ", and later looks may decide it" if looked.goes_on else ""
    note = f"; by the look after {looked.runs} of {looks[-1]} rounds, with intervals of {confidence:.1%}{more}"
    return judged_claim(claim, needs(claim), looked.judgement, note=note)


def decided(claim: Claim, evidence: E, judges: Mapping[str, Callable[[E], Judgement]]) -> Judgement:
    """What the measurements say of a claim, by its rules or by the function that judges it."""
    return judges[claim.id](evidence) if claim.judged_in_python else decide(claim.rules, evidence)


def below_scale(claim: Claim, evidence: FigureEvidence) -> Judgement | None:
    """The verdict on a claim whose finding does not show at the scale of what was measured; None if it may be judged."""
    found = {name: _scale(evidence, name) for name in claim.min_scale}
    unknown = [_scale_title(name) for name, value in found.items() if value is None]
    if unknown:
        return untested_for(f"it depends on {' and '.join(unknown)}, which was not measured: {claim.scale_matters}")
    small = [
        f"{_scale_title(name)}: {_number(value)}{_arithmetic(evidence, name)}, at least {_number(claim.min_scale[name])}"
        for name, value in found.items()
        if value is not None and value < claim.min_scale[name]
    ]
    return Judgement("below minimum scale", f"{'; '.join(small)}: {claim.scale_matters}") if small else None


def _arithmetic(evidence: FigureEvidence, name: str) -> str:
    arithmetic = evidence.arithmetic(name) if name in SCALES else ""
    return f" ({arithmetic})" if arithmetic else ""


def _number(value: float) -> str:
    """A scale as it is read: counts whole, shares by their leading digits."""
    return f"{value:,.0f}" if value >= 1000.0 else f"{value:,.4g}"


def _scale(evidence: FigureEvidence, name: str) -> float | None:
    """The value of something that a finding depends on; None if it was not measured."""
    if name in SCALES:
        return evidence.scale(name)
    try:
        interval = evidence.interval(Expression.parse(name))
    except NotMeasuredError:
        return None
    return interval.value if interval else None


def _scale_title(name: str) -> str:
    return SCALES.get(name, name)


def needs(claim: Claim) -> list[str]:
    """What a claim needs besides variants that were measured, in words."""
    scales = [f"{_scale_title(name)}: at least {_number(value)}" for name, value in claim.min_scale.items()]
    return [*([claim.blocked_by] if claim.blocked_by else []), *scales]


def _variants_of(role: str, study: HasClaims) -> str:
    return " or ".join([*study.roles.published.get(role, []), *study.roles.substitute.get(role, [])])


def _place(evidence: Evidence, among: Sequence[Measured]) -> str:
    """In which part something was measured, where that has to be said."""
    return f" in part {evidence.result.manifest.plan.part}" if len(among) > 1 else ""


def _judgement(claim: Claim, study: HasClaims, by: Sequence[Measured]) -> Judgement:
    missing = [
        f"{_variants_of(role, study)}{_place(measurement.evidence, by)}"
        for measurement in by
        for role in claim.requires
        if role not in measurement.evidence.roles
    ]
    if claim.blocked_by:
        return untested_for(claim.blocked_by)
    if missing:
        return untested_for(f"needs {' and '.join(missing)}")
    untestable = next((reason for measurement in by if (reason := _untestable(claim, measurement))), None)
    if untestable:
        return untested_for(untestable)
    too_small = next((found for measurement in by if (found := below_scale(claim, measurement.evidence))), None)
    if too_small:
        return too_small
    if claim.equal_resources and not all(measurement.evidence.has_equal_memory for measurement in by):
        return untested_for(f"{claim.equal_resources}: give every server the same with --server-memory")
    if any(measurement.answers_equal is False for measurement in by):
        return Judgement("inconclusive", "the databases did not give equal answers")
    few_blocks = next(
        (why for measurement in by if (why := measurement.evidence.too_few_blocks([*claim.requires, *roles_of(claim)]))), None
    )
    if few_blocks:
        return Judgement("inconclusive", few_blocks)
    return decided(claim, by[0].evidence, study.judges)


def _untestable(claim: Claim, measurement: Measured) -> str | None:
    """Why a claim is about something else than what was measured, if it is."""
    dataset = measurement.evidence.result.manifest.plan.dataset["name"]
    if claim.datasets and dataset not in claim.datasets:
        return f"it is about values or sizes of {', '.join(claim.datasets)}, which {dataset} does not have"
    substitutes = sorted({variant for role, variant in measurement.substitutes.items() if role in roles_of(claim)})
    if claim.own_systems_only and substitutes:
        return f"{claim.own_systems_only}: {', '.join(substitutes)} cannot judge it"
    return None
