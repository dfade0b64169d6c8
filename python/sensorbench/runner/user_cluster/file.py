"""`cluster.toml`: the nodes of a cluster of the user's, and the commands that set and restart them."""

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from sensorbench.runner.lengths import Length
from sensorbench.runner.user_cluster.words import checked_words, missing_variables
from sensorbench.toml_file import FileModel, error_at, load

# A target of ssh that could be read as an option is none.
_SSH_TARGET = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.@:%\[\]-]*")
_ADDRESS = re.compile(r"(?P<host>[^\s:]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})")

Words = Annotated[list[str], AfterValidator(checked_words)]


class NodeCommands(FileModel):
    """Commands for a node, as lists of words. `{host}`, `{port}` and `{address}` are the node's; `{env:NAME}` is a variable of the environment."""

    restart: Words | None = Field(
        default=None, description="Restarts the node with its data. It ends when the process from before is gone."
    )
    drop_caches: Words | None = Field(default=None, description="Empties the caches of the node while it runs.")
    status: Words | None = Field(default=None, description="Ends with 0 as soon as the node is ready for requests.")
    load_average: Words | None = Field(
        default=None, description="Prints the load average first. [default: cat /proc/loadavg of the node]"
    )


class ClusterNode(NodeCommands):
    """A node. What is said here goes before `[commands]`."""

    address: str = Field(description="HOST:PORT at which the node answers clients.")
    ssh: str | None = Field(default=None, description="USER@HOST as ssh takes it, or a name from ssh's own configuration.")
    local: bool = Field(default=False, description="Whether commands run on this machine, without ssh.")

    @model_validator(mode="after")
    def _check(self) -> "ClusterNode":
        found = _ADDRESS.fullmatch(self.address)
        if not found or not 0 < int(found["port"]) < 65_536:
            raise ValueError(f"address {self.address!r}: expected HOST:PORT, such as 10.0.0.1:9042")
        if (self.ssh is None) is not self.local:
            raise ValueError('expected either ssh = "USER@HOST", or local = true')
        if self.ssh is not None and not _SSH_TARGET.fullmatch(self.ssh):
            raise ValueError(f"ssh {self.ssh!r}: expected USER@HOST or a name from ssh's configuration")
        return self

    @property
    def host(self) -> str:
        """Of its address."""
        return self.address.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """Of its address."""
        return int(self.address.rpartition(":")[2])


class ParameterWay(FileModel):
    """How some parameters are set: by a line of a file on the node, or by a command."""

    names: list[str] = Field(
        default=["*"],
        min_length=1,
        description="The parameters, * for any characters. The first entry with a parameter's name counts.",
    )
    file: str | None = Field(default=None, description="The file on the node in which they stand.")
    format: Literal["lines", "yaml"] = Field(
        default="lines", description="yaml: a key at the top level, which may continue over lines that are indented."
    )
    line: str | None = Field(
        default=None,
        description="The line of a parameter, with {value} and, unless it is for one parameter, {name}. [default: {name}: {value} in yaml]",
    )
    prefix: list[str] = Field(
        default=[], description='What comes before `cat` and `tee`, which read and write the file: ["sudo", "-n"].'
    )
    set: Words | None = Field(
        default=None, description="The command that sets a parameter: {name} and {value} are words of their own."
    )
    get: Words | None = Field(
        default=None, description="The command whose last line is the value from before, which is set again."
    )
    unset: Words | None = Field(default=None, description="Instead of `get`: the command that takes a parameter back.")
    after_restart: bool = Field(
        default=False, description="Whether `set` changes the running server: then it comes after each restart."
    )

    @model_validator(mode="after")
    def _check(self) -> "ParameterWay":
        if (self.file is None) is (self.set is None):
            raise ValueError("expected either file, or set")
        if self.file is not None:
            self._check_file()
        else:
            self._check_command(self.set or [])
        return self

    def _check_file(self) -> None:
        if (self.get, self.unset, self.after_restart) != (None, None, False):
            raise ValueError("get, unset and after_restart go with set, not with file")
        if not str(self.file).startswith("/"):
            raise ValueError(f"file {self.file!r}: expected a path that begins with /")
        if self.line is None and self.format != "yaml":
            raise ValueError('expected line, such as line = "{name} = {value}", or format = "yaml"')
        if "{value}" not in self.line_of_file:
            raise ValueError("line must have {value}")
        if "{name}" not in self.line_of_file and (len(self.names) > 1 or "*" in self.names[0]):
            raise ValueError("line must have {name}, since it is for several parameters")
        if not self.line_of_file.partition("{value}")[0].replace("{name}", "x").strip():
            raise ValueError("line must have something before {value}, by which the line from before is found")

    def _check_command(self, words: list[str]) -> None:
        if self.line is not None or self.prefix or self.format != "lines":
            raise ValueError("line, format and prefix go with file, not with set")
        if "{value}" not in words:
            raise ValueError("set must have the word {value}")
        if (self.get is None) is (self.unset is None):
            raise ValueError("expected either get or unset, by which a parameter is restored")

    @property
    def line_of_file(self) -> str:
        """How a parameter is written there."""
        return self.line or "{name}: {value}"

    def is_for(self, name: str) -> bool:
        """Whether it sets this parameter."""
        return any(fnmatchcase(name, pattern) for pattern in self.names)


class ClusterFile(FileModel):
    """A cluster of the user's."""

    url: str = Field(description="URL by which clients reach the cluster, with its options.")
    back_within: Length = Field(default="5m", description="How long a node may take to answer after its restart.")
    command_timeout: Length = Field(default="2m", description="How long a command may take.")
    ssh_options: list[str] = Field(default=[], description='Options of ssh, as words: ["-i", "/home/me/.ssh/bench"].')
    commands: NodeCommands = Field(default=NodeCommands(), description="Commands of all nodes.")
    parameters: list[ParameterWay] = Field(min_length=1, description="How parameters are set.")
    leave: list[str] = Field(
        default=[], description="Parameters that are left as they are, * for any characters. Results say so."
    )
    nodes: list[ClusterNode] = Field(min_length=1, description="The nodes.")

    @model_validator(mode="after")
    def _check(self) -> "ClusterFile":
        addresses = [node.address for node in self.nodes]
        twice = next((address for address in addresses if addresses.count(address) > 1), None)
        if twice:
            raise ValueError(f"nodes: {twice} appears twice")
        lacking = next((node.address for node in self.nodes if self.command("restart", node) is None), None)
        if lacking:
            raise ValueError(f"nodes: {lacking} has no restart, and [commands] has none; say how the node is restarted")
        return self

    def command(self, kind: Literal["restart", "drop_caches", "status", "load_average"], node: ClusterNode) -> list[str] | None:
        """A command for a node: its own, or that of all."""
        words: list[str] | None = getattr(node, kind) or getattr(self.commands, kind)
        return words

    def way(self, name: str) -> ParameterWay | None:
        """How a parameter is set; None for one that is left, or that no entry has."""
        if self.leaves(name):
            return None
        return next((way for way in self.parameters if way.is_for(name)), None)

    def leaves(self, name: str) -> bool:
        """Whether a parameter is left as it is."""
        return any(fnmatchcase(name, pattern) for pattern in self.leave)


def load_cluster_file(path: Path) -> ClusterFile:
    """Reads the file. Raises UsageError naming file, line and key."""
    file = load(path, ClusterFile)
    for key, words in _all_words(file):
        if missing := missing_variables(words):
            raise error_at(path, key, f"{{env:{missing[0]}}}: this variable is not set; export it")
    return file


def _all_words(file: ClusterFile) -> list[tuple[str, list[str]]]:
    """Every command with its key."""
    kinds = ("restart", "drop_caches", "status", "load_average")
    places = [("commands", file.commands), *((f"nodes[{number}]", node) for number, node in enumerate(file.nodes))]
    of_nodes = [(f"{place}.{kind}", getattr(commands, kind)) for place, commands in places for kind in kinds]
    of_ways = [
        (f"parameters[{number}].{kind}", getattr(way, kind))
        for number, way in enumerate(file.parameters)
        for kind in ("set", "get", "unset")
    ]
    return [(key, words) for key, words in (*of_nodes, *of_ways) if words]
