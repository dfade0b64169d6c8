"""What all ways of recording share: they wait while clients work, and notice when a server ends."""

import time
from collections.abc import Callable

from sensorbench import lab
from sensorbench.errors import FailedError

# Called meanwhile with the seconds that are over.
OnSecond = Callable[[float], None]
WATCH_EVERY_S = 0.2


def wait(duration_s: float, on_second: OnSecond, look: Callable[[float], None]) -> None:
    """Waits for a while; `look` is called again and again with the seconds that are over, and may raise."""
    started = time.monotonic()
    while (over := time.monotonic() - started) < duration_s:
        on_second(over)
        look(over)
        time.sleep(max(0.0, min(WATCH_EVERY_S, duration_s - (time.monotonic() - started))))


def watch(instance: lab.Instance, duration_s: float, on_second: OnSecond) -> None:
    """Waits for a while. Raises FailedError if a node of the lab ends meanwhile."""
    wait(duration_s, on_second, lambda over: check_runs(instance, over))


def check_runs(instance: lab.Instance, over_s: float) -> None:
    """Raises FailedError if a node is not running."""
    ended = next((node for node in instance.nodes if not lab.runs(instance, node)), None)
    if ended is not None:
        raise FailedError(
            f"{instance.name} ended after {over_s:.0f} s of the recording; see {instance.node_folder(ended) / 'server.log'}"
        )
