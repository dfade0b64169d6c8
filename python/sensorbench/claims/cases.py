"""Claims that are about several cells: each cell is judged by itself, and `all_of` says what follows for the claim."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from sensorbench.claims.claim import Judgement

# So many of the cells that contradict a claim are named.
MAX_NAMED = 5


@dataclass(frozen=True)
class Case:
    """A cell that a claim speaks of, and what it says."""

    name: str
    judgement: Judgement


def all_of(cases: Sequence[Case], missing: Sequence[str] = (), unit: str = "×") -> Judgement:
    """What follows from all cells of a claim, of which some may have no figure, and systems may be `missing`. `unit` is that of the
    figures.

    - one that certainly does not hold: the claim does not hold, however many others do;
    - all hold: the claim holds, or, when systems that it is about too were not measured, is inconclusive;
    - else it is inconclusive when a cell is, and no difference is seen when none is.
    """
    known = [case for case in cases if case.judgement.word != "not tested here"]
    if not known:
        return Judgement("not tested here", None, "nothing that it compares was measured")
    if len(cases) == 1 and not missing:
        return replace(known[0].judgement, reason=f"{known[0].name}: {known[0].judgement.reason}")
    words = [case.judgement.word for case in known]
    reason = _described(known, len(cases) - len(known), missing, unit)
    if "does not hold" in words:
        return Judgement("does not hold", None, reason)
    if set(words) == {"holds"}:
        return Judgement("inconclusive" if missing else "holds", None, reason)
    return Judgement("inconclusive" if "inconclusive" in words else "no difference seen", None, reason)


def _described(known: Sequence[Case], without_figure: int, missing: Sequence[str], unit: str) -> str:
    """How many cells hold, what their ratios are, which contradict, and what was not measured."""
    holding = sum(case.judgement.word == "holds" for case in known)
    contrary = [case for case in known if case.judgement.word == "does not hold"]
    undecided = len(known) - holding - len(contrary)
    named = ", ".join(f"{case.name}{_figure(case, unit)}" for case in contrary[:MAX_NAMED])
    more = f" and {len(contrary) - MAX_NAMED} more" if len(contrary) > MAX_NAMED else ""
    parts = [
        f"{holding} of {len(known)} cells hold{_range(known, unit)}",
        f"not: {named}{more}" if contrary else "",
        f"open in {undecided}" if undecided else "",
        f"{without_figure} without a figure" if without_figure else "",
        f"not measured: {_by_system(missing)}" if missing else "",
    ]
    return "; ".join(filter(None, parts))


def _by_system(roles: Sequence[str]) -> str:
    """Roles as systems with their levels of indexes: CA (key, key+value)."""
    levels: dict[str, list[str]] = {}
    for role in roles:
        system, _, level = role.partition(" ")
        levels.setdefault(system, []).extend([level] if level else [])
    return ", ".join(f"{system} ({', '.join(of_system)})" if of_system else system for system, of_system in levels.items())


def _range(known: Sequence[Case], unit: str) -> str:
    values = [case.judgement.measured["value"] for case in known if case.judgement.measured and case.judgement.measured["value"]]
    return f" ({unit} {min(values):.3g} to {max(values):.3g}, median {median(values):.3g})" if values else ""


def _figure(case: Case, unit: str) -> str:
    measured = case.judgement.measured
    return f" ({unit} {measured['value']:.3g})" if measured and measured["value"] else ""
