"""The order of events of a comparison: block by block, variants are loaded, checked, measured and read back."""

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial

from sensorbench.benchmarks.comparison.block_log import BlockLog, LogOfBlocks
from sensorbench.benchmarks.comparison.blocks import PlannedBlock, in_turn, plan_blocks
from sensorbench.benchmarks.comparison.checking import contents_of, write_reference
from sensorbench.benchmarks.comparison.measure import load_one, run_one, writes_anything
from sensorbench.benchmarks.comparison.stages import Stage, Stages
from sensorbench.benchmarks.comparison.stall import measure_stall
from sensorbench.errors import CancelledError, EngineError, FailedError, message_of
from sensorbench.progress import ProgressReporter
from sensorbench.results import ComparisonWriter
from sensorbench.results.ownership import Intent
from sensorbench.results.summary.comparison import Failure
from sensorbench.runner import ConnectedComparison, PreparedTable, Variant, Workload, server_ceiling, why_server_ended
from sensorbench.verification import applicable_known_answers, check_dataset, check_target

# Looks at what was measured until a repetition, and says whether the others need not be made.
EnoughRepetitions = Callable[[int], bool]


def ceiling_concurrency(workload: Workload) -> int:
    """How many operations are in flight where it is measured what a driver reaches."""
    return 1 if workload.schedule.is_open_loop else workload.schedule.max_concurrency


def one_a_database(variants: Iterable[Variant]) -> list[Variant]:
    """Of variants of one database the last one."""
    return list({variant.target.database.name: variant for variant in variants}.values())


class EventOrder:
    """Carries out a comparison. `tables` has what is loaded of each variant that has something left to be done."""

    def __init__(
        self,
        stages: Stages,
        tables: dict[str, list[PreparedTable]],
        writer: ComparisonWriter,
        reporter: ProgressReporter,
        *,
        intent: Intent,
        is_enough: EnoughRepetitions | None = None,
    ) -> None:
        self._stages = stages
        self._is_enough = is_enough
        self._base: ConnectedComparison = stages.connected
        self._comparison = comparison = stages.connected.comparison
        self._tables = tables
        self._writer = writer
        self._reporter = reporter
        self._intent = intent
        self._writes = writes_anything(comparison, self._base.names)
        self._known = applicable_known_answers(comparison.dataset, comparison.operations_name, comparison.operations)
        self._unfinished = [variant.id for variant in comparison.variants if variant.id in tables]
        # Those of them that have not failed.
        self._standing = list(self._unfinished)
        self._blocks = plan_blocks(comparison.variants, comparison.workload.repetitions, comparison.blocks)
        self._log = (
            LogOfBlocks(comparison, comparison.blocks, self._blocks, tables, writer, reporter)
            if comparison.blocks
            else BlockLog(writer)
        )

    def run(self) -> None:
        """Does all of it. Raises FailedError if every variant failed, or one without which it does not continue."""
        check_dataset(self._base.workbench, self._comparison.operations, self._known)
        for block in self._blocks:
            self._run_block(block)
        if self._unfinished and not self._standing and not self._comparison.expects_failures:
            raise FailedError("every variant failed; the causes are above, and in each variant's failure.json")
        if not self._writes and self._comparison.workload.answers == "all":
            write_reference(self._base, self._writer, self._reporter)
        self._show_stall()

    def _run_block(self, block: PlannedBlock) -> None:
        """Measures what of a block is left, with its servers up."""
        left = [variant for variant in block.variants if variant.id in self._standing and self._log.begin(block, variant)]
        with ExitStack() as stack:
            stage = self._started(block, left[0], stack) if left else None
            if stage is None:
                return
            wanted = {variant.id for variant in left}
            variants = [variant for variant in stage.connected.comparison.variants if variant.id in wanted]
            self._load_all(block, stage.connected, variants)
            left_behind = self._log.take_left_behind()
            for other in (variant for variant in self._comparison.variants if variant.id in left_behind):
                self._drop(other, self._base)
            self._log.saw(self._stages.processes())
            start_s = time.monotonic()
            self._repeat(block, stage.connected, variants)
            measured_s = time.monotonic() - start_s
            self._log.saw(self._stages.processes())
            standing = self._of_standing(variants)
            if self._writes and standing:
                self._read_back(block, stage.connected, standing)
            for variant in standing:
                self._log.end(variant, measured_s)
                if self._log.drops_data(variant):
                    self._drop(variant, stage.connected)

    def _started(self, block: PlannedBlock, variant: Variant, stack: ExitStack) -> Stage | None:
        """The servers of a block, up until the stack ends; None if that of its variant does not start, or the variant does not fit."""
        stages: list[Stage] = []

        def start(variant: Variant) -> None:
            self._log.check_room(variant)
            stages.append(stack.enter_context(self._stages.up(block)))

        if not self._succeeds(variant, "starting", start):
            return None
        server = stages[0].server
        if server is not None:
            self._log.started(server)
            environment = self._writer.manifest.environment
            described = {**environment.get("servers", {}), **server.servers.described()}
            self._writer.update(environment={**environment, "servers": described})
        return stages[0]

    def _of_standing(self, variants: Iterable[Variant]) -> list[Variant]:
        return [variant for variant in variants if variant.id in self._standing]

    def _load_all(self, block: PlannedBlock, connected: ConnectedComparison, variants: list[Variant]) -> None:
        """Loads variants, and measures what the drivers of their databases reach, now that there is something at servers to connect to."""
        for variant in variants:
            self._succeeds(variant, "loading", partial(self._load, connected, block))
        known = self._writer.manifest.environment.get("driver_ceilings_per_s", {})
        ceilings = {
            variant.target.database.name: server_ceiling(variant, concurrency=ceiling_concurrency(self._comparison.workload))
            for variant in one_a_database(self._of_standing(variants))
            if not variant.target.database.embedded and variant.target.database.name not in known
        }
        if ceilings:
            environment = {**self._writer.manifest.environment, "driver_ceilings_per_s": {**known, **ceilings}}
            self._writer.update(environment=environment)

    def _load(self, connected: ConnectedComparison, block: PlannedBlock, variant: Variant) -> None:
        load = load_one(
            connected,
            variant,
            self._tables[variant.id],
            self._writer,
            self._reporter,
            intent=self._intent,
            repeats=block.repeats,
            was_interrupted=self._writes and self._log.was_interrupted(block, variant),
        )
        self._log.loaded(block, variant, load)
        queried = [name for name in connected.names if variant.answers(name)]
        checks = check_target(
            connected.targets[variant.id], connected.comparison.operations, variant.schema, self._known, queried
        )
        self._writer.write_checks(variant.id, checks)

    def _repeat(self, block: PlannedBlock, connected: ConnectedComparison, variants: list[Variant]) -> None:
        """Measures the repetitions of a block, with its variants interleaved."""
        queried = [variant for variant in variants if not variant.only_loads]
        for repeat in block.repeats:
            # A B B A: what changes with time hits all variants alike.
            of_repeat = in_turn(self._of_standing(queried), repeat)
            self._log.repeat(of_repeat)
            for variant in of_repeat:
                measure = partial(run_one, connected, repeat=repeat, writer=self._writer, reporter=self._reporter)
                self._succeeds(variant, "running", measure)
            if self._is_enough is not None and repeat < block.repeats[-1] and self._is_enough(repeat):
                self._writer.update_plan(stopped_after=repeat)
                return

    def _read_back(self, block: PlannedBlock, connected: ConnectedComparison, variants: list[Variant]) -> None:
        """Reads again what runs that wrote left behind, while it is there."""
        last = self._writer.manifest.plan.stopped_after or self._comparison.workload.repetitions
        repeats = {
            variant.id: [repeat for repeat in self._log.runs_on_data(block, variant) if repeat <= last] for variant in variants
        }
        found = contents_of(connected, repeats, self._writer, self._reporter)
        for variant in variants:
            self._log.read_back(variant, found[variant.id])

    def _succeeds(self, variant: Variant, step: str, what: Callable[[Variant], None]) -> bool:
        """Does a step of a variant. Where the run continues without those that fail, says of one why it failed."""
        try:
            what(variant)
        except (EngineError, FailedError) as error:
            if isinstance(error, CancelledError) or not self._comparison.continue_on_error:
                raise
            cause = "; ".join(filter(None, [message_of(error), why_server_ended(variant)]))
            self._reporter.warn(f"{variant.id} failed at {step} and is left out: {cause}")
            self._writer.write_failure(variant.id, Failure(step=step, cause=cause))
            self._standing.remove(variant.id)
            self._clear(variant)
            return False
        self._writer.forget_failure(variant.id)
        return True

    def _clear(self, variant: Variant) -> None:
        """Removes what a failed variant has loaded, because the others need the room."""
        if variant.target.is_url or self._stages.discard(variant) or variant.id not in self._base.targets:
            return
        try:
            self._base.targets[variant.id].remove(owner=self._writer.owner.to_json())
        except EngineError as error:
            self._reporter.warn(f"{variant.id}: what was loaded cannot be removed: {error}")

    def _drop(self, variant: Variant, connected: ConnectedComparison) -> None:
        """Removes the data of a variant that are ours to remove: with its server, or below the results by the target that has them open."""
        if not variant.target.is_url and not self._stages.discard(variant):
            connected.targets[variant.id].remove(owner=self._writer.owner.to_json())

    def _show_stall(self) -> None:
        """Shows coordinated omission besides, where that is wanted."""
        stall = self._comparison.stall
        if stall is None or stall.variant not in self._standing:
            return
        try:
            measure_stall(self._base, stall, self._writer, self._reporter)
        except FailedError as error:
            # It shows how to measure, and is not part of the comparison, which is complete.
            self._reporter.warn(f"coordinated omission could not be shown: {error}")
