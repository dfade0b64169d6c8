"""Writes the lists of databases in documents from what the package has: `make docs-lists`.

A list stands between `<!-- databases: FOLDER -->` and `<!-- end -->`. FOLDER is a folder of the package with a part for each database:
`schemas/ycsb` has a folder for each dialect, `benchmarks/tune/spaces` a file for each database.
"""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from sensorbench import _engine
from sensorbench.catalog.entry import entries
from sensorbench.errors import UsageError
from sensorbench.results.files import write_text

PACKAGE = Path(__file__).parent.parent

_BEGIN = "<!-- databases: "
_LIST = re.compile(r"(?P<begin><!-- databases: (?P<folder>\S+) -->)(?P<list>(?:(?!<!--).)*)(?P<end><!-- end -->)", re.DOTALL)


def databases_in(folder: str, package: Path = PACKAGE) -> list[str]:
    """The databases that a folder of the package has a part for, as people call them, in the order of their registration.

    A folder stands for all databases of its dialect, a file for the one of its name. What answers nothing is not a database.
    """
    place = package / folder
    if not place.is_dir():
        raise UsageError(f"{_BEGIN}{folder} -->: there is no folder {folder} in the package")
    dialects = {part.name for part in place.iterdir() if part.is_dir() and any(part.glob("*.toml"))}
    names = {file.stem for file in place.glob("*.toml")}
    registered = json.loads(_engine.databases())
    found = [entry for entry in registered if entry["dialect"] in dialects or entry["name"] in names]
    return list(dict.fromkeys(title for entry in found if (title := _title(entry["name"], entry["summary"]))))


def _title(name: str, summary: str) -> str:
    """What people call a database; of one that the catalog describes instead of naming it, what its driver says. Empty for what is none."""
    titles = [entry.title for entry in entries().values() if name in entry.targets]
    if not titles:
        return ""
    title = titles[0].removeprefix("Apache ")
    return summary if "," in title else title


def with_lists(text: str, package: Path = PACKAGE) -> str:
    """A document with its lists as they should be. Raises UsageError for a list without an end, or of no folder."""

    def written(found: re.Match[str]) -> str:
        *others, last = databases_in(found["folder"], package)
        return f"{found['begin']}{', '.join(others)}{' and ' if others else ''}{last}{found['end']}"

    lists = len(_LIST.findall(text))
    if text.count(_BEGIN) != lists:
        raise UsageError(f"{text.count(_BEGIN)} lists begin with {_BEGIN}FOLDER --> and {lists} of them end with <!-- end -->")
    return _LIST.sub(written, text)


def write_docs_lists(documents: Sequence[Path]) -> list[Path]:
    """Writes the lists of documents, and of all below folders, again; returns those that changed."""
    changed = []
    for document in [file for place in documents for file in (sorted(place.rglob("*.md")) if place.is_dir() else [place])]:
        before = document.read_text(encoding="utf-8")
        after = with_lists(before)
        if after != before:
            write_text(document, after)
            changed.append(document)
    return changed


if __name__ == "__main__":
    for written in write_docs_lists([Path(argument) for argument in sys.argv[1:]]):
        print(written)
