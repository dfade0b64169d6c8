"""How databases are asked for the plan of a statement, which is data: `explains.toml`, by dialect."""

import functools
import re
from pathlib import Path

from pydantic import Field

from sensorbench.toml_file import FileModel, load

EXPLAINS_FILE = Path(__file__).parent / "explains.toml"


class PlanColumn(FileModel):
    """A column of the rows that a plan comes in."""

    name: str
    type: str


class AccessRule(FileModel):
    """What a pattern in a plan's text says about the access path."""

    pattern: re.Pattern[str]
    access: str = Field(alias="is")


class Explain(FileModel):
    """How a dialect is asked for a plan: the words before the statement, which columns come back, and how the text is read."""

    words: str
    columns: list[PlanColumn]
    rules: list[AccessRule] = Field(alias="access")

    def access(self, text: str) -> str | None:
        """The access path in a few words: an index, or `scan` for all rows; None if the text does not say."""
        for rule in self.rules:
            if found := rule.pattern.search(text):
                return rule.access.format_map(found.groupdict())
        return None


class _Explains(FileModel):
    dialect: dict[str, Explain]


@functools.cache
def _explains() -> dict[str, Explain]:
    return load(EXPLAINS_FILE, _Explains, lambda content: {"dialect": content}).dialect


def explain_of(dialect: str) -> Explain | None:
    """How a dialect is asked for a plan; None for one that has no plans."""
    return _explains().get(dialect)
