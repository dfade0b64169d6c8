"""Use cases of the studies as ready needs, with what the studies advise for each. Files."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from sensorbench.catalog.axes import FOLDER, studies
from sensorbench.catalog.entry import entries
from sensorbench.catalog.needs import need_kinds
from sensorbench.errors import UsageError
from sensorbench.toml_file import FileModel, error_at, load

PROFILES = FOLDER / "profiles"


class Advice(FileModel):
    """What a study advises: databases, others with what they take, why others are dismissed, and what is not a database."""

    advised: tuple[str, ...]
    also: dict[str, str] = {}
    dismissed: dict[str, str] = {}
    outside: str = ""


class Profile(FileModel):
    """A use case with its needs, the study that it is from, and what that advises."""

    name: str
    title: str
    summary: str
    source: str = Field(min_length=1)
    needs: dict[str, tuple[str, ...]]
    wishes: tuple[str, ...] = ()
    advice: Advice

    @field_validator("needs", mode="before")
    @classmethod
    def _may_be_one_choice(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: (choices,) if isinstance(choices, str) else choices for name, choices in given.items()}


@cache
def profiles() -> dict[str, Profile]:
    """All profiles by name."""
    return {file.stem: read_profile(file) for file in sorted(PROFILES.glob("*.toml"))}


def require_profile(name: str) -> Profile:
    """A profile by its name. Raises UsageError."""
    if name not in profiles():
        raise UsageError(f"--profile {name}: expected one of {', '.join(profiles())}")
    return profiles()[name]


def read_profile(file: Path) -> Profile:
    """Reads a profile, whose name is that of its file. Raises UsageError naming file, line and key."""
    profile = load(file, Profile, lambda content: {**content, "name": file.stem})
    for key, problem in _problems(profile):
        raise error_at(file, key, problem)
    return profile


def _problems(profile: Profile) -> Iterator[tuple[str, str]]:
    """What is wrong with a profile, by key."""
    if profile.source.partition(":")[0] not in studies():
        yield "source", f"expected one of the studies {', '.join(studies())}, and the place in it after a colon"
    for name, choices in profile.needs.items():
        if name not in need_kinds():
            yield f"needs.{name}", f"there is no such need; expected one of {', '.join(need_kinds())}"
            continue
        unknown = [choice for choice in choices if choice not in need_kinds()[name].choices]
        if unknown:
            yield f"needs.{name}", f"there is no choice {unknown[0]!r}; expected one of {', '.join(need_kinds()[name].choices)}"
    for name in profile.wishes:
        if name not in profile.needs:
            yield "wishes", f"{name!r} is none of the needs"
    for key, names in (
        ("advised", profile.advice.advised),
        ("also", profile.advice.also),
        ("dismissed", profile.advice.dismissed),
    ):
        for name in names:
            if name not in entries():
                yield f"advice.{key}", f"there is no database {name!r} in the catalog"
