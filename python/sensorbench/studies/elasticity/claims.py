"""How the claims of the study (claims.toml) are judged: figures of databases are compared over works that were done apart."""

from collections.abc import Callable, Sequence

from sensorbench.analysis.intervals import Interval
from sensorbench.claims import Case, Judgement, about, all_of, at_most, greater_than_one, near_one, near_or_above_one
from sensorbench.studies.elasticity.evidence import Evidence
from sensorbench.studies.factors import difference

CA, HB, MO = "CA", "HB", "MO"
FIRST, SECOND, THIRD = 0, 1, 2
# The source prints two digits: 0.06 is anything below 0.065.
NEARLY_PERFECT = 0.065
HALF = 0.5

Judge = Callable[[Evidence], Judgement]


def _missing(evidence: Evidence, *roles: str) -> list[str]:
    return [role for role in roles if not evidence.has(role)]


def _greater(evidence: Evidence, figure: str, name: str, other: str, transitions: Sequence[int]) -> list[Case]:
    """That the first database has more of a figure than the second, at each transition that both have."""
    return [
        Case(
            f"{name} over {other}, transition {number + 1}",
            greater_than_one(evidence.ratio((name, number), (other, number), figure)),
        )
        for number in transitions
        if evidence.has(name) and evidence.has(other)
    ]


def _below_zero(name: str, interval: Interval | None, unit: str = " s") -> Case:
    return Case(name, difference(interval, below=0.0, unit=unit))


def _stabilizes(evidence: Evidence) -> Judgement:
    numbers = evidence.transitions(CA, "total_s")
    cases = [
        *_greater(evidence, "total_s", CA, HB, numbers),
        *_greater(evidence, "total_s", MO, CA, evidence.transitions(MO, "total_s")),
    ]
    return all_of(cases, _missing(evidence, HB, CA, MO))


def _highest_elasticity(evidence: Evidence) -> Judgement:
    numbers = evidence.transitions(HB, "elasticity")
    cases = [
        case
        for other in (CA, MO)
        for case in _greater(
            evidence,
            "elasticity",
            other,
            HB,
            [number for number in numbers if number in evidence.transitions(other, "elasticity")],
        )
    ]
    return all_of(cases, _missing(evidence, HB, CA, MO))


def _lowest_elasticity(evidence: Evidence) -> Judgement:
    numbers = evidence.transitions(MO, "elasticity")
    cases = [case for other in (CA, HB) for case in _greater(evidence, "elasticity", MO, other, numbers)]
    return all_of(cases, _missing(evidence, MO, CA, HB))


def _part_dominates(roles: Sequence[str], less: str, more: str) -> Judge:
    """That one part of the stabilisation is shorter than the other at each transition."""

    def judge(evidence: Evidence) -> Judgement:
        cases = [
            _below_zero(f"{role}, transition {number + 1}", evidence.difference(role, number, (less, more)))
            for role in roles
            for number in evidence.transitions(role, more)
        ]
        return all_of(cases, _missing(evidence, *roles), unit="s")

    return judge


def _grows_as_printed(evidence: Evidence) -> Judgement:
    return about(evidence.ratio((MO, SECOND), (MO, FIRST), "transfer_s"), 2.0)


def _grows_less(evidence: Evidence) -> Judgement:
    return at_most(evidence.ratio((CA, SECOND), (CA, FIRST), "transfer_s"), 2.0, "below 2: less than linear")


def _shrinks(role: str, earlier: int, later: int, figure: str) -> Judge:
    return lambda evidence: greater_than_one(evidence.ratio((role, earlier), (role, later), figure))


def _slower_until_integrated(evidence: Evidence) -> Judgement:
    cases = [
        Case(f"transition {number + 1}", near_or_above_one(evidence.mean(CA, number, "lowest_over_level")))
        for number in evidence.transitions(CA, "lowest_over_level")
    ]
    return all_of(cases)


def _impact_from_the_third_on(evidence: Evidence) -> Judgement:
    cases = [
        Case(
            f"transition {number + 1}",
            greater_than_one(evidence.mean(CA, number, "peak_over_peak"))
            if number == THIRD
            else at_most(evidence.mean(CA, number, "peak_over_peak"), 1.0, "not above 1: no more than before"),
        )
        for number in (FIRST, SECOND, THIRD)
    ]
    return all_of(cases)


def _peaks(evidence: Evidence) -> Judgement:
    cases = [
        Case(f"transition {number + 1}", about(evidence.mean(MO, number, "peak_over_level"), printed))
        for number, printed in ((FIRST, 3.0), (SECOND, 2.0))
    ]
    return all_of(cases, _missing(evidence, MO))


def _scales_nearly_perfectly(evidence: Evidence) -> Judgement:
    cases = [
        case
        for role in (CA, HB)
        for case in (
            Case(role, difference(evidence.mean(role, FIRST, "scalability"), below=NEARLY_PERFECT)),
            Case(role, difference(_negative(evidence.mean(role, FIRST, "scalability")), below=NEARLY_PERFECT)),
        )
    ]
    return all_of(cases, _missing(evidence, CA, HB), unit="")


def _scales_badly(evidence: Evidence) -> Judgement:
    return _above(evidence.mean(MO, FIRST, "scalability"), NEARLY_PERFECT)


def _super_linear(evidence: Evidence) -> Judgement:
    return difference(evidence.mean(CA, SECOND, "scalability"), below=0.0)


def _collapses(evidence: Evidence) -> Judgement:
    cases = [
        Case("scalability", _above(evidence.mean(HB, SECOND, "scalability"), NEARLY_PERFECT)),
        Case("share of the busiest node", _above(evidence.mean(HB, THIRD, "hottest_share"), HALF)),
    ]
    return all_of(cases, unit="")


def _fastest(evidence: Evidence) -> Judgement:
    cases = [
        *_greater(evidence, "av_s", CA, HB, (FIRST, SECOND)),
        *_greater(evidence, "av_s", MO, HB, (FIRST, SECOND)),
        *_greater(evidence, "av_s", HB, CA, (THIRD,)),
    ]
    return all_of(cases, _missing(evidence, HB, CA, MO))


def _close(evidence: Evidence) -> Judgement:
    cases = [
        Case(f"{MO} over {other}, transition {number + 1}", near_one(evidence.ratio((MO, number), (other, number), "av_s")))
        for other, number in ((HB, FIRST), (CA, SECOND))
    ]
    return all_of(cases, _missing(evidence, MO, HB, CA))


def _steadier_when_larger(evidence: Evidence) -> Judgement:
    cases = []
    for role in (CA, HB, MO):
        numbers = evidence.transitions(role, "sd_over_av")
        if len(numbers) > 1:
            ratio = evidence.ratio((role, numbers[0]), (role, numbers[-1]), "sd_over_av")
            cases.append(Case(f"{role}, the first over the last", greater_than_one(ratio)))
    return all_of(cases, _missing(evidence, CA, HB, MO))


def _steadier_than(evidence: Evidence) -> Judgement:
    return all_of(_greater(evidence, "sd_over_av", CA, MO, (FIRST, SECOND)), _missing(evidence, CA, MO))


def _above(interval: Interval | None, limit: float) -> Judgement:
    """Judges "this figure is above a limit"."""
    return difference(_negative(interval), below=-limit)


def _negative(interval: Interval | None) -> Interval | None:
    """The same with the other sign."""
    if interval is None:
        return None
    low, high = (None if end is None else -end for end in (interval.high, interval.low))
    return Interval(-interval.value, low, high, interval.confidence, interval.runs, between_runs=interval.between_runs)


JUDGES: dict[str, Judge] = {
    "ELA-1": _stabilizes,
    "ELA-2": _highest_elasticity,
    "ELA-3": _lowest_elasticity,
    "ELA-4": _part_dominates((HB,), "transfer_s", "additional_s"),
    "ELA-5": _part_dominates((CA, MO), "additional_s", "transfer_s"),
    "ELA-6": _grows_as_printed,
    "ELA-7": _grows_less,
    "ELA-8": _shrinks(CA, SECOND, THIRD, "transfer_s"),
    "ELA-9": _slower_until_integrated,
    "ELA-10": _impact_from_the_third_on,
    "ELA-11": _peaks,
    "ELA-12": _shrinks(HB, FIRST, SECOND, "elasticity"),
    "ELA-14": _scales_nearly_perfectly,
    "ELA-15": _scales_badly,
    "ELA-16": _super_linear,
    "ELA-17": _collapses,
    "ELA-18": _fastest,
    "ELA-19": _close,
    "ELA-20": _steadier_when_larger,
    "ELA-21": _steadier_than,
}
