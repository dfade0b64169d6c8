"""The page of a study of several datasets or parts: the way to each report, the sections of the study, how figures grow with the
data, and each claim over all of them.
"""

from typing import NamedTuple

import altair as alt

from sensorbench.paths import REPORT_FILE
from sensorbench.report import charts, parts
from sensorbench.report.claims import claims_section, finding, verdict
from sensorbench.report.published import published_section
from sensorbench.report.sections import own_sections
from sensorbench.results.page import Chart, ChartSpec, Columns, Grid, Line, Page, Piece, Section, Table, Text
from sensorbench.results.summary.claims import VerdictOf
from sensorbench.results.summary.series import SeriesFigures, SeriesPart, SeriesSummary
from sensorbench.wording import counted

# What grows: the time to load, the size, and the latency of each question.
_AXES = {
    "load": alt.Y(
        "value:Q", title="time to loaded and settled", scale=alt.Scale(type="log", nice=False), axis=charts.LATENCY_AXIS
    ),
    "size": alt.Y(
        "value:Q", title="bytes on disk", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(format="~s", tickCount=6)
    ),
}
_LATENCY = alt.Y("value:Q", title=charts.LATENCY_TITLE, scale=alt.Scale(type="log", nice=False), axis=charts.LATENCY_AXIS)


def series_page(summary: SeriesSummary) -> Page:
    """The page of a series."""
    result, titles = summary.result, _titles(summary)
    grown = [Chart(f"growth-{what}", _growth(summary, what), titles[what]) for what in _what_grows(summary)]
    return Page(
        kind=f"study {result.name}, {len(result.parts)} {result.of}",
        title=summary.title,
        head=[
            parts.state(summary.status, None),
            *(_warnings(name, part) for name, part in result.parts.items() if part.warnings),
        ],
        sections=[
            _parts(result),
            *own_sections(result.sections),
            Section("growth", "How it grows with the data", [Grid(grown)]) if grown else None,
            published_section(summary.published),
            _claims(summary) if summary.claims else None,
            parts.reproduce(summary.command, version=summary.version),
        ],
        footer=parts.footer(summary),
    )


def _warnings(name: str, part: SeriesPart) -> Text:
    """How many warnings a part has, and of which kinds."""
    count, kinds = len(part.warnings), ", ".join(dict.fromkeys(part.warnings))
    line: Line = [f"{counted(count, 'warning')} in ", _link(name, part), f": {kinds}."]
    return Text(line, "banner")


def _link(name: str, part: SeriesPart) -> Piece:
    return Piece(name, href=f"{part.folder}/{REPORT_FILE}")


def _parts(result: SeriesFigures) -> Section:
    """The parts or datasets, with the way to the report of each."""
    is_of_parts = result.of == "parts"
    first: Columns = [("Part", "name"), ("What it compares", "text")] if is_of_parts else [("Dataset", "name")]
    columns: Columns = [
        *first,
        ("readings", "count"),
        ("variants", "count"),
        ("failed", "count"),
        ("answers", "text"),
        ("state", "text"),
    ]
    answers: dict[bool | None, Line] = {None: "not compared", True: Piece("equal", "good"), False: Piece("different", "bad")}
    rows: list[list[Line]] = [
        [
            _link(name, part),
            *([part.title] if is_of_parts else []),
            part.readings,
            str(len(part.variants)),
            str(len(part.failures)),
            answers[part.answers_equal],
            part.status,
        ]
        for name, part in result.parts.items()
    ]
    note = (
        f"Each has a report of its own, with everything that was measured {'in it' if is_of_parts else 'on it'}. The links work where this "
        "page lies in the folder of its results."
    )
    left_out = [Text([Piece(name), f" was left out: {why}."]) for name, why in result.left_out.items()]
    title = "The parts" if is_of_parts else "The datasets"
    return Section("parts", title, [Table(columns, rows), *left_out, Text(note, "note")])


def _claims(summary: SeriesSummary) -> Section | None:
    """Each claim over all parts; of datasets, what each of them says, too."""
    if summary.result.of == "parts":
        return claims_section(summary.claims, study=summary.result.name, with_parts=True)
    text = "What each dataset says, and what those say together that could test a finding."
    datasets = list(summary.result.parts)
    together: Columns = [("", "name"), ("Finding", "text"), ("Published", "text"), ("Together", "text")]
    rows = [
        [*finding(claim), verdict(claim.verdict), *(_of_dataset(claim.of_each[dataset]) for dataset in datasets)]
        for claim in summary.claims
    ]
    table = Table([*together, *((dataset, "number") for dataset in datasets)], rows, "claims")
    return Section("claims", "Published findings", [Text(text), table])


def _of_dataset(of: VerdictOf) -> Line:
    """What a dataset says of a claim."""
    found, ends = of.measured, list[Line]()
    if found is None or not found.value:
        return Piece(of.verdict, hint=of.reason)
    if found.low is not None:
        ends = [" (", found.low, " – ", found.high, ")"]
    return [Piece(of.verdict, hint=of.reason), parts.muted([found.value, ends])]


def _what_grows(summary: SeriesSummary) -> list[str]:
    return list(dict.fromkeys(row.what for row in summary.result.growth))


def _titles(summary: SeriesSummary) -> dict[str, str]:
    """What each chart is about; the share of an instance differs from dataset to dataset."""
    titles = {"load": "Loading", "size": "Size on disk"}
    for part in summary.result.parts.values():
        for name, operation in part.operations.items():
            instance = operation.instance
            titles[name] = f"{operation.title.rpartition(',')[0]}, {instance}" if instance else operation.title
    return titles


class _GrowthRow(NamedTuple):
    variant: str
    dataset: str
    readings: int
    value: float


def _growth(summary: SeriesSummary, what: str) -> ChartSpec:
    rows = [_GrowthRow(row.variant, row.dataset, row.readings, row.value) for row in summary.result.growth if row.what == what]
    variants = list(dict.fromkeys(row.variant for row in rows))
    chart = charts.line_of_variants(rows, variants).encode(
        x=alt.X("readings:Q", title="readings, logarithmic", scale=alt.Scale(type="log"), axis=charts.COUNT_AXIS),
        y=_AXES.get(what, _LATENCY),
        tooltip=[alt.Tooltip("variant:N"), alt.Tooltip("dataset:N"), alt.Tooltip("value:Q", format=".3~s")],
    )
    how = "Each line is a variant; lower is better. A line that rises more steeply than another suffers more from more data."
    return charts.sized(chart, how, height=330)
