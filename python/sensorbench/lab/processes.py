"""Server processes: started without a shell, known again by pid and start time, ended by pid alone."""

import logging
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict

from sensorbench.errors import FailedError
from sensorbench.lab.state_dirs import ServerUser

TOOL_TIMEOUT_S = 120.0

# Every process of an instance is started with this in its environment, so that one can be found whose record was lost.
INSTANCE_VARIABLE = "SENSORBENCH_LAB_INSTANCE"
_log = logging.getLogger(__name__)


class ProcessId(BaseModel):
    """A process: its number may be given to another one later, its start time is its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> "ProcessId":
        """The process that has this number now."""
        return cls(pid=pid, started=psutil.Process(pid).create_time())

    @classmethod
    def this(cls) -> "ProcessId":
        """The process that runs this."""
        return cls.of(os.getpid())

    def find(self) -> psutil.Process | None:
        """The process, if it still runs."""
        try:
            process = psutil.Process(self.pid)
            is_same = process.create_time() == self.started and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        return process if is_same else None

    def family(self) -> list[psutil.Process]:
        """The process and those below it; none if it is not running."""
        found = self.find()
        return [] if found is None else [found, *found.children(recursive=True)]


def start(
    command: Sequence[str | Path],
    *,
    instance: Path,
    folder: Path,
    user: ServerUser,
    environment: dict[str, str],
    cpus: Sequence[int] | None,
) -> subprocess.Popen[bytes]:
    """Starts a server that outlives us, its output in `server.log`."""

    def prepare() -> None:
        if cpus:
            os.sched_setaffinity(0, cpus)

    _log.info("start %s in %s", Path(command[0]).name, folder)
    log = folder / "server.log"
    log.touch(mode=0o640)
    user.owns(log)
    is_root = os.geteuid() == 0
    with log.open("ab") as output:
        return subprocess.Popen(
            [str(word) for word in command],
            cwd=folder,
            env={
                "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
                "LC_ALL": "C.UTF-8",
                INSTANCE_VARIABLE: str(instance),
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=prepare,
            user=user.uid if is_root else None,
            group=user.gid if is_root else None,
            extra_groups=[] if is_root else None,
        )


def call(
    command: Sequence[str | Path],
    *,
    folder: Path,
    user: ServerUser,
    environment: dict[str, str],
    timeout_s: float = TOOL_TIMEOUT_S,
) -> subprocess.CompletedProcess[str]:
    """Runs a server's tool to its end as the servers' user.

    Args:
        command: the program and its arguments.
        folder: where it runs.
        user: whom it runs as, where we are root.
        environment: its variables, besides those that every server gets.
        timeout_s: how long it may take (s).

    Returns:
        How it ended; its exit code is not looked at.

    Raises:
        FailedError: when it takes longer.

    """
    _log.info("run %s in %s", Path(command[0]).name, folder)
    is_root = os.geteuid() == 0
    try:
        return _run(command, folder, user if is_root else None, environment, timeout_s)
    except subprocess.TimeoutExpired:
        raise FailedError(f"{Path(command[0]).name} did not end within {timeout_s:g} s") from None


def _run(
    command: Sequence[str | Path], folder: Path, user: ServerUser | None, environment: dict[str, str], timeout_s: float
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8", "HOME": str(folder), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
        user=user.uid if user else None,
        group=user.gid if user else None,
        extra_groups=[] if user else None,
    )


def processes_of(instance: Path) -> list[psutil.Process]:
    """All processes that belong to an instance, whatever its record says: they were started with its name in their environment,
    and work in its folder. Some servers write over their environment.
    """
    return [process for process in psutil.process_iter() if _belongs_to(process, instance)]


def is_anything_started_for(instance: Path) -> bool:
    """Whether a process runs that was started with an instance's name in its environment."""
    return any(_is_named(process, instance) for process in psutil.process_iter())


def _is_named(process: psutil.Process, instance: Path) -> bool:
    try:
        return bool(process.environ().get(INSTANCE_VARIABLE) == str(instance))
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return False


def _belongs_to(process: psutil.Process, instance: Path) -> bool:
    try:
        is_named = process.environ().get(INSTANCE_VARIABLE) == str(instance)
        return is_named or Path(process.cwd()).is_relative_to(instance)
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return False


def end(processes: Sequence[psutil.Process], *, signal: int, patience_s: float) -> None:
    """Ends processes: by a signal first, and those that are there after a time by SIGKILL.

    Args:
        processes: some of which may be gone.
        signal: its number.
        patience_s: how long they have (s).

    """
    _send(processes, signal)
    _, alive = psutil.wait_procs(list(processes), timeout=patience_s)
    _send(alive, 9)
    psutil.wait_procs(alive, timeout=patience_s)


def _send(processes: Sequence[psutil.Process], signal: int) -> None:
    for process in processes:
        try:
            process.send_signal(signal)
        except psutil.NoSuchProcess:
            continue


def wait_until(is_so: Callable[[], bool], *, timeout_s: float, every_s: float = 0.1) -> bool:
    """Waits until something is so; False when it was not in time."""
    end_s = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > end_s:
            return False
        time.sleep(every_s)
    return True


def last_lines(log: Path, count: int = 5) -> str:
    """The end of a server's log, for messages."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except FileNotFoundError:
        return "there is no log"
    return " | ".join(lines[-count:]) or "the log is empty"
