"""What is known of blocks: which are over, what lies at targets between them, how long they take. With all servers up there is one, and little to know."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from sensorbench.benchmarks.comparison.blocks import (
    PlannedBlock,
    data_between_blocks,
    decided_by_loads,
    described_data,
    lies_here,
    order_of,
    why_too_large,
)
from sensorbench.benchmarks.comparison.checking import joined_contents
from sensorbench.benchmarks.comparison.measure import is_complete
from sensorbench.errors import FailedError
from sensorbench.paths import remove_results
from sensorbench.progress import ProgressReporter
from sensorbench.results import ComparisonWriter, PlannedBlocks
from sensorbench.results.described import LoadReport
from sensorbench.results.manifest import now
from sensorbench.results.reader import read_blocks
from sensorbench.results.summary.comparison import AnswerChecks, Block
from sensorbench.results.writer import run_folder
from sensorbench.runner import Comparison, PreparedTable, RunningServer, Variant, free_room


class BlockLog:
    """The one block in which all servers are up."""

    def __init__(self, writer: ComparisonWriter) -> None:
        self.writer = writer
        self._order: list[list[str]] = []

    def begin(self, block: PlannedBlock, variant: Variant) -> bool:
        """Whether a block of a variant is to be done."""
        del block, variant
        return True

    def check_room(self, variant: Variant) -> None:
        """Raises FailedError if a variant alone is known not to fit."""

    def was_interrupted(self, block: PlannedBlock, variant: Variant) -> bool:
        """Whether a run of a variant was cut short, so that what it has written is not known."""
        runs = [self.writer.run_folder(variant.id, repeat) for repeat in block.repeats]
        return any(run.exists() and not is_complete(run) for run in runs)

    def loaded(self, block: PlannedBlock, variant: Variant, load: LoadReport | None) -> None:
        """Notes how a variant was loaded, None if its data lay there."""

    def saw(self, processes: Mapping[str, list[int]]) -> None:
        """Notes which servers were in the process table."""

    def started(self, server: RunningServer) -> None:
        """Notes the server of a block that one variant has alone, which is up."""

    def repeat(self, variants: Sequence[Variant]) -> None:
        """Notes the order of a repetition."""
        self._order.append([variant.id for variant in variants])
        self.writer.update_plan(order=self._order)

    def runs_on_data(self, block: PlannedBlock, variant: Variant) -> list[int]:
        """The runs on the data that lie at the target when a block is over."""
        del variant
        return list(block.repeats)

    def read_back(self, variant: Variant, contents: AnswerChecks) -> None:
        """Notes what was read back at the end of a block."""
        self.writer.write_contents(variant.id, contents)

    def end(self, variant: Variant, measured_s: float) -> None:
        """Writes that a block is over."""

    def drops_data(self, variant: Variant) -> bool:
        """Whether the data of a variant are removed when a block is over."""
        del variant
        return False

    def take_left_behind(self) -> set[str]:
        """The variants whose data are to be removed now, though an earlier block left them on disk."""
        return set()


def finished_blocks(folder: Path, variant: str) -> list[Block]:
    """The blocks of a variant that are over, with all of their runs."""
    return [
        block
        for block in read_blocks(folder, variant)
        if all(is_complete(run_folder(folder, variant, repeat)) for repeat in block.repeats)
    ]


@dataclass
class _Current:
    """What is noted of a block until it is over; it began at `start_s` of this process's clock."""

    planned: PlannedBlock
    variant: str
    began: datetime
    start_s: float = field(default_factory=time.monotonic)
    server: RunningServer | None = None
    load: LoadReport | None = None
    processes: dict[str, list[int]] = field(default_factory=dict)
    contents: AnswerChecks | None = None


class LogOfBlocks(BlockLog):
    """Blocks of which each is one variant's. Those that are over stay so when results are resumed."""

    def __init__(
        self,
        comparison: Comparison,
        planned: PlannedBlocks,
        blocks: Sequence[PlannedBlock],
        tables: Mapping[str, Sequence[PreparedTable]],
        writer: ComparisonWriter,
        reporter: ProgressReporter,
    ) -> None:
        super().__init__(writer)
        self._planned = planned
        self._estimate = comparison.estimate
        self._reporter = reporter
        self._left = list(blocks)
        self._count = len(blocks)
        self._over = {variant.id: finished_blocks(writer.folder, variant.id) for variant in comparison.variants}
        self._took_s: dict[str, list[float]] = {}
        self._loaded_bytes: dict[str, int] = {}
        self._left_behind: set[str] = set()
        unfinished = [variant for variant in comparison.variants if variant.id in tables]
        self._prepared_bytes = {
            variant.id: sum(table.bytes for table in tables[variant.id]) for variant in unfinished if lies_here(variant)
        }
        # Resumed results have the same conditions in all of their blocks.
        self._data = writer.manifest.plan.data_between_blocks or data_between_blocks(
            unfinished, tables, comparison.estimate, planned, free_room(writer.folder)[0]
        )
        writer.update_plan(data_between_blocks=self._data, order=order_of(blocks))
        reporter.say(f"one at a time, {self._count} blocks; {described_data(self._data)}")

    def begin(self, block: PlannedBlock, variant: Variant) -> bool:
        """Says which block is next. Returns whether it is to be done: not one that was over before."""
        self._left = [other for other in self._left if other.number > block.number]
        is_over = any(over.round == block.round for over in self._over[variant.id])
        what = ": measured before, not repeated" if is_over else self._time_left(block)
        self._reporter.say(f"block {block.number} of {self._count}: {variant.id}{what}")
        self._current = _Current(block, variant.id, now())
        return not is_over

    def check_room(self, variant: Variant) -> None:
        """By what a pilot found; without one it is known alone whether anything may be stored."""
        if self.runs_since_load(variant):
            return
        known = {known.variant: known for known in self._estimate.variants} if self._estimate else {}
        found = known.get(variant.id)
        rows, disk, memory = (
            (found.rows, found.disk_bytes, found.memory_bytes) if found else (None, int(lies_here(variant)), None)
        )
        disk_free, memory_free = free_room(self.writer.folder)
        if why := why_too_large(rows, disk, memory, disk_free - self._planned.disk_reserve_bytes, memory_free):
            raise FailedError(f"{why}; use a smaller --scale, a smaller --disk-reserve, or a machine with more of it")

    def was_interrupted(self, block: PlannedBlock, variant: Variant) -> bool:
        """A block that has begun and is not over was cut short, whatever is complete of it."""
        return any(self.writer.run_folder(variant.id, repeat).exists() for repeat in block.repeats)

    def loaded(self, block: PlannedBlock, variant: Variant, load: LoadReport | None) -> None:
        """All runs of a block that was cut short are done again."""
        self._current.load = load
        for repeat in block.repeats:
            remove_results(self.writer.run_folder(variant.id, repeat))
        size = load["size"]["total_bytes"] if load else None
        if size is not None and variant.id in self._prepared_bytes:
            self._loaded_bytes[variant.id] = size
            self._decide_again()

    def _decide_again(self) -> None:
        """What was prepared for loading says little of what a database makes of it: a load says more."""
        data = decided_by_loads(self._data, self._loaded_bytes, self._prepared_bytes, self._planned)
        if data.choice != self._data.choice:
            self._reporter.say(f"  {described_data(data)}")
        self._data = data
        self.writer.update_plan(data_between_blocks=data)

    def started(self, server: RunningServer) -> None:
        """Notes the server of the block, which is up."""
        self._current.server = server

    def repeat(self, variants: Sequence[Variant]) -> None:
        """The order is that of blocks, and known before."""

    def saw(self, processes: Mapping[str, list[int]]) -> None:
        """Joins what was seen at several moments of the block."""
        seen = self._current.processes
        for name, pids in processes.items():
            seen[name] = sorted({*seen.get(name, []), *pids})

    def runs_since_load(self, variant: Variant) -> list[int]:
        """The runs of blocks that are over on the data of the last load."""
        repeats: list[int] = []
        for block in self._over[variant.id]:
            repeats = [*([] if block.loaded else repeats), *block.repeats]
        return repeats

    def runs_on_data(self, block: PlannedBlock, variant: Variant) -> list[int]:
        """Those of blocks before, too, where this one continued with their data."""
        before = [] if self._current.load else self.runs_since_load(variant)
        return [*before, *block.repeats]

    def read_back(self, variant: Variant, contents: AnswerChecks) -> None:
        """It is written when the block is over, together with what other loads had."""
        del variant
        self._current.contents = contents

    def end(self, variant: Variant, measured_s: float) -> None:
        """Writes how it went, and what was read back of all data that were loaded until now."""
        record = self._record(variant, measured_s)
        over = [*self._over[variant.id], record]
        self._over[variant.id] = over
        if not self.drops_data(variant):
            self._left_behind.add(variant.id)
        self._took_s.setdefault(variant.id, []).append(time.monotonic() - self._current.start_s)
        # Of blocks that continued with the same data, the last one read all of them back.
        last_of_loads = [*(block for block, after in pairwise(over) if after.loaded), record]
        if contents := [block.contents for block in last_of_loads if block.contents is not None]:
            self.writer.write_contents(variant.id, joined_contents(contents))
        self.writer.write_block(record)

    def _record(self, variant: Variant, measured_s: float) -> Block:
        current, load, server = self._current, self._current.load, self._current.server
        if server is None:
            raise AssertionError("a block is measured after its server was started")
        return Block(
            number=current.planned.number,
            round=current.planned.round,
            variant=variant.id,
            repeats=list(current.planned.repeats),
            began=current.began,
            ended=now(),
            server=server.kind,
            instance=server.instance,
            start_s=server.start_s,
            loaded=load is not None,
            load_s=load["load_s"] if load else None,
            settle_s=load["settle_s"] if load else None,
            measured_s=measured_s,
            processes=current.processes,
            contents=current.contents,
        )

    def drops_data(self, variant: Variant) -> bool:
        """Where each block loads, and after a variant's last block. What lies at a target of the user's stays."""
        if variant.target.is_url:
            return False
        is_last = not any(variant.id == later.id for block in self._left for later in block.variants)
        return is_last or not lies_here(variant) or self._data.choice == "loaded again"

    def take_left_behind(self) -> set[str]:
        """Those of blocks before it was known that data do not fit at once."""
        if self._data.choice == "on disk":
            return set()
        taken, self._left_behind = self._left_behind - {self._current.variant}, set()
        return taken

    def _time_left(self, block: PlannedBlock) -> str:
        """How long this block and those after it take, judging by the blocks so far."""
        known = [took_s for of_variant in self._took_s.values() for took_s in of_variant]
        if not known:
            return ""
        left = [variant.id for other in (block, *self._left) for variant in other.variants]
        left_s = sum(fmean(self._took_s.get(variant, known)) for variant in left)
        return f"; about {left_s:,.0f} s left" if left_s < 120.0 else f"; about {left_s / 60.0:,.0f} min left"
