"""Databases' own tools for much data: which file each reads, how it is called, and what it says when it ends."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from sensorbench.lab.instance import Instance
from sensorbench.lab.software import Source


@dataclass(frozen=True)
class LoadFile:
    """A file of rows that a tool is to load into a table of a namespace. The driver wrote it."""

    namespace: str
    table: str
    columns: tuple[str, ...]
    path: Path


@dataclass(frozen=True)
class ToolCall:
    """How a tool is called for one file. A password is in the environment or in a file: a command line would show it."""

    command: Sequence[str | Path]
    environment: Mapping[str, str] = field(default_factory=dict)
    # What its standard input is; nothing if it opens the file itself.
    standard_input: Path | None = None


class LoadTool(ABC):
    """A tool that a database brings for loading."""

    # How options of a target name it: load=NAME.
    name: str
    # What messages call it, and what it does.
    program: str
    summary: str
    sources: tuple[Source, ...]
    # Settings of the server that it needs, by which the lab starts one for it.
    server_settings: Mapping[str, str] = MappingProxyType({})

    def refusal(self, settings: Mapping[str, str]) -> str | None:
        """Why a server with such settings cannot be loaded by it; None if it can."""
        return None

    def source(self) -> Source:
        """Where it comes from: the first that can be had."""
        return next((source for source in self.sources if source.is_there or not source.missing()), self.sources[0])

    @abstractmethod
    def call(self, instance: Instance, software: Path, folder: Path, file: LoadFile, options: Mapping[str, str]) -> ToolCall:
        """How it loads a file.

        Args:
            instance: of the lab, whose server is loaded.
            software: where the tool was unpacked.
            folder: its own, for files that only the caller can read; it works in it.
            file: what it loads.
            options: those of the target's URL.

        """

    def rows_done(self, output: str) -> int | None:
        """How many rows it says that it has loaded so far; None when it does not say."""
        return None

    @abstractmethod
    def problem(self, exit_code: int, output: str) -> str | None:
        """Why a load that has ended is not whole, in the tool's own last words; None when it says that all went in."""

    def hand_over(self, instance: Instance, folder: Path) -> None:
        """Gives the server what the tool has made in its folder; nothing of a tool that has written to the server. Raises FailedError."""
        del instance, folder

    def settle(self, instance: Instance, on_wait: Callable[[], None]) -> None:
        """Waits until the server has taken all that was handed over. Raises FailedError if it does not, and what `on_wait` raises, which is
        called again and again.
        """
        del instance, on_wait


def last_words(output: str, count: int = 3) -> str:
    """The end of what a tool said, for messages: progress that it wrote over is left out."""
    lines = [line.rstrip().rpartition("\r")[2].strip() for line in output.split("\n")]
    return " | ".join([line for line in lines if line][-count:]) or "it printed nothing"
