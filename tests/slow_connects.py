"""Load generators that connect to a server that takes connections and never answers; the user interrupts while they wait."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace

import psutil
import pytest

from sensorbench.runner.generators.hosted import HostedGenerator
from sensorbench.runner.generators.load_generator import ShareWork
from sensorbench.runner.generators.local import LocalGenerator

# A driver waits for 10 s for each host of a URL.
HOSTS = 12
# This long the server is silent once it is interrupted; then it hangs up.
SILENT_S = 60.0
NO_TABLES = '{"operations": []}'


class SilentServer:
    """Takes as many connections as there are load generators, and has Ctrl-C come when all of them are there."""

    def __init__(self, load_generators: int) -> None:
        self._load_generators = load_generators
        self._server = socket.create_server(("127.0.0.1", 0))
        self._closed = threading.Event()
        self.has_interrupted = False
        self.has_hung_up = False
        self._thread = threading.Thread(target=self._serve, name="silent server", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it is."""
        host, port = self._server.getsockname()
        return f"postgresql://me@{','.join([f'{host}:{port}'] * HOSTS)}/data"

    def close(self) -> None:
        """Takes no connections any more."""
        self._closed.set()
        # One that waits for a connection is woken by that alone.
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()

    def _serve(self) -> None:
        with ExitStack() as connections, suppress(OSError):
            for _ in range(self._load_generators):
                connections.enter_context(self._server.accept()[0])
            self.has_interrupted = True
            os.kill(os.getpid(), signal.SIGINT)
            self.has_hung_up = not self._closed.wait(SILENT_S)
            # It refuses the next hosts of the URL, too.
            self._server.shutdown(socket.SHUT_RDWR)


@contextmanager
def interrupted_while_they_connect(
    monkeypatch: pytest.MonkeyPatch, kind: type[LocalGenerator] | type[HostedGenerator], load_generators: int
) -> Iterator[None]:
    """Has load generators of a kind connect to a silent server, and Ctrl-C come then. When the context ends, the server must not have
    hung up on them, and none of them may be left.
    """
    server = SilentServer(load_generators)
    prepare, join = kind.prepare, kind.join

    def prepare_there(generator: LocalGenerator | HostedGenerator, work: ShareWork) -> None:
        prepare(generator, replace(work, url=server.url, driver_schema=NO_TABLES))  # type: ignore[arg-type]

    def join_there(generator: LocalGenerator | HostedGenerator, _: str, __: str) -> None:
        join(generator, server.url, NO_TABLES)  # type: ignore[arg-type]

    try:
        with monkeypatch.context() as patch:
            patch.setattr(kind, "prepare", prepare_there)
            patch.setattr(kind, "join", join_there)
            yield
    finally:
        server.close()
    assert server.has_interrupted
    assert not server.has_hung_up, "the interruption was kept waiting until they were refused"
    assert own_processes() == []


def own_processes() -> list[psutil.Process]:
    """The load generators of this process, and of its hosts."""
    found = []
    for child in psutil.Process().children(recursive=True):
        # It may end meanwhile.
        with suppress(psutil.NoSuchProcess):
            if "sensorbench.runner.generators.worker" in child.cmdline():
                found.append(child)
    return found
