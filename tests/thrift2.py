"""As much of Thrift's binary protocol as tests need to ask a gateway of HBase without a driver: values say their types themselves.

A struct is a dict of field numbers, bytes and texts are strings of bytes, int is i32; what an answer is, is read from it.
"""

import socket
import struct
from typing import Any

_VERSION_CALL, _EXCEPTION = 0x80010001, 3
_BOOL, _BYTE, _DOUBLE, _I16, _I32, _I64, _BYTES, _STRUCT, _MAP, _SET, _LIST = 2, 3, 4, 6, 8, 10, 11, 12, 13, 14, 15
_NUMBERS = {_BOOL: "?", _BYTE: "b", _DOUBLE: "d", _I16: "h", _I32: "i", _I64: "q"}


class Gateway:
    """A connection to HOST:PORT (buffered transport). A context manager."""

    def __init__(self, place: str) -> None:
        host, _, port = place.partition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60.0)
        self._answers = self._socket.makefile("rb")

    def __enter__(self) -> "Gateway":
        return self

    def __exit__(self, *_: object) -> None:
        self._answers.close()
        self._socket.close()

    def call(self, name: str, *arguments: object) -> Any:
        """The answer to a function; its arguments are numbered from 1. Raises RuntimeError with what the gateway raised."""
        fields = dict(enumerate(arguments, start=1))
        self._socket.sendall(struct.pack(">I", _VERSION_CALL) + _bytes(name.encode()) + struct.pack(">i", 0) + _struct(fields))
        kind = self._number("I") & 0xFF
        self._value(_BYTES), self._number("i")
        answer = self._value(_STRUCT)
        if kind == _EXCEPTION or answer.keys() - {0}:
            raise RuntimeError(f"{name}: {answer}")
        return answer.get(0)

    def _number(self, form: str) -> Any:
        return struct.unpack(f">{form}", self._answers.read(struct.calcsize(f">{form}")))[0]

    def _value(self, kind: int) -> Any:
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind == _BYTES:
            return self._answers.read(self._number("i"))
        if kind == _STRUCT:
            fields = {}
            while of := self._number("b"):
                number = self._number("h")
                fields[number] = self._value(of)
            return fields
        if kind == _MAP:
            key, value, count = self._number("b"), self._number("b"), self._number("i")
            return {self._value(key): self._value(value) for _ in range(count)}
        item, count = self._number("b"), self._number("i")
        return [self._value(item) for _ in range(count)]


def _struct(fields: dict[int, object]) -> bytes:
    written = [struct.pack(">bh", _kind(value), number) + _written(value) for number, value in fields.items()]
    return b"".join(written) + b"\0"


def _bytes(text: bytes) -> bytes:
    return struct.pack(">i", len(text)) + text


def _kind(value: object) -> int:
    return {bytes: _BYTES, dict: _STRUCT, list: _LIST, int: _I32}[type(value)]


def _written(value: object) -> bytes:
    match value:
        case bytes():
            return _bytes(value)
        case dict():
            return _struct(value)
        case list():
            item = _kind(value[0]) if value else _BYTES
            return struct.pack(">bi", item, len(value)) + b"".join(map(_written, value))
        case int():
            return struct.pack(">i", value)
    raise TypeError(f"{value!r}")
