"""Claims: published findings in checkable form, and what is said of one."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sensorbench import toml_file

Word = Literal["holds", "does not hold", "no difference seen", "inconclusive", "not tested here", "not tested at this scale"]
NOT_MEASURED = "something that it needs was not measured"


@dataclass(frozen=True)
class Judgement:
    """What the measurements say of a claim."""

    word: Word
    measured: dict[str, Any] | None
    reason: str


class Claim(toml_file.FileModel):
    """A published finding in checkable form."""

    id: str
    text: str
    form: str
    published: str
    # Variants that must have been measured, by the names of the study's roles.
    requires: list[str] = []
    # The parts of the study that it needs, in each of which those variants must have been measured. A claim that names none is
    # about each comparison by itself.
    parts: list[str] = []
    # What else it needs and is not here, in words; such a claim is not tested.
    blocked_by: str | None = None
    min_scale: float = 0.0
    # Why it needs that scale.
    scale_matters: str = ""


class ClaimsFile(toml_file.FileModel):
    """`claims.toml`."""

    claim: list[Claim]


def load_claims(file: Path, judges: Iterable[str]) -> tuple[Claim, ...]:
    """The claims of a file, each of which lacks something or has a judge, by its id."""
    found = toml_file.load(file, ClaimsFile).claim
    if {claim.id for claim in found if not claim.blocked_by} != set(judges):
        raise AssertionError(f"{file}: claims and judges do not fit")
    return tuple(found)


def untested_for(reason: str) -> Judgement:
    """What is said of something that was not tested, and why."""
    return Judgement("not tested here", None, reason)
