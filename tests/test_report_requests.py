"""Charts of single requests of all runs, and which of many are drawn."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import altair as alt
import numpy as np
import pyarrow as pa
import pytest
import vl_convert

from sensorbench.analysis.thinning import extremes
from sensorbench.report.requests import MAX_POINTS, VIEWS, RunUseRow, request_blocks, request_rows, requests, use, use_blocks
from sensorbench.results import ComparisonResult, RunResult, read_comparison
from sensorbench.results.page import Chart, Page, Section
from sensorbench.results.server_use import server_use

OPERATION, VARIANT = "get_sensor_data", "sqlite-natural"


@pytest.fixture(scope="module")
def result(study_folder: Path) -> ComparisonResult:
    return read_comparison(study_folder)


def charts_of(result: ComparisonResult, *variants: str) -> list[Chart]:
    shown = {"operation": OPERATION, "title": "Readings of one sensor", "variants": list(variants)}
    return Page("", "", [], [Section("", "", request_blocks([cast("Any", shown)], result))], "").charts


def test_each_run_and_each_view_is_drawn(result: ComparisonResult) -> None:
    drawn = charts_of(result, VARIANT, "fjall-by_sensor")
    views = ("all", "first-75", "without-25", "without-75")
    assert [chart.name for chart in drawn] == [
        f"requests-{OPERATION}-{variant}-{view}" for variant in (VARIANT, "fjall-by_sensor") for view in views
    ]
    assert "by 0.1 of the way" in drawn[0].how
    rows = request_rows(result, VARIANT, OPERATION)
    assert {row.run for row in rows} == {"run 1", "run 2", "run 3"}
    # All variants of a run do the same requests, and all runs as many.
    assert len(rows) == pytest.approx(3 * 120 / 4, rel=0.4)
    assert "run 3" in vl_convert.vegalite_to_svg({**drawn[0].specification, "width": 600})


def test_views_leave_out_the_first_requests_of_the_run(result: ComparisonResult) -> None:
    numbers = {view.name: [row.request for row in request_rows(result, VARIANT, OPERATION, view)] for view in VIEWS}
    assert max(numbers["first-75"]) < 75
    assert 25 <= min(numbers["without-25"]) < 75
    assert min(numbers["without-75"]) >= 75
    assert sorted(numbers["first-75"] + numbers["without-75"]) == sorted(numbers["all"])


def test_the_first_requests_are_marked_where_they_are_seen(result: ComparisonResult) -> None:
    def marks(view: int) -> list[float]:
        specification = requests(request_rows(result, VARIANT, OPERATION, VIEWS[view]), ["run 1", "run 2", "run 3"])
        return [row["mark"] for rows in specification["datasets"].values() for row in rows if "mark" in row]

    assert marks(0) == [25, 75]
    assert marks(1) == [25]
    assert marks(3) == []


def test_of_many_requests_the_extremes_of_each_stretch_are_kept() -> None:
    values = np.random.default_rng(5).random(100_000) + 1.0
    values[[123, 99_999]] = [9.0, 0.5]
    places = extremes(values, MAX_POINTS)
    assert 0 < len(places) <= MAX_POINTS
    assert {123, 99_999} <= set(places.tolist())
    assert (np.diff(places) > 0).all()
    assert (extremes(values, MAX_POINTS) == places).all()
    assert extremes(values[:MAX_POINTS], MAX_POINTS).tolist() == list(range(MAX_POINTS))
    assert len(extremes(np.empty(0), MAX_POINTS)) == 0


def test_what_runs_inside_the_client_has_no_server_to_draw(result: ComparisonResult) -> None:
    assert use_blocks([VARIANT], result) == []


RESOURCES = {
    "time_ns": [0, 0, 0, 2_000_000_000, 2_000_000_000, 2_000_000_000],
    "process": ["client", "db:1", "db:2", "client", "db:1", "db:2"],
    "cpu_s": [0.0, 1.0, 1.0, 9.0, 2.0, 4.0],
    "memory_bytes": [1, 10, 20, 1, 1_000_000, 2_000_000],
}


def used(**more: list[int | None]) -> list[tuple[Any, ...]]:
    table = pa.table({**RESOURCES, **more})
    variant = SimpleNamespace(id="v")
    result = SimpleNamespace(manifest=SimpleNamespace(variants=[variant]), server=lambda _: {"instance": "db"}, blocks=[])
    run = SimpleNamespace(table=lambda _: table)
    return [tuple(moment) for moment in server_use(cast("ComparisonResult", result), cast("RunResult", run), "v")]


def test_what_a_server_used_is_the_sum_of_its_nodes() -> None:
    disk: dict[str, list[int | None]] = {"read_bytes": [0, 0, 0, 0, 100, 300], "written_bytes": [0, 50, 0, 0, 50, 400]}
    assert used(**disk) == [(2.0, 2.0, 3.0, 400.0)]
    # Where the system does not say what was read, or results are of an earlier version, that alone is missing.
    assert used(read_bytes=[None] * 6, written_bytes=[0] * 6) == [(2.0, 2.0, 3.0, None)]
    assert used() == [(2.0, 2.0, 3.0, None)]


def test_a_line_of_use_is_drawn_for_each_run() -> None:
    rows = [RunUseRow("mariadb-star", f"run {run}", float(time), 0.5 * run, 300.0, None) for run in (1, 2) for time in range(4)]
    specification = use(rows, "processors", alt.Y("processors:Q"))
    assert [len(values) for values in specification["datasets"].values()] == [8]
    picture = vl_convert.vegalite_to_svg({**specification, "width": 600})
    assert "run 2" in picture
    assert "mariadb · star" in picture
