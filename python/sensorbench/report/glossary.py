"""What the terms of a report mean: in `glossary.toml`, which is the one place for them, and as hints where a page has them."""

import functools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from markupsafe import Markup

FILE = Path(__file__).parent / "glossary.toml"
# Where a term gets its hint: where a page explains itself, and above columns. What results say stays as it is.
_EXPLAINED = re.compile(r"(<(p) class=\"(?:note|how)\"[^>]*>|<(th|h3)(?: [^>]*)?>)(.*?)(</(?:\2|\3)>)", flags=re.DOTALL)
_TAG = re.compile(r"(<[^>]+>)")


@functools.cache
def terms() -> Mapping[str, str]:
    """Each term with what it means."""
    found: dict[str, str] = tomllib.loads(FILE.read_text(encoding="utf-8"))["terms"]
    return found


@functools.cache
def _pattern() -> re.Pattern[str]:
    # Longer terms first: of "schedule lag p99" the whole is meant.
    words = sorted(terms(), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, words))})(?![\w-])", flags=re.IGNORECASE)


class Glossary:
    """Marks the terms of one page, and knows afterwards which it has."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def mark(self, section: str) -> Markup:
        """The HTML of a section, each term with a hint where the section explains itself and has it for the first time."""
        marked: set[str] = set()

        def mark_text(found: re.Match[str]) -> str:
            pieces = _TAG.split(found[4])
            return (
                found[1] + "".join(piece if piece.startswith("<") else self._marked(piece, marked) for piece in pieces) + found[5]
            )

        return Markup(_EXPLAINED.sub(mark_text, section))

    def _marked(self, text: str, marked: set[str]) -> str:
        def mark_term(found: re.Match[str]) -> str:
            term = found[1].lower()
            if term in marked:
                return found[0]
            marked.add(term)
            self._used.add(term)
            return str(Markup('<abbr class="term" tabindex="0" title="{}">{}</abbr>').format(terms()[term], Markup(found[1])))

        return _pattern().sub(mark_term, text)

    @property
    def used(self) -> list[tuple[str, str]]:
        """The terms that were marked, each with what it means, in the order of the alphabet."""
        return [(term, terms()[term]) for term in sorted(self._used)]
