"""The representation of results in notebooks: a compact table without scripts or further files."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sensorbench.api.figures import Figure
from sensorbench.report import formatting
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.results.summary.envelope import Summary
from sensorbench.wording import counted

SHOWN = ("median", "p99")
MARK = "★"
_CELL = Markup('<td style="text-align:right;white-space:nowrap">{}</td>')
_HEAD = Markup('<th style="text-align:right">{}</th>')
_SMALL = Markup('<small style="opacity:.75">{}</small>')


def of_comparison(summary: ComparisonSummary, figures: Iterable[Figure], folder: Path) -> str:
    """A table of variants and operations: median and p99, each with its confidence interval; the fastest are marked."""
    by_place = {(figure.variant, figure.operation, figure.metric): figure for figure in figures}
    operations = [name for name in summary.result.operations if any(operation == name for _, operation, _ in by_place)]
    titles = Markup("").join(_HEAD.format(summary.result.operations[name].title) for name in operations)
    rows = Markup("").join(
        Markup("<tr><th style='text-align:left'>{}</th>{}</tr>").format(
            formatting.variant(variant.id),
            Markup("").join(_CELL.format(_cell(by_place, variant.id, name, summary.result.metric)) for name in operations),
        )
        for variant in summary.variants
    )
    confidences = sorted({figure.confidence for figure in by_place.values() if figure.confidence})
    interval = (
        f" with {' or '.join(f'{confidence:.0%}' for confidence in confidences)} confidence interval" if confidences else ""
    )
    answers = {True: "all answers were equal", False: "ANSWERS DIFFER: nothing is ranked", None: "answers were not compared"}
    note = (
        f"Response times: median, below it p99, each{interval}. {MARK} fastest by {summary.result.metric}, or not known to be slower; "
        f"{answers[summary.answers_equal]}. {counted(len(summary.warnings), 'warning')}; {summary.status}; {folder}"
    )
    return str(
        Markup("<table><caption style='text-align:left'><b>{}</b></caption><thead><tr><th></th>{}</tr></thead><tbody>{}</tbody>"
               "</table><p>{}</p>").format(summary.title, titles, rows, _SMALL.format(note))
    )  # fmt: skip


def _cell(by_place: dict[tuple[str, str, str], Figure], variant: str, operation: str, ranked_by: str) -> Markup | str:
    shown = [by_place.get((variant, operation, metric)) for metric in SHOWN]
    if not any(shown):
        return "–"
    ranked = by_place.get((variant, operation, ranked_by))
    lines = [_figure(figure) for figure in shown if figure]
    if ranked is not None and ranked.is_fastest:
        lines[0] = Markup("<b>{} {}</b>").format(MARK, lines[0])
    return Markup("<br>").join(lines)


def _figure(figure: Figure) -> Markup:
    value = formatting.duration(figure.value_s)
    if figure.low_s is None or figure.high_s is None:
        return Markup("{}").format(value)
    interval = f"({formatting.duration(figure.low_s)} – {formatting.duration(figure.high_s)})"
    return Markup("{} {}").format(value, _SMALL.format(interval))


def of_any(summary: Summary[Any], folder: Path) -> str:
    """The main facts of results, for kinds without common figures."""
    facts = {
        "kind": summary.kind,
        "status": summary.status if summary.reason is None else f"{summary.status}: {summary.reason}",
        "variants": ", ".join(formatting.variant(variant.id) for variant in summary.variants),
        "warnings": str(len(summary.warnings)),
        "folder": str(folder),
    }
    rows = Markup("").join(
        Markup("<tr><th style='text-align:left'>{}</th><td style='text-align:left'>{}</td></tr>").format(name, fact)
        for name, fact in facts.items()
        if fact
    )
    return str(Markup("<table><caption style='text-align:left'><b>{}</b></caption>{}</table>").format(summary.title, rows))


def of_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]], notes: Iterable[str]) -> str:
    """A table of strings, with notes below it."""
    head = Markup("").join(_HEAD.format(column) for column in columns)
    body = Markup("").join(Markup("<tr>{}</tr>").format(Markup("").join(map(_CELL.format, row))) for row in rows)
    below = Markup("").join(Markup("<p>{}</p>").format(_SMALL.format(note)) for note in notes)
    return str(
        Markup("<table><caption style='text-align:left'><b>{}</b></caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table>{}")
        .format(title, head, body, below)
    )  # fmt: skip
