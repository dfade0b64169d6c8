"""As much of CQL as is needed to know a profile's table and what the placeholders of its queries stand for."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Text in quotes and comments, which are no part of a statement's form; then words, and everything else one by one.
_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|//[^\n]*|/\*.*?\*/)|(?P<text>'(?:[^']|'')*'|\$\$.*?\$\$)"
    r'|(?P<word>"(?:[^"]|"")*"|[A-Za-z_][A-Za-z0-9_]*)|(?P<space>\s+)|(?P<sign><=|>=|!=|.)',
    re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """A part of a statement, with the place where it begins. A word is as the server knows it: in lower case, unless it is
    quoted.
    """

    text: str
    start: int
    is_word: bool = False
    is_text: bool = False

    def is_(self, *words: str) -> bool:
        """Whether it is one of some words or signs, which are in lower case."""
        return not self.is_text and self.text.lower() in words


def tokens_of(statement: str) -> list[Token]:
    """The parts of a statement, without comments and spaces."""
    return [_token(found) for found in _TOKEN.finditer(statement) if found.lastgroup not in ("comment", "space")]


def _token(found: re.Match[str]) -> Token:
    text, start = found.group(), found.start()
    if found["word"] is None:
        return Token(text, start, is_text=found["text"] is not None)
    quoted = text.startswith('"')
    return Token(text[1:-1].replace('""', '"') if quoted else text.lower(), start, is_word=True)


def in_parentheses(tokens: list[Token], opening: int) -> tuple[list[list[Token]], int]:
    """What stands in the parentheses that open there, split at its commas, and the place after them. Raises ValueError for
    those that do not close.
    """
    parts: list[list[Token]] = [[]]
    depth = 0
    for place in range(opening, len(tokens)):
        token = tokens[place]
        depth += token.is_("(", "<", "[", "{") - token.is_(")", ">", "]", "}")
        if depth == 0:
            return [part for part in parts if part], place + 1
        if place == opening:
            continue
        if depth == 1 and token.is_(","):
            parts.append([])
        else:
            parts[-1].append(token)
    raise ValueError("a parenthesis is not closed")


def without_keyspace(statement: str, keyspace: str) -> str:
    """The statement with names that do not say in which keyspace they are."""
    tokens = tokens_of(statement)
    kept, end = [], 0
    for word, dot, name in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if word.is_word and word.text == keyspace and dot.text == "." and name.is_word:
            kept.append(statement[end : word.start])
            end = name.start
    return "".join([*kept, statement[end:]])


def quoted(name: str) -> str:
    """A name in a statement."""
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else f'"{name}"'


def name_of(tokens: list[Token], place: int) -> tuple[str, int]:
    """A name that may include its keyspace, and the place after it. Raises ValueError if there is none."""
    if place >= len(tokens) or not tokens[place].is_word:
        raise ValueError("a name is missing")
    if place + 2 < len(tokens) and tokens[place + 1].is_("."):
        return tokens[place + 2].text, place + 3
    return tokens[place].text, place + 1


def after(tokens: list[Token], *words: str) -> int | None:
    """The place after some consecutive words, or None."""
    for place in range(len(tokens) - len(words) + 1):
        if all(tokens[place + number].is_(word) for number, word in enumerate(words)):
            return place + len(words)
    return None


def placeholders(tokens: list[Token]) -> Iterator[int]:
    """The places of all `?`."""
    return (place for place, token in enumerate(tokens) if token.is_("?"))
