"""What a server that has ended says of its end: whoever asked it knows only that the connection is gone."""

import time
from collections.abc import Sequence

from sensorbench import lab
from sensorbench.errors import LostHostError
from sensorbench.runner.servers import Servers
from sensorbench.runner.variants import Variant

# A process that is killed is there for a moment longer than its connections.
_WITHIN_S, _EVERY_S = 1.0, 0.1


def why_server_ended(variant: Variant) -> str:
    """What the log of a variant's server says last, where that server is the lab's and has ended; else an empty text."""
    instance = lab.instance_at(variant.url) if variant.url and not variant.target.database.embedded else None
    return _why_ended([instance] if instance is not None else [])


def why_servers_ended(servers: Servers) -> str:
    """The same of the first of several servers that has ended."""
    return _why_ended(list(servers.instances.values()))


def _why_ended(instances: Sequence[lab.Instance]) -> str:
    until_s = time.monotonic() + _WITHIN_S
    try:
        while instances:
            if why := next(filter(None, map(lab.why_ended, instances)), ""):
                return why
            if time.monotonic() >= until_s:
                break
            time.sleep(_EVERY_S)
    except LostHostError:
        pass
    return ""
