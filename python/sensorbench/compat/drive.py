"""One run of the engine for another tool's workload: a plan of one phase at a target, described while it is running."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from sensorbench._engine import Target
from sensorbench.lifecycle import RunContext
from sensorbench.results import RunResult
from sensorbench.results.engine_plan import EnginePlan
from sensorbench.results.engine_report import EngineRun, Snapshot
from sensorbench.results.tools import RUN_FOLDER
from sensorbench.runner import ALONE, LoadGenerators, Observer, Variant, run_plan


def drive(
    context: RunContext[Any],
    target: Target,
    variant: Variant,
    plan: EnginePlan,
    tables: Sequence[pa.Table],
    observers: Sequence[Observer],
    what: str,
    *,
    folder: Path | None = None,
    generators: LoadGenerators = ALONE,
) -> RunResult:
    """Carries out a plan of one phase and describes how far it is. Raises what ended it early.

    Args:
        context: of the benchmark.
        target: where it runs.
        variant: the same, with its schema.
        plan: of one phase.
        tables: what its parameter sources choose from.
        observers: called some times per second with the run and its snapshot.
        what: what is done, in words.
        folder: of the run; that of a benchmark's only run if None.
        generators: the load generators that share it.

    Returns:
        The run, as it is on disk.

    """
    into = folder or context.folder / RUN_FOLDER
    with context.progress.task(f"{what} at {variant.target.text}", total=1.0) as task:

        def on_snapshot(run: EngineRun, snapshot: Snapshot) -> None:
            task.advance_to(*_progress(snapshot, plan))
            for observer in observers:
                observer(run, snapshot)

        result = run_plan(target, variant, plan, tables, into, context.servers, on_snapshot, generators=generators)
        totals = result.manifest.totals
        ended = totals.phases[0].operations.values() if totals else []
        task.end(f"{sum(entry['counts']['ok'] for entry in ended):,} operations")
        return result


def _progress(snapshot: Snapshot, plan: EnginePlan) -> tuple[float, str]:
    """The share of its operations that were started, where their number is known, and how many they are."""
    started, operations = snapshot["phases"][0]["started"], plan["phases"][0].get("operations")
    return (min(1.0, started / operations) if operations else 0.0), f"{started:,} operations"
