"""What a page of results shows, of whatever kind they are: types alone. How each of them looks is said by `report/templates`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

# What the values of a column are, which says how they are shown: labels and names (bold) are never wrapped, text is.
ValueKind = Literal[
    "text", "label", "name", "variant", "duration_s", "bytes", "ratio", "share", "count", "rate", "whole", "number"
]


@dataclass(frozen=True)
class Piece:
    """A piece of a line that stands out: `style` is an element (strong, em, code, pre) or classes of the style sheet."""

    text: "Line"
    style: str = ""
    href: str = ""
    # Shown when the piece is pointed at.
    hint: str = ""


# What stands in a line or a cell: text, values that are shown by the kind of their column, and pieces. None is shown as a dash.
Line: TypeAlias = str | float | Piece | Sequence["Line"] | None
# Columns by title and kind.
Columns: TypeAlias = Sequence[tuple[Line, ValueKind]]


@dataclass(frozen=True)
class Text:
    """A paragraph; `style` is note, headline, banner, good or bad."""

    line: Line
    style: str = ""


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str
    level: int = 3


@dataclass(frozen=True)
class Code:
    """Text to be copied as it is; `style` is command for a command line."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Items:
    """A list."""

    lines: Sequence[Line]
    style: str = ""


@dataclass(frozen=True)
class Facts:
    """What is said of each of some things: their names at the left. None is left out."""

    rows: Sequence[tuple[Line, Line] | None]


@dataclass(frozen=True)
class Definitions:
    """Terms, with what belongs to each below it."""

    rows: Sequence[tuple[str, Line]]


@dataclass(frozen=True)
class Table:
    """Columns, and rows of values. A row that is shorter ends with one cell over the rest; where rows are grouped,
    one whose first cell is not empty begins a group.
    """

    columns: Columns
    rows: Sequence[Sequence[Line]]
    style: str = "numbers"
    is_grouped: bool = False


# A Vega-Lite specification. altair makes it and checks it against the schema of Vega-Lite, and nobody else looks into it.
ChartSpec: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Chart:
    """A Vega-Lite specification, made by a function of `report`; its name is that of its files, too."""

    name: str
    specification: ChartSpec = field(repr=False)
    title: str = ""
    is_wide: bool = False
    # How many pixels wide it is in its files.
    file_width: int = 620

    @property
    def how(self) -> str:
        """How to read it, in a sentence, which the function that draws it gives."""
        how: str = self.specification["usermeta"]["how"]
        return how


@dataclass(frozen=True)
class Grid:
    """Charts beside one another, as far as there is room."""

    blocks: Sequence["Block | None"]

    @property
    def how(self) -> str:
        """How to read its charts, where all are read alike; else each says it itself."""
        return common_how(self.blocks)


@dataclass(frozen=True)
class Details:
    """What is shown when its summary is clicked at."""

    summary: str
    blocks: Sequence["Block | None"]
    style: str = ""


@dataclass(frozen=True)
class Card:
    """The answer to one question."""

    title: str
    question: str
    blocks: Sequence["Block | None"]
    style: str = ""


@dataclass(frozen=True)
class Cards:
    """Answers beside one another."""

    blocks: Sequence[Card]

    @property
    def how(self) -> str:
        """How to read their charts, where all are read alike; else each says it itself."""
        return common_how(self.blocks)


Block: TypeAlias = Text | Heading | Code | Items | Facts | Definitions | Table | Chart | Grid | Details | Card | Cards


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading. Blocks that are None are left out."""

    id: str
    title: str
    blocks: Sequence[Block | None]


@dataclass(frozen=True)
class Page:
    """A page: what its results are of, the answer and warnings at its head, sections, and where all numbers are. Sections that are
    None are left out.
    """

    kind: str
    title: str
    head: Sequence[Block | None]
    sections: Sequence[Section | None]
    footer: str

    @property
    def charts(self) -> list[Chart]:
        """All its charts, in order."""
        return [chart for section in self.sections if section for chart in _charts(section.blocks)]


def common_how(blocks: Sequence[Block | None]) -> str:
    """How to read some charts, where all are read alike; nothing if they are not."""
    sentences = {chart.how for chart in _charts(blocks)}
    return sentences.pop() if len(sentences) == 1 else ""


def _charts(blocks: Sequence[Block | None]) -> Iterator[Chart]:
    for block in blocks:
        if isinstance(block, Chart):
            yield block
        elif isinstance(block, Grid | Details | Card | Cards):
            yield from _charts(block.blocks)
