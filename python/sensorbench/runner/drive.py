"""One run of the engine beside studies: a plan at a target, reported while it is running, stored as any other run."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Literal

import pyarrow as pa

from sensorbench._engine import Target
from sensorbench.errors import DiskFullError, EngineError, LostGeneratorError
from sensorbench.results import RunManifest, RunResult, RunWriter, read_run
from sensorbench.results.engine_plan import EnginePlan, KeptPlan
from sensorbench.results.engine_report import EngineRun
from sensorbench.runner.generators.shared_run import shared_run
from sensorbench.runner.generators.sharing import ALONE, LoadGenerators
from sensorbench.runner.plan import as_json
from sensorbench.runner.run import BY_USER, Observer, run_and_write, run_manifest
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
    generators: LoadGenerators = ALONE,
    temperature: Literal["warm", "hot"] = "warm",
    created: datetime | None = None,
    described: KeptPlan | None = None,
    at_end: Callable[[EngineRun, bool], None] = _nothing_more,
    on_full_disk: Callable[[], None] = _nothing_more,
) -> RunResult:
    """Carries out a plan and writes the run into `folder`. `on_snapshot` is called some times a second with the run and its snapshot; `at_end`
    when all is recorded, with whether the run is complete; `on_full_disk` makes room for how the run ended. The load `generators` share it; with none
    but this process, it runs here. All else is for the manifest.

    Raises what ended it early, after what was done until then is on disk.
    """
    whole: EnginePlan = {"spin": False, "log_every": None, "answers_every": None, **plan}
    if generators.share_runs:
        described = {**(described or {}), "generators": generators.count}
    if generators.hosts is not None:
        described = {**(described or {}), "hosts": generators.host_names}
    manifest = run_manifest(
        target, variant, whole, repetition=number, temperature=temperature, created=created, described=described
    )
    with ExitStack() as processes:

        def start() -> EngineRun:
            if generators.share_runs:
                return processes.enter_context(shared_run(target, whole, tables, generators.count, generators.on))
            return target.run(as_json(whole), [table.to_reader() for table in tables])

        return write_started(target, start, manifest, folder, started, on_snapshot, at_end=at_end, on_full_disk=on_full_disk)


def write_started(
    target: Target,
    start: Callable[[], EngineRun],
    manifest: RunManifest,
    folder: Path,
    started: Servers,
    on_snapshot: Observer,
    *,
    at_end: Callable[[EngineRun, bool], None] = _nothing_more,
    on_full_disk: Callable[[], None] = _nothing_more,
) -> RunResult:
    """The same for whatever run `start` begins, with its manifest."""
    writer = RunWriter(folder, manifest)
    try:
        insight = started.insight if started.clusters else None
        run_and_write(target, start, writer, started.processes(), on_snapshot, at_end, insight)
    except DiskFullError as error:
        on_full_disk()
        writer.finish("out of space", None, str(error))
        raise
    except (LostGeneratorError, KeyboardInterrupt) as error:
        # Before the run began, nothing of it is known.
        if writer.manifest.status == "running":
            writer.finish("interrupted", None, str(error) or BY_USER)
        raise
    except EngineError as error:
        writer.finish("failed", None, str(error))
        raise
    return read_run(folder)
