"""The page of a study of factors: default against draft, the hit rate against load, what each setting does, all levels, the claims."""

from pathlib import Path
from typing import Any

import altair as alt

from sensorbench.report import charts, words
from sensorbench.report.build import CHARTS_FOLDER, FILE_WIDTH, write_chart_files, write_page
from sensorbench.report.effects import effects
from sensorbench.report.parallel import parallel, places

FILLED = "filled"
DEFAULT = "default"
OBJECTIVE = "p99_of_due_s"
# Figures: their words, and what kind of values they are.
FIGURES = {
    "hit_rate": ("hit rate", "share"),
    "steady_s": ("until steady", "duration_s"),
    "p99_of_due_s": ("p99", "duration_s"),
    "mean_s": ("mean latency", "duration_s"),
    "per_s": ("writes/s", "count"),
    "took_s": ("time to write all", "duration_s"),
    "completed_per_s": ("completed/s", "count"),
    "processors": ("processors busy", "number"),
    "client_cpu": ("client's processors", "number"),
    "disk_read_per_s": ("disk read/s", "bytes"),
    "disk_written_per_s": ("disk written/s", "bytes"),
    "memtable_bytes": ("memtables", "bytes"),
    "compacted_per_s": ("compacted/s", "bytes"),
    "sstables": ("SSTables", "count"),
    "table_bytes": ("tables", "bytes"),
    "disk_bytes": ("on disk", "bytes"),
}


def write_factors_report(folder: Path, summary: dict[str, Any]) -> Path:
    """Writes `report.html` into the folder of the results, and its charts as SVG and PNG beside it. Returns the page."""
    drawn = _charts(summary)
    path = write_page(folder, "factors.html.j2", drawn, summary=summary, factors=_Words(summary))
    write_chart_files(folder / CHARTS_FOLDER, drawn, FILE_WIDTH)
    return path


def headline(summary: dict[str, Any]) -> str:
    """What came out, in a sentence or two."""
    verdicts = [claim["verdict"] for claim in summary["claims"]]
    counts = ", ".join(f"{verdicts.count(word)} {word}" for word in dict.fromkeys(verdicts))
    return f"{_draft(summary)}Of {len(verdicts)} published findings: {counts}."


def _draft(summary: dict[str, Any]) -> str:
    """What the draft does to the objective under each load."""
    part = next((one for one in summary["parts"].values() if one["base"] == DEFAULT and "draft" in one["levels"]), None)
    if part is None:
        return ""
    told = []
    for row in (row for row in last_steps(part) if row["level"] == "draft"):
        ratio = row["figures"].get(OBJECTIVE, {}).get("ratio")
        if ratio:
            told.append(f"{words.times(ratio['value'])} for {summary['loads'][row['load']]}{_sure(ratio)}")
    return f"The draft's p99 is, to the default's, {'; '.join(told)}. " if told else ""


def _sure(ratio: dict[str, Any]) -> str:
    if ratio["low"] is None:
        return ", how sure is not known"
    return f" ({words.significant(ratio['low'])} – {words.significant(ratio['high'])})"


def last_steps(part: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a part that are of the last step of their level and load."""
    last = {(row["load"], row["level"]): row for row in part["rows"] if row["where"] != FILLED}
    return list(last.values())


class _Words:
    """What the template asks for."""

    figures = FIGURES

    def __init__(self, summary: dict[str, Any]) -> None:
        self.headline = headline(summary)
        self._loads = summary["loads"]
        self._published = {
            (row["part"], row["level"], row["load"], row["where"], row["figure"]): row["value"] for row in summary["published"]
        }

    def shown(self, figure: str, value: float | None) -> str:
        """A figure's value."""
        kind = FIGURES[figure][1]
        if value is None:
            return "–"
        if kind == "share":
            return f"{value:.3f}"
        return words.significant(value) if kind == "number" else words.of_kind(value, kind)

    def columns(self, part: dict[str, Any], *, filled: bool) -> list[str]:
        """Which figures the rows of a part have."""
        rows = [row for row in part["rows"] if (row["where"] == FILLED) == filled]
        return [figure for figure in FIGURES if any(figure in row["figures"] for row in rows)]

    def rows(self, part: dict[str, Any], *, filled: bool) -> list[dict[str, Any]]:
        """The rows of a part that are of putting records there, or of rates."""
        return [row for row in part["rows"] if (row["where"] == FILLED) == filled]

    def published(self, name: str, part: dict[str, Any], row: dict[str, Any], figure: str) -> str:
        """What the source printed for a level, of all but hit rates to its base's; empty where it printed nothing."""
        value, base = (
            self._published.get((name, level, row["load"], row["where"], "load" if figure == "processors" else figure))
            for level in (row["level"], part["base"])
        )
        if figure == "hit_rate":
            return f"{value:.3f}" if value is not None else ""
        # A level to itself says nothing.
        return words.times(value / base) if value is not None and base and row["level"] != part["base"] else ""

    def step(self, row: dict[str, Any], steps: int) -> str:
        """Which step a row is of."""
        again = ", after a restart" if row["where"] >= steps else ""
        return f"{self._loads[row['load']].partition(',')[0]} at {words.count(row['rate_per_s'])}/s{again}"


def _charts(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """All charts by name; those without data are left out."""
    drawn = {}
    hits = _hit_rows(summary)
    if hits:
        drawn["hits"] = _hits(hits)
    found = _effects(summary)
    if found:
        drawn["importance"] = effects(found)
    lines = _lines(summary)
    if lines:
        drawn["parallel"] = parallel(lines, list(dict.fromkeys(row["setting"] for row in lines)), smaller_is_better=True)
    return drawn


def _hit_rows(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Hit rates of the part whose levels differ in them: here and as published."""
    rows = []
    for name, part in summary["parts"].items():
        of_part = [row for row in part["rows"] if row["load"] == "read" and "hit_rate" in row["figures"]]
        if part["base"] == DEFAULT or not of_part:
            continue
        whose = {"part": part["title"]}
        rates = [row["rate_per_s"] for row in of_part]
        rows += [
            {
                **whose,
                "level": row["level"],
                "share": row["rate_per_s"] / max(rates),
                "hit_rate": row["figures"]["hit_rate"]["value"],
                "source": "here",
            }
            for row in of_part
        ]
        shares = sorted({rate / max(rates) for rate in rates})
        rows += [
            {**whose, "level": one["level"], "share": shares[one["where"]], "hit_rate": one["value"], "source": "published"}
            for one in summary["published"]
            if (one["part"], one["figure"], one["load"]) == (name, "hit_rate", "read") and one["where"] < len(shares)
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


def _effects(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """What each level does, to its part's base, to the objective at the highest rate and to the writes a second."""
    found = []
    for part in summary["parts"].values():
        for row in [*last_steps(part), *(row for row in part["rows"] if row["where"] == FILLED)]:
            figure = "per_s" if row["where"] == FILLED else OBJECTIVE
            ratio = row["figures"].get(figure, {}).get("ratio")
            if ratio and row["level"] != part["base"] and (figure == OBJECTIVE or row["load"] == "write"):
                load = summary["loads"][row["load"]].partition(",")[0]
                found.append(
                    {
                        "factor": part["title"],
                        "change": row["level"],
                        "operation": "writes a second, as fast as they go" if figure == "per_s" else f"p99 of {load}",
                        **{key: ratio[key] for key in ("low", "high", "runs")},
                        "ratio": ratio["value"],
                    }
                )
    return found


def _lines(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Each configuration that was compared with the default, or with its part's base, by the objective at the highest rate."""
    cells = {(part, level, cell["load"]): cell for cell in summary["cells"] for part, level in cell["levels"]}
    varied = [
        key
        for key in dict.fromkeys(key for cell in summary["cells"] for key in cell["settings"])
        if len({cell["settings"].get(key) for cell in summary["cells"]}) > 1
    ]
    of_setting = {key: places(sorted({_value(cell, key) for cell in summary["cells"]}, key=_by_size)) for key in varied}
    rows = []
    for name, part in summary["parts"].items():
        for row in last_steps(part):
            ratio = row["figures"].get(OBJECTIVE, {}).get("ratio")
            cell = cells.get((name, row["level"], row["load"]))
            if ratio and cell:
                line = f"{part['title']}: {row['level']}, {summary['loads'][row['load']]}"
                rows += [
                    {
                        "line": line,
                        "setting": key,
                        "place": of_setting[key][_value(cell, key)],
                        "value": _value(cell, key),
                        "ratio": ratio["value"],
                    }
                    for key in varied
                ]
    return rows


def _value(cell: dict[str, Any], key: str) -> str:
    return str(cell["settings"].get(key, "as the server has it"))


def _by_size(value: str) -> tuple[float, str]:
    """Numbers by their size, before words."""
    digits = value.rstrip("MiBshm")
    try:
        return float(digits), value
    except ValueError:
        return float("inf"), value
