"""Targets of other tools' workloads: what one command loads there, the next one uses."""

from sensorbench.errors import UsageError
from sensorbench.runner import TargetSpec, parse_target


def lasting_target(text: str) -> TargetSpec:
    """The target of a text, which stays when the command has ended. Raises UsageError for any other."""
    target = parse_target(text)
    if target.place in ("folder", "started"):
        name = target.database.name
        place = f"{name}:PATH" if target.database.embedded else f"lab:NAME (sensorbench lab up {name}) or a URL"
        raise UsageError(f"--target {text}: what is loaded must still be there afterwards; expected {place}")
    return target
