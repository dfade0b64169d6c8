"""Cassandra's full query log: switched on and off by nodetool, and read by Cassandra's own library (`FullQueryLog.java`)."""

import contextlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sensorbench.errors import FailedError
from sensorbench.lab.databases import cassandra_nodetool as nodetool
from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.placement import runs
from sensorbench.lab.state_dirs import ServerUser

_ENABLED = re.compile(r"^enabled\s+true", re.MULTILINE)
_ENDS_WITHIN_S = 10.0


def start(instance: Instance, node: Node, user: ServerUser) -> Path:
    """Has a node log all queries that clients send to it, into a folder of its own, which is returned. Writers wait for the disk, so that none is
    left out. Raises FailedError if its log is on already.
    """
    if _ENABLED.search(nodetool.ask(instance, node, user, "getfullquerylog")):
        raise FailedError(
            f"{instance.name}: the full query log of node {node.number} is on already; switch it off: nodetool disablefullquerylog"
        )
    folder = instance.node_folder(node) / "query-log"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o755)
    user.owns(folder)
    nodetool.ask(instance, node, user, "enablefullquerylog", "--path", str(folder), "--blocking", "true")
    return folder


def stop(instance: Instance, node: Node, user: ServerUser) -> None:
    """Switches the log off; what was logged is written then. Nothing at a node that is no longer running."""
    if runs(instance, node):
        nodetool.ask(instance, node, user, "disablefullquerylog")


def read(command: list[str | Path], folder: Path) -> Iterator[bytes]:
    """The records of a log, each a line of JSON. Raises FailedError with what the library says.

    Args:
        command: the program that reads it.
        folder: the log's.

    """
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [*map(str, command), str(folder)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, cwd="/"
        )
        try:
            assert process.stdout is not None
            yield from process.stdout
            code = process.wait()
        finally:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_ENDS_WITHIN_S)
        if code != 0:
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip().splitlines()
            raise FailedError(f"{folder}: the full query log cannot be read: {said[-1][:300] if said else f'exit code {code}'}")
