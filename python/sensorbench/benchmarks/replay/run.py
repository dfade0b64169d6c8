"""The benchmark that a replay is."""

import json
from contextlib import AbstractContextManager
from pathlib import Path

from sensorbench._engine import Run, Target
from sensorbench.benchmarks.replay.compared import compare, compare_answers
from sensorbench.benchmarks.replay.planning import ReplayWork, check_target
from sensorbench.benchmarks.replay.recorded import open_reader
from sensorbench.lifecycle import Benchmark, Description, RunContext
from sensorbench.progress import ProgressReporter
from sensorbench.results import RunManifest, RunResult
from sensorbench.results.engine_plan import EnginePlan
from sensorbench.results.engine_report import EngineRun, Snapshot
from sensorbench.results.ownership import Owner
from sensorbench.results.replay import OTHER_RUN_FOLDER, RUN_FOLDER, PlannedReplay, ReplayManifest, write_comparison
from sensorbench.results.writer import ManifestWriter
from sensorbench.runner import Servers, Variant, run_manifest, running_servers, write_started


class ReplayBenchmark(Benchmark[ReplayWork, ReplayManifest, ManifestWriter[ReplayManifest]]):
    """Sends the statements of a trace to a target when they came in the trace."""

    manifest = ReplayManifest
    writer = ManifestWriter

    def servers(self, plan: ReplayWork, progress: ProgressReporter) -> AbstractContextManager[Servers]:
        """The servers of the targets."""
        return running_servers(plan.variants, progress, pin=False)

    def check(self, plan: ReplayWork, servers: Servers, owner: Owner) -> None:
        """Raises UsageError if statements would write outside of a namespace of ours, or a target cannot be replayed at."""
        del owner
        for variant in servers.at_their_urls(plan.variants):
            check_target(plan, variant.engine_target())

    def describe(self, plan: ReplayWork, servers: Servers) -> Description[PlannedReplay]:
        """The trace, and how it is replayed."""
        sessions = plan.sessions
        return Description(
            title=f"Replay of {plan.folder.name} at {plan.variant.target.label}",
            plan=PlannedReplay(
                trace=str(plan.folder),
                trace_database=plan.trace.database,
                rows=sessions.rows,
                statements=plan.expected_statements,
                sessions=len(sessions.numbers),
                recorded_s=sessions.length_s,
                templates=plan.planned,
                speed=plan.options.speed,
                scale_rate=plan.options.scale_rate,
                connections=plan.connections,
                timeout_s=plan.options.timeout,
                writes=plan.writes,
            ),
            variants=[variant.manifest({}) for variant in plan.variants],
            environment={"driver_ceiling_per_s": None, "servers": servers.described()},
        )

    def execute(self, plan: ReplayWork, context: RunContext[ManifestWriter[ReplayManifest]]) -> None:
        """Replays the trace at each target, then compares what came out with what was recorded, and the answers of two targets."""
        variants = context.servers.at_their_urls(plan.variants)
        runs = [
            _replay(plan, variant, context, context.folder / folder)
            for variant, folder in zip(variants, (RUN_FOLDER, OTHER_RUN_FOLDER), strict=False)
        ]
        with context.progress.task("comparing with what was recorded"):
            compared = compare(plan.statements, plan.sessions.rows, plan.writing, runs[0])
            if len(runs) > 1:
                compared = compared.model_copy(update={"answers": compare_answers(*runs)})
            write_comparison(context.folder, compared)


def _replay(plan: ReplayWork, variant: Variant, context: RunContext[ManifestWriter[ReplayManifest]], folder: Path) -> RunResult:
    target = variant.engine_target()
    with context.progress.task(f"replaying {plan.folder.name} at {variant.target.text}", total=1.0) as task:

        def on_snapshot(run: EngineRun, snapshot: Snapshot) -> None:
            started = snapshot["phases"][0]["started"]
            task.advance_to(min(1.0, started / max(1, plan.expected_statements)), f"{started:,} statements")
            for observer in plan.observers:
                observer(run, snapshot)

        manifest = _run_manifest(plan, variant, target)
        result = write_started(target, lambda: _start(plan, target), manifest, folder, context.servers, on_snapshot)
        task.end(f"{sum(phase.started for phase in result.manifest.phase_figures):,} statements")
        return result


def _start(plan: ReplayWork, target: Target) -> Run:
    readers = [open_reader(plan.folder) for _ in plan.copies]
    lengths = [plan.sessions.lengths(copy.share) for copy in plan.copies]
    return target.replay(json.dumps(plan.engine_plan()), lengths, readers)


def _run_manifest(plan: ReplayWork, variant: Variant, target: Target) -> RunManifest:
    """The manifest of the run, in the words of all runs of the engine: an operation is a template, and every statement is logged."""
    requested = plan.engine_plan()
    as_run: EnginePlan = {
        "seed": 0,
        "operations": [{"weight": 1.0, "operation": {"name": template["name"]}} for template in requested["templates"]],
        "phases": [{"name": requested["phase"], "operations": plan.expected_statements}],
        "concurrency": plan.connections,
        "threads": 1,
        "timeout_s": requested["timeout_s"],
        "spin": False,
        "log_every": 1,
        "answers_every": 1 if requested["keeps_answers"] else None,
    }
    return run_manifest(target, variant, as_run, repetition=1)
