"""When a run is given up: a database that only fails is gone, and failing as fast as possible measures nothing."""

import time
from typing import Any

# A server that is started anew by whoever watches over it is back by then.
LOST_S = 5.0
# Fewer failures may be slow questions that one database cannot answer: it is there and goes on with the next.
LEAST_FAILURES = 20


class Lifeline:
    """Watches the outcomes of operations while a run goes on."""

    def __init__(self) -> None:
        self._served = 0
        self._failed = 0
        self._failing_since_s: float | None = None
        self._failed_before = 0

    def is_lost(self, snapshot: dict[str, Any]) -> bool:
        """Whether operations, LEAST_FAILURES or more, have done nothing but fail for LOST_S seconds. Time-outs are answers of a kind:
        a slow database.
        """
        counts = [operation["counts"] for phase in snapshot["phases"] for operation in phase["operations"].values()]
        served = sum(count["ok"] + count["timeout"] for count in counts)
        failed = sum(count["error"] for count in counts)
        only_failed = served == self._served and failed > self._failed
        if served > self._served:
            self._failing_since_s = None
        elif only_failed and self._failing_since_s is None:
            self._failing_since_s, self._failed_before = time.monotonic(), self._failed
        self._served, self._failed = served, failed
        if self._failing_since_s is None or failed - self._failed_before < LEAST_FAILURES:
            return False
        return time.monotonic() - self._failing_since_s >= LOST_S


def why_lost(whole: dict[str, Any]) -> str:
    """The message for a run that was given up: of its errors the one that came most often."""
    errors = [error for error in whole["errors"] if error["kind"] != "cancelled"]
    if not errors:
        return "the database answers no more"
    often = max(errors, key=lambda error: int(error["count"]))
    return f"the run was given up after {LOST_S:g} s without an answer: {often['first_message']}"
