"""redis-cli --pipe: what Redis has for inserting much data, from a file of its protocol."""

import re
from collections.abc import Mapping
from pathlib import Path

from sensorbench.lab.instance import Instance
from sensorbench.lab.load_tools import LoadFile, LoadTool, ToolCall, last_words
from sensorbench.lab.software import DebianPackages, Installed

PACKAGES = ("redis-server", "redis-tools", "libatomic1", "libjemalloc2", "liblzf1")
_ENDED = re.compile(r"errors: (\d+), replies: (\d+)")


class Pipe(LoadTool):
    """Sends a file of commands without waiting for replies. It knows one node: of a cluster, the others' keys are refused."""

    name = "pipe"
    program = "redis-cli --pipe"
    summary = "a file of the protocol, a command a row, sent to the first node by redis-cli --pipe"
    sources = (
        DebianPackages("redis", "debian", PACKAGES),
        Installed("redis", "installed", "redis-cli", "redis-tools"),
    )

    def call(self, instance: Instance, software: Path, folder: Path, file: LoadFile, options: Mapping[str, str]) -> ToolCall:
        """The file is its standard input. It gives up only when the server itself does (--pipe-timeout 0)."""
        node = instance.nodes[0]
        words: list[str | Path] = ["-h", node.host, "-p", str(node.port), "--pipe", "--pipe-timeout", "0"]
        environment = {**libraries(software), "REDISCLI_AUTH": instance.password()}
        return ToolCall([program(software, "redis-cli"), *words], environment, standard_input=file.path)

    def problem(self, exit_code: int, output: str) -> str | None:
        """It ends with the number of commands that were refused."""
        ended = _ENDED.search(output)
        if exit_code == 0 and ended and ended[1] == "0":
            return None
        return last_words(output)


def program(software: Path, name: str) -> Path:
    """A program of the server's, in the folder of its software: unpacked, or that of the system."""
    unpacked = software / "usr" / "bin" / name
    return unpacked if unpacked.exists() else software / "bin" / name


def libraries(software: Path) -> dict[str, str]:
    """Unpacked packages bring their libraries along."""
    folder = software / "usr/lib/x86_64-linux-gnu"
    return {"LD_LIBRARY_PATH": str(folder)} if folder.exists() else {}
