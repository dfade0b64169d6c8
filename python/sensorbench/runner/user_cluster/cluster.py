"""A cluster of the user's while it is measured: configured, restarted, its caches emptied, and put back as it was, however that ends."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sensorbench._engine import Target
from sensorbench.errors import ClusterLostError, EngineError, FailedError, UsageError, message_of
from sensorbench.interrupts import held_back
from sensorbench.progress import ProgressReporter
from sensorbench.results.described import DescribedServer
from sensorbench.runner.lengths import seconds
from sensorbench.runner.user_cluster.file import ClusterFile, load_cluster_file
from sensorbench.runner.user_cluster.node import ASKS_EVERY_S, Node
from sensorbench.runner.user_cluster.parameters import NodeParameters
from sensorbench.runner.user_cluster.saved import SavedCluster, SavedFile, SavedNode

_LOAD_AVERAGE = ("cat", "/proc/loadavg")


class UserCluster:
    """The nodes of a cluster file. Between `taken` and its end, `configure` may be called as often as wished."""

    def __init__(self, path: Path, file: ClusterFile) -> None:
        self.path = path
        self.file = file
        self.nodes = [Node(entry, file.ssh_options, seconds(file.command_timeout)) for entry in file.nodes]
        self._saved_file = SavedFile([node.address for node in self.nodes])
        self._saved: SavedCluster | None = None
        self._parameters: dict[str, NodeParameters] = {}
        self._settings: Mapping[str, str] = {}

    @classmethod
    def load(cls, path: Path) -> "UserCluster":
        """The cluster of a file. Raises UsageError naming file, line and key; nothing is asked of its nodes."""
        return cls(path, load_cluster_file(path))

    @property
    def addresses(self) -> list[str]:
        """Of its nodes."""
        return [node.address for node in self.nodes]

    def check_settable(self, names: Iterable[str]) -> None:
        """Raises UsageError for a parameter that no entry of the file sets, or leaves."""
        for name in names:
            if self.file.way(name) is None and not self.file.leaves(name):
                raise UsageError(
                    f'{self.path}, parameters: none is for {name}, which is to be set; add one, or leave = ["{name}"] to leave it as it is'
                )

    def check_empties_caches(self) -> None:
        """Raises UsageError if a node has no command that empties its caches."""
        for node in self.nodes:
            if self.file.command("drop_caches", node.entry) is None:
                raise UsageError(
                    f"{self.path}, commands: drop_caches is missing for {node.shown}; this benchmark begins with empty caches"
                )

    @contextmanager
    def taken(self, reporter: ProgressReporter) -> Iterator[None]:
        """Takes the cluster for this process, and puts everything back at the end, also after an interruption. What a run before left that was
        killed is put back first.

        Raises:
            UsageError: if another process uses a node.
            FailedError: if a node is not ready, or a file cannot be read. Nothing is changed by then.
            ClusterLostError: if something could not be put back.

        """
        self._saved = self._saved_file.take(self.path)
        try:
            self._put_back_leftovers(reporter)
        except BaseException:
            self._saved = None
            raise
        try:
            self._begin()
            yield
        finally:
            # Also who interrupts again gets the servers back as they were.
            with held_back():
                self._end(reporter)

    def configure(self, settings: Mapping[str, str]) -> None:
        """Sets parameters on each node and restarts it, one after the other, so that the others keep running meanwhile. Returns when clients are
        answered. What cannot be done is taken back at once.

        Raises:
            FailedError: with node, command and output.
            ClusterLostError: if it could not be taken back, either.

        """
        self._settings = settings
        try:
            for node in self.nodes:
                self._parameters[node.address].set(settings)
                self._restart(node)
            self._wait_for_clients()
        except FailedError as error:
            with held_back():
                self._put_back_after(error)
            raise

    def restart(self) -> None:
        """Restarts all nodes, one after the other, with their data and settings. Raises FailedError."""
        for node in self.nodes:
            self._restart(node)
        self._wait_for_clients()

    def empty_caches(self) -> None:
        """Empties the caches of all nodes. Raises FailedError."""
        for node in self.nodes:
            words = self.file.command("drop_caches", node.entry)
            if words is None:
                raise FailedError(f"{self.path}, commands: drop_caches is missing for {node.shown}")
            node.require(node.filled(words))

    def insight(self) -> dict[str, float]:
        """The load average of each node's machine; nothing of one that cannot be asked just now."""
        found = {}
        for node in self.nodes:
            words = node.filled(self.file.command("load_average", node.entry) or _LOAD_AVERAGE)
            with suppress(FailedError, ValueError, IndexError):
                prefix = f"{node.entry.host}." if len(self.nodes) > 1 else ""
                found[f"{prefix}lab.load_average"] = float(node.require(words).split()[0])
        return found

    def note_owner(self, owner: str) -> None:
        """Notes in whose name there may be a namespace from now on, so that it is removed at the end, whatever happens."""
        saved = self._require_saved()
        if owner not in saved.owners_of_namespaces:
            saved.owners_of_namespaces.append(owner)
            self._saved_file.write(saved)

    def forget_owner(self, owner: str) -> None:
        """Notes that the namespace is gone."""
        saved = self._require_saved()
        saved.owners_of_namespaces.remove(owner)
        self._saved_file.write(saved)

    def described(self) -> DescribedServer:
        """What results say of it. Settings that are left as they are stand there without a value."""
        version = json.loads(Target(self.file.url).describe())["version"]
        shown = {name: "(left as it is)" if self.file.leaves(name) else value for name, value in self._settings.items()}
        return {
            "instance": self.path.name,
            "database": self.file.url.partition(":")[0],
            "version": version,
            "nodes": len(self.nodes),
            "replicas": 0,
            "settings": shown,
            "cpus": None,
            "cpus_by": None,
            "memory_bytes": None,
            "memory_by": None,
            "server_user": None,
        }

    def planned(self, configurations: Sequence[Mapping[str, str]]) -> list[str]:
        """Every command that would be run with these configurations, in order, for people; each named once for all repetitions."""
        shown = []
        parameters = {node.address: NodeParameters(node, self.file, SavedNode(), lambda: None) for node in self.nodes}
        for node in self.nodes:
            status = self.file.command("status", node.entry)
            shown += [f"before: {node.planned(node.filled(status))}"] if status else []
            shown += [f"before: {command}" for command in parameters[node.address].commands_to_read()]
        for number, settings in enumerate(configurations, start=1):
            for node in self.nodes:
                commands = [*parameters[node.address].commands_to_set(settings), *self._planned_restart(node)]
                shown += [f"configuration {number}: {command}" for command in commands]
        for node in self.nodes:
            shown += [f"while it is measured: {command}" for command in self._planned_meanwhile(node)]
        names = list(dict.fromkeys(name for settings in configurations for name in settings))
        for node in self.nodes:
            commands = [*parameters[node.address].commands_to_put_back(names), *self._planned_restart(node)]
            shown += [f"at the end: {command}" for command in commands]
        return shown

    def _planned_restart(self, node: Node) -> list[str]:
        found = (self.file.command("restart", node.entry), self.file.command("status", node.entry))
        return [node.planned(node.filled(words)) for words in found if words]

    def _planned_meanwhile(self, node: Node) -> list[str]:
        found = (self.file.command("drop_caches", node.entry), self.file.command("load_average", node.entry) or _LOAD_AVERAGE)
        return [node.planned(node.filled(words)) for words in found if words]

    def _put_back_leftovers(self, reporter: ProgressReporter) -> None:
        saved = self._require_saved()
        self._parameters = {
            node.address: NodeParameters(node, self.file, saved.nodes[node.address], lambda: self._saved_file.write(saved))
            for node in self.nodes
        }
        left = [node for node in self.nodes if saved.nodes[node.address].is_changed]
        if left or saved.owners_of_namespaces:
            reporter.warn(f"{self.path}: what an earlier run left set is restored first")
            self._put_back(reporter)

    def _begin(self) -> None:
        for node in self.nodes:
            node.wait_until_ready(self.file.command("status", node.entry), 0.0, None)
            self._parameters[node.address].keep_files()

    def _end(self, reporter: ProgressReporter) -> None:
        self._put_back(reporter)
        self._saved_file.remove()
        self._saved = None

    def _restart(self, node: Node) -> None:
        self._parameters[node.address].mark_changed()
        words = node.filled(self.file.command("restart", node.entry) or [])
        node.require(words)
        node.wait_until_ready(self.file.command("status", node.entry), seconds(self.file.back_within), words)
        self._parameters[node.address].set_running(self._settings)

    def _wait_for_clients(self) -> None:
        """Nodes that are up need a while to see one another."""
        give_up_s = time.monotonic() + seconds(self.file.back_within)
        while True:
            try:
                Target(self.file.url).describe()
                return
            except EngineError as error:
                if time.monotonic() > give_up_s:
                    raise FailedError(
                        f"{self.path}: all nodes were restarted, but clients are not answered within {self.file.back_within}: {message_of(error)}"
                    ) from None
            time.sleep(ASKS_EVERY_S)

    def _put_back_after(self, error: FailedError) -> None:
        try:
            self._put_back(ProgressReporter(quiet=True), with_namespaces=False)
        except ClusterLostError as lost:
            raise ClusterLostError(f"{error}. What was set could not be taken back, either: {lost}") from None

    def _put_back(self, reporter: ProgressReporter, *, with_namespaces: bool = True) -> None:
        """Puts back every node that may be changed, also where another one fails, then removes our namespaces. Raises ClusterLostError."""
        saved = self._require_saved()
        self._settings = {}
        problems = []
        changed = [node for node in self.nodes if saved.nodes[node.address].is_changed]
        for node in changed:
            with reporter.task(f"putting back {node.shown}") as task:
                try:
                    self._put_back_node(node)
                    task.end("as it was")
                except FailedError as error:
                    problems.append(str(error))
                    task.end("failed")
        try:
            if changed and not problems:
                self._wait_for_clients()
            if with_namespaces:
                self._remove_namespaces()
        except (FailedError, EngineError) as error:
            problems.append(message_of(error))
        if problems:
            raise ClusterLostError(
                f"not everything is as it was: {'; '.join(problems)}. What the nodes had is in {self._saved_file.path}; fix them, and the next run "
                f"with {self.path} puts it back first"
            )

    def _put_back_node(self, node: Node) -> None:
        parameters, saved = self._parameters[node.address], self._require_saved()
        parameters.put_back_files()
        try:
            parameters.put_back_values(after_restart=False)
            self._restart(node)
        except FailedError:
            # A server that is down takes no values: with its files as they were, it comes back.
            self._restart(node)
            parameters.put_back_values(after_restart=False)
            self._restart(node)
        parameters.put_back_values(after_restart=True)
        saved.nodes[node.address].is_changed = False
        self._saved_file.write(saved)

    def _remove_namespaces(self) -> None:
        saved = self._require_saved()
        for owner in list(saved.owners_of_namespaces):
            Target(self.file.url).remove(owner=owner)
            self.forget_owner(owner)

    def _require_saved(self) -> SavedCluster:
        if self._saved is None:
            raise AssertionError("a cluster is taken before it is used")
        return self._saved
