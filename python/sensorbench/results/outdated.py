"""Versions of databases that nobody would choose today, which are not ranked against current ones unless it is asked for."""

import re
import tomllib
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict


class CurrentVersion(BaseModel):
    """Which versions of a database are current: this one and those after it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    current: str
    why: str
    source: str
    # Whether a server that does not name its version is one of an outdated version.
    is_unnamed_outdated: bool = False


def why_outdated(database: str, version: str) -> str | None:
    """Why a version of a database is outdated, in words for a report; None if it is current, or nothing is known of the database.

    Args:
        database: What the server calls itself.
        version: What it says of its version, for example 1.6.7~rc0; without a number where it says nothing.

    """
    known = current_versions().get(database)
    if known is None:
        return None
    numbers = _numbers(version)
    if numbers is None:
        return f"{database} does not name its version; {known.why}" if known.is_unnamed_outdated else None
    return f"{database} {version} is outdated: {known.why}" if is_before(version, known.current) else None


def is_before(version: str, other: str | None) -> bool:
    """Whether a version is an earlier one than another. What says no number is before nothing, and nothing is before None."""
    numbers = _numbers(version)
    return numbers is not None and numbers < ((_numbers(other) if other else None) or ())


@cache
def current_versions() -> dict[str, CurrentVersion]:
    """What is known of databases, by the names that their servers give themselves."""
    text = Path(__file__).with_name("outdated.toml").read_text(encoding="utf-8")
    return {name: CurrentVersion.model_validate(entry) for name, entry in tomllib.loads(text).items()}


def _numbers(version: str) -> tuple[int, ...] | None:
    found = re.search(r"\d+(?:\.\d+)*", version)
    return tuple(int(number) for number in found[0].split(".")) if found else None
