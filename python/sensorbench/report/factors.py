"""The page of a study of factors: default against draft, the hit rate against load, what each setting does, all levels, the claims."""

from pathlib import Path
from typing import Any

import altair as alt

from sensorbench.report import charts, words
from sensorbench.report.build import CHARTS_FOLDER, FILE_WIDTH, write_chart_files, write_page
from sensorbench.report.effects import effects
from sensorbench.report.parallel import parallel, places
from sensorbench.results.factors import FILLED
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.factors import FactorCell, FactorPartFigures, FactorsFigures, FactorsSummary, LevelFigures

DEFAULT = "default"
OBJECTIVE = "p99_of_offered_s"
# Figures: their words, and what kind of values they are.
FIGURES = {
    "hit_rate": ("hit rate", "share"),
    "steady_s": ("until steady", "duration_s"),
    "p99_of_offered_s": ("p99", "duration_s"),
    "mean_s": ("mean latency", "duration_s"),
    "per_s": ("writes/s", "count"),
    "took_s": ("time to write all", "duration_s"),
    "completed_per_s": ("completed/s", "count"),
    "server_cpu": ("server CPUs", "number"),
    "client_cpu": ("client CPUs", "number"),
    "disk_read_per_s": ("disk read/s", "bytes"),
    "disk_written_per_s": ("disk written/s", "bytes"),
    "memtable_bytes": ("memtables", "bytes"),
    "compacted_per_s": ("compacted/s", "bytes"),
    "sstables": ("SSTables", "count"),
    "table_bytes": ("tables", "bytes"),
    "disk_bytes": ("on disk", "bytes"),
}


def write_factors_page(folder: Path, summary: FactorsSummary) -> Path:
    """Writes `report.html` into the folder of the results, and its charts as SVG and PNG beside it. Returns the page."""
    drawn = _charts(summary.result)
    path = write_page(folder, "factors.html.j2", drawn, summary=summary, factors=_Words(summary))
    write_chart_files(folder / CHARTS_FOLDER, drawn, FILE_WIDTH)
    return path


def headline(summary: FactorsSummary) -> str:
    """What came out, in a sentence or two."""
    verdicts = [claim.verdict for claim in summary.claims]
    counts = ", ".join(f"{verdicts.count(word)} {word}" for word in dict.fromkeys(verdicts))
    return f"{_draft(summary.result)}Of {len(verdicts)} published findings: {counts}."


def _draft(result: FactorsFigures) -> str:
    """What the draft does to the objective under each load."""
    part = next((one for one in result.parts.values() if one.base == DEFAULT and "draft" in one.levels), None)
    if part is None:
        return ""
    ratios = []
    for row in (row for row in last_steps(part) if row.level == "draft"):
        ratio = _ratio(row, OBJECTIVE)
        if ratio:
            interval = words.interval(ratio.low, ratio.high, ratio.confidence)
            ratios.append(f"{words.times(ratio.value)} for {result.loads[row.load]} ({interval})")
    return f"The draft's p99 is, to the default's, {'; '.join(ratios)}. " if ratios else ""


def _ratio(row: LevelFigures, figure: str) -> MeasuredFigure | None:
    """The ratio of a row's figure to the base's, where there is one."""
    return row.figures[figure].ratio if figure in row.figures else None


def last_steps(part: FactorPartFigures) -> list[LevelFigures]:
    """The rows of a part that are of the last step of their level and load."""
    last = {(row.load, row.level): row for row in part.rows if row.where != FILLED}
    return list(last.values())


class _Words:
    """What the template asks for."""

    figures = FIGURES

    def __init__(self, summary: FactorsSummary) -> None:
        self.headline = headline(summary)
        self._loads = summary.result.loads
        self._published = {(row.part, row.level, row.load, row.where, row.figure): row.value for row in summary.result.published}

    def shown(self, figure: str, value: float | None) -> str:
        """A figure's value."""
        kind = FIGURES[figure][1]
        if value is None:
            return "–"
        if kind == "share":
            return f"{value:.3f}"
        return words.significant(value) if kind == "number" else words.of_kind(value, kind)

    def columns(self, part: FactorPartFigures, *, filled: bool) -> list[str]:
        """Which figures the rows of a part have."""
        rows = self.rows(part, filled=filled)
        return [figure for figure in FIGURES if any(figure in row.figures for row in rows)]

    def rows(self, part: FactorPartFigures, *, filled: bool) -> list[LevelFigures]:
        """The rows of a part that are of putting records there, or of rates."""
        return [row for row in part.rows if (row.where == FILLED) == filled]

    def published(self, name: str, part: FactorPartFigures, row: LevelFigures, figure: str) -> str:
        """What the paper printed for a level, of all but hit rates to its base's; empty where it printed nothing."""
        value, base = (
            self._published.get((name, level, row.load, row.where, "load" if figure == "server_cpu" else figure))
            for level in (row.level, part.base)
        )
        if figure == "hit_rate":
            return f"{value:.3f}" if value is not None else ""
        # A level to itself says nothing.
        return words.times(value / base) if value is not None and base and row.level != part.base else ""

    def step(self, row: LevelFigures, steps: int) -> str:
        """Which step a row is of."""
        again = ", after a restart" if row.where != FILLED and row.where >= steps else ""
        return f"{self._loads[row.load].partition(',')[0]} at {words.count(row.rate_per_s)}/s{again}"


def _charts(result: FactorsFigures) -> dict[str, dict[str, Any]]:
    """All charts by name; those without data are left out."""
    drawn = {}
    hits = _hit_rows(result)
    if hits:
        drawn["hits"] = _hits(hits)
    found = _effects(result)
    if found:
        drawn["importance"] = effects(found)
    lines = _lines(result)
    if lines:
        drawn["parallel"] = parallel(lines, list(dict.fromkeys(row["setting"] for row in lines)), smaller_is_better=True)
    return drawn


def _hit_rows(result: FactorsFigures) -> list[dict[str, Any]]:
    """Hit rates of the part whose levels differ in them: here and as published."""
    rows = []
    for name, part in result.parts.items():
        of_part = [row for row in part.rows if row.load == "read" and row.rate_per_s and "hit_rate" in row.figures]
        if part.base == DEFAULT or not of_part:
            continue
        whose = {"part": part.title}
        rates = [row.rate_per_s for row in of_part if row.rate_per_s]
        rows += [
            {
                **whose,
                "level": row.level,
                "share": rate / max(rates),
                "hit_rate": row.figures["hit_rate"].value,
                "source": "here",
            }
            for row, rate in zip(of_part, rates, strict=True)
        ]
        shares = sorted({rate / max(rates) for rate in rates})
        rows += [
            {**whose, "level": row.level, "share": shares[row.where], "hit_rate": row.value, "source": "published"}
            for row in result.published
            if (row.part, row.figure, row.load) == (name, "hit_rate", "read")
            if row.where != FILLED and row.where < len(shares)
        ]
    return rows


def _hits(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The hit rate against the load, a line for each level; as published dashed."""
    levels = list(dict.fromkeys(row["level"] for row in rows))
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X(
            "share:Q",
            title="load, to the highest rate",
            axis=alt.Axis(format=".0%", tickCount=6),
            scale=alt.Scale(zero=False, padding=15),
        ),
        y=alt.Y("hit_rate:Q", title="hit rate of the key cache", axis=alt.Axis(format="%")),
        color=alt.Color("level:N", title=None, scale=charts.colours_of(levels), legend=charts.NAMES_LEGEND),
        detail="source:N",
    )
    dash = alt.StrokeDash(
        "source:N",
        title=None,
        scale=alt.Scale(domain=["here", "published"], range=[[1, 0], [5, 4]]),
        legend=alt.Legend(orient="bottom", symbolType="stroke", symbolStrokeColor=charts.QUIET, symbolStrokeWidth=2),
    )
    tooltip = ["level:N", "source:N", alt.Tooltip("hit_rate:Q", format=".3f"), alt.Tooltip("share:Q", format=".0%")]
    lines, points = base.mark_line(strokeWidth=2).encode(strokeDash=dash), base.mark_point(filled=True, size=50, opacity=1)
    return charts.sized(lines + points.encode(tooltip=tooltip), height=320)


def _effects(result: FactorsFigures) -> list[dict[str, Any]]:
    """What each level does, to its part's base, to the objective at the highest rate and to the writes per second."""
    found = []
    for part in result.parts.values():
        for row in [*last_steps(part), *(row for row in part.rows if row.where == FILLED)]:
            figure = "per_s" if row.where == FILLED else OBJECTIVE
            ratio = _ratio(row, figure)
            if ratio and row.level != part.base and (figure == OBJECTIVE or row.load == "write"):
                load = result.loads[row.load].partition(",")[0]
                found.append(
                    {
                        "factor": part.title,
                        "change": row.level,
                        "operation": "writes per second, as fast as they go" if figure == "per_s" else f"p99 of {load}",
                        **ratio.model_dump(include={"low", "high", "runs"}),
                        "ratio": ratio.value,
                    }
                )
    return found


def _lines(result: FactorsFigures) -> list[dict[str, Any]]:
    """Each configuration that was compared with the default, or with its part's base, by the objective at the highest rate."""
    cells = {(part, level, cell.load): cell for cell in result.cells for part, level in cell.levels}
    varied = [
        key
        for key in dict.fromkeys(key for cell in result.cells for key in cell.settings)
        if len({cell.settings.get(key) for cell in result.cells}) > 1
    ]
    of_setting = {key: places(sorted({_value(cell, key) for cell in result.cells}, key=_by_size)) for key in varied}
    rows = []
    for name, part in result.parts.items():
        for row in last_steps(part):
            ratio = _ratio(row, OBJECTIVE)
            cell = cells.get((name, row.level, row.load))
            if ratio and cell:
                line = f"{part.title}: {row.level}, {result.loads[row.load]}"
                rows += [
                    {
                        "line": line,
                        "setting": key,
                        "place": of_setting[key][_value(cell, key)],
                        "value": _value(cell, key),
                        "ratio": ratio.value,
                    }
                    for key in varied
                ]
    return rows


def _value(cell: FactorCell, key: str) -> str:
    return str(cell.settings.get(key, "as the server has it"))


def _by_size(value: str) -> tuple[float, str]:
    """Numbers by their size, before words."""
    digits = value.rstrip("MiBshm")
    try:
        return float(digits), value
    except ValueError:
        return float("inf"), value
