"""Loopback addresses for instances: 127.77.<cluster>.<node>, so that labs and servers of others never meet."""

import random
import socket

from sensorbench.errors import FailedError

_SUBNET = "127.77"
_CLUSTERS = range(1, 255)


def lease(nodes: int, port: int, taken: set[int]) -> tuple[int, int]:
    """The number of a cluster and a port that are free on as many addresses. The usual port, if nobody has it on all addresses."""
    candidates = [number for number in _CLUSTERS if number not in taken]
    random.shuffle(candidates)
    for cluster in candidates:
        for candidate in (port, _any_port(address(cluster, 1))):
            if all(_is_free(address(cluster, node), candidate) for node in range(1, nodes + 1)):
                return cluster, candidate
    raise FailedError(f"no free address below {_SUBNET}; end instances with: sensorbench lab down NAME")


def address(cluster: int, node: int) -> str:
    """The address of a node; nodes count from 1."""
    return f"{_SUBNET}.{cluster}.{node}"


def is_free(cluster: int, node: int, port: int) -> bool:
    """Whether nobody listens there."""
    return _is_free(address(cluster, node), port)


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _any_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
