"""Loads in batches: rate and latency of batches while the data grow, and how far behind their intended starts they were."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import altair as alt

from sensorbench.report import charts, formatting
from sensorbench.results.described import BatchedLoad, LoadSizeSample
from sensorbench.results.page import Block, Chart, ChartSpec, Columns, Grid, Heading, Line, Piece, Table, Text
from sensorbench.results.summary.comparison import LoadFigures
from sensorbench.wording import counted

# A database keeps up with a rate if the last batch began at most this many intervals between batches late: what is later piles up.
_KEPT_UP = 2


class GrowthRow(NamedTuple):
    """Batches of a variant that were acknowledged when this much was stored; `megabytes` are 0 where nobody knows them."""

    variant: str
    rows: int
    megabytes: float
    per_s: float
    latency_s: float
    quantile: str


class StoredRow(NamedTuple):
    """What the data of a variant took when this many rows were in."""

    variant: str
    rows: int
    megabytes: float


def batched_loads(loads: Mapping[str, LoadFigures], variant_ids: Sequence[str]) -> list[Block]:
    """What was measured of batches, where variants were loaded in batches that were acknowledged one by one."""
    found = {variant: of for variant in variant_ids if (load := loads.get(variant)) is not None and (of := load.batched)}
    if not found:
        return []
    return [
        Heading("Batches"),
        _table(found),
        *(Text(f"{formatting.variant(variant)}: {backpressure(of)}") for variant, of in found.items() if of["rate"] is not None),
        *_levels(found),
        Text(
            "A batch is handed to the driver when the one before was acknowledged, or at its intended start where there is a rate. Its time is the driver's, until the "
            "database acknowledged it. Drivers send large batches in several requests: docs/how-to/ingestion.md says which.",
            "note",
        ),
        Grid(_charts(found)),
    ]


def backpressure(of: BatchedLoad) -> str:
    """Whether a database kept up with the rate of its batches, in a sentence.

    Args:
        of: the batches, which have a rate.

    """
    rate, last_lag_s = of["rate"] or 0.0, of.get("last_lag_s", 0.0)
    retries = of.get("retries", 0)
    again = f" The driver sent writes again {counted(retries, 'time')}, because nodes were busy or away." if retries else ""
    taken = _rate_of(of)
    if last_lag_s <= _KEPT_UP * of["batch_rows"] / rate:
        return (
            f"kept up with {formatting.count(rate)} rows per second; batches began at most "
            f"{formatting.duration(of.get('max_lag_s'))} after their intended starts.{again}"
        )
    return (
        f"fell behind {formatting.count(rate)} rows per second: it took in {formatting.count(taken)} per second, and the last batch began "
        f"{formatting.duration(last_lag_s)} after its intended start.{again}"
    )


def _levels(found: Mapping[str, BatchedLoad]) -> list[Text]:
    """What default levels rest on, once for all variants of a database."""
    bases = {level["basis"]: level["source"] for of in found.values() for level in of.get("default_levels", [])}
    notes = []
    for basis, source in bases.items():
        line: list[Line] = ["Default levels of ", basis]
        if source:
            line += [" (", Piece("source", href=source), ")"]
        notes.append(Text([*line, "."], "note"))
    return notes


def _rate_of(of: BatchedLoad) -> float | None:
    last = of["intervals"][-1] if of["intervals"] else None
    return last["rows"] / last["end_s"] if last is not None and last["end_s"] > 0 else None


def _table(found: Mapping[str, BatchedLoad]) -> Table:
    with_rate = any(of["rate"] is not None for of in found.values())
    columns: Columns = [
        ("Variant", "name"),
        ("rows of a batch", "whole"),
        ("recommended", "whole"),
        ("writers", "whole"),
        ("batches", "whole"),
        ("rows/s", "count"),
        ("p50", "duration_s"),
        ("p99", "duration_s"),
        ("max", "duration_s"),
        ("retries", "whole"),
    ]
    if with_rate:
        columns = [
            *columns,
            ("intended rows/s", "count"),
            ("response p99", "duration_s"),
            ("largest lag", "duration_s"),
            ("lag at the end", "duration_s"),
        ]
    rows: list[list[Line]] = []
    for variant, of in found.items():
        cells: list[Line] = [
            formatting.variant(variant),
            of["batch_rows"],
            of["recommended_rows"],
            of["writers"],
            of["batches"],
            _rate_of(of),
            *(of["batch_s"].get(name) for name in ("p50", "p99", "max")),
            of.get("retries"),
        ]
        if with_rate:
            cells += [of["rate"], of.get("response_s", {}).get("p99"), of.get("max_lag_s"), of.get("last_lag_s")]
        rows.append(cells)
    return Table(columns, rows)


def _charts(found: Mapping[str, BatchedLoad]) -> list[Chart | None]:
    variants = list(found)
    rows = [row for variant, of in found.items() for row in _growth(variant, of)]
    stored = [StoredRow(variant, at["rows"], at["bytes"] / 1e6) for variant, of in found.items() for at in of["sizes"]]
    by_size = all(_grows(of["sizes"]) for of in found.values())
    if not rows:
        return []
    return [
        Chart("growth-rate", _drawn_rate(rows, variants, by_size=by_size), "Rows per second while the data grow"),
        Chart("growth-latency", _drawn_latency(rows, variants, by_size=by_size), "Time of a batch while the data grow"),
        Chart("growth-size", _drawn_size(stored, variants), "Size while the data grow") if stored else None,
    ]


def _grows(sizes: Sequence[LoadSizeSample]) -> bool:
    """Whether a size says how far a load is: some databases reserve room ahead and give it back, or report none."""
    return len(sizes) > 1 and all(before["bytes"] <= after["bytes"] for before, after in pairwise(sizes))


def _growth(variant: str, of: BatchedLoad) -> list[GrowthRow]:
    """Rate and latencies of each interval of a load."""
    ends = [(0.0, 0), *((interval["end_s"], interval["rows"]) for interval in of["intervals"])]
    return [
        GrowthRow(variant, rows, _bytes_at(of["sizes"], rows) / 1e6, (rows - rows_before) / (end_s - start_s), seconds, name)
        for ((start_s, rows_before), (end_s, rows)), interval in zip(pairwise(ends), of["intervals"], strict=True)
        if end_s > start_s
        for name, seconds in interval["batch_s"].items()
        if name != "p99"
    ]


def _bytes_at(sizes: Sequence[LoadSizeSample], rows: int) -> float:
    """What the data took when this many rows were in, between the samples before and after; 0 where there are none."""
    for before, after in pairwise(sizes):
        if before["rows"] <= rows <= after["rows"] and after["rows"] > before["rows"]:
            share = (rows - before["rows"]) / (after["rows"] - before["rows"])
            return before["bytes"] + share * (after["bytes"] - before["bytes"])
    return float(sizes[-1]["bytes"]) if sizes else 0.0


def _stored(*, by_size: bool) -> alt.X:
    if by_size:
        return alt.X("megabytes:Q", title="megabytes stored, as the database reports them")
    return alt.X("rows:Q", title="rows stored", axis=charts.COUNT_AXIS)


_SHOWN = [
    alt.Tooltip("variant:N"),
    alt.Tooltip("rows:Q", format=","),
    alt.Tooltip("megabytes:Q", format=",.4~g"),
]


def _drawn_rate(rows: Sequence[GrowthRow], variants: list[str], *, by_size: bool) -> ChartSpec:
    line = charts.of_variants([row for row in rows if row.quantile == "p50"]).mark_line(strokeWidth=1.8)
    drawn = line.encode(
        x=_stored(by_size=by_size),
        y=alt.Y("per_s:Q", title="rows per second", axis=charts.COUNT_AXIS),
        color=charts.variant_colour(variants),
        tooltip=[*_SHOWN, alt.Tooltip("per_s:Q", format=",.4~g")],
    )
    how = "A line that falls to the right is a database that takes rows in more slowly the more it holds."
    return charts.sized(drawn, how)


def _drawn_latency(rows: Sequence[GrowthRow], variants: list[str], *, by_size: bool) -> ChartSpec:
    line = charts.of_variants(rows).mark_line(strokeWidth=1.6)
    drawn = line.encode(
        x=_stored(by_size=by_size),
        y=charts.latency_axis(),
        color=charts.variant_colour(variants),
        detail=alt.Detail("quantile:N"),
        opacity=alt.Opacity("quantile:N", title=None, scale=alt.Scale(domain=["p50", "max"], range=[1.0, 0.45])),
        tooltip=[*_SHOWN, alt.Tooltip("quantile:N"), charts.SECONDS],
    )
    how = "The strong line is the median time of the batches of an interval, the weak one the longest; lower is faster. Peaks are batches that waited for merges or flushes."
    return charts.sized(drawn, how)


def _drawn_size(rows: Sequence[StoredRow], variants: list[str]) -> ChartSpec:
    line = charts.of_variants(rows).mark_line(strokeWidth=1.8, point=alt.OverlayMarkDef(size=20))
    drawn = line.encode(
        x=alt.X("rows:Q", title="rows stored", axis=charts.COUNT_AXIS),
        y=alt.Y("megabytes:Q", title="megabytes, as the database reports them"),
        color=charts.variant_colour(variants),
        tooltip=_SHOWN,
    )
    how = "A straight line takes as much for each row; a step down is a merge or a compaction."
    return charts.sized(drawn, how)
