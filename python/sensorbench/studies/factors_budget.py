"""What a budget of time is turned into for a study of factors: by arithmetic, since its servers are too dear to be started for a pilot. A study that goes
on has been its own pilot.

What no claim needs is left out, and so is what waits for hours. Of the rest, those cells come first by which most claims are decided in the
least time. Cells that are compared with one another alternate, so that drift is nobody's gain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sensorbench.benchmarks.factors import Cell, Expected, FactorOptions, FactorsPlan, check, described_cells
from sensorbench.claims import Claim
from sensorbench.errors import UsageError
from sensorbench.lifecycle import Deadline, check_folder
from sensorbench.results.factors import FactorsResult, read_factors
from sensorbench.results.planned import PlannedFactors
from sensorbench.studies.factors import FactorStudy, cells_of_claim

# What is planned for: the rest is for what arithmetic cannot know.
PLANNED_SHARE = 0.85
SCALES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02)
NOT_NEEDED = "no claim needs it"


@dataclass(frozen=True)
class _Group:
    """Cells that are compared with one another, and how many claims they decide."""

    cells: tuple[str, ...]
    claims: int


def plan_factors(study: FactorStudy, options: FactorOptions, folder: Path, *, resume: bool) -> FactorsPlan:
    """What options ask for, with a budget what fits; of a resumed study, as it began. Raises UsageError."""
    looks = tuple(study.file.looks) if options.budget is not None and options.repetitions is None else ()
    if resume:
        check_folder(folder, resume=True)
        begun = read_factors(folder).manifest.plan
        looks = tuple(begun.looks)
        if looks and options.repetitions is not None:
            raise UsageError(
                f"--repetitions {options.repetitions}: the study in {folder} is judged after {' and '.join(map(str, looks))} rounds; leave out --repetitions"
            )
        options = _as_begun(options, begun)
    plan = _looked_at(study, FactorsPlan(study.name, study.file, options), looks)
    check(plan)
    if options.budget is None:
        return plan
    return _within(study, plan, options.budget) if resume else _choose(study, plan, options.budget)


def _looked_at(study: FactorStudy, plan: FactorsPlan, looks: tuple[int, ...]) -> FactorsPlan:
    """A plan whose claims are looked at after some rounds."""
    return replace(plan, looks=looks, needed_after=study.needed_cells) if looks else plan


def expected_s(plan: FactorsPlan) -> float:
    """How long all that a budget does not leave out takes at most (s)."""
    expected = Expected(plan)
    return expected.finding_s() + expected.total_s(plan.cells())


def expected_to_look_s(plan: FactorsPlan) -> float:
    """How long it takes until the first look (s)."""
    expected = Expected(plan)
    return expected.finding_s() + expected.total_s(plan.cells(), plan.first_rounds)


def left_s(plan: FactorsPlan, result: FactorsResult) -> float:
    """How long it takes until the next look, or to the end (s), by what was measured: records that were shared before are added again."""
    turns, _ = plan.turns_until_look(result)
    expected = Expected(plan, result.manifest.plan.took_s)
    return (0.0 if result.manifest.plan.rates else expected.finding_s()) + expected.turns_s(turns)


def _choose(study: FactorStudy, plan: FactorsPlan, budget_s: float) -> FactorsPlan:
    """The largest scale at which all that claims need fits; the smallest at which they can be judged where it does not, and the rest is left for --resume.

    Raises:
        UsageError: if not even one measurement fits.

    """
    smallest = max(claim.min_scale.get("scale", 0.0) for claim in study.claims)
    scale_of_user = plan.options.scale
    larger = [scale for scale in SCALES if scale > smallest] if scale_of_user is None else []
    for scale in larger:
        chosen = _within(study, _at_scale(plan, scale), budget_s)
        if chosen.cells() and expected_s(chosen) <= PLANNED_SHARE * budget_s:
            return chosen
    chosen = _within(study, _at_scale(plan, scale_of_user or smallest), budget_s)
    if not chosen.cells():
        raise UsageError(
            f"--budget {budget_s / 60:,.0f}m: nothing is left of these parts ({_as_list(chosen.left_out)}); give more time, or name other parts by --part"
        )
    expected = Expected(chosen)
    shortest_s = expected.finding_s() + min(map(expected.cell_s, chosen.cells().values()))
    if shortest_s > budget_s:
        raise UsageError(
            f"--budget {budget_s / 60:,.0f}m: the smallest run of this study, one measurement at scale {chosen.options.used_scale:g} and what the default takes, "
            f"needs about {shortest_s / 60:,.0f} minutes; give more time"
        )
    return chosen


def _at_scale(plan: FactorsPlan, scale: float) -> FactorsPlan:
    return replace(plan, options=plan.options.model_copy(update={"scale": scale}))


def _within(study: FactorStudy, whole: FactorsPlan, budget_s: float) -> FactorsPlan:
    """What a study measures of a plan in a budget, and in which order."""
    left_out = {name: why for name in whole.parts if (why := _why_left_out(study, whole, name, budget_s))}
    plan = replace(whole, left_out=left_out)
    groups = _ordered(plan, _groups(study, plan))
    needed = {name for group in groups for name in group.cells}
    levels = [level for cell in plan.cells().values() if cell.id not in needed for level in cell.levels]
    return replace(
        plan,
        groups_of_budget=tuple(group.cells for group in groups),
        left_out={**left_out, **{f"{part}: {level}": NOT_NEEDED for part, level in levels}},
        deadline=Deadline(budget_s),
    )


def _as_begun(options: FactorOptions, plan: PlannedFactors) -> FactorOptions:
    """The options of a resumed study: scale, length of steps, rounds and, with a budget, parts as it began, where nothing else is said."""
    begun: dict[str, object] = {
        "scale": plan.scale if options.scale is None else options.scale,
        "duration": options.duration or plan.step_s,
        "repetitions": None if plan.looks else options.repetitions or plan.rounds,
    }
    if options.budget is not None and not options.parts:
        begun["parts"] = tuple(plan.parts)
    return options.model_copy(update=begun)


def _as_list(left_out: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {why}" for name, why in left_out.items())


def _why_left_out(study: FactorStudy, plan: FactorsPlan, part: str, budget_s: float) -> str | None:
    """Why a part is left out as a whole; None if it is not."""
    needed = _needed_of_part(study, plan, part)
    if not needed:
        return NOT_NEEDED
    expected = Expected(plan)
    waits_s = max(expected.waits_s(cell.load) for cell in needed)
    total_s = plan.first_rounds * sum(map(expected.cell_s, needed))
    if not waits_s or total_s <= budget_s:
        return None
    return (
        f"each measurement waits {waits_s / 60:,.0f} min before servers are restarted, and the {plan.first_rounds * len(needed)} that claims need take "
        f"{total_s / 3600:,.1f} h"
    )


def _needed_of_part(study: FactorStudy, plan: FactorsPlan, part: str) -> list[Cell]:
    """The cells of a part that its claims need."""
    cells = plan.cells()
    names = {name for claim in study.claims if part in claim.parts for name in _needed(claim, plan)}
    return [cells[name] for name in cells if name in names]


def _needed(claim: Claim, plan: FactorsPlan) -> set[str]:
    """The cells that a claim needs."""
    return cells_of_claim(claim, described_cells(plan.cells()))


def _groups(study: FactorStudy, plan: FactorsPlan) -> list[_Group]:
    """The cells that claims need; those of claims that share a cell are one group."""
    cells = plan.cells()
    of_claims = [needed for claim in study.claims if set(claim.parts) <= set(plan.parts) and (needed := _needed(claim, plan))]
    merged: list[set[str]] = []
    for needed in of_claims:
        touching = [group for group in merged if group & needed]
        merged = [group for group in merged if group not in touching] + [needed.union(*touching)]
    return [
        _Group(tuple(name for name in cells if name in group), sum(1 for needed in of_claims if needed <= group))
        for group in merged
    ]


def _ordered(plan: FactorsPlan, groups: Sequence[_Group]) -> list[_Group]:
    """The groups, first that which decides most claims for its time."""
    expected = Expected(plan)
    left = list(groups)
    done: list[str] = []
    ordered: list[_Group] = []
    while left:
        best = max(
            left, key=lambda group: group.claims / (expected.total_s([*done, *group.cells], 1) - expected.total_s(done, 1))
        )
        left.remove(best)
        ordered.append(best)
        done += best.cells
    return ordered
