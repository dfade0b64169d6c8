"""Pieces of Markdown."""

from collections.abc import Iterable, Sequence


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; bars in its cells are escaped, and line breaks become spaces."""
    lines = [list(titles), ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def code(text: object) -> str:
    """A text as code, whatever backticks it has."""
    shown = str(text)
    fence = "``" if "`" in shown else "`"
    padding = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{padding}{shown}{padding}{fence}" if shown else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
