"""Writes pages, and their charts as files."""

import functools
import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup, escape

from sensorbench.places import cache_folder, check_page_is_free
from sensorbench.report import answer, charts, findings, fronts, values, variants, words
from sensorbench.report.sections import pictures
from sensorbench.results import ComparisonResult
from sensorbench.results.files import write_bytes, write_text
from sensorbench.results.page import Chart, Line, Page, Piece
from sensorbench.results.summary.comparison import ComparisonSummary

REPORT_FILE = "report.html"
CHARTS_FOLDER = "charts"
TEMPLATES = Path(__file__).parent / "templates"

# What charts look like on paper and in files; the page has a theme of its own for light and dark.
_FILE_CONFIG = {"background": "white", "axis": {"labelFontSize": 11}, "view": {"stroke": "#dddddd"}}
_ELEMENTS = {"strong", "em", "code", "pre"}


def write_page(page: Page, folder: Path, *, with_files: bool = True) -> Path:
    """Writes `report.html` into the folder of the results, and its charts as SVG and PNG beside it. Returns the page."""
    shown = page.charts
    drawn = {chart.name: chart.specification for chart in shown}
    text = (
        page_environment()
        .get_template("page.html.j2")
        .render(page=page, script=chart_library() if shown else "", specifications=json.dumps(drawn).replace("</", "<\\/"))
    )
    path = folder / REPORT_FILE
    check_page_is_free(path)
    write_text(path, text)
    if with_files and shown:
        write_chart_files(folder / CHARTS_FOLDER, shown)
    return path


@functools.cache
def page_environment() -> jinja2.Environment:
    """What all pages are made with. There is one, because templates are compiled when one first takes them."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(words=words, answer=answer, sure=answer.sure, first_requests=values.FIRST_REQUESTS)
    environment.filters.update(shown=_shown, type_name=lambda block: type(block).__name__)
    return environment


def _shown(line: Line, kind: str = "text") -> Markup:
    """A line in HTML, its values as those of a kind."""
    if isinstance(line, str):
        return escape(words.setting(line) if kind == "setting" else line)
    if isinstance(line, Piece):
        return _piece(line, _shown(line.text, kind))
    if line is None or isinstance(line, float | int):
        return escape(words.of_kind(line, kind))
    return Markup("").join(_shown(part, kind) for part in line)


def _piece(piece: Piece, text: Markup) -> Markup:
    if piece.href:
        return Markup('<a href="{}">{}</a>').format(piece.href, text)
    if piece.style in _ELEMENTS:
        return Markup("<{0}>{1}</{0}>").format(piece.style, text)
    attributes = {"class": piece.style, "title": piece.hint}
    return Markup("<span{}>{}</span>").format(
        Markup("").join(Markup(' {}="{}"').format(name, value) for name, value in attributes.items() if value), text
    )


def chart_library() -> str:
    """The chart library in one piece, which takes a second to put together: once for each version of it."""
    kept = cache_folder("report") / f"vega-{version('vl-convert-python')}.js"
    if not kept.exists():
        write_text(kept, vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    return kept.read_text(encoding="utf-8")


def write_chart_files(folder: Path, drawn: list[Chart]) -> None:
    """Writes charts as SVG and PNG into a folder, each as wide as it says."""
    folder.mkdir(exist_ok=True)
    for chart in drawn:
        config = {**chart.specification.get("config", {}), **_FILE_CONFIG}
        svg, png = picture({**chart.specification, "width": chart.file_width, "config": config})
        write_text(folder / f"{chart.name}.svg", svg)
        write_bytes(folder / f"{chart.name}.png", png)


def picture(specification: dict[str, Any]) -> tuple[str, bytes]:
    """A chart as SVG and as PNG."""
    svg: str = vl_convert.vegalite_to_svg(specification)
    return svg, vl_convert.svg_to_png(svg, scale=2)


def write_report(result: ComparisonResult, summary: ComparisonSummary, *, with_files: bool = True) -> Path:
    """Writes `report.html` into the folder of the results, and its charts as SVG and PNG beside it. Returns the page."""
    drawn, wide = _charts(result, summary), pictures(summary.result.sections)
    operations = list(summary.result.operations)
    views = {(variant.id, name): values.views(result, variant.id, name) for variant in summary.variants for name in operations}
    path = write_templated_page(
        result.folder,
        "report.html.j2",
        {**drawn, **wide},
        summary=summary,
        headline=answer.headline(summary),
        rankings={ranking.operation: ranking for ranking in summary.result.rankings},
        figures={(figure.variant, figure.operation): figure for figure in summary.result.figures},
        views=views,
        is_logged_whole=all(view is not None for view in views.values()),
        variants=variants,
        findings=findings,
    )
    if with_files:
        write_drawn(result.folder, drawn)
        write_drawn(result.folder, wide, fronts.WIDTH)
    return path


def write_templated_page(folder: Path, template: str, drawn: dict[str, dict[str, Any]], **shown: Any) -> Path:
    """Writes a page with its charts into the folder of the results. Returns it."""
    page = (
        page_environment()
        .get_template(template)
        .render(
            **shown,
            charts=drawn,
            script=chart_library(),
            specifications=json.dumps(drawn).replace("</", "<\\/"),
        )
    )
    path = folder / REPORT_FILE
    check_page_is_free(path)
    write_text(path, page)
    return path


def _charts(result: ComparisonResult, summary: ComparisonSummary) -> dict[str, dict[str, Any]]:
    """All charts by name; those without data are left out."""
    settings = [variant.id for variant in summary.variants]
    drawn: dict[str, dict[str, Any]] = {}

    def draw(name: str, rows: list[dict[str, Any]], chart: Callable[..., dict[str, Any]], *more: Any) -> None:
        if rows:
            drawn[name] = chart(rows, settings, *more)

    last_s = values.longest_first_run_s(result, settings)
    for name, group in variants.groups(summary).items():
        for level, of_level in variants.settings_by_level(summary).items():
            rows = variants.rows(summary, group, of_level)
            if rows:
                drawn[variants.chart_name(name, level)] = charts.selectivity(rows, of_level)
    # Of a variant the curves above say more than five charts of its own.
    for operation in (name for name, one in summary.result.operations.items() if not one.variant_of):
        draw(f"figures-{operation}", _figure_rows(summary, operation), charts.figures)
        draw(f"distribution-{operation}", values.distribution(result, settings, operation), charts.distribution)
        draw(f"over-run-{operation}", values.over_run(result, settings, operation), charts.over_run, list(values.FIRST_REQUESTS))
        draw(f"over-time-{operation}", values.over_time(result, settings, operation), charts.over_time, last_s)
        draw(f"throughput-{operation}", values.throughput(result, settings, operation), charts.throughput)
    draw("load", values.load(result, settings), charts.load)
    draw("size", values.size(result, settings), charts.size)
    draw("processors", values.resources(result, settings), charts.processors, last_s)
    draw("memory", values.resources(result, settings), charts.memory, last_s)
    draw("rate", values.rate(result, settings), charts.rate)
    return drawn


def _figure_rows(summary: ComparisonSummary, operation: str) -> list[dict[str, Any]]:
    rows = []
    for figure in summary.result.figures:
        interval = figure.latency_s.get(summary.result.metric)
        if figure.operation == operation and interval and interval.value:
            rows.append({"setting": figure.variant, "value_s": interval.value, "low_s": interval.low, "high_s": interval.high})
    return rows


def write_drawn(folder: Path, drawn: dict[str, dict[str, Any]], width: int = 620) -> None:
    """Writes charts by name."""
    write_chart_files(folder / CHARTS_FOLDER, [Chart(name, one, file_width=width) for name, one in drawn.items()])
