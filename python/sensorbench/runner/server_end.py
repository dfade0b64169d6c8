"""What a server that has ended says of its end: whoever asked it knows only that the connection is gone."""

import time

from sensorbench import lab
from sensorbench.errors import LostHostError
from sensorbench.runner.variants import Variant

# A process that is killed is there for a moment longer than its connections.
_WITHIN_S, _EVERY_S = 1.0, 0.1


def why_server_ended(variant: Variant) -> str:
    """What the log of a variant's server says last, where that server is the lab's and has ended; else an empty text."""
    instance = lab.instance_at(variant.url) if variant.url and not variant.target.database.embedded else None
    if instance is None:
        return ""
    until_s = time.monotonic() + _WITHIN_S
    try:
        while not (why := lab.why_ended(instance)) and time.monotonic() < until_s:
            time.sleep(_EVERY_S)
    except LostHostError:
        return ""
    return why
