"""Logs of queries of servers of the lab, in forms that only their own software reads."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sensorbench import interrupts
from sensorbench.errors import FailedError
from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.registry import require_server


class QueryLogs:
    """The logs of all nodes of an instance."""

    def __init__(self, instance: Instance) -> None:
        self._instance, self._database = instance, require_server(instance.database)
        self._on: list[Node] = []
        self._folders: list[Path] = []

    def start(self) -> None:
        """Switches them on. Raises FailedError."""
        for node in self._instance.nodes:
            with interrupts.held_back():
                self._folders.append(self._database.start_query_log(self._instance, node, self._database.user()))
                self._on.append(node)

    def stop(self) -> list[Path]:
        """Switches off those that are on, and returns the folders of all. Raises FailedError."""
        while self._on:
            with interrupts.held_back():
                self._database.stop_query_log(self._instance, self._on.pop(), self._database.user())
        return self._folders

    def remove(self) -> None:
        """Removes the folders."""
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def query_logs(instance: Instance) -> Iterator[QueryLogs]:
    """The logs of all nodes of an instance, which are on; at the end of the context they are off, and their files are gone. Raises FailedError."""
    logs = QueryLogs(instance)
    try:
        logs.start()
        yield logs
    finally:
        with interrupts.held_back():
            logs.stop()
            logs.remove()


def read_query_log(database: str, folder: Path, version: str | None = None) -> Iterator[bytes]:
    """The records of a log, each a line of JSON. Raises FailedError.

    Args:
        database: whose log it is.
        folder: where it lies.
        version: the version of the software that reads it, which is got first if it is not there; the first that can be had if None.

    """
    kind = require_server(database)
    source = kind.source(version)
    if source is None:
        raise FailedError(f"this sensorbench does not know {database} {version}")
    return kind.read_query_log(source.get(), folder)
