"""Studies of factors: what varies is settings of a server, not databases and schemas. Their claims are judged by the figures of levels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType

from sensorbench import toml_file
from sensorbench.benchmarks.factors import FactorsFile, by_round, measurements_of, summarise_factors
from sensorbench.claims import (
    Claim,
    Figure,
    FigureEvidence,
    NotMeasuredError,
    RunValues,
    judged_at_looks,
    judged_by,
    judged_claim,
    load_claims,
    look_at,
    needs,
    untested_for,
)
from sensorbench.results.factors import FILLED, LAST, FactorsResult, Where
from sensorbench.results.planned import PlannedCell, PlannedFactors
from sensorbench.results.summary.claims import JudgedClaim
from sensorbench.results.summary.factors import FactorsSummary
from sensorbench.results.summary.published import PublishedTable
from sensorbench.studies.published import Found, found_in, interval_in, measured_by, published_of

# What claims of one study speak of besides the figures of levels; each is made of all results.
FactorQuantity = Callable[[FactorsResult], RunValues | None]

# Why a figure may be missing although its level was measured.
_WHY_NONE = {
    "disk_read_per_s": "servers read nothing from the disk: all that was read was in this machine's memory",
    "steady_s": "no hit rate became steady within a step: it takes 20 windows of 2 s, and an end without a trend (--duration 60s)",
}


class FactorEvidence(FigureEvidence):
    """What was measured, by parts and levels.

    A figure is `figure(load, part, level, where)`, or, of one kind of operation, `figure(load, part, level, where, operation)`. `where` is
    `filled`, the number of a step from 0, or `last`. Rounds are its runs: cells of a round have the same operations and follow one another.
    What is 0 is left out, because levels are compared by their ratio.
    """

    def __init__(self, result: FactorsResult, own: Mapping[str, FactorQuantity] = MappingProxyType({})) -> None:
        self.result = result
        self._own = own

    def values(self, figure: Figure) -> RunValues | None:
        """A figure by round; None if its level was not measured."""
        if figure.quantity in self._own:
            return self._own[figure.quantity](self.result)
        load, part, level, where, *operation = figure.arguments
        measurements = measurements_of(self.result, load, (part, level))
        path = ".".join(["by_operation", *operation, figure.quantity]) if operation else figure.quantity
        found = {number: value for number, value in by_round(measurements, _where(where), path).items() if value > 0.0}
        if measurements and not found and figure.quantity in _WHY_NONE:
            raise NotMeasuredError(_WHY_NONE[figure.quantity])
        return RunValues(found, "rounds") if found else None

    def scale(self, name: str) -> float | None:
        """The size of the data as a share of the paper's; nothing else is known."""
        return self.result.manifest.plan.scale if name == "scale" else None


def _found(evidence: FactorEvidence, figure: Figure) -> Found:
    """What was measured of a figure, or why it was not."""
    found = found_in(evidence, figure)
    if found.value is not None or found.why:
        return found
    load, part, level, *_ = figure.arguments
    plan = evidence.result.manifest.plan
    if part not in plan.parts:
        return Found(None, "not run", _why_not_run(plan, part))
    if (name := f"{part}: {level}") in plan.left_out:
        return Found(None, "not run", f"left out by budget: {plan.left_out[name]}")
    cells = [name for name, cell in plan.cells.items() if cell.load == load and (part, level) in cell.levels]
    failed = next((each for name in cells for each in evidence.result.measurements[name] if each.outcome == "failed"), None)
    if failed is not None:
        return Found(None, "failed", failed.reason or "it failed")
    return Found(
        None,
        "not run",
        "servers did not report it" if measurements_of(evidence.result, load, (part, level)) else "the benchmark ended before",
    )


def _why_not_run(plan: PlannedFactors, part: str) -> str:
    """Why a part has no measurements."""
    return f"left out by budget: {plan.left_out[part]}" if part in plan.left_out else f"part {part} was not run"


def _where(word: str) -> Where:
    return FILLED if word == FILLED else LAST if word == "last" else int(word)


@dataclass(frozen=True)
class FactorStudy:
    """A study of factors: what it varies, and its claims with what they speak of besides figures of levels."""

    name: str
    file: FactorsFile
    claims: tuple[Claim, ...]
    quantities: Mapping[str, FactorQuantity] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path, quantities: Mapping[str, FactorQuantity]) -> "FactorStudy":
        """The study in a folder of the package. Every part that a claim names must be there."""
        claims = load_claims(folder / "claims.toml")
        file = toml_file.load(folder / "study.toml", FactorsFile)
        homeless = [claim.id for claim in claims if not set(claim.parts) <= file.parts.keys()]
        if homeless:
            raise AssertionError(f"{folder}: claims name parts that the study does not have: {homeless}")
        return cls(folder.name.replace("_", "-"), file, claims, quantities)

    def summarise(self, result: FactorsResult) -> FactorsSummary:
        """The summary of results of this study, with its judged claims and what the paper printed."""
        evidence = FactorEvidence(result, self.quantities)
        summary = summarise_factors(self.file, result, [self._judged(claim, evidence) for claim in self.claims])
        return summary.model_copy(update={"published": self._published(evidence)})

    def _published(self, evidence: FactorEvidence) -> list[PublishedTable]:
        """The tables of the paper with the means over rounds."""
        published, plan = published_of(self.name), evidence.result.manifest.plan
        if published is None:
            return []
        measure = measured_by(partial(_found, evidence), partial(interval_in, evidence))
        conditions = (
            f"Measured at scale {plan.scale:g} with rates of this machine, each held for {plan.step_s:g} s: the paper's rates are shares of what "
            "its machines took."
        )
        return published.tables(measure, scale=plan.scale, conditions=conditions)

    def _judged(self, claim: Claim, evidence: FactorEvidence) -> JudgedClaim:
        absent = [part for part in claim.parts if part not in evidence.result.manifest.plan.parts]
        if absent and not claim.blocked_by:
            return judged_claim(claim, needs(claim), untested_for(_why_not_run(evidence.result.manifest.plan, absent[0])))
        looks = evidence.result.manifest.plan.looks
        if not looks:
            return judged_by(claim, evidence, {})
        return judged_at_looks(claim, self._up_to(evidence.result), looks, _rounds_of(claim, evidence.result))

    def _up_to(self, result: FactorsResult) -> Callable[[int], FactorEvidence]:
        return lambda rounds: FactorEvidence(result.up_to(rounds), self.quantities)

    def needed_cells(self, result: FactorsResult) -> set[str]:
        """The cells of claims that the looks so far have not decided."""
        plan, needed = result.manifest.plan, set[str]()
        for claim in self.claims:
            cells = cells_of_claim(claim, plan.cells)
            if not cells or not claim.rules or not set(claim.parts) <= set(plan.parts):
                continue
            if look_at(claim.rules, self._up_to(result), plan.looks, _rounds_of(claim, result)).goes_on:
                needed |= cells
        return needed


def cells_of_claim(claim: Claim, cells: Mapping[str, PlannedCell]) -> set[str]:
    """The cells that a claim needs, by their ids; none for a claim about whatever was measured."""
    figures = [
        figure.arguments
        for rule in claim.rules
        for instance in rule.expanded()
        for expression in instance.expressions
        for figure in expression.figures
        # Others are about all measurements.
        if len(figure.arguments) > 1
    ]
    wanted = {(load, part, level) for load, part, level, *_ in figures}
    return {name for name, cell in cells.items() for part, level in cell.levels if (cell.load, part, level) in wanted}


def _rounds_of(claim: Claim, result: FactorsResult) -> int:
    """How many rounds there are of all that a claim needs; of a claim about whatever was measured, of anything."""
    needed = cells_of_claim(claim, result.manifest.plan.cells)
    rounds = {name: max((each.round for each in found), default=0) for name, found in result.measurements.items()}
    if not needed:
        return max(rounds.values(), default=0)
    return min(rounds.get(name, 0) for name in needed)
