"""What keeps a call from being made twice on a host, whatever the network or the scheduler repeats."""

from dataclasses import dataclass
from threading import Lock
from uuid import uuid4


@dataclass(frozen=True)
class Ticket:
    """The controller's order for one call: to one process of a host (its epoch), by a number that the controller gives once."""

    epoch: str
    number: int


class FencedError(Exception):
    """A call came that was made before, or that was for a process of the host before this one."""


class Fence:
    """The tickets that a process of a host has seen. Another process, also one started in its place, has another epoch."""

    def __init__(self) -> None:
        self.epoch = uuid4().hex
        self._lock = Lock()
        # All numbers up to here were seen, and these beyond it.
        self._seen_to = 0
        self._seen: set[int] = set()

    def admit(self, ticket: Ticket) -> None:
        """Takes a ticket, once. Raises FencedError."""
        if ticket.epoch != self.epoch:
            raise FencedError("the call was for a process of this host that is gone")
        with self._lock:
            if ticket.number <= self._seen_to or ticket.number in self._seen:
                raise FencedError(f"call {ticket.number} was made before")
            self._seen.add(ticket.number)
            while self._seen_to + 1 in self._seen:
                self._seen_to += 1
                self._seen.remove(self._seen_to)
