"""Hosts and a cluster for tests without servers: a host is a process with a lab of its own, and a node of the cluster a process that listens."""

import os
import pickle
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from sensorbench.errors import LostHostError
from sensorbench.lab.database import LabCluster, Place
from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.registry import LAB_DATABASES, LAB_SERVERS
from sensorbench.lab.software import Source
from sensorbench.lab.state_dirs import ServerUser, calling_user

ROOT = Path(__file__).parent.parent
_LENGTH = struct.Struct("<Q")

_NODE = """
import socket, sys
with socket.create_server((sys.argv[1], int(sys.argv[2]))) as server:
    print("listens", flush=True)
    while True:
        server.accept()[0].close()
"""


class Nothing(Source):
    """Software that is there."""

    def missing(self) -> str | None:
        return None

    def unpack_into(self, folder: Path) -> None:
        raise AssertionError(folder)

    @property
    def is_there(self) -> bool:
        return True

    @property
    def folder(self) -> Path:
        return Path(sys.prefix)


class FakeRing(LabCluster):
    """Nodes that do nothing but listen."""

    name = "fake-ring"
    summary = "a cluster of tests"
    at_once_costs = "nothing"
    port = 7900
    other_ports = (7901,)
    runs_on_hosts = True
    ready_within_s = 20.0
    sources = (Nothing("fake-ring", "1"),)

    def user(self) -> ServerUser:
        # The folders of tests are their own.
        return calling_user()

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        return {}

    def set_up(self, place: Place) -> None:
        place.data.mkdir(mode=0o700)
        (place.data / "rows").write_bytes(bytes(5000))
        place.user.owns(place.data)

    def command(self, place: Place) -> list[str | Path]:
        if "fails" in place.instance.settings:
            return [sys.executable, "-S", "-c", "raise SystemExit('there is no room for it')"]
        return [sys.executable, "-S", "-c", _NODE, place.node.host, str(place.node.port)]

    def readiness(self, instance: Instance, node: Node) -> Callable[[], str]:
        return lambda: "" if listens(node) else "nobody listens"

    def url(self, instance: Instance) -> str:
        return f"fake-ring://{','.join(f'{node.host}:{node.port}' for node in instance.nodes)}"

    def insight(self, instance: Instance, node: Node) -> Mapping[str, float]:
        return {"listens": float(listens(node))}

    def join(self, instance: Instance, software: Path, user: ServerUser) -> None:
        assert all(listens(node) for node in instance.nodes)

    def add_nodes(self, instance: Instance, nodes: Sequence[Node], software: Path, user: ServerUser) -> None:
        assert all(listens(node) for node in nodes)

    def remove_node(self, instance: Instance, node: Node, software: Path, user: ServerUser) -> None:
        return


def listens(node: Node) -> bool:
    """Whether a node of any cluster listens."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((node.host, node.port)) == 0


def know_fake_ring() -> None:
    """Has the lab of this process know it."""
    LAB_SERVERS[FakeRing.name] = LAB_DATABASES[FakeRing.name] = FakeRing()


def forget_fake_ring() -> None:
    """Has the lab of this process know it no more."""
    del LAB_SERVERS[FakeRing.name], LAB_DATABASES[FakeRing.name]


class ProcessHost:
    """A process of this machine that has a lab folder of its own."""

    def __init__(self, name: str, address: str, home: Path) -> None:
        self.name, self.address, self.home = name, address, home
        self._lock = threading.Lock()
        self.process: subprocess.Popen[bytes] = None  # type: ignore[assignment]
        self.start()

    def start(self) -> None:
        """Starts its process, for the first time or again."""
        (self.home / "instances").mkdir(parents=True, exist_ok=True)
        self._close_streams()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fake_hosts"],
            cwd=ROOT,
            env={**os.environ, "SENSORBENCH_LAB": str(self.home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._ask("call", function, args, kwargs)

    def keep(self, kind: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return _Kept(self, self._ask("keep", kind, args, kwargs))

    def ask_kept(self, key: int, method: str, args: tuple[Any, ...]) -> Any:
        return self._ask("kept", key, method, args)

    def _ask(self, *order: Any) -> Any:
        requests, answers = self.process.stdin, self.process.stdout
        assert requests is not None
        assert answers is not None
        with self._lock:
            try:
                _send(requests, order)
                is_raised, value = _receive(answers)
            except (OSError, EOFError):
                raise LostHostError(f"host {self.name} is gone: its process {self.process.pid} has ended") from None
        if is_raised:
            raise value
        return value

    def kill(self) -> None:
        """Ends its process as `kill -9` does."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """Ends its process, if it is there."""
        self.kill()
        self._close_streams()

    def _close_streams(self) -> None:
        for stream in (self.process.stdin, self.process.stdout) if self.process else ():
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


class _Kept:
    def __init__(self, host: ProcessHost, key: int) -> None:
        self._host, self._key = host, key

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda *args: self._host.ask_kept(self._key, method, args)


def _send(stream: IO[bytes], content: object) -> None:
    data = pickle.dumps(content)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def _receive(stream: IO[bytes]) -> Any:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    return pickle.loads(stream.read(_LENGTH.unpack(head)[0]))


def _serve() -> None:
    """Makes the calls that come, one after the other, until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    # What is printed is not an answer.
    os.dup2(2, 1)
    know_fake_ring()
    kept: list[Any] = []
    while True:
        try:
            kind, *order = _receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            if kind == "kept":
                key, method, args = order
                value = getattr(kept[key], method)(*args)
            else:
                function, args, kwargs = order
                value = function(*args, **kwargs)
            if kind == "keep":
                kept.append(value)
                value = len(kept) - 1
            answer = (False, value)
        except Exception as error:  # whatever it is, who asked raises it
            answer = (True, error)
        _send(answers, answer)


if __name__ == "__main__":
    # Functions are found by the name of this module, not as those of the program.
    from tests import fake_hosts

    fake_hosts._serve()
