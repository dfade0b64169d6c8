"""What is made of dask: certificates, and a scheduler and workers that listen at the given addresses and nowhere else."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sensorbench.hosts.hosts_file import Scheduler as RunningScheduler
from sensorbench.hosts.messages import BeHost, BeScheduler, Credentials

if TYPE_CHECKING:
    from distributed import Security

# A host of which the scheduler hears nothing for this long is gone to it.
_SILENT = "30s"
# Of dask's own: what would look into this process, listen for browsers or move work about.
_CONFIGURATION = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.worker-ttl": _SILENT,
    "distributed.scheduler.allowed-failures": 0,
    "distributed.comm.timeouts.connect": "10s",
}


class Listener(Protocol):
    """What is left of a scheduler or a worker once it was started."""

    @property
    def address(self) -> str:
        """Where it listens."""

    async def finished(self) -> None:
        """Waits until it is over."""


def new_credentials() -> Credentials:
    """A certificate and a key that nobody else has. They are in memory alone."""
    from distributed import Security

    made = Security.temporary()
    return Credentials(certificate=made.tls_client_cert, key=made.tls_client_key)


def security_of(credentials: Credentials) -> "Security":
    """TLS in both directions: who has no such certificate can neither connect nor be connected to."""
    from distributed import Security

    roles = ("client", "scheduler", "worker")
    return Security(
        require_encryption=True,
        tls_ca_file=credentials.certificate,
        **{f"tls_{role}_cert": credentials.certificate for role in roles},
        **{f"tls_{role}_key": credentials.key for role in roles},
    )


def security_of_client(scheduler: RunningScheduler) -> "Security":
    """How a client connects to a cluster that is already running: by its certificates, or as dask's own configuration has it."""
    from distributed import Security

    if scheduler.ca_file is None or scheduler.cert_file is None or scheduler.key_file is None:
        return Security()
    return Security(
        require_encryption=True,
        tls_ca_file=_path(scheduler.ca_file),
        tls_client_cert=_path(scheduler.cert_file),
        tls_client_key=_path(scheduler.key_file),
    )


def _path(file: Path) -> str:
    return str(file.expanduser())


@contextmanager
def configured(folder: Path | None = None) -> Iterator[None]:
    """Has dask do in this context what hosts need, and nothing besides; its own files go below a folder, if one is given."""
    import dask.config

    # Its defaults are there before: leaving the context takes back what was not.
    import distributed  # noqa: F401

    places = {} if folder is None else {"temporary-directory": os.fspath(folder)}
    with dask.config.set({**_CONFIGURATION, **places}):
        yield


async def started_scheduler(order: BeScheduler) -> Listener:
    """A scheduler that listens. Raises OSError and ValueError if it cannot."""
    from distributed import Scheduler

    class QuietScheduler(Scheduler):  # type: ignore[misc]
        """One without a page for browsers."""

        def start_http_server(self, *_: Any, **__: Any) -> None:
            """Nothing listens but the scheduler itself."""

    started: Listener = await QuietScheduler(
        host=order.address, port=order.port, protocol="tls", security=security_of(order.credentials), dashboard=False
    )
    return started


async def started_worker(order: BeHost, on_lost: Callable[[], None]) -> Listener:
    """A worker that listens. `on_lost` is called when its scheduler is gone. Raises OSError and ValueError if it cannot
    be started.
    """
    from distributed import Worker

    class QuietWorker(Worker):  # type: ignore[misc]
        """One without a page for browsers, which is none any more without its scheduler."""

        def start_http_server(self, *_: Any, **__: Any) -> None:
            """Nothing listens but the worker itself."""

        async def handle_scheduler(self, comm: Any) -> None:
            """Hears the scheduler until it is gone; dask's own worker would go on answering others for a while."""
            try:
                await self.handle_stream(comm)
            finally:
                on_lost()

    started: Listener = await QuietWorker(
        order.scheduler,
        name=order.name,
        host=order.address,
        port=order.port,
        nthreads=1,
        memory_limit=0,
        security=security_of(order.credentials),
    )
    return started
