"""`summary.json` of a study of factors: the figures of each level, each beside those of the level that its part begins from, the study's
own draft, and what to mind. Times in s, rates a second, sizes in bytes.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from sensorbench.analysis.intervals import LEAST_RUNS
from sensorbench.results.factors import CellMeasurement, FactorsResult
from sensorbench.tuning.factors.file import FactorPart, FactorsFile
from sensorbench.tuning.factors.levels import FILLED, Where, by_round, measurements_of, ratio
from sensorbench.tuning.factors.own import OWN, own_draft
from sensorbench.tuning.factors.scaling import Scaled, scaled

OF_FILLED = (
    "per_s",
    "mean_s",
    "took_s",
    "processors",
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
    "p99_of_due_s",
    "processors",
    "disk_read_per_s",
    "disk_written_per_s",
    "disk_bytes",
    "completed_per_s",
    "client_cpu",
)
# A setting that is a size is as small as the data if its factor is at most so many times theirs.
IN_PROPORTION = 1.5


def summarise_factors(file: FactorsFile, result: FactorsResult) -> dict[str, Any]:
    """The summary, without claims."""
    manifest = result.manifest
    at = scaled(file, manifest.scale, manifest.step_s)
    own = own_draft(file, result)
    parts = {name: file.parts[name] for name in manifest.parts}
    return {
        "kind": manifest.kind,
        "name": manifest.name,
        "title": manifest.title,
        "question": file.question,
        "source": file.source,
        "state": result.state,
        "reason": manifest.reason,
        "created": manifest.created.isoformat(),
        "version": manifest.version,
        "command": manifest.command,
        "environment": manifest.environment,
        "target": manifest.target,
        "nodes": manifest.nodes,
        "workload": manifest.workload,
        "scale": manifest.scale,
        "sizes": manifest.sizes,
        "step_s": manifest.step_s,
        "rounds": manifest.rounds,
        "seed": manifest.seed,
        "reached": manifest.reached,
        "rates": manifest.rates,
        "loads": {name: file.loads[name].title for part in parts.values() for name in part.loads},
        "parameters": _parameters(file, at),
        "parts": {name: _part(file, name, part, result) for name, part in parts.items()},
        "cells": [_cell(result, cell) for cell in manifest.cells],
        "own": {"choices": [asdict(one) for one in own.choices], "changed": at.configuration(own.changed)},
        "warnings": _warnings(result),
    }


def base_level(file: FactorsFile, part: str) -> str:
    """The level that the others of a part are compared with: the default, where it is one of them, else the first of the source's."""
    default = file.default_level(part)
    first = next((level for level in file.parts[part].levels if not level.successor), file.parts[part].levels[0])
    return (default or first).name


def _parameters(file: FactorsFile, at: Scaled) -> list[dict[str, Any]]:
    """How the source's parameters are called and written here."""
    here = at.configuration(file.default)
    return [{**one.model_dump(), "here": here[one.setting]} for one in (*file.parameters, *file.besides)]


def _part(file: FactorsFile, name: str, part: FactorPart, result: FactorsResult) -> dict[str, Any]:
    base = base_level(file, name)
    levels = [level.name for level in part.levels]
    # The study's own draft is a level that the file does not have.
    own = [OWN] if any((name, OWN) in cell.levels for cell in result.manifest.cells.values()) else []
    return {
        "title": part.title,
        "about": part.about,
        "base": base,
        "levels": [*levels, *own],
        "successors": [level.name for level in part.levels if level.successor],
        "rows": [row for load in part.loads for level in [*levels, *own] for row in _rows(result, load, name, level, base)],
    }


def _rows(result: FactorsResult, load: str, part: str, level: str, base: str) -> list[dict[str, Any]]:
    """The figures of a level under a load: of putting the records there, and of each step."""
    here, there = (measurements_of(result, load, (part, one)) for one in (level, base))
    steps = max((len(one.steps) for one in here), default=0)
    wheres = [FILLED, *range(steps)] if here else []
    return [
        {
            "load": load,
            "level": level,
            "where": where,
            "rate_per_s": _rate(here, where),
            "figures": {
                figure: found
                for figure in (OF_FILLED if where == FILLED else OF_STEPS)
                if (found := _figure(here, there, where, figure)) is not None
            },
        }
        for where in wheres
    ]


def _rate(measured: Sequence[CellMeasurement], where: Where) -> float | None:
    return None if isinstance(where, str) else next(one.steps[where]["rate_per_s"] for one in measured if where < len(one.steps))


def _figure(
    here: Sequence[CellMeasurement], there: Sequence[CellMeasurement], where: Where, figure: str
) -> dict[str, Any] | None:
    """A figure's mean over the rounds, and its ratio to the base's; None where it was not measured."""
    found, to_base = by_round(here, where, figure), ratio(here, there, where, figure)
    if not found:
        return None
    return {
        "value": float(np.mean(list(found.values()))),
        "rounds": len(found),
        "ratio": asdict(to_base) if to_base else None,
    }


def _cell(result: FactorsResult, name: str) -> dict[str, Any]:
    cell = result.manifest.cells[name]
    told = [one.model_dump(include={"round", "outcome", "reason", "took_s"}) for one in result.measurements[name]]
    return {"id": name, **cell.model_dump(), "measurements": told}


def _warnings(result: FactorsResult) -> list[dict[str, str]]:
    """What to mind, each with what to do."""
    manifest, warnings = result.manifest, []

    def warn(kind: str, text: str, action: str) -> None:
        warnings.append({"kind": kind, "text": text, "action": action})

    if manifest.rounds < LEAST_RUNS:
        warn(
            "rounds",
            f"Fewer than {LEAST_RUNS} rounds give no intervals.",
            f"Nothing is surely better or worse: --repeat {LEAST_RUNS}.",
        )
    coarse = [key for key, factor in manifest.sizes.items() if factor > IN_PROPORTION * manifest.scale]
    if coarse:
        warn(
            "proportion",
            f"{', '.join(coarse)} could not be made as small as the data, which are {manifest.scale:g} of the source's.",
            "They hold a larger share of the data than there; a larger --scale brings them together.",
        )
    all_of = [one for measured in result.measurements.values() for one in measured]
    failed = [one for one in all_of if one.outcome == "failed"]
    if failed:
        warn(
            "failed", f"{len(failed)} measurements failed; the first ({failed[0].cell}): {failed[0].reason}", "They are left out."
        )
    bound = [step["client_bound"] for one in all_of for step in one.steps if step["client_bound"]]
    if bound:
        warn(
            "client-bound",
            f"In {len(bound)} steps the client was the limit; in the first, {bound[0]}.",
            "Their figures are lower bounds: use lower rates (--rate).",
        )
    late = [step for one in all_of for step in one.steps if step["unstarted"]]
    if late:
        warn(
            "overload",
            f"In {len(late)} steps some operations could not start before their step ended.",
            "The servers were beyond what they take: use lower rates (--rate).",
        )
    if all_of and not any(step.get("disk_read_per_s") for one in all_of for step in one.steps):
        warn(
            "memory",
            "The servers read nothing from the disk: all data lay in this machine's memory.",
            "What caches save of disk reads does not show; use data larger than memory (--scale).",
        )
    return warnings
