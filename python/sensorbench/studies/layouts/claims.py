"""What the claims of the layouts study (claims.toml) speak of, besides the quantities of all comparisons."""

import re
from collections.abc import Mapping, Sequence

from sensorbench.claims import LOAD_VARIATION, Evidence, NotMeasuredError, Quantity, RunValues

# From this version on MongoDB builds every index in one way, whatever is asked for (release notes of 4.2).
_ONE_WAY_FROM = (4, 2)
_VERSION = re.compile(r"(\d+)\.(\d+)")


def _build_s(evidence: Evidence, role: str, _: Sequence[str]) -> RunValues | None:
    """How long a layout took to settle, which is the build of its index. It was built once."""
    load = evidence.result.loads.get(evidence.roles[role])
    if load is None:
        return None
    version = load.description.version
    number = _VERSION.search(version)
    if number is None or (int(number[1]), int(number[2])) >= _ONE_WAY_FROM:
        raise NotMeasuredError(
            f"{version} builds indexes in one way, so that there is no foreground and no background (since 4.2)"
        )
    return RunValues.once(load.settle_s, LOAD_VARIATION)


QUANTITIES: Mapping[str, Quantity] = {"build_s": _build_s}
