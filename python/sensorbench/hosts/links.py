"""Connections between hosts, measured: round trip and bandwidth."""

import secrets
import socket
import time
from contextlib import suppress
from statistics import median
from threading import Thread
from typing import NamedTuple

_ROUND_TRIPS = 50
_BYTES, _PIECE = 32 << 20, 1 << 20
_WITHIN_S = 60.0


class LinkPlace(NamedTuple):
    """Where an end listens, and the word that who connects must know."""

    address: str
    port: int
    word: str


class Link(NamedTuple):
    """A connection: the median of its round trips, and how fast data go one way."""

    round_trip_s: float
    bytes_per_s: float


class LinkEnd:
    """An end that listens at an address of its host until it is closed, and answers those who know its word."""

    def __init__(self, address: str) -> None:
        self._word = secrets.token_hex(16)
        self._server = socket.create_server((address, 0))
        self._place = LinkPlace(address, self._server.getsockname()[1], self._word)
        Thread(target=self._serve, name="link", daemon=True).start()

    def place(self) -> LinkPlace:
        """Where it is reached."""
        return self._place

    def close(self) -> None:
        """Listens no more."""
        # One that waits for a connection is woken by that alone.
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            # Whoever breaks off is served no more.
            with connection, suppress(OSError):
                connection.settimeout(_WITHIN_S)
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        word = _received(connection, len(self._word))
        if not secrets.compare_digest(word, self._word.encode()):
            return
        for _ in range(_ROUND_TRIPS):
            connection.sendall(_received(connection, 1))
        left = _BYTES
        while left and (piece := connection.recv(min(left, _PIECE))):
            left -= len(piece)
        connection.sendall(b"!")


def measured_link(place: LinkPlace) -> Link:
    """The connection from this machine to an end. Raises OSError."""
    with socket.create_connection((place.address, place.port), timeout=_WITHIN_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(place.word.encode())
        round_trips_s = []
        for _ in range(_ROUND_TRIPS):
            before_s = time.perf_counter()
            connection.sendall(b"?")
            _received(connection, 1)
            round_trips_s.append(time.perf_counter() - before_s)
        piece = bytes(_PIECE)
        before_s = time.perf_counter()
        for _ in range(_BYTES // _PIECE):
            connection.sendall(piece)
        _received(connection, 1)
        return Link(median(round_trips_s), _BYTES / (time.perf_counter() - before_s))


def _received(connection: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        piece = connection.recv(size - len(content))
        if not piece:
            raise ConnectionError("the other end has closed the connection")
        content += piece
    return content
