"""`summary.json` of a study of factors: the figures of each level, each compared with those of the level that its part begins from, the
study's own draft, and what to mind.
"""

from collections.abc import Sequence

import numpy as np

from sensorbench.analysis.intervals import MIN_RUNS
from sensorbench.benchmarks.factors.best_draft import OWN, best_draft
from sensorbench.benchmarks.factors.file import FactorPart, FactorsFile
from sensorbench.benchmarks.factors.levels import by_round, measurements_of, ratio
from sensorbench.benchmarks.factors.scaling import Scaled, scaled
from sensorbench.benchmarks.tune import measured_figure
from sensorbench.results.factors import FILLED, CellMeasurement, FactorsResult, Where
from sensorbench.results.summary.claims import JudgedClaim
from sensorbench.results.summary.envelope import Caveat, Caveats, envelope, fields_of_plan
from sensorbench.results.summary.factors import (
    BestDraftFigures,
    CellOutcome,
    FactorCell,
    FactorParameter,
    FactorPartFigures,
    FactorsFigures,
    FactorsSummary,
    LevelChoice,
    LevelFigure,
    LevelFigures,
    LoadCurves,
)
from sensorbench.wording import counted

OF_FILLED = (
    "per_s",
    "mean_s",
    "took_s",
    "server_cpu",
    "load_average",
    "memtable_bytes",
    "compacted_per_s",
    "sstables",
    "table_bytes",
    "disk_written_per_s",
)
OF_STEPS = (
    "hit_rate",
    "steady_s",
    "mean_s",
    "p99_of_offered_s",
    "server_cpu",
    "load_average",
    "disk_read_per_s",
    "disk_written_per_s",
    "disk_bytes",
    "completed_per_s",
    "client_cpu",
)
# A setting that is a size is as small as the data if its factor is at most this many times theirs.
IN_PROPORTION = 1.5


def summarise_factors(file: FactorsFile, result: FactorsResult, claims: Sequence[JudgedClaim] = ()) -> FactorsSummary:
    """The summary of a study on disk, with its judged claims."""
    manifest = result.manifest
    at = scaled(file, manifest.plan.scale, manifest.plan.step_s)
    own = best_draft(file, result)
    parts = {name: file.parts[name] for name in manifest.plan.parts}
    choices = [LevelChoice(part=choice.part, level=choice.level, ratio=measured_figure(choice.ratio)) for choice in own.choices]
    return FactorsSummary(
        **envelope(manifest),
        warnings=_warnings(result),
        claims=list(claims),
        result=FactorsFigures(
            **fields_of_plan(manifest.plan, FactorsFigures, but_not=["cells", "parts"]),
            question=file.question,
            paper=file.source,
            loads={name: file.loads[name].title for part in parts.values() for name in part.loads},
            parameters=_parameters(file, at),
            parts={name: _part(file, name, part, result) for name, part in parts.items()},
            cells=[_cell(result, cell) for cell in manifest.plan.cells],
            best_draft=BestDraftFigures(choices=choices, changed=at.configuration(own.changed)),
            curves=LoadCurves.model_validate(file.curves.model_dump()) if file.curves else None,
        ),
    )


def base_level(file: FactorsFile, part: str) -> str:
    """The level that the others of a part are compared with: the default, where it is one of them, else the first of the paper's."""
    default = file.default_level(part)
    first = next((level for level in file.parts[part].levels if not level.successor), file.parts[part].levels[0])
    return (default or first).name


def _parameters(file: FactorsFile, at: Scaled) -> list[FactorParameter]:
    """How the paper's parameters are called and written here."""
    here = at.configuration(file.default)
    return [
        FactorParameter(
            in_paper=parameter.source,
            setting=parameter.setting,
            default=parameter.default,
            here=here[parameter.setting],
            about=parameter.about,
            became=parameter.became,
        )
        for parameter in (*file.parameters, *file.besides)
    ]


def _part(file: FactorsFile, name: str, part: FactorPart, result: FactorsResult) -> FactorPartFigures:
    base = base_level(file, name)
    levels = [level.name for level in part.levels]
    # The study's own draft is a level that the file does not have.
    own = [OWN] if any((name, OWN) in cell.levels for cell in result.manifest.plan.cells.values()) else []
    return FactorPartFigures(
        title=part.title,
        about=part.about,
        base=base,
        levels=[*levels, *own],
        successors=[level.name for level in part.levels if level.successor],
        rows=[row for load in part.loads for level in [*levels, *own] for row in _rows(result, load, name, level, base)],
    )


def _rows(result: FactorsResult, load: str, part: str, level: str, base: str) -> list[LevelFigures]:
    """The figures of a level under a load: of putting the records there, and of each step."""
    here, there = (measurements_of(result, load, (part, name)) for name in (level, base))
    steps = max((len(measured.steps) for measured in here), default=0)
    wheres: list[Where] = [FILLED, *range(steps)] if here else []
    return [
        LevelFigures(
            load=load,
            level=level,
            where=where,
            rate_per_s=_rate(here, where),
            figures={
                figure: found
                for figure in (OF_FILLED if where == FILLED else OF_STEPS)
                if (found := _figure(here, there, where, figure)) is not None
            },
        )
        for where in wheres
    ]


def _rate(measured: Sequence[CellMeasurement], where: Where) -> float | None:
    return (
        None
        if where == FILLED
        else next(measurement.steps[where].rate_per_s for measurement in measured if where < len(measurement.steps))
    )


def _figure(here: Sequence[CellMeasurement], there: Sequence[CellMeasurement], where: Where, figure: str) -> LevelFigure | None:
    """A figure's mean over the rounds, and its ratio to the base's; None if it was not measured."""
    found, to_base = by_round(here, where, figure), ratio(here, there, where, figure)
    if not found:
        return None
    return LevelFigure(
        value=float(np.mean(list(found.values()))),
        rounds=len(found),
        ratio=measured_figure(to_base) if to_base else None,
    )


def _cell(result: FactorsResult, name: str) -> FactorCell:
    cell = result.manifest.plan.cells[name]
    outcomes = [
        CellOutcome(round=measured.round, outcome=measured.outcome, reason=measured.reason, took_s=measured.took_s)
        for measured in result.measurements[name]
    ]
    return FactorCell(id=name, **cell.model_dump(), measurements=outcomes)


def _warnings(result: FactorsResult) -> list[Caveat]:
    """What to mind, each with what to do."""
    manifest, caveats = result.manifest, Caveats()
    if manifest.plan.rounds < MIN_RUNS:
        caveats.add(
            "rounds",
            f"Fewer than {MIN_RUNS} rounds give no intervals.",
            f"No level can be called better or worse: --repetitions {MIN_RUNS}.",
        )
    coarse = [key for key, factor in manifest.plan.sizes.items() if factor > IN_PROPORTION * manifest.plan.scale]
    if coarse:
        caveats.add(
            "proportion",
            f"{', '.join(coarse)} could not be made as small as the data, which are {manifest.plan.scale:g} of the paper's.",
            "They hold a larger share of the data than there; a larger --scale brings them together.",
        )
    for why in dict.fromkeys(manifest.plan.left_out.values()):
        names = "; ".join(name for name, reason in manifest.plan.left_out.items() if reason == why)
        caveats.add(
            "left out", f"Left out by the budget, because {why}: {names}.", "--resume without --budget measures that, too."
        )
    measured = [measurement for of_cell in result.measurements.values() for measurement in of_cell]
    failed = [measurement for measurement in measured if measurement.outcome == "failed"]
    if failed:
        caveats.add(
            "failed",
            f"{counted(len(failed), 'measurement')} failed; the first ({failed[0].cell}): {failed[0].reason}",
            "They are left out.",
        )
    steps = [step for measurement in measured for step in measurement.steps]
    bound = [step.client_bound for step in steps if step.client_bound]
    if bound:
        caveats.add(
            "client-bound",
            f"In {len(bound)} steps the client was the limit; in the first, {bound[0]}.",
            "Their figures are lower bounds: use lower rates (--rate).",
        )
    dropped = sum(1 for step in steps if step.dropped)
    if dropped:
        caveats.add(
            "overload",
            f"In {dropped} steps some arrivals were dropped: they could not start before their step ended.",
            "The servers were beyond what they take: use lower rates (--rate).",
        )
    if measured and not any(step.disk_read_per_s for step in steps):
        caveats.add(
            "memory",
            "The servers read nothing from the disk: all data were in this machine's memory.",
            "What caches save of disk reads does not show; use data larger than memory (--scale).",
        )
    return caveats
