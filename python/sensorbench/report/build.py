"""Puts a report together."""

import functools
import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
import vl_convert

from sensorbench.places import cache_folder, check_page_is_free
from sensorbench.report import answer, charts, findings, fronts, values, variants, words
from sensorbench.report.sections import pictures
from sensorbench.results import ComparisonResult
from sensorbench.results.files import write_bytes, write_text

REPORT_FILE = "report.html"
CHARTS_FOLDER = "charts"
TEMPLATES = Path(__file__).parent / "templates"

# What charts look like on paper and in files; the page has a theme of its own for light and dark.
_FILE_CONFIG = {"background": "white", "axis": {"labelFontSize": 11}, "view": {"stroke": "#dddddd"}}
FILE_WIDTH = 620


def write_report(result: ComparisonResult, summary: dict[str, Any], *, with_files: bool = True) -> Path:
    """Writes `report.html` into the folder of the results, and its charts as SVG and PNG beside it. Returns the page."""
    drawn, wide = _charts(result, summary), pictures(summary)
    operations = list(summary["operations"])
    views = {
        (setting["id"], name): values.views(result, setting["id"], name) for setting in summary["settings"] for name in operations
    }
    path = write_page(
        result.folder,
        "report.html.j2",
        {**drawn, **wide},
        summary=summary,
        headline=answer.headline(summary),
        rankings={ranking["operation"]: ranking for ranking in summary["rankings"]},
        figures={(figure["setting"], figure["operation"]): figure for figure in summary["figures"]},
        views=views,
        is_logged_whole=all(view is not None for view in views.values()),
        variants=variants,
        findings=findings,
    )
    if with_files:
        write_chart_files(result.folder / CHARTS_FOLDER, drawn, FILE_WIDTH)
        write_chart_files(result.folder / CHARTS_FOLDER, wide, fronts.WIDTH)
    return path


def write_page(folder: Path, template: str, drawn: dict[str, dict[str, Any]], **shown: Any) -> Path:
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


@functools.cache
def page_environment() -> jinja2.Environment:
    """What all pages are made with. There is one, because templates are compiled when one first takes them."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(words=words, answer=answer, sure=answer.sure, first_requests=values.FIRST_REQUESTS)
    return environment


def chart_library() -> str:
    """The chart library in one piece, which takes a second to put together: once for each version of it."""
    kept = cache_folder("report") / f"vega-{version('vl-convert-python')}.js"
    if not kept.exists():
        write_text(kept, vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    return kept.read_text(encoding="utf-8")


def _charts(result: ComparisonResult, summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """All charts by name; those without data are left out."""
    settings = [setting["id"] for setting in summary["settings"]]
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
    for operation in (name for name, one in summary["operations"].items() if not one.get("variant_of")):
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


def _figure_rows(summary: dict[str, Any], operation: str) -> list[dict[str, Any]]:
    rows = []
    for figure in summary["figures"]:
        interval = figure["latency_s"].get(summary["metric"])
        if figure["operation"] == operation and interval and interval["value"]:
            rows.append(
                {"setting": figure["setting"], "value_s": interval["value"], "low_s": interval["low"], "high_s": interval["high"]}
            )
    return rows


def write_chart_files(folder: Path, drawn: dict[str, dict[str, Any]], width: int) -> None:
    """Writes charts as SVG and PNG into a folder, so many pixels wide."""
    folder.mkdir(exist_ok=True)
    for name, specification in drawn.items():
        fixed = {**specification, "width": width, "config": {**specification.get("config", {}), **_FILE_CONFIG}}
        svg, png = picture(fixed)
        write_text(folder / f"{name}.svg", svg)
        write_bytes(folder / f"{name}.png", png)


def picture(specification: dict[str, Any]) -> tuple[str, bytes]:
    """A chart as SVG and as PNG."""
    svg: str = vl_convert.vegalite_to_svg(specification)
    return svg, vl_convert.svg_to_png(svg, scale=2)
