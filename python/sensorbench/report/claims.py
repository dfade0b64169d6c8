"""The published findings of a study and their verdicts: how many were reproduced, what was measured beside what was published, and why."""

from collections.abc import Sequence

import altair as alt

from sensorbench.report import charts, formatting
from sensorbench.report.parts import between, joined, muted
from sensorbench.results.page import Block, Chart, Columns, Details, Line, Piece, Section, Table, Text
from sensorbench.results.summary.claims import AgreementBand, JudgedCell, JudgedClaim, MeasuredFigure, counts_by_verdict
from sensorbench.wording import counted

_UNTESTED = {"not tested", "below minimum scale", "not tested here", "not tested at this scale"}
_COLOURS = {
    "reproduced": "#2fa37c",
    "partly reproduced": "#6bb6e8",
    "not reproduced": "#e07b39",
    "inconclusive": charts.QUIET,
}
# A claim that is more comparisons is shown by its table alone.
MAX_CELLS_SHOWN = 4
_ROW_HEIGHT = 24
# Wide intervals would press the others together: they are cut so far beyond the outermost figures, as a factor.
_MARGIN = 2.0

_HOW_TO_READ = (
    "A finding has a direction and, where the paper printed a figure, a magnitude. It is reproduced when the whole confidence interval of what was "
    "measured here agrees with both, and partly reproduced when only the direction does. It is not reproduced when the interval contradicts the direction. "
    "A finding that is several comparisons gets the weakest of their verdicts."
)
_FORMAT_1 = (
    "These verdicts were given by the rules of format 1, which could not distinguish every finding from its contrary. `sensorbench report` judges the "
    "results again if they contain what that takes."
)


def claims_section(
    claims: Sequence[JudgedClaim], *, study: str = "", with_parts: bool = False, more: Sequence[Block] = ()
) -> Section | None:
    """The section of a study's claims.

    Args:
        claims: as summaries have them.
        study: its name, of which a command lists what each claim needs.
        with_parts: whether the study has parts, which are named.
        more: what follows.

    Returns:
        The section; None of a benchmark that has no claims.

    """
    if not claims:
        return None
    tested = [claim for claim in claims if claim.verdict not in _UNTESTED]
    untested = [claim for claim in claims if claim.verdict in _UNTESTED]
    needs = f"`sensorbench study show {study}` lists what each needs." if study else ""
    counts = Text([f"Of {len(claims)} published findings: ", _counted(claims), "."])
    if not tested:
        none = Text(f"None of them can be tested by what was measured here. {needs}".strip())
        return Section("claims", "Published findings", [counts, none, _untested(untested, with_parts=with_parts), *more])
    chart = _chart(tested)
    old = Text(_FORMAT_1, "banner") if any(claim.rules == "format 1" for claim in claims) else None
    blocks: list[Block | None] = [
        old,
        counts,
        Text(_HOW_TO_READ, "note"),
        chart,
        _tested(tested, with_parts=with_parts),
        _untested(untested, with_parts=with_parts) if untested else None,
        *more,
    ]
    return Section("claims", "Published findings", blocks)


def _counted(claims: Sequence[JudgedClaim]) -> Line:
    return joined([[f"{count} ", verdict(word)] for word, count in counts_by_verdict(claims).items()])


def _tested(claims: Sequence[JudgedClaim], *, with_parts: bool) -> Table:
    columns: Columns = [*_columns(with_parts=with_parts), ("Here", "number")]
    rows: list[list[Line]] = [
        [
            *finding(claim),
            *([", ".join(claim.parts) or "each"] if with_parts else []),
            [verdict(claim.verdict), _measured(claim.measured), muted(claim.reason), *_cells(claim), muted(_needed(claim))],
        ]
        for claim in claims
    ]
    return Table(columns, rows, "claims")


def _untested(claims: Sequence[JudgedClaim], *, with_parts: bool) -> Details:
    columns: Columns = [*_columns(with_parts=with_parts), ("Why not", "text")]
    rows: list[list[Line]] = [
        [
            *finding(claim),
            *([", ".join(claim.parts) or "each"] if with_parts else []),
            [verdict(claim.verdict), muted(claim.reason)],
        ]
        for claim in claims
    ]
    return Details(f"{counted(len(claims), 'finding')} not tested, and why", [Table(columns, rows, "claims")])


def _columns(*, with_parts: bool) -> Columns:
    parts: Columns = [("Parts", "text")] if with_parts else []
    return [("", "name"), ("Finding", "text"), ("Published", "text"), *parts]


def finding(claim: JudgedClaim) -> list[Line]:
    """What was found, in the paper's words where they are known, and what was published of it."""
    words = muted(f"“{claim.sentence}”" if claim.sentence else claim.form)
    return [claim.id, [claim.text, words, *([muted(claim.note)] if claim.note else [])], claim.published]


def verdict(word: str, style: str = "verdict") -> Piece:
    """A verdict in its colour."""
    return Piece(word, f"{style} {word.replace(' ', '-')}")


def _measured(found: MeasuredFigure | None) -> Line:
    if found is None or found.value is None:
        return ""
    return [" ", found.value, between(found.low, found.high)]


def _needed(claim: JudgedClaim) -> str:
    """How many repetitions would decide a claim that is open."""
    if claim.verdict != "inconclusive" or not claim.repetitions:
        return ""
    enough = [f"{count} where runs vary by {variation}" for variation, count in claim.repetitions.items() if count]
    return f"Repetitions that decide it: {', '.join(enough)}." if enough else "No number of repetitions up to ten decides it."


def _cells(claim: JudgedClaim) -> list[Line]:
    """The comparisons of a claim that is several, smaller."""
    if len(claim.cells) < 2:
        return []
    return [muted([f"{cell.name}: ", cell.verdict, _figure(cell)]) for cell in claim.cells[: 3 * MAX_CELLS_SHOWN]]


def _figure(cell: JudgedCell) -> Line:
    found = cell.measured
    if found is None or found.value is None:
        return ""
    ends: Line = (
        f" ({formatting.significant(found.low)} to {formatting.significant(found.high)})"
        if found.low is not None and found.high is not None
        else ""
    )
    return [f", {formatting.significant(found.value)}", ends]


def _chart(claims: Sequence[JudgedClaim]) -> Chart | None:
    """The ratios that were measured, each with its interval, and what was published, on one axis."""
    shown = [(claim, cell) for claim in claims if len(claim.cells) <= MAX_CELLS_SHOWN for cell in claim.cells if _is_shown(cell)]
    if not shown:
        return None
    values = [value for _, cell in shown for value in (cell.published, cell.measured and cell.measured.value, 1.0) if value]
    low, high = min(values) / _MARGIN, max(values) * _MARGIN
    names = [f"{claim.id}  {cell.name if len(claim.cells) > 1 else claim.text}" for claim, cell in shown]
    rows = [_row(name, cell, low, high) for name, (_, cell) in zip(names, shown, strict=True)]
    y = alt.Y("name:N", title=None, sort=names, axis=alt.Axis(ticks=False, domain=False))
    axis = alt.Axis(labelExpr="'× ' + format(datum.value, '~g')", tickCount=6, labelOverlap="greedy", labelSeparation=12)
    scale = alt.Scale(type="log", nice=False, domain=[low, high])
    x = alt.X("value:Q", title="ratio, logarithmic", scale=scale, axis=axis)
    known = [word for word in _COLOURS if any(row["verdict"] == word for row in rows)]
    legend = alt.Legend(orient="bottom", symbolOpacity=1)
    colour = alt.Color(
        "verdict:N", title=None, scale=alt.Scale(domain=known, range=[_COLOURS[word] for word in known]), legend=legend
    )
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=y)
    equal = alt.Chart(alt.InlineData(values=[{"value": 1.0}])).mark_rule(strokeDash=[4, 4], color=charts.QUIET).encode(x=x)
    bands = (
        base.transform_filter("isValid(datum.band_low)")
        .mark_bar(height=14, opacity=0.18, color=charts.QUIET)
        .encode(x=alt.X("band_low:Q", scale=scale), x2=alt.X2("band_high:Q"))
    )
    intervals = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2.4)
        .encode(x=alt.X("low:Q", scale=scale), x2=alt.X2("high:Q"), color=colour)
    )
    tooltip = [
        alt.Tooltip("name:N"),
        alt.Tooltip("verdict:N"),
        *(alt.Tooltip(f"{key}:Q", format=".3~g") for key in ("value", "published")),
    ]
    points = base.mark_point(filled=True, size=70, opacity=1).encode(x=x, color=colour, tooltip=tooltip)
    published = (
        base.transform_filter("isValid(datum.published)")
        .mark_point(shape="diamond", size=90, strokeWidth=1.8, color=charts.QUIET)
        .encode(x=alt.X("published:Q", scale=scale), tooltip=tooltip)
    )
    title = "What was measured, and what was published"
    return Chart(
        "claims",
        charts.sized(
            equal + bands + intervals + points + published,
            "The dot is what was measured, the line its confidence interval, the diamond what was published. The grey band is what counts as "
            "agreement: a finding is reproduced where the line lies in it.",
            height=_ROW_HEIGHT * len(names) + 10,
        ),
        title,
        is_wide=True,
    )


def _is_shown(cell: JudgedCell) -> bool:
    return cell.is_ratio and cell.measured is not None and cell.measured.value is not None and cell.measured.value > 0.0


def _row(name: str, cell: JudgedCell, low: float, high: float) -> dict[str, float | str | None]:
    """A comparison as the chart draws it: what lies beyond its edge is cut there."""
    band, found = cell.band or AgreementBand(low=None, high=None), cell.measured
    ends = (found.low, found.high) if found else (None, None)
    has_band = cell.band is not None
    return {
        "name": name,
        "verdict": cell.verdict,
        "value": found.value if found else None,
        "published": cell.published,
        "low": None if ends[0] is None else max(ends[0], low),
        "high": None if ends[1] is None else min(ends[1], high),
        "band_low": (low if band.low is None else max(band.low, low)) if has_band else None,
        "band_high": (high if band.high is None else min(band.high, high)) if has_band else None,
    }
