"""What nodes had before anything was set, on this machine's disk before the first change: also who is killed can be followed by somebody who
puts things back. Only the caller can read it, since configuration files may have passwords.
"""

import base64
import fcntl
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from sensorbench.errors import FailedError, UsageError
from sensorbench.lab import instances_folder
from sensorbench.lab.processes import ProcessId


class SavedNode(BaseModel):
    """Of a node: its files before, and values of parameters before by name; `unset` have none. `written`: what was last written to files.
    Contents are in base64. `is_changed`: it may have other values now.
    """

    model_config = ConfigDict(extra="forbid")

    files: dict[str, str] = {}
    written: dict[str, str] = {}
    values: dict[str, str] = {}
    unset: list[str] = []
    is_changed: bool = False

    def file(self, path: str) -> bytes:
        """A file as it was."""
        return base64.b64decode(self.files[path])

    def keep_file(self, path: str, content: bytes) -> None:
        """Keeps a file as it is."""
        self.files[path] = base64.b64encode(content).decode()

    def written_to(self, path: str) -> bytes | None:
        """What was last written to a file; None if nothing was."""
        return base64.b64decode(self.written[path]) if path in self.written else None

    def note_written(self, path: str, content: bytes) -> None:
        """Notes what is about to be written to a file."""
        self.written[path] = base64.b64encode(content).decode()


class SavedCluster(BaseModel):
    """Of a cluster: who uses it by which file, its nodes by address, and in whose name there may be namespaces."""

    model_config = ConfigDict(extra="forbid")

    owner: ProcessId
    cluster_file: str
    nodes: dict[str, SavedNode] = {}
    owners_of_namespaces: list[str] = []


class SavedFile:
    """The file of a cluster's state from before."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self._nodes = set(nodes)
        self.path = _folder() / f"{hashlib.sha256(' '.join(sorted(nodes)).encode()).hexdigest()[:16]}.json"

    def take(self, cluster_file: Path) -> SavedCluster:
        """Takes the cluster for this process. What a process left that is gone is what was before.

        Raises UsageError while another process of this machine uses one of the nodes, and where one left a node of another cluster file changed.
        """
        with (_folder() / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for path in sorted(_folder().glob("*.json")):
                self._check_other(path, _read(path))
            before = _read(self.path) if self.path.exists() else None
            mine = SavedCluster(
                owner=ProcessId.this(),
                cluster_file=str(cluster_file.absolute()),
                nodes=before.nodes if before else {address: SavedNode() for address in sorted(self._nodes)},
                owners_of_namespaces=before.owners_of_namespaces if before else [],
            )
            self.write(mine)
            return mine

    def write(self, saved: SavedCluster) -> None:
        """Writes it, at once or not at all."""
        draft = self.path.with_suffix(".new")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(saved.model_dump_json(indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        draft.rename(self.path)

    def remove(self) -> None:
        """Forgets it: everything is as it was."""
        self.path.unlink(missing_ok=True)

    def _check_other(self, path: Path, other: SavedCluster) -> None:
        shared = [address for address in other.nodes if address in self._nodes]
        if path == self.path or shared:
            process = other.owner.find()
            if process is not None and process.pid != os.getpid():
                raise UsageError(
                    f"--cluster: process {process.pid} is using {shared[0] if shared else 'these nodes'} ({other.cluster_file}); wait until it has ended"
                )
            if path != self.path:
                raise UsageError(
                    f"--cluster: {shared[0]} was set by a process that was killed, with {other.cluster_file}; a run with that file restores it first"
                )


def _folder() -> Path:
    folder = instances_folder().parent / "user-clusters"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _read(path: Path) -> SavedCluster:
    try:
        return SavedCluster.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FailedError(
            f"{path}, in which an earlier run kept what nodes had, cannot be read ({error}); restore the nodes yourself, then remove it"
        ) from None
