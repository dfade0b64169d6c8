"""Words that are looked for: what a token is, when one equals a word, and which words a dataset has; all of it so that Spark, DuckDB and databases agree.

A token is what stands between blanks: runs of the white space of ASCII. It equals a word when both have as many characters, and each pair of
them is the same when case is ignored (Unicode's folding of single characters). Engines fold texts each in its own way and version, so that is written out
as a regular expression, which is the same for all of them.
"""

import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import cache

import duckdb

from sensorbench.errors import UsageError
from sensorbench.spark.inverted_index import Word

BLANKS = r"[ \t\n\x0B\f\r]+"
# Words of this many letters are looked for when the user names none.
_LETTERS = r"\p{L}{2,20}"
_TOKENS = f"SELECT id, unnest(regexp_split_to_array(text, '{BLANKS}')) AS token FROM articles"


@dataclass(frozen=True)
class Reference:
    """What DuckDB finds of a word: how often it occurs, and in which articles how often."""

    kind: str
    word: Word
    counts: dict[int, int]

    @property
    def occurrences(self) -> int:
        """The length of the list of the first job."""
        return sum(self.counts.values())


def word_of(text: str) -> Word:
    """A word with its regular expression. Raises UsageError for what cannot be a token."""
    if not text or any(character in " \t\n\x0b\f\r\0" for character in text):
        raise UsageError(f"--word {text!r}: expected a word without blanks")
    return Word(text, f"^{''.join(map(_one, text))}$")


def _one(character: str) -> str:
    """An expression for a character in any case."""
    spellings = _spellings().get(character)
    if spellings:
        return f"[{spellings}]"
    return f"\\{character}" if character.isascii() and not character.isalnum() else character


@cache
def _spellings() -> dict[str, str]:
    """Of each character that has several: all of them."""
    same: dict[str, set[str]] = defaultdict(set)
    for character in map(chr, range(sys.maxunicode + 1)):
        folded = character.casefold()
        if len(folded) == 1 and folded != character:
            same[folded] |= {folded, character}
    return {character: "".join(sorted(group)) for group in same.values() for character in group}


def chosen_words(workbench: duckdb.DuckDBPyConnection) -> dict[str, Word]:
    """The most frequent word of a dataset, one about as far from it as from a single occurrence (the geometric mean), and one that occurs twice or
    a little more. Of equally good ones the first by its characters.
    """
    workbench.execute(
        f"CREATE OR REPLACE TEMP TABLE token_counts AS SELECT token, count(*) AS n FROM ({_TOKENS}) "
        f"WHERE regexp_full_match(token, '{_LETTERS}') GROUP BY token"
    )
    (highest,) = workbench.execute("SELECT max(n) FROM token_counts").fetchone() or (None,)
    if highest is None:
        raise UsageError("the dataset has no word of two letters or more; name words by --word")
    wanted = {"very frequent": float(highest), "medium": float(highest) ** 0.5, "rare": 2.0}
    found: dict[str, Word] = {}
    for kind, count in wanted.items():
        row = workbench.execute("SELECT token FROM token_counts ORDER BY abs(n - ?), token LIMIT 1", [count]).fetchone()
        if row and row[0] not in {word.text for word in found.values()}:
            found[kind] = word_of(row[0])
    return found


def reference_of(workbench: duckdb.DuckDBPyConnection, kind: str, word: Word) -> Reference:
    """What DuckDB finds of a word in the relation `articles`."""
    rows = workbench.execute(
        f"SELECT id, count(*) FROM ({_TOKENS}) WHERE regexp_full_match(token, ?) GROUP BY id", [word.pattern]
    ).fetchall()
    return Reference(kind, word, {int(article): int(count) for article, count in rows})
