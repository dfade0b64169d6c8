"""Draws the picture of docs/explanation/coordinated-omission.md: one stall, measured by a closed and by an open loop.

sensorbench run docs/example/stall/closed.toml --out results/stall-closed
sensorbench run docs/example/stall/open.toml --out results/stall-open
python docs/example/stall/chart.py results/stall-closed results/stall-open docs/explanation/coordinated-omission.svg
"""

import sys
from pathlib import Path

import altair as alt
import pyarrow.parquet as pq
import vl_convert

TITLES = ("Closed loop: time from sending the request", "Open loop: time from when the request should have been sent")
BLUE, ORANGE = "#3b6fb6", "#d9701f"


def rows_of(folder: Path) -> list[dict[str, float]]:
    """Returns when each request was intended to start, in s since the first, and its response time in ms.

    A closed loop intends a request to start when it sends it.
    """
    (file,) = folder.glob("experiments/*/run-1/operations.parquet")
    operations = pq.read_table(file).to_pylist()
    first = min(row["intended_start_ns"] for row in operations)
    return [
        {
            "at_s": round((row["intended_start_ns"] - first) / 1e9, 3),
            "response_ms": round((row["end_ns"] - row["intended_start_ns"]) / 1e6, 1),
        }
        for row in operations
    ]


def panel(folder: Path, title: str, color: str) -> alt.Chart:
    """Returns the chart of one run: a point for each request."""
    rows = rows_of(folder)
    return (
        alt.Chart(alt.Data(values=rows), title=f"{title} ({len(rows)} requests)", width=720, height=170)
        .mark_circle(size=22, color=color, opacity=0.75)
        .encode(
            x=alt.X("at_s:Q", title="seconds since the run began", scale=alt.Scale(domain=[0, 6])),
            y=alt.Y("response_ms:Q", title="response time, ms", scale=alt.Scale(domain=[0, 1100])),
        )
    )


def main(closed: str, opened: str, out: str) -> None:
    """Writes the two panels, one above the other, as SVG."""
    panels = [
        panel(Path(folder), title, color) for folder, title, color in zip((closed, opened), TITLES, (BLUE, ORANGE), strict=True)
    ]
    chart = alt.vconcat(*panels).configure(background="white", font="sans-serif", aria=False)
    Path(out).write_text(vl_convert.vegalite_to_svg(chart.to_dict()), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
