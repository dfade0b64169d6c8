"""What a node of Cassandra reports that only its management (JMX) knows, asked of the helper within the node (`Insight.java`)."""

import socket

from sensorbench.lab.instance import Node

PORT = 7198
_WITHIN_S = 2.0


def ask(node: Node) -> dict[str, float]:
    """The helper's names, each with its number; nothing of a node that does not answer."""
    try:
        with (
            socket.create_connection((node.host, PORT), timeout=_WITHIN_S) as connection,
            connection.makefile(encoding="utf-8") as output,
        ):
            return {name: float(number) for name, number in (line.split(" ") for line in output)}
    except (OSError, ValueError):
        return {}
