"""What the executions say: times against workers, speed-up, share of set-up, splits and bytes, and whether all results were equal."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from sensorbench.analysis.intervals import mean_over_runs
from sensorbench.results.mapreduce import MapReduceResult

# The first execution of each cell finds nothing warm: neither the driver's classes nor the database's caches.
FIRST = 1


def summarise_mapreduce(result: MapReduceResult) -> dict[str, Any]:
    """The summary of a study. Times in s. Means leave out the first execution of each cell where there are others; all are in `executions`."""
    manifest = result.manifest
    done = [one for one in result.executions if not one["failed"]]
    cells = [_cell(result, *place) for place in _places(done)]
    return {
        "kind": manifest.kind,
        "name": manifest.name,
        "title": manifest.title,
        "state": result.state,
        "reason": manifest.reason,
        "created": manifest.created.isoformat(),
        "version": manifest.version,
        "command": manifest.command,
        "dataset": manifest.dataset,
        "systems": manifest.systems,
        "words": manifest.words,
        "workers": manifest.workers,
        "wanted_executions": manifest.executions,
        "workload": manifest.workload,
        "environment": manifest.environment,
        "loads": result.loads,
        "cells": cells,
        "speed_ups": _speed_ups(cells),
        "gaps": _gaps(result),
        "answers_equal": all(word["equal"] for one in done for word in one["words"]) if done else None,
        "executions": result.executions,
    }


def _places(executions: Sequence[dict[str, Any]]) -> list[tuple[str, str, int | None]]:
    """Each system, its means and its workers, in the order in which they came."""
    return list(dict.fromkeys((one["system"], one["means"], one["workers"]) for one in executions))


def counted(executions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that are no warm-up: all but the first, unless there is no other."""
    return [one for one in executions if one["execution"] != FIRST] or list(executions)


def _cell(result: MapReduceResult, system: str, means: str, workers: int | None) -> dict[str, Any]:
    """The figures of a cell; of its first word T, of the others the time of their jobs alone."""
    place = (system, means, workers)
    of_cell = [one for one in result.executions if not one["failed"] and (one["system"], one["means"], one["workers"]) == place]
    those = counted(of_cell)
    total = mean_over_runs(np.array([one["total_s"] for one in those]))
    setup_s = [one["setup_s"] for one in those]
    return {
        "system": system,
        "means": means,
        "workers": workers,
        "total": asdict(total),
        "all_total_s": [
            {"execution": one["execution"], "total_s": one["total_s"], "first": one["execution"] == FIRST} for one in of_cell
        ],
        "setup_s": float(np.mean(setup_s)) if workers is not None else None,
        "setup_share": float(np.mean(setup_s)) / total.value if workers is not None else None,
        "setup_parts": _setup_parts(those) if workers is not None else None,
        "words": [word for number in range(len(result.manifest.words)) if (word := _word(those, number)) is not None],
        "equal": all(word["equal"] for one in of_cell for word in one["words"]),
    }


def _setup_parts(executions: Sequence[dict[str, Any]]) -> dict[str, float]:
    """What the set-up consists of (s): the context, executors, the first task at each of them, and of the jobs what no stage was executed in."""
    known = {part: float(np.mean([one[part] for one in executions])) for part in ("context_s", "executors_s", "launch_s")}
    return {**known, "jobs_s": float(np.mean([one["setup_s"] for one in executions])) - sum(known.values())}


def _word(executions: Sequence[dict[str, Any]], number: int) -> dict[str, Any] | None:
    """The figures of a word; None where no execution has come to it, as all but the first are looked for in the last one alone."""
    of_word = [one["words"][number] for one in executions if len(one["words"]) > number]
    if not of_word:
        return None
    last = of_word[-1]
    return {
        "word": last["word"],
        "executions": len(of_word),
        "jobs_s": float(np.mean([sum(job["duration_s"] for job in one["jobs"]) for one in of_word])),
        "jobs": [
            {**job, "duration_s": float(np.mean([one["jobs"][place]["duration_s"] for one in of_word]))}
            for place, job in enumerate(last["jobs"])
        ],
        "pairs": last["pairs"],
        "occurrences": last["occurrences"],
        "list_length": last.get("list_length"),
        "equal": all(one["equal"] for one in of_word),
    }


def _speed_ups(cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """T with the fewest workers over T with more, beside what is linear; of what no stage was executed in taken off, too."""
    found = []
    on_spark = [cell for cell in cells if cell["workers"] is not None]
    for system in dict.fromkeys(cell["system"] for cell in on_spark):
        of_system = sorted((cell for cell in on_spark if cell["system"] == system), key=lambda cell: cell["workers"])
        least = of_system[0]
        for cell in of_system[1:]:
            found.append(
                {
                    "system": system,
                    "from_workers": least["workers"],
                    "workers": cell["workers"],
                    "speed_up": least["total"]["value"] / cell["total"]["value"],
                    "speed_up_without_setup": _work_s(least) / _work_s(cell) if _work_s(cell) > 0.0 else None,
                    "linear": cell["workers"] / least["workers"],
                }
            )
    return found


def _work_s(cell: dict[str, Any]) -> float:
    return float(cell["total"]["value"] - cell["setup_s"])


def _gaps(result: MapReduceResult) -> list[dict[str, Any]]:
    """What could not be had: what failed, by its own words, and databases without means of their own."""
    failed = {(one["system"], one["means"], one["workers"]): one["failed"] for one in result.executions if one["failed"]}
    gaps = [
        {"system": system, "what": means if workers is None else f"{means}, {workers} workers", "why": why}
        for (system, means, workers), why in failed.items()
    ]
    without = [name for name, system in result.manifest.systems.items() if system["own_means"] is None]
    return [*gaps, *({"system": name, "what": "own means", "why": "it has none that could do the job"} for name in without)]
