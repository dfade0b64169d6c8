"""Orders to HBase's coordinator that its gateways have no word for (`HbaseAdmin.java`)."""

import json
import socket
from typing import Any

from sensorbench.errors import FailedError
from sensorbench.lab.instance import Instance, Node

PORT = 16100
_WITHIN_S = 600.0


def ask(instance: Instance, *words: str, within_s: float = _WITHIN_S) -> dict[str, Any]:
    """What the coordinator answers to an order. Raises FailedError with why it was not carried out."""
    line = " ".join(words)
    try:
        with (
            socket.create_connection((_coordinator(instance).host, PORT), timeout=within_s) as connection,
            connection.makefile("rw", encoding="utf-8", newline="\n") as lines,
        ):
            lines.write(f"{line}\n")
            lines.flush()
            answer: dict[str, Any] = json.loads(lines.readline())
    except (OSError, ValueError) as error:
        raise FailedError(f"{instance.name}: the coordinator did not answer to {line!r} ({error})") from None
    if "error" in answer:
        raise FailedError(f"{instance.name}: {answer['error']}")
    return answer


def place(instance: Instance) -> str:
    """Where orders are taken: HOST:PORT."""
    return f"{_coordinator(instance).host}:{PORT}"


def _coordinator(instance: Instance) -> Node:
    if instance.coordinator is None:
        raise AssertionError("HBase has a coordinator")
    return instance.coordinator
