"""The process of a host, or of the scheduler: it reads on its standard input what to be, and ends when that is closed.

`python -m sensorbench.hosts.process` is started by the controller alone, here or by SSH.
"""

import asyncio
import os
import shutil
import signal
import tempfile
import threading
from pathlib import Path
from typing import IO

from sensorbench.hosts.build import this_build
from sensorbench.hosts.dask_parts import Listener, configured, started_scheduler, started_worker
from sensorbench.hosts.messages import BeHost, BeScheduler, Hello, Listening, Refused, receive, send


def main() -> None:
    """Serves the controller on the standard streams, and exits."""
    # Ctrl-C is the controller's.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    # What a library prints is not an answer.
    os.dup2(2, 1)
    requests = os.fdopen(0, "rb")
    send(answers, _hello())
    order = receive(requests)
    if not isinstance(order, BeScheduler | BeHost):
        return
    # The folder of the command is removed by its scheduler, also where the controller cannot do that any more.
    folder = Path(
        order.folder if isinstance(order, BeScheduler) else tempfile.mkdtemp(prefix="sensorbench-host-", dir=order.folder)
    )
    threading.Thread(target=_end_with_controller, args=(requests, folder), name="controller", daemon=True).start()
    with configured(folder):
        asyncio.run(_serve(order, answers, folder))
    _end(folder)


def _hello() -> Hello:
    """What this process is, and how SSH has reached it, which is how the controller is reached from here."""
    build = this_build()
    ends = os.environ.get("SSH_CONNECTION", "").split()
    controller, here = (ends[0], ends[2]) if len(ends) == 4 else (None, None)
    return Hello(version=build.version, engine=build.engine, pid=os.getpid(), controller=controller, here=here)


async def _serve(order: BeScheduler | BeHost, answers: IO[bytes], folder: Path) -> None:
    """Is what is ordered until that ends: the scheduler is gone."""
    try:
        if isinstance(order, BeHost):
            os.environ.update(order.environment)
            _keep_to(order.cpus)
            server: Listener = await started_worker(order, lambda: _end(folder))
        else:
            server = await started_scheduler(order)
    except (OSError, ValueError, RuntimeError) as error:
        send(answers, Refused(why=" ".join(str(error).split()) or type(error).__name__))
        return
    send(answers, Listening(address=server.address))
    await server.finished()


def _keep_to(cpus: tuple[int, ...] | None) -> None:
    """Keeps this process, and all that it starts, to CPUs. Raises ValueError for one that it may not use."""
    allowed = os.sched_getaffinity(0)
    if cpus is not None and not set(cpus) <= allowed:
        raise ValueError(f"cpus = {list(cpus)}: this host may use the CPUs {', '.join(map(str, sorted(allowed)))}")
    os.sched_setaffinity(0, cpus or allowed)


def _end_with_controller(requests: IO[bytes], folder: Path) -> None:
    """Ends this process when its standard input is closed, whatever it does. Processes that it has started for load end with it."""
    requests.read()
    _end(folder)


def _end(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    main()
