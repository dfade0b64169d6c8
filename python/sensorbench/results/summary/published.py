"""What a paper printed, beside what was measured: tables with the paper's rows and columns."""

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from sensorbench.results.summary.part import SummaryPart

# What a printed value counts, which says how it and the measured one are shown.
PublishedKind = Literal["duration_s", "bytes", "bytes_per_s", "rate", "ratio", "number"]
# Why a cell has no measured value, or that it has one. `below scale` may have both: then it has no ratio.
CellState = Literal["measured", "not run", "not applicable", "failed", "below scale", "no measurement"]


class PublishedCell(SummaryPart):
    """A value that the paper printed, and what was measured in its place. A place with two printed values has two cells."""

    row: str = Field(description="Title of its row.")
    column: str = Field(description="Title of its column.")
    printed: str = Field(description="The value as the paper prints it; of a derived one, its number.")
    unit: str = Field(description="The paper's unit; empty if it has none.")
    kind: PublishedKind = "number"
    value: float | None = Field(
        description="The printed value in s, bytes, per second or as it is; null for what is not a number."
    )
    measured: float | None = None
    low: float | None = Field(
        default=None, description="Lower end of the 95% interval of the measured value; null if there is none."
    )
    high: float | None = Field(default=None, description="Its upper end.")
    ratio: float | None = Field(default=None, description="Measured over printed.")
    state: CellState
    why: str = Field(default="", description="Why there is no measured value, or what else is to be known of it.")
    note: str = Field(default="", description="What is to be known of the printed value, such as a contradiction.")
    figure: str = Field(default="", description="The formula of what is measured, as claims write it.")
    variant: str = Field(default="", description="The id of the variant that was measured, where it is one alone.")
    is_substitute: bool = Field(default=False, description="Whether that variant stands in for a system of the paper.")
    is_derived: bool = Field(
        default=False, description="Whether it is a ratio of two printed values, which the paper does not print."
    )

    @property
    def ratio_ends(self) -> tuple[float, float] | None:
        """Between which factors the ratio lies; None if that is not known, or where there is no ratio."""
        if self.ratio is None or self.value is None or self.low is None or self.high is None:
            return None
        return self.low / self.value, self.high / self.value

    @property
    def as_printed(self) -> str:
        """The printed value with its unit; a word has none."""
        is_number = self.value is not None or any(map(str.isdigit, self.printed))
        return f"{self.printed} {self.unit}".strip() if is_number else self.printed


class PublishedTable(SummaryPart):
    """A table or figure of the paper that has printed numbers, or numbers of its text."""

    title: str
    conditions: str = Field(default="", description="How the measurement differs from the paper's, such as by its scale.")
    columns: list[str]
    cells: list[PublishedCell]

    @property
    def rows(self) -> list[str]:
        """Titles of its rows, in order."""
        return list(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def is_of_measurements(self) -> bool:
        """Whether the paper measured anything of it, rather than only setting or quoting it."""
        return any(cell.state != "no measurement" for cell in self.cells)

    @property
    def is_measured(self) -> bool:
        """Whether anything of it was measured here."""
        return any(cell.measured is not None for cell in self.cells)


def printed_by_figure(tables: Iterable[PublishedTable]) -> dict[str, float]:
    """The printed number of each formula, in our unit: where a paper contradicts itself, what comes first."""
    cells = [cell for table in tables for cell in table.cells]
    return {cell.figure: cell.value for cell in reversed(cells) if cell.figure and cell.value is not None}


def formula(figure: str, *arguments: object) -> str:
    """A figure as formulas have it: `hit_rate(read, key-cache-size, 92 MB, 0)`."""
    return f"{figure}({', '.join(map(str, arguments))})"
