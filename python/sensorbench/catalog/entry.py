"""An entry of the catalog: what is true of a database on each axis, as it was studied and today, each with its source. Files."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field, field_validator

from sensorbench.catalog.axes import FOLDER, axes, studies
from sensorbench.errors import UsageError
from sensorbench.toml_file import FileModel, error_at, load

ENTRIES = FOLDER / "databases"

When = Literal["studied", "today"]
WHEN: tuple[When, ...] = get_args(When)


class Fact(FileModel):
    """What is true of a database on an axis: words of that axis, none where it is not known, which a note explains. `source` is the
    name of a study or of one of the entry's sources, and the place in it after a colon.
    """

    value: tuple[str, ...]
    source: str = Field(min_length=1)
    note: str = ""

    @field_validator("value", mode="before")
    @classmethod
    def _may_be_one_word(cls, given: Any) -> Any:
        return (given,) if isinstance(given, str) else given

    @property
    def source_name(self) -> str:
        """The name of its source, without the place in it."""
        return self.source.partition(":")[0]


class Facts(FileModel):
    """A fact as it was studied, if it was, and as it is today."""

    studied: Fact | None = None
    today: Fact


class Today(FileModel):
    """The version that facts of today are about, and when it came out."""

    version: str
    date: str


class Entry(FileModel):
    """A database. `targets` are the names that it has as a target; `studied` has the version that each study used; `sources` what
    facts of today are taken from.
    """

    name: str
    title: str
    summary: str
    targets: tuple[str, ...]
    studied: dict[str, str]
    today: Today
    sources: dict[str, str]
    facts: dict[str, Facts]

    def fact(self, axis: str, when: When) -> Fact | None:
        """What is true of it on an axis; None if nothing is said."""
        facts = self.facts[axis]
        return facts.today if when == "today" else facts.studied

    def described_source(self, fact: Fact) -> str:
        """A fact's source as readers understand it."""
        name, _, place = fact.source.partition(":")
        title = self.sources.get(name) or f"study {name} ({studies()[name].year})"
        return f"{title}, {place.strip()}" if place else title


@cache
def entries() -> dict[str, Entry]:
    """All entries by name. Raises UsageError for a file that cannot be used."""
    return {file.stem: read_entry(file) for file in sorted(ENTRIES.glob("*.toml"))}


def read_entry(file: Path) -> Entry:
    """Reads an entry, whose name is that of its file. Raises UsageError naming file, line and key."""
    entry = load(file, Entry, lambda content: {**content, "name": file.stem})
    for key, problem in _problems(entry):
        raise error_at(file, key, problem)
    return entry


def require_entry(name: str) -> Entry:
    """An entry by its name. Raises UsageError."""
    if name not in entries():
        raise UsageError(f"there is no database {name!r} in the catalog; expected one of {', '.join(entries())}")
    return entries()[name]


def _problems(entry: Entry) -> Iterator[tuple[str, str]]:
    """What is wrong with an entry, by key."""
    for axis in axes():
        if axis not in entry.facts:
            yield f"facts.{axis}", "this key is missing: say what is true today, if only that it is not known, with a source"
    for study in entry.studied:
        if study not in studies():
            yield f"studied.{study}", f"there is no such study; expected one of {', '.join(studies())}"
    for axis in entry.facts:
        if axis not in axes():
            yield f"facts.{axis}", f"there is no such axis; expected one of {', '.join(axes())}"
        for when in WHEN:
            fact = entry.fact(axis, when)
            if fact:
                yield from ((f"facts.{axis}.{when}.{key}", problem) for key, problem in _of_fact(entry, axis, fact, when))
    for when in WHEN:
        yield from _contradictions(entry, when)


def _of_fact(entry: Entry, axis: str, fact: Fact, when: When) -> Iterator[tuple[str, str]]:
    words = axes()[axis].words
    for word in fact.value:
        if word not in words:
            yield "value", f"{word!r} is not a word of this axis; expected one of {', '.join(words)}"
    if len(fact.value) > 1 and not axes()[axis].several:
        yield "value", f"expected one word, not {len(fact.value)}"
    if not fact.value and not fact.note:
        yield "note", "expected a note that says why it is not known"
    known = entry.sources if when == "today" else entry.studied
    if fact.source_name not in known:
        yield (
            "source",
            f"{fact.source_name!r} is not a source of facts as of {when}; expected one of {', '.join(known) or 'none'}",
        )


def _contradictions(entry: Entry, when: When) -> Iterator[tuple[str, str]]:
    """Facts on two axes that cannot both be true."""
    consistency, transactions = entry.fact("consistency", when), entry.fact("transactions", when)
    if consistency and transactions and ("transactional" in consistency.value) != ("several" in transactions.value):
        yield (
            f"facts.transactions.{when}.value",
            "transactional consistency and transactions over several entities are one thing: expected both or neither",
        )
    distribution, growing = entry.fact("distribution", when), entry.fact("growing", when)
    if distribution and growing and "not-distributed" in distribution.value and set(growing.value) - {"no", "readers"}:
        yield f"facts.growing.{when}.value", "what is not distributed does not grow by nodes: expected readers or no"
