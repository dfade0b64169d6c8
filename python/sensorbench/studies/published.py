"""What papers printed beside what was measured.

A study has two files for it. `published.csv` has what its paper printed, one value a row. `published.toml` lays these rows out as the paper
does, and says which figure of ours each row is: a formula in the words of claims, such as `latency(nosql, get_sensor_data)`. Rows that are
no measurement, or cannot be measured, have a reason there instead. No row may be left out.
"""

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from statistics import fmean
from typing import Literal

from pydantic import Field

from sensorbench import toml_file
from sensorbench.analysis.intervals import Interval
from sensorbench.claims import Expression, Figure, FigureEvidence, NotMeasuredError
from sensorbench.results.summary.published import CellState, PublishedCell, PublishedKind, PublishedTable, printed_by_figure
from sensorbench.studies.printed_values import in_our_unit, shown_unit
from sensorbench.studies.registry import folder_of

# What the files write for "not applicable".
NOTHING = "-"


@dataclass(frozen=True)
class PrintedRow:
    """A row of `published.csv`: a value as it is printed, and what it is of."""

    figure_or_table: str
    system: str
    configuration: str
    dataset_size: str
    operation: str
    parameter: str
    metric: str
    value: str
    unit: str
    note: str

    @cached_property
    def words(self) -> dict[str, str]:
        """What can be matched and filled in."""
        return dict(zip((column.name for column in fields(self)), astuple(self), strict=True))


class CellRule(toml_file.FileModel):
    """Printed rows that are measured alike. Templates have the row's columns, and named groups of `match`, between braces."""

    match: dict[str, str] = Field(default={}, description="Regular expressions that whole columns of the row match.")
    measured: str = Field(default="", description="Template of the formula of what is measured.")
    why: str = Field(default="", description="Why nothing is measured, or in what the measurement differs.")
    state: CellState = Field(default="no measurement", description="What a row is for which nothing is measured.")
    factor: float | None = Field(default=None, description="From the printed number to our unit, where the unit does not say it.")
    kind: PublishedKind | None = Field(default=None, description="What the number counts, where the unit does not say it.")
    min_scale: float = Field(default=0.0, description="The scale below which the measured value is not comparable.")
    rows: str = Field(default="", description="Template of the row's title, instead of the table's.")
    columns: str = Field(default="", description="Template of the column's title, instead of the table's.")


class RatioRule(toml_file.FileModel):
    """Two columns whose ratio is the comparable figure."""

    over: str
    under: str
    measured: str = Field(default="", description="The formula of what is measured, where it is not the ratio of both.")


class TableRule(toml_file.FileModel):
    """Printed rows that are a table together, or several where the title is a template."""

    title: str
    match: dict[str, str]
    rows: str = Field(description="Template of a row's title.")
    columns: str = Field(description="Template of a column's title.")
    ratios: list[RatioRule] = Field(default=[], description="Ratios of columns, each of which becomes a column.")
    cells: list[CellRule]


class PublishedFile(toml_file.FileModel):
    """`published.toml`. The first table and cell that match a row are its own."""

    names: dict[str, dict[str, str]] = Field(
        default={}, description="Our words for the paper's, by what they stand between braces for in formulas."
    )
    datasets: dict[str, str] = Field(default={}, description="The dataset of each size: rows of other sizes are left out.")
    tables: list[TableRule]


@dataclass(frozen=True)
class Found:
    """What was measured of a formula: a value, or why there is none, and of which variant it is."""

    value: float | None
    state: CellState
    why: str = ""
    variant: str = ""
    is_substitute: bool = False
    interval: Interval | None = None


Measure = Callable[[Expression], Found]


def measured_by(find: Callable[[Figure], Found], interval: Callable[[Expression], Interval | None] = lambda _: None) -> Measure:
    """What was measured of formulas, by what was measured of figures. A formula without one of its figures has the reason of this one.

    Args:
        find: what was measured of a figure.
        interval: of a formula whose figures were all measured; None if it has none.

    """

    def measure(expression: Expression) -> Found:
        found = [find(figure) for figure in expression.figures]
        lacking = next((each for each in found if each.value is None), None)
        if lacking is not None:
            return lacking
        variants = list(dict.fromkeys(each.variant for each in found))
        return Found(
            float(expression.evaluate([each.value for each in found if each.value is not None])),
            "measured",
            "; ".join(filter(None, dict.fromkeys(each.why for each in found))),
            variants[0] if len(variants) == 1 else "",
            any(each.is_substitute for each in found),
            interval(expression),
        )

    return measure


def found_in(evidence: FigureEvidence, figure: Figure) -> Found:
    """What evidence has of a figure: the mean over runs. It gives no reason where the evidence knows none."""
    try:
        values = evidence.values(figure)
    except NotMeasuredError as error:
        return Found(None, "not run", str(error))
    return Found(None, "not run") if values is None else Found(fmean(values.by_run.values()), "measured")


def interval_in(evidence: FigureEvidence, expression: Expression) -> Interval | None:
    """The confidence interval of a figure, or of a ratio of figures, over runs; sums of figures that were measured apart have none."""
    return evidence.interval(expression) if expression.weights is not None else None


@dataclass(frozen=True)
class PlacedRow:
    """A printed row at its place in a table, with what is measured of it."""

    printed: PrintedRow
    table: TableRule
    cell: CellRule
    title: str
    row: str
    column: str
    figure: str

    @property
    def kind(self) -> PublishedKind:
        """What its number counts."""
        return self.cell.kind or in_our_unit(self.printed.value, self.printed.unit).kind

    @property
    def value(self) -> float | None:
        """Its number in our unit; None for what is not a number."""
        found = in_our_unit(self.printed.value, self.printed.unit, self.cell.factor)
        return found.value

    @property
    def note(self) -> str:
        """What is to be known of the printed value."""
        return "" if self.printed.note == NOTHING else self.printed.note


@dataclass(frozen=True)
class Published:
    """What the paper of a study printed, in the order of its tables."""

    file: PublishedFile
    rows: tuple[PlacedRow, ...]

    @classmethod
    def load(cls, folder: Path) -> "Published":
        """What lies in a study's folder. Every printed row must have a place."""
        file = toml_file.load(folder / "published.toml", PublishedFile)
        return cls(file, tuple(_placed(row, file, folder) for row in printed_rows(folder)))

    def of_sizes(self, datasets: Sequence[str]) -> list[PlacedRow]:
        """The rows of the sizes that some datasets have, and those that are of none; all rows without datasets."""
        left_out = {size for size, dataset in self.file.datasets.items() if datasets and dataset not in datasets}
        return [row for row in self.rows if row.printed.dataset_size not in left_out]

    def tables(
        self, measure: Measure, *, datasets: Sequence[str] = (), scale: float | None = None, conditions: str = ""
    ) -> list[PublishedTable]:
        """The tables with what was measured.

        Args:
            measure: what was measured of a formula.
            datasets: that were measured, where the paper's sizes are datasets of their own; all sizes if there is none.
            scale: of the measurement; None if it has none.
            conditions: how the measurement differs from the paper's.

        """
        by_title: dict[str, list[PlacedRow]] = {}
        for row in self.of_sizes(datasets):
            by_title.setdefault(row.title, []).append(row)
        return [_table(title, rows, measure, scale, conditions) for title, rows in by_title.items()]

    @cached_property
    def printed(self) -> dict[str, float]:
        """What the paper printed of each formula, in our unit: where it contradicts itself, what comes first."""
        return printed_by_figure(self.tables(lambda _: Found(None, "not run")))


@cache
def printed_rows(folder: Path) -> tuple[PrintedRow, ...]:
    """The rows of a study's `published.csv`."""
    with (folder / "published.csv").open(encoding="utf-8", newline="") as text:
        return tuple(PrintedRow(**row) for row in csv.DictReader(text))


@cache
def published_of(name: str) -> Published | None:
    """What the paper of a study printed; None of a study that repeats no paper."""
    folder = folder_of(name)
    return Published.load(folder) if (folder / "published.toml").exists() else None


def _placed(row: PrintedRow, file: PublishedFile, folder: Path) -> PlacedRow:
    for table in file.tables:
        of_table = _matched(table.match, row.words)
        if of_table is None:
            continue
        for cell in table.cells:
            words = _matched(cell.match, of_table)
            if words is not None:
                title, row_title, column = (
                    _filled(template, words) for template in (table.title, cell.rows or table.rows, cell.columns or table.columns)
                )
                return PlacedRow(row, table, cell, title, row_title, column, cell.measured.format_map(_Names(words, file.names)))
    raise AssertionError(f"{folder / 'published.toml'}: no table has a place for {row}")


def _filled(template: str, words: Mapping[str, str]) -> str:
    """A title, without the words that are not applicable."""
    filled = template.format_map({name: "" if word == NOTHING else word for name, word in words.items()})
    return ", ".join(filter(None, (" ".join(part.split()) for part in filled.split(", ")))) or NOTHING


def _matched(patterns: Mapping[str, str], words: Mapping[str, str]) -> dict[str, str] | None:
    """The words with the named groups of what matches; None if something does not."""
    found = dict(words)
    for column, pattern in patterns.items():
        match = re.fullmatch(pattern, words[column])
        if match is None:
            return None
        found |= {name: value or "" for name, value in match.groupdict().items()}
    return found


class _Names(dict[str, str]):
    """Words of the paper, each as formulas have it."""

    def __init__(self, words: Mapping[str, str], names: Mapping[str, Mapping[str, str]]) -> None:
        super().__init__(words)
        self._names = names

    def __getitem__(self, key: str) -> str:
        word = super().__getitem__(key)
        return self._names[key][word] if key in self._names else word


def _table(title: str, rows: Sequence[PlacedRow], measure: Measure, scale: float | None, conditions: str) -> PublishedTable:
    cells = _each_once([_cell(row, measure, scale) for row in rows])
    derived = [cell for rule in rows[0].table.ratios for cell in _ratios(cells, rule, measure)]
    columns = list(dict.fromkeys([*_longest_row(cells), *(cell.column for cell in (*cells, *derived))]))
    return PublishedTable(title=title, conditions=conditions, columns=columns, cells=[*cells, *derived])


def _longest_row(cells: Sequence[PublishedCell]) -> list[str]:
    """The columns of the row that has most, in the paper's order: some rows leave out columns in the middle."""
    by_row: dict[str, list[str]] = {}
    for cell in cells:
        by_row.setdefault(cell.row, []).append(cell.column)
    return max(by_row.values(), key=lambda columns: len(set(columns)))


def _each_once(cells: Sequence[PublishedCell]) -> list[PublishedCell]:
    """The cells, those that are printed alike in several places as one, with all notes."""
    found: dict[tuple[str, str, str, str], PublishedCell] = {}
    for cell in cells:
        place = (cell.row, cell.column, cell.printed, cell.unit)
        known = found.get(place)
        note = cell.note if known is None else "; ".join(dict.fromkeys(filter(None, [known.note, cell.note])))
        found[place] = cell.model_copy(update={"note": note})
    return list(found.values())


def _cell(row: PlacedRow, measure: Measure, scale: float | None) -> PublishedCell:
    found = measure(Expression.parse(row.figure)) if row.figure else Found(None, row.cell.state)
    state, why = found.state, "; ".join(filter(None, [found.why, row.cell.why]))
    ratio = _ratio(found.value, row.value)
    if found.value is not None and scale is not None and scale < row.cell.min_scale:
        state, ratio = "below scale", None
    return PublishedCell(
        row=row.row,
        column=row.column,
        printed=row.printed.value,
        unit=shown_unit(row.printed.unit),
        kind=row.kind,
        value=row.value,
        measured=found.value,
        ratio=ratio,
        state=state,
        why=why,
        note=row.note,
        figure=row.figure,
        variant=found.variant,
        is_substitute=found.is_substitute,
        low=_end(found.interval, "low"),
        high=_end(found.interval, "high"),
    )


def _end(interval: Interval | None, end: Literal["low", "high"]) -> float | None:
    """That of an interval that runs gave: what was measured once has no interval of its own."""
    if interval is None or not interval.between_runs:
        return None
    return interval.low if end == "low" else interval.high


def _ratio(measured: float | None, printed: float | None) -> float | None:
    """How many times the printed value was measured; scores of 0 and below have no ratio."""
    return measured / printed if measured is not None and printed is not None and measured > 0.0 < printed else None


def _ratios(cells: Sequence[PublishedCell], rule: RatioRule, measure: Measure) -> list[PublishedCell]:
    """The ratio of two columns in each row that has a number in both. Where a place has several values, the first counts."""
    first: dict[tuple[str, str], PublishedCell] = {}
    for cell in cells:
        first.setdefault((cell.row, cell.column), cell)
    rows = dict.fromkeys(cell.row for cell in cells)
    pairs = [(first.get((row, rule.over)), first.get((row, rule.under))) for row in rows]
    return [
        derived
        for above, below in pairs
        if above is not None and below is not None and (derived := _derived(above, below, rule, measure)) is not None
    ]


def _derived(above: PublishedCell, below: PublishedCell, rule: RatioRule, measure: Measure) -> PublishedCell | None:
    printed = _ratio(above.value, below.value)
    if printed is None:
        return None
    found = measure(Expression.parse(rule.measured)) if rule.measured else _ratio_found(above, below, measure)
    return PublishedCell(
        row=above.row,
        column=f"{rule.over} / {rule.under}",
        printed=f"{printed:.3g}",
        unit="x",
        kind="ratio",
        value=printed,
        measured=found.value,
        ratio=_ratio(found.value, printed),
        state=found.state,
        why=found.why,
        figure=rule.measured,
        is_substitute=found.is_substitute,
        is_derived=True,
        low=_end(found.interval, "low"),
        high=_end(found.interval, "high"),
    )


def _ratio_found(above: PublishedCell, below: PublishedCell, measure: Measure) -> Found:
    """The ratio of what was measured in two cells; one that is not comparable has none."""
    lacking = next((cell for cell in (above, below) if cell.state != "measured"), None)
    if lacking is not None:
        return Found(None, lacking.state, lacking.why)
    value = _ratio(above.measured, below.measured)
    return Found(
        value,
        "measured",
        "" if value else "a value is not positive",
        is_substitute=above.is_substitute or below.is_substitute,
        interval=measure(Expression.parse(f"({above.figure}) / ({below.figure})")).interval if value else None,
    )
