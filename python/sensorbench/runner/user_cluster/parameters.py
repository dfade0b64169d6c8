"""Parameters of one node: set in its files or by commands, and put back as they were."""

from collections.abc import Callable, Mapping, Sequence

from sensorbench.errors import FailedError
from sensorbench.runner.user_cluster.editing import line_of, with_parameters
from sensorbench.runner.user_cluster.file import ClusterFile, ParameterWay
from sensorbench.runner.user_cluster.node import Node
from sensorbench.runner.user_cluster.saved import SavedNode
from sensorbench.runner.user_cluster.words import FilledWords

# Configuration files are bytes to us: what is not UTF-8 stays as it is.
_TEXT = ("utf-8", "surrogateescape")


class NodeParameters:
    """The parameters of a node. `save` writes `saved` to disk, and is called before what it keeps is changed."""

    def __init__(self, node: Node, file: ClusterFile, saved: SavedNode, save: Callable[[], None]) -> None:
        self._node = node
        self._file = file
        self._saved = saved
        self._save = save
        # What commands have set.
        self._set: dict[str, str] = {}

    def keep_files(self) -> None:
        """Reads the files, so that they can be put back, unless a run before has done so. Raises FailedError."""
        for path, way in self._ways_of_files().items():
            if path not in self._saved.files:
                self._saved.keep_file(path, self._node.require(self._read_words(way), prints_file=True))
        self._save()

    def set(self, settings: Mapping[str, str]) -> None:
        """Sets what counts from the next start on. What was set before, and is not among the settings, is as it was."""
        for path, content in self._contents(settings).items():
            if content != (self._saved.written_to(path) or self._saved.file(path)):
                self._write(path, content)
        self._set_by_commands(settings, after_restart=False)

    def set_running(self, settings: Mapping[str, str]) -> None:
        """Sets what is lost with each restart."""
        self._set_by_commands(settings, after_restart=True)

    def put_back_files(self) -> None:
        """Writes the files as they were that were written. Raises FailedError for one that somebody else has changed since: it stays."""
        for path in list(self._saved.written):
            self._check_ours(path)
            self._write(path, self._saved.file(path))
            del self._saved.written[path]
            self._save()

    def put_back_values(self, *, after_restart: bool) -> None:
        """Puts back what commands have set. Raises FailedError."""
        for name in [*self._saved.values, *self._saved.unset]:
            if (way := self._file.way(name)) is not None and way.after_restart is after_restart:
                self._put_back_value(way, name)

    def commands_to_set(self, settings: Mapping[str, str]) -> list[str]:
        """What `set` and `set_running` would run, for people."""
        shown = []
        for path, way in self._ways_of_files().items():
            lines = [line_of(other, name, value) for other, name, value in self._ways(settings) if other.file == path]
            if lines:
                shown.append(f"{self._node.planned(self._write_words(way))}   # with the lines: {' | '.join(lines)}")
        for way, name, value in self._ways(settings):
            if way.set is not None:
                shown += [self._node.planned(self._node.filled(way.get, {"name": name}))] if way.get else []
                shown.append(self._node.planned(self._node.filled(way.set, {"name": name, "value": value})))
        return shown

    def commands_to_read(self) -> list[str]:
        """What `keep_files` would run, for people."""
        return [self._node.planned(self._read_words(way)) for way in self._ways_of_files().values()]

    def commands_to_put_back(self, names: Sequence[str]) -> list[str]:
        """What would put everything back, for people."""
        shown = [f"{self._node.planned(self._write_words(way))}   # as it was" for way in self._ways_of_files().values()]
        for name in names:
            way = self._file.way(name)
            if way is not None and way.unset is not None:
                shown.append(self._node.planned(self._node.filled(way.unset, {"name": name})))
            elif way is not None and way.set is not None:
                shown.append(f"{self._node.planned(self._node.filled(way.set, {'name': name}))}   # as it was")
        return shown

    def _ways(self, settings: Mapping[str, str]) -> list[tuple[ParameterWay, str, str]]:
        found = ((self._file.way(name), name, value) for name, value in settings.items())
        return [(way, name, value) for way, name, value in found if way is not None]

    def _ways_of_files(self) -> dict[str, ParameterWay]:
        """One way for each file: how it is read and written is the same for all of its parameters."""
        found: dict[str, ParameterWay] = {}
        for way in self._file.parameters:
            if way.file is not None:
                found.setdefault(way.file, way)
        return found

    def _contents(self, settings: Mapping[str, str]) -> dict[str, bytes]:
        """The files with these settings."""
        texts = {path: self._saved.file(path).decode(*_TEXT) for path in self._ways_of_files()}
        for way, name, value in self._ways(settings):
            if way.file is not None:
                texts[way.file] = with_parameters(texts[way.file], {name: value}, way)
        return {path: text.encode(*_TEXT) for path, text in texts.items()}

    def _read_words(self, way: ParameterWay) -> FilledWords:
        return self._node.filled([*way.prefix, "cat", "--", str(way.file)])

    def _write_words(self, way: ParameterWay) -> FilledWords:
        return self._node.filled([*way.prefix, "tee", "--", str(way.file)])

    def _check_ours(self, path: str) -> None:
        """A write that was cut short leaves the beginning of what was to be written."""
        written, now = (
            self._saved.written_to(path) or b"",
            self._node.require(self._read_words(self._way_of(path)), prints_file=True),
        )
        if now != self._saved.file(path) and not written.startswith(now):
            raise FailedError(f"{self._node.shown}: somebody else has changed {path} meanwhile, so it stays as it is")

    def _write(self, path: str, content: bytes) -> None:
        self._saved.note_written(path, content)
        self._saved.is_changed = True
        self._save()
        # tee prints what it writes.
        self._node.require(self._write_words(self._way_of(path)), given=content, prints_file=True)

    def _way_of(self, path: str) -> ParameterWay:
        way = self._ways_of_files().get(path)
        if way is None:
            raise FailedError(
                f"{self._node.shown}: {path} was set by an earlier run, and is no longer in any [[parameters]]; add it again"
            )
        return way

    def mark_changed(self) -> None:
        """Notes that from now on the node may be other than it was: also a restart that goes wrong is to be put right."""
        if not self._saved.is_changed:
            self._saved.is_changed = True
            self._save()

    def _set_by_commands(self, settings: Mapping[str, str], *, after_restart: bool) -> None:
        for name in [name for name in self._set if name not in settings]:
            way = self._file.way(name)
            if way is not None and way.after_restart is after_restart:
                self._put_back_value(way, name)
        for way, name, value in self._ways(settings):
            if way.set is not None and way.after_restart is after_restart:
                self._keep_value(way, name)
                self.mark_changed()
                self._set[name] = value
                self._node.require(self._node.filled(way.set, {"name": name, "value": value}))

    def _keep_value(self, way: ParameterWay, name: str) -> None:
        if name in self._saved.values or name in self._saved.unset:
            return
        if way.get is None:
            self._saved.unset.append(name)
        else:
            words = self._node.filled(way.get, {"name": name})
            lines = self._node.require(words).decode(errors="replace").strip().splitlines()
            if not lines:
                raise FailedError(
                    f"{self._node.shown}: `{words.text}` printed nothing; expected the value of {name} as its last line"
                )
            self._saved.values[name] = lines[-1].strip()
        self._save()

    def _put_back_value(self, way: ParameterWay, name: str) -> None:
        words = way.unset if name in self._saved.unset else way.set
        if words is not None:
            self._node.require(self._node.filled(words, {"name": name, "value": self._saved.values.get(name, "")}))
        self._set.pop(name, None)
