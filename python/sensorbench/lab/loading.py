"""Loading by a database's own tool: the tool is got, started for one file, watched, and ended with everything that it started."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from sensorbench.errors import FailedError, UsageError
from sensorbench.lab.instance import Instance
from sensorbench.lab.load_tools import LoadFile, LoadTool, last_words
from sensorbench.lab.processes import INSTANCE_VARIABLE, wait_until
from sensorbench.lab.registry import LAB_DATABASES

_OUTPUT = "output"
_SLICE_S = 0.2
_ENDS_WITHIN_S = 30.0


@dataclass(frozen=True)
class ToolProgress:
    """How far a tool is: rows where it says that, and the share of its input that it has read where it does not."""

    rows: int | None
    share: float | None


def load_tools(database: str) -> dict[str, LoadTool]:
    """The tools that the lab can load a kind of database by, by name; none of one that it cannot start."""
    return {tool.name: tool for tool in LAB_DATABASES[database].load_tools} if database in LAB_DATABASES else {}


def require_tool(database: str, name: str) -> LoadTool:
    """A tool that can be had here. Raises UsageError: with what is missing where it cannot."""
    tools = load_tools(database)
    if name not in tools:
        raise UsageError(f"load={name}: the lab has no such loader of {database}; it has {', '.join(tools) or 'none'}")
    tool = tools[name]
    source = tool.source()
    missing = None if source.is_there else source.missing()
    if missing:
        raise UsageError(f"load={name}: {tool.program} is not available here: {missing}")
    return tool


def run_load_tool(
    tool: LoadTool,
    instance: Instance,
    folder: Path,
    file: LoadFile,
    options: Mapping[str, str],
    on_progress: Callable[[ToolProgress], None],
) -> str | None:
    """Loads a file by a tool.

    Args:
        tool: which one; it is got before, by `tool.source().get()`.
        instance: of the lab, whose server is loaded.
        folder: the tool's own, in which it works.
        file: what it loads.
        options: those of the target's URL.
        on_progress: called again and again; what it raises ends the tool.

    Returns:
        Why not all rows went in, in the tool's last words; None when it says that all did.

    Raises:
        FailedError: when it cannot be started.

    """
    call = tool.call(instance, tool.source().get(), folder, file, options)
    output = folder / _OUTPUT
    environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8", INSTANCE_VARIABLE: str(instance.folder)}
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(output.open("wb"))
        given = stack.enter_context((call.standard_input or Path(os.devnull)).open("rb"))
        try:
            process = subprocess.Popen(
                [str(word) for word in call.command],
                cwd=folder,
                env={**environment, **call.environment},
                stdin=given,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise FailedError(f"{tool.program} cannot be started: {error}") from None
        with _ended(process):
            while not _is_over(process):
                # Input and tool share one place in the file.
                read = os.lseek(given.fileno(), 0, os.SEEK_CUR) / max(1, file.path.stat().st_size)
                on_progress(ToolProgress(tool.rows_done(_text(output)), read if call.standard_input else None))
    problem = tool.problem(process.returncode, _text(output))
    if problem is None:
        tool.hand_over(instance, folder)
    return problem and f"{tool.program} ended with exit code {process.returncode}: {problem}"


def _is_over(process: "subprocess.Popen[bytes]") -> bool:
    try:
        process.wait(_SLICE_S)
    except subprocess.TimeoutExpired:
        return False
    return True


@contextlib.contextmanager
def _ended(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Leaves no process of the tool, whatever happens: those that it started are in its session."""
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if not wait_until(lambda: not _in_group(process.pid), timeout_s=_ENDS_WITHIN_S):
            raise FailedError(f"processes {_in_group(process.pid)} of the loader do not end; stop them before you continue")


def _in_group(group: int) -> list[int]:
    """Processes of a group that still run."""
    found = []
    for process in psutil.process_iter(["status"]):
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


def _text(output: Path) -> str:
    return output.read_text(encoding="utf-8", errors="replace")


__all__ = ["LoadFile", "LoadTool", "ToolProgress", "last_words", "load_tools", "require_tool", "run_load_tool"]
