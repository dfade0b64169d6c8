"""Whose servers are up during a block: those of all variants, or that of one."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

from sensorbench.benchmarks.comparison.blocks import PlannedBlock
from sensorbench.runner import ConnectedComparison, RunningServer, SeparateServers, ValidatedComparison, Variant, connect


@dataclass(frozen=True)
class Stage:
    """The comparison of the variants that a block is about, with their servers up; `server` is that of one variant alone."""

    connected: ConnectedComparison
    server: RunningServer | None = None


class Stages(ABC):
    """Who starts and stops servers between blocks."""

    # The comparison as far as its servers are up between blocks, too.
    connected: ConnectedComparison

    @abstractmethod
    def up(self, block: PlannedBlock) -> AbstractContextManager[Stage]:
        """The servers of a block's variants, up. Raises FailedError if one does not start."""

    @abstractmethod
    def discard(self, variant: Variant) -> bool:
        """Ends a variant's server with its data, where it was started for this variant alone. Returns whether it was."""

    @abstractmethod
    def processes(self) -> dict[str, list[int]]:
        """The lab's servers of the comparison that are in the process table, by name: their process ids."""


class AllServers(Stages):
    """All servers are up all the time."""

    def __init__(self, connected: ConnectedComparison) -> None:
        self.connected = connected

    @contextmanager
    def up(self, block: PlannedBlock) -> Iterator[Stage]:
        """They are up already."""
        del block
        yield Stage(self.connected)

    def discard(self, variant: Variant) -> bool:
        """Variants share them."""
        del variant
        return False

    def processes(self) -> dict[str, list[int]]:
        """The main process of each node."""
        return {name: [process.process.pid] for name, process in self.connected.servers.processes().items()}


class OneServer(Stages):
    """The server of one variant is up at a time."""

    def __init__(self, sound: ValidatedComparison, servers: SeparateServers) -> None:
        self._sound = sound
        self._servers = servers
        self.connected = connect(sound, servers.standing)

    @contextmanager
    def up(self, block: PlannedBlock) -> Iterator[Stage]:
        """Starts the server of the block's variant, and stops it when the block is over."""
        (variant,) = block.variants
        alone = replace(self._sound, comparison=replace(self._sound.comparison, variants=[variant]))
        with self._servers.up(variant) as running:
            # An embedded database is opened again, too.
            yield Stage(connect(alone, running.servers), running)

    def discard(self, variant: Variant) -> bool:
        """Ends the server that was started for the variant."""
        return self._servers.discard(variant)

    def processes(self) -> dict[str, list[int]]:
        """All processes of these servers, by the process table alone."""
        return self._servers.processes()
