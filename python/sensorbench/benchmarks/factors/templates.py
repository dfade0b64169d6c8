"""Records that are added once in each round, for all cells whose servers have the same files: these start with them.

Where adding is what a load measures, each cell adds its own. Rounds do not share records: how they came to lie on disk is repeated with the rest.
"""

import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType

from sensorbench import lab
from sensorbench.benchmarks.factors.cells import Cell, Layout, Turn, layout
from sensorbench.benchmarks.factors.measure import CellBench, SharedRecords, core_workload
from sensorbench.benchmarks.stress import Means, RecordWork
from sensorbench.progress import ProgressReporter
from sensorbench.results.ownership import Owner
from sensorbench.runner import Servers, running_servers

# Records go that cells would still have shared where less than this many times their size is free: servers compact what they start with.
ROOM = 4.0
# A layout, and the round.
_Key = tuple[Layout, int]


@dataclass
class Templates:
    """The records that are there. They go with this context."""

    bench: CellBench
    owner: Owner
    cells: Mapping[str, Cell]
    new_folder: Callable[[str, int], Path]
    progress: ProgressReporter
    _made: dict[_Key, tuple[SharedRecords, ExitStack]] = field(default_factory=dict)

    def __enter__(self) -> "Templates":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.keep_for([])

    @property
    def made(self) -> Collection[tuple[Layout, int]]:
        """The layouts and rounds whose records are there."""
        return self._made.keys()

    def is_made(self, turn: Turn) -> bool:
        """Whether the records of a cell are there."""
        return self._key(turn) in self._made

    def records_for(self, turn: Turn, seed: int) -> SharedRecords:
        """The records with which the servers of a cell start; added now if they are not there yet. Raises FailedError and EngineError."""
        key = self._key(turn)
        if key not in self._made:
            self._make_room()
            self._made[key] = self._make(turn.cell, turn.round, seed)
        return self._made[key][0]

    def keep_for(self, later: Iterable[Turn]) -> None:
        """Removes the records that no cell needs any more."""
        needed = {self._key(turn) for turn in later if not self.adds(turn.cell)}
        for key in self._made.keys() - needed:
            self._remove(key)

    def adds(self, cell: Cell) -> bool:
        """Whether a cell adds its records itself."""
        return self.bench.file.loads[cell.load].measures_adding

    def _make(self, cell: Cell, round_: int, seed: int) -> tuple[SharedRecords, ExitStack]:
        first = next(
            other.id
            for other in self.cells.values()
            if not self.adds(other) and layout(other, self.bench.file) == layout(cell, self.bench.file)
        )
        folder = self.new_folder(first, round_)
        default = self.bench.at.configuration(self.bench.file.default)
        settings = {**cell.settings, **{key: default[key] for key in self.bench.file.not_on_disk}}
        target = replace(self.bench.target, server_settings=tuple(settings.items()))
        work = RecordWork(target, core_workload(self.bench), folder, seed=seed, replace=False)
        quiet = ProgressReporter(quiet=True)
        with ExitStack() as until_made, self.progress.task(f"round {round_}, records that cells share") as task:
            servers = until_made.enter_context(running_servers([work.variant], quiet, pin=False))
            self._add(work, servers, folder)
            (instance,) = servers.instances.values()
            lab.keep(instance.name)
            stack = until_made.pop_all()
            task.end(f"{self.bench.records:,} added once")
        return SharedRecords(instance.name, f"{folder.parent.parent.name}/{first}/{folder.name}"), stack

    def _add(self, work: RecordWork, servers: Servers, folder: Path) -> None:
        (at,) = servers.at_their_urls([work.variant])
        target = at.engine_target()
        work.make_ready(at, target, Means(servers, folder, ProgressReporter(quiet=True), self.owner))
        work.check_count(target)

    def _make_room(self) -> None:
        """Removes records, the oldest first, while the disk has no room for those that come."""
        sizes = lab.sizes()
        largest = max((sizes.get(records.instance, 0) for records, _ in self._made.values()), default=0)
        while self._made and shutil.disk_usage(lab.instances_folder()).free < ROOM * largest:
            self._remove(next(iter(self._made)))

    def _remove(self, key: _Key) -> None:
        _, stack = self._made.pop(key)
        stack.close()

    def _key(self, turn: Turn) -> _Key:
        return layout(turn.cell, self.bench.file), turn.round
