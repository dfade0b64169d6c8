"""Loopback addresses for instances: 127.77.<cluster>.<node>, so that labs and servers of others never meet."""

import ipaddress
import random
import socket
from collections.abc import Sequence

from sensorbench.errors import FailedError

_SUBNET = "127.77"
_CLUSTERS = range(1, 255)
_COORDINATOR = 254
# Where the usual port is taken, one of this many is.
_NEAR = 100


def lease(nodes: int, port: int, other_ports: Sequence[int], taken: set[int]) -> tuple[int, int]:
    """The number of a cluster and a port that are free on as many addresses. The usual port, if nobody has it on all addresses.

    The other ports cannot be chosen: they must be free, too.
    """
    candidates = [number for number in _CLUSTERS if number not in taken]
    random.shuffle(candidates)
    for cluster in candidates:
        for candidate in (port, _any_port(address(cluster, 1))):
            if all(is_free(cluster, node, port) for node in range(1, nodes + 1) for port in (candidate, *other_ports)):
                return cluster, candidate
    ports = f" with free ports {', '.join(map(str, other_ports))}" if other_ports else ""
    raise FailedError(f"no free address below {_SUBNET}{ports}; end instances with: sensorbench lab down NAME")


def share(cluster: int, nodes: int, ports: Sequence[int]) -> tuple[int, int]:
    """The addresses of another instance, for nodes beside its own: its cluster, and the first of the ports, all of which must be free there.

    Raises:
        FailedError: if one is taken.

    """
    for node in range(1, nodes + 1):
        for port in ports:
            if not is_free(cluster, node, port):
                raise FailedError(f"{address(cluster, node)}:{port} is in use by another program")
    return cluster, ports[0]


def is_loopback(host: str) -> bool:
    """Whether who has an address is on this machine; empty is this machine."""
    try:
        return not host or ipaddress.ip_address(host).is_loopback
    except ValueError:
        # A name.
        return False


def address(cluster: int, node: int) -> str:
    """The address of a node; nodes count from 1."""
    return f"{_SUBNET}.{cluster}.{node}"


def coordinator_address(cluster: int) -> str:
    """The address of what the nodes need beside them: the last one."""
    return address(cluster, _COORDINATOR)


def free_port(host: str, port: int, other_ports: Sequence[int], taken: Sequence[int]) -> int:
    """A port that is free at the address of a host, which is this machine.

    Args:
        host: the address.
        port: the usual port, which it is if that is free, else one of the next.
        other_ports: those that cannot be chosen: they must be free, too.
        taken: ports that others will have who do not listen yet.

    Raises:
        FailedError: if there is none, and where the address is none of this machine's.

    """
    if busy := [other for other in other_ports if not is_free_at(host, other)]:
        raise FailedError(f"{host}:{busy[0]} is in use by another program, or not an address of this machine")
    near = (candidate for candidate in range(port, port + _NEAR) if candidate not in taken)
    found = next((candidate for candidate in near if is_free_at(host, candidate)), None)
    if found is None:
        raise FailedError(f"no port from {port} to {port + _NEAR - 1} is free at {host}, or it is not an address of this machine")
    return found


def is_free(cluster: int, node: int, port: int) -> bool:
    """Whether nobody listens there."""
    return is_free_at(address(cluster, node), port)


def is_free_at(host: str, port: int) -> bool:
    """Whether nobody listens at an address of this machine; False where it is none."""
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
