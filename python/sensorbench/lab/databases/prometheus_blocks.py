"""promtool tsdb create-blocks-from openmetrics: what Prometheus has for data that are older than what remote write takes."""

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from sensorbench.errors import FailedError
from sensorbench.lab.instance import Instance
from sensorbench.lab.load_tools import LoadFile, LoadTool, ToolCall, last_words
from sensorbench.lab.processes import wait_until
from sensorbench.lab.software import DebianPackages, GoModule
from sensorbench.lab.state_dirs import server_user

# Of its file, which has nothing else.
LATE_WINDOW = "out_of_order_time_window"
BLOCK = "storage.tsdb.min-block-duration"
_CURRENT = "3.16.0"
SOURCES = (
    DebianPackages("prometheus", "debian", ("prometheus",)),
    GoModule(
        "prometheus",
        _CURRENT,
        module="github.com/prometheus/prometheus",
        module_version="0.316.0",
        checksum="h1:f1GRFerhTMKQma+awCoC9T820ecWeGSdF+xAlMHzZzM=",
        package="./cmd/prometheus",
        others=(("promtool", "./cmd/promtool"),),
        variables=(("github.com/prometheus/common/version.Version", _CURRENT),),
        # Without the clouds in which it would look for what it scrapes; nothing is scraped.
        tags=("remove_all_sd",),
    ),
)
# As long as the server's own blocks become. It reads the whole file for each of them.
_BLOCKS_OF = "744h"
_DEFAULT_BLOCK = "2h"
_FOLDER = "blocks"
_BLOCK_NAME = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_LOADED = re.compile(r"^prometheus_tsdb_blocks_loaded (\S+)$", flags=re.MULTILINE)
# The server looks for new blocks once a minute.
_OPENS_WITHIN_S = 180.0
_BETWEEN_LOOKS_S = 1.0
_ANSWERS_WITHIN_S = 10.0


class Blocks(LoadTool):
    """Makes blocks of a file, which are put among those of the server. They are made beside the server, which is not busy with it."""

    name = "blocks"
    program = "promtool"
    summary = "a file of OpenMetrics, of which promtool makes blocks; the server opens them within a minute"
    sources = SOURCES
    # A server that keeps years in its head would lose of them, at its next start, what is older than its blocks.
    server_settings = MappingProxyType({BLOCK: _DEFAULT_BLOCK, LATE_WINDOW: "30d"})

    def refusal(self, settings: Mapping[str, str]) -> str | None:
        """Blocks of a length that is not the usual one are a head that is not the usual one."""
        if settings.get(BLOCK) == _DEFAULT_BLOCK:
            return None
        wanted = " ".join(f"--server-setting {key}={value}" for key, value in self.server_settings.items())
        return (
            "the server keeps years of samples in its head. At its next start it would lose those that are older than its blocks; "
            f"start one as it comes: sensorbench lab up prometheus {wanted}"
        )

    def call(self, instance: Instance, software: Path, folder: Path, file: LoadFile, options: Mapping[str, str]) -> ToolCall:
        """The blocks are made in its own folder."""
        made = folder / _FOLDER
        made.mkdir()
        words = ("tsdb", "create-blocks-from", "--quiet", f"--max-block-duration={_BLOCKS_OF}", "openmetrics", file.path, made)
        return ToolCall([program(software, "promtool"), *words])

    def problem(self, exit_code: int, output: str) -> str | None:
        """It ends with 0 where all samples are in blocks."""
        return None if exit_code == 0 else last_words(output)

    def hand_over(self, instance: Instance, folder: Path) -> None:
        """Puts the blocks among those of the server."""
        (node,) = instance.nodes
        data, user = instance.data_folder(node), server_user()
        for block in sorted((folder / _FOLDER).iterdir()):
            # The server opens what is named as a block is: it gets this name when all of it is there.
            arriving = data / f"{block.name}.tmp-for-creation"
            shutil.copytree(block, arriving)
            for path in (arriving, *arriving.rglob("*")):
                user.owns(path)
            arriving.rename(data / block.name)

    def settle(self, instance: Instance, on_wait: Callable[[], None]) -> None:
        """Waits until the server has opened all blocks that are in its folder."""
        (node,) = instance.nodes
        data = instance.data_folder(node)

        def are_open() -> bool:
            on_wait()
            there = sum(1 for path in data.iterdir() if _BLOCK_NAME.fullmatch(path.name))
            return _loaded(node.host, node.port) == there

        if not wait_until(are_open, timeout_s=_OPENS_WITHIN_S, every_s=_BETWEEN_LOOKS_S):
            raise FailedError(
                f"{instance.name} has not opened the blocks in {data} within {_OPENS_WITHIN_S:.0f} s; its log says why"
            )


def program(software: Path, name: str) -> Path:
    """A program of its software. Debian's packages have it below usr, what Go built is not."""
    return next(path for path in (software / folder / "bin" / name for folder in ("", "usr")) if path.exists())


def _loaded(host: str, port: int) -> int:
    """How many blocks the server has open."""
    # Commands that start no server of this kind do without it.
    from urllib.request import urlopen

    try:
        with urlopen(f"http://{host}:{port}/metrics", timeout=_ANSWERS_WITHIN_S) as reply:
            found = _LOADED.search(reply.read().decode())
    except OSError as error:
        raise FailedError(f"Prometheus at {host}:{port} does not answer: {error}") from None
    if found is None:
        raise FailedError(f"Prometheus at {host}:{port} does not say how many blocks it has open")
    return int(float(found[1]))
