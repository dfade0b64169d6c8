"""Records what clients send to a Redis of the lab, by MONITOR on a connection of our own. No setting is changed."""

import os
import selectors
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from sensorbench import lab
from sensorbench.errors import FailedError
from sensorbench.lab.instance import USER, Node
from sensorbench.traffic.entries import Entry, Skipped
from sensorbench.traffic.formats import MONITOR
from sensorbench.traffic.importing import make_trace
from sensorbench.traffic.recording import OnSecond, check_runs, wait
from sensorbench.traffic.trace import Trace

_CONNECT_WITHIN_S = 10.0
_BYTES = 1 << 20
_READS_AT_A_TIME = 256


def record_redis(instance: lab.Instance, duration_s: float, folder: Path, on_second: OnSecond) -> Trace:
    """Records all nodes of a Redis of the lab; see `record_traffic`."""
    with tempfile.TemporaryDirectory(prefix="sensorbench-traffic-") as place:
        texts = [Path(place) / f"node-{node.number}.txt" for node in instance.nodes]
        with ExitStack() as stack:
            watched = selectors.DefaultSelector()
            stack.callback(watched.close)
            for node, text in zip(instance.nodes, texts, strict=True):
                connection = stack.enter_context(_monitoring(instance, node))
                watched.register(connection, selectors.EVENT_READ, stack.enter_context(text.open("wb")))

            def look(over_s: float) -> None:
                check_runs(instance, over_s)
                _save(instance, watched, over_s)

            wait(duration_s, on_second, look)
            _save(instance, watched, duration_s)
        skipped = Skipped()
        origin = [Path(f"{instance.name}-{text.name}") for text in texts]
        return make_trace(_entries(texts, skipped), folder, MONITOR, origin, skipped, instance.version)


def _monitoring(instance: lab.Instance, node: Node) -> socket.socket:
    """A connection to which a node sends all that it is sent."""
    connection = socket.create_connection((node.host, node.port), timeout=_CONNECT_WITHIN_S)
    try:
        for words in (("AUTH", USER, instance.password()), ("MONITOR",)):
            connection.sendall(_request(words))
            answer = b""
            while not answer.endswith(b"\n"):
                # A byte at a time: what follows the answer to MONITOR is what clients send.
                part = connection.recv(1)
                if not part:
                    raise FailedError(f"{instance.name}: node {node.number} closed the connection at {words[0]}")
                answer += part
            if answer != b"+OK\r\n":
                said = answer.decode("utf-8", "replace").strip()
                raise FailedError(f"{instance.name}: node {node.number} refused {words[0]}: {said}")
    except BaseException:
        connection.close()
        raise
    return connection


def _request(words: Sequence[str]) -> bytes:
    encoded = [word.encode() for word in words]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded)


def _save(instance: lab.Instance, watched: selectors.BaseSelector, over_s: float) -> None:
    """Writes what has come so far into the files; what comes meanwhile without end is left for the next time."""
    for _ in range(_READS_AT_A_TIME):
        ready = watched.select(0)
        if not ready:
            return
        for key, _ in ready:
            text: BinaryIO = key.data
            part = os.read(key.fd, _BYTES)
            if not part:
                raise FailedError(f"{instance.name} closed the connection after {over_s:.0f} s of the recording")
            text.write(part)


def _entries(texts: Sequence[Path], skipped: Skipped) -> Iterator[Entry]:
    """Sessions of different nodes are different ones."""
    for number, text in enumerate(texts):
        for entry in MONITOR.read(text, skipped):
            entry.session = (number, entry.session)
            yield entry
