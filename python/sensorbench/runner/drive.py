"""One run of the engine beside studies: a plan at a target, told while it goes on, written down as any other run."""

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

import pyarrow as pa

from sensorbench._engine import Run, Target
from sensorbench.errors import DiskFullError, EngineError, InterruptedRunError
from sensorbench.progress import Task
from sensorbench.results import RunResult, RunWriter, read_run
from sensorbench.results.engine_plan import EnginePlan, KeptPlan
from sensorbench.results.engine_report import Snapshot
from sensorbench.runner.run import Observer, run_and_write, run_manifest
from sensorbench.runner.servers import Servers
from sensorbench.runner.variants import Variant


def _nothing_more(*_: object) -> None:
    """Nothing is to be done at the end of the run."""


def run_plan(
    target: Target,
    variant: Variant,
    plan: EnginePlan,
    tables: Sequence[pa.Table],
    folder: Path,
    started: Servers,
    on_snapshot: Observer,
    *,
    number: int = 1,
    id_: str | None = None,
    temperature: Literal["warm", "hot"] = "warm",
    created: datetime | None = None,
    described: KeptPlan | None = None,
    at_end: Callable[[Run, bool], None] = _nothing_more,
    on_full_disk: Callable[[], None] = _nothing_more,
) -> RunResult:
    """Carries out a plan and writes the run into `folder`. `on_snapshot` is called some times a second with the run and its snapshot; `at_end`
    when all is recorded, with whether the run is complete; `on_full_disk` makes room for how the run ended. All else is for the manifest.

    Raises what ended it early, after what was done until then is on disk.
    """
    whole: EnginePlan = {"spin": False, "log_every": None, "answers_every": None, **plan}
    manifest = run_manifest(
        target, variant, whole, repeat=number, id_=id_, temperature=temperature, created=created, described=described
    )
    writer = RunWriter(folder, manifest)
    try:
        readers = [table.to_reader() for table in tables]
        run_and_write(target, whole, readers, writer, started.processes(), on_snapshot, at_end)
    except DiskFullError as error:
        on_full_disk()
        writer.finish("out of space", None, str(error))
        raise
    except EngineError as error:
        writer.finish("failed", None, str(error))
        raise
    return read_run(folder)


def drive_one_phase(
    target: Target,
    variant: Variant,
    plan: EnginePlan,
    tables: Sequence[pa.Table],
    folder: Path,
    started: Servers,
    observers: Sequence[Observer],
    task: Task,
    id_: str,
) -> RunResult:
    """Carries out a plan of one phase and tells how far it is. Raises InterruptedRunError after what was done until then is on disk."""

    def on_snapshot(run: Run, snapshot: Snapshot) -> None:
        task.advance_to(*_progress(snapshot, plan))
        for observer in observers:
            observer(run, snapshot)

    try:
        result = run_plan(target, variant, plan, tables, folder, started, on_snapshot, id_=id_)
    except KeyboardInterrupt:
        raise InterruptedRunError(f"interrupted; what was measured until then is in {folder}") from None
    ended = [operation for phase in result.manifest.phase_figures for operation in phase.operations.values()]
    task.end(f"{sum(operation['counts']['ok'] for operation in ended):,} operations")
    return result


def _progress(snapshot: Snapshot, plan: EnginePlan) -> tuple[float, str]:
    """Of a run of one phase, the share of its operations that were started, where their number is known, and how many they are."""
    started, operations = snapshot["phases"][0]["started"], plan["phases"][0].get("operations")
    return (min(1.0, started / operations) if operations else 0.0), f"{started:,} operations"
