"""Writes pages, and their charts as files."""

import functools
import json
import re
from importlib.metadata import version
from pathlib import Path

import jinja2
import vl_convert
from markupsafe import Markup, escape

from sensorbench.paths import REPORT_FILE, cache_folder, check_page_is_free
from sensorbench.report import formatting
from sensorbench.report.glossary import Glossary
from sensorbench.results.files import write_bytes, write_text
from sensorbench.results.page import Chart, ChartSpec, Line, Page, Piece, Section

CHARTS_FOLDER = "charts"
TEMPLATES = Path(__file__).parent / "templates"

# What charts look like on paper and in files; the page has a theme of its own for light and dark.
_FILE_CONFIG = {
    "background": "white",
    "axis": {"labelFontSize": 11, "labelOverlap": "greedy", "labelSeparation": 6, "labelBound": True, "labelLimit": 380},
    "legend": {"labelLimit": 320},
    "view": {"stroke": "#dddddd"},
}
_ELEMENTS = {"strong", "em", "code", "pre"}


def write_page(page: Page, folder: Path, *, with_files: bool = True) -> Path:
    """Writes `report.html` into the folder of the results, and its charts as SVG and PNG beside it. Returns the page."""
    charts = page.charts
    drawn = {chart.name: chart.specification for chart in charts}
    script = chart_library() if charts else ""
    specifications = json.dumps(drawn).replace("</", "<\\/")
    text = (
        page_environment()
        .get_template("page.html.j2")
        .render(page=page, contents=contents(page), glossary=Glossary(), script=script, specifications=specifications)
    )
    path = folder / REPORT_FILE
    check_page_is_free(path)
    write_text(path, text)
    if with_files and charts:
        write_chart_files(folder / CHARTS_FOLDER, charts)
    return path


@functools.cache
def page_environment() -> jinja2.Environment:
    """What all pages are made with. There is one, because templates are compiled when one first takes them."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(shown=_shown, plain=plain, sort_value=sort_value, type_name=lambda block: type(block).__name__)
    return environment


def _shown(line: Line, kind: str = "text") -> Markup:
    """A line in HTML, its values as those of a kind."""
    if isinstance(line, str):
        return escape(formatting.variant(line) if kind == "variant" else line)
    if isinstance(line, Piece):
        return _piece(line, _shown(line.text, kind))
    if line is None or isinstance(line, float | int):
        return escape(formatting.of_kind(line, kind))
    return Markup("").join(_shown(part, kind) for part in line)


def plain(line: Line) -> str:
    """The words of a line alone."""
    if isinstance(line, Piece):
        return plain(line.text)
    if line is None or isinstance(line, str | float | int):
        return "" if line is None else str(line)
    return "".join(map(plain, line))


def sort_value(line: Line) -> str | float:
    """What a cell is sorted by: the first number in it, else its words."""
    number = _first_number(line)
    return plain(line) if number is None else number


def _first_number(line: Line) -> float | None:
    if isinstance(line, Piece):
        return _first_number(line.text)
    if line is None or isinstance(line, str):
        return None
    if isinstance(line, float | int):
        return line
    return next((number for part in line if (number := _first_number(part)) is not None), None)


def contents(page: Page) -> list[tuple[str, Section]]:
    """The sections of a page, each with the id by which it is linked."""
    return [(section.id or section_id(section.title), section) for section in page.sections if section]


def section_id(title: str) -> str:
    """An id made of a title."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


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


def write_chart_files(folder: Path, charts: list[Chart]) -> None:
    """Writes charts as SVG and PNG into a folder, each as wide as it says."""
    folder.mkdir(exist_ok=True)
    for chart in charts:
        config = {**chart.specification.get("config", {}), **_FILE_CONFIG}
        svg, png = picture({**chart.specification, "width": chart.file_width, "config": config})
        write_text(folder / f"{chart.name}.svg", svg)
        write_bytes(folder / f"{chart.name}.png", png)


def picture(specification: ChartSpec) -> tuple[str, bytes]:
    """A chart as SVG and as PNG."""
    svg: str = vl_convert.vegalite_to_svg(specification)
    return svg, vl_convert.svg_to_png(svg, scale=2)
