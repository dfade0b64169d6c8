"""What the paper of a study printed beside what was measured: its tables, in its layout."""

from collections.abc import Sequence

from sensorbench.report import formatting, parts
from sensorbench.results.page import Block, Columns, Details, Heading, Items, Line, Piece, Section, Table, Text
from sensorbench.results.summary.published import PublishedCell, PublishedTable
from sensorbench.wording import counted

_HOW_TO_READ = (
    "Each cell has the printed value, then what was measured here in its place, then measured over printed, with its 95% interval where "
    "enough runs give one. The paper had another machine, other "
    "versions and often other amounts of data. A ratio of absolute values says how far apart the two are, not which is right. "
    "A column in italics is a ratio between two systems, computed from the printed values, in which the machine cancels in part. Its last line "
    "is the ratio of the ratios: near 1, the finding has the published magnitude."
)
_NOT_MEASURED = "What the paper sets, rates or quotes"
_UNMEASURED = "tables of which nothing was measured here"
# More reasons below a table are shown when they are clicked at.
_MAX_REASONS = 3


def published_section(tables: Sequence[PublishedTable]) -> Section | None:
    """The section of a paper's tables; None if there are none."""
    if not tables:
        return None
    measured = [table for table in tables if table.is_measured]
    unmeasured = [table for table in tables if table.is_of_measurements and not table.is_measured]
    others = [table for table in tables if not table.is_of_measurements]
    conditions = " ".join(dict.fromkeys(table.conditions for table in tables if table.conditions))
    blocks: list[Block | None] = [
        Text(f"{_HOW_TO_READ} {conditions}".strip()),
        *(block for table in measured for block in _blocks(table)),
        Details(f"{len(unmeasured)} {_UNMEASURED}", [block for table in unmeasured for block in _blocks(table)])
        if unmeasured
        else None,
        _listed(others),
    ]
    return Section("published", "Published and measured", blocks)


def _blocks(table: PublishedTable) -> list[Block]:
    cells: dict[tuple[str, str], list[PublishedCell]] = {}
    for cell in table.cells:
        cells.setdefault((cell.row, cell.column), []).append(cell)
    columns: Columns = [("", "name"), *((_title(table, column), "number") for column in table.columns)]
    rows: list[list[Line]] = [
        [row, *([_shown(cell) for cell in cells.get((row, column), [])] for column in table.columns)] for row in table.rows
    ]
    reasons = _reasons(table.cells)
    listed: list[Block] = [Items(reasons, "note")] if reasons else []
    if len(reasons) > _MAX_REASONS:
        listed = [Details(counted(len(reasons), "reason or note", "reasons and notes"), listed)]
    return [Heading(table.title), Table(columns, rows, "numbers published"), *listed]


def _title(table: PublishedTable, column: str) -> Line:
    """A column's title, and which variant was measured where it is one alone."""
    cells = [cell for cell in table.cells if cell.column == column]
    if all(cell.is_derived for cell in cells):
        return Piece(column, "em")
    variants = {(cell.variant, cell.is_substitute) for cell in cells if cell.variant}
    if len(variants) != 1:
        return column
    variant, is_substitute = variants.pop()
    return [column, f"\n{'substitute' if is_substitute else 'here'} {formatting.variant(variant)}"]


def _shown(cell: PublishedCell) -> Line:
    """The printed value, the measured one, and their ratio; or in a word why there is none."""
    printed: Line = f"{cell.printed} ×" if cell.is_derived else cell.as_printed
    if cell.note:
        printed = [printed, Piece(" *", hint=cell.note)]
    if cell.measured is None:
        return [Piece(printed, "printed"), parts.muted(Piece(_WORDS.get(cell.state, cell.state), hint=cell.why))]
    ratio = ratio_text(cell) or ("below scale" if cell.state == "below scale" else "no ratio")
    return [
        Piece(printed, "printed"),
        Piece(["here ", measured_text(cell)], "muted here"),
        parts.muted(Piece(ratio, hint=cell.why)),
    ]


_WORDS = {"no measurement": "not a measurement"}


def ratio_text(cell: PublishedCell) -> str:
    """Measured over printed, with its interval; empty if there is none."""
    if cell.ratio is None:
        return ""
    ends = cell.ratio_ends
    return formatting.times(cell.ratio) + (f" ({formatting.factors(*ends)})" if ends else "")


def measured_text(cell: PublishedCell) -> str:
    """The measured value of a cell, with its unit."""
    value = cell.measured
    if cell.kind == "bytes_per_s":
        return f"{formatting.size(value)}/s"
    if cell.kind == "duration_s" and value is not None and value <= 0.0:
        return f"{formatting.significant(value)} s"
    return formatting.of_kind(value, cell.kind)


def _reasons(cells: Sequence[PublishedCell]) -> list[Line]:
    """Why cells have no measured value or no ratio, in what others differ, and what is to be known of printed values: each once."""
    whys: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        if cell.why:
            whys.setdefault((_WORDS.get(cell.state, cell.state), cell.why), []).append(_place(cell))
    notes: dict[str, list[str]] = {}
    for cell in cells:
        if cell.note:
            notes.setdefault(cell.note, []).append(f"{_place(cell)} {cell.printed}")
    found: list[Line] = []
    for (state, why), places in whys.items():
        found.append([Piece(state.capitalize(), "strong"), f" ({_places(places)}): {why}"])
    for note, places in notes.items():
        found.append([Piece("*", "strong"), f" {_places(places)}: {note}"])
    return found


def _place(cell: PublishedCell) -> str:
    return f"{cell.row}, {cell.column}"


# Of more places only the number is said.
_MAX_PLACES = 3


def _places(places: Sequence[str]) -> str:
    places = list(dict.fromkeys(places))
    return "; ".join(places) if len(places) <= _MAX_PLACES else f"{len(places)} cells"


def _listed(tables: Sequence[PublishedTable]) -> Details | None:
    """What is not a measurement, as a list with reasons."""
    cells = [(table, cell) for table in tables for cell in table.cells]
    if not cells:
        return None
    columns: Columns = [("where", "text"), ("what", "text"), ("printed", "text"), ("why it is not measured", "text")]
    rows: list[list[Line]] = [
        [
            table.title,
            _place(cell),
            cell.as_printed,
            [cell.why, parts.muted(cell.note) if cell.note else ""],
        ]
        for table, cell in cells
    ]
    return Details(f"{_NOT_MEASURED}: {counted(len(cells), 'value')}", [Table(columns, rows)])
