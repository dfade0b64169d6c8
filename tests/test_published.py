"""What papers printed beside what was measured: every printed value has a place, and every place a measured value or a reason."""

import csv
from pathlib import Path

import pytest

from sensorbench.analysis.intervals import Interval
from sensorbench.claims import Expression, Figure
from sensorbench.report.build import write_page
from sensorbench.report.published import published_section
from sensorbench.results.factors import FILLED, FilledFigures, StepFigures
from sensorbench.results.page import Page
from sensorbench.results.summary.published import PublishedCell, PublishedTable
from sensorbench.studies import FACTOR_STUDIES, STUDIES
from sensorbench.studies.elasticity import ELASTICITY
from sensorbench.studies.mapreduce import MAPREDUCE
from sensorbench.studies.printed_values import in_our_unit, number
from sensorbench.studies.published import Found, Published, measured_by, printed_rows, published_of
from sensorbench.studies.published_comparison import tables_of_datasets
from sensorbench.studies.registry import FOLDER, folder_of

PAPERS = sorted(file.parent.name.replace("_", "-") for file in FOLDER.glob("*/published.csv"))


def paper_of(study: str) -> Published:
    published = published_of(study)
    assert published is not None, study
    return published


# Completeness.


def test_each_paper_with_printed_numbers_is_laid_out() -> None:
    assert PAPERS == ["cassandra-tuning", "elasticity", "iot", "log-analytics", "mapreduce", "sensor-schemas", "tsbs", "tsm"]
    counts = {study: len(paper_of(study).rows) for study in PAPERS}
    assert counts == {
        "cassandra-tuning": 309, "elasticity": 76, "iot": 133, "log-analytics": 1677, "mapreduce": 8, "sensor-schemas": 149,
        "tsbs": 203, "tsm": 230,
    }  # fmt: skip


@pytest.mark.parametrize("study", PAPERS)
def test_no_printed_value_is_left_out(study: str) -> None:
    """Each row of the file is a cell, which is measured by a formula or says why it is not."""
    with (folder_of(study) / "published.csv").open(encoding="utf-8", newline="") as file:
        printed = [(row["value"], row["note"]) for row in csv.DictReader(file)]
    published = paper_of(study)
    assert [(row.printed.value, row.printed.note) for row in published.rows] == printed
    shown = {
        (table.title, cell.row, cell.column, cell.printed): cell
        for table in published.tables(lambda _: Found(None, "not run", "nothing was run"))
        for cell in table.cells
    }
    for row in published.rows:
        cell = shown[row.title, row.row, row.column, row.printed.value]
        assert cell.why, cell
        assert row.note in cell.note, cell


def test_a_printed_value_without_a_place_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "of_paper"
    folder.mkdir()
    for name in ("published.csv", "published.toml"):
        (folder / name).write_bytes((folder_of("mapreduce") / name).read_bytes())
    Published.load(folder)
    with (folder / "published.csv").open("a", encoding="utf-8") as file:
        file.write("Table 9.9,Cassandra,-,-,-,-,new-metric,1,s,-\n")
    printed_rows.cache_clear()
    with pytest.raises(AssertionError, match=r"published.toml: no table has a place for .*Table 9\.9"):
        Published.load(folder)


@pytest.mark.parametrize("study", PAPERS)
def test_users_see_no_names_of_internal_files(study: str) -> None:
    text = (folder_of(study) / "published.csv").read_text(encoding="utf-8")
    assert text.startswith("figure_or_table,system,configuration,dataset_size,operation,parameter,metric,value,unit,note\n")
    assert ".txt" not in text


@pytest.mark.parametrize("study", [study for study in PAPERS if study in STUDIES])
def test_formulas_of_comparisons_speak_of_roles_and_parts_of_their_study(study: str) -> None:
    file = STUDIES[study].file
    for row in (row for row in paper_of(study).rows if row.figure):
        for figure in Expression.parse(row.figure).figures:
            part, colon, role = figure.arguments[0].rpartition(":")
            assert role.strip() in file.roles.published, row.figure
            assert part in file.parts if colon else not file.parts, row.figure


def test_formulas_of_factors_speak_of_levels_of_their_study() -> None:
    study = FACTOR_STUDIES["cassandra-tuning"]
    for row in (row for row in paper_of(study.name).rows if row.figure):
        for figure in Expression.parse(row.figure).figures:
            load, part, level, where = figure.arguments
            assert load in study.file.parts[part].loads, row.figure
            assert level in {known.name for known in study.file.parts[part].levels}, row.figure
            assert figure.quantity in (FilledFigures if where == FILLED else StepFigures).model_fields, row.figure


@pytest.mark.parametrize("study", [ELASTICITY, MAPREDUCE], ids=lambda study: study.name)
def test_formulas_of_clusters_speak_of_their_databases(study: object) -> None:
    file = ELASTICITY.file if study is ELASTICITY else MAPREDUCE.file
    name = ELASTICITY.name if study is ELASTICITY else MAPREDUCE.name
    figures = [figure for row in paper_of(name).rows if row.figure for figure in Expression.parse(row.figure).figures]
    assert {figure.arguments[0] for figure in figures} == {"CA", "HB", "MO"} <= file.roles.keys()


# Numbers.


@pytest.mark.parametrize(
    ("text", "value"),
    [("16.5589", 16.5589), ("1735.", 1735.0), ("-0.06", -0.06), ("74,550,000", 74_550_000.0), ("44 640", 44_640.0), ("2,2", 2.2),
     ("0:40:25", 2425.0), ("39 minutes 20 seconds", 2360.0), ("one", 1.0), (">3", 3.0), ("74,550,00", None), ("2-3", None),
     ("can't execute", None), ("Not Fit", None)],
)  # fmt: skip
def test_numbers_are_read_as_they_are_printed(text: str, value: float | None) -> None:
    assert number(text) == value


def test_units_are_ours() -> None:
    assert in_our_unit("16.5589", "ms") == (pytest.approx(0.0165589), "duration_s")
    assert in_our_unit("7.7", "GB") == (7.7e9, "bytes")
    assert in_our_unit("129", "%") == (pytest.approx(1.29), "ratio")
    assert in_our_unit("0.331", "fraction") == (0.331, "number")
    assert in_our_unit("153.1", "as printed (no unit)", 1e-6).value == pytest.approx(153.1e-6)


# Cells.

MEASURED = {
    "latency(nosql, get_sensor_data)": 0.001,
    "latency(sql, get_sensor_data)": 0.0987,
    "load_s(sql)": 60.0,
    "size_bytes(sql)": 1e8,
}


def tables(scale: float = 1.0) -> dict[str, dict[tuple[str, str], list[PublishedCell]]]:
    """The building study's tables, of which little was measured."""
    measure = measured_by(
        lambda figure: (
            Found(
                MEASURED[str(figure)], "measured", variant=f"{figure.arguments[0]}-id", is_substitute=figure.arguments[0] == "sql"
            )
            if str(figure) in MEASURED
            else Found(None, "failed" if "peak" in str(figure) else "not run", "because")
        )
    )
    found: dict[str, dict[tuple[str, str], list[PublishedCell]]] = {}
    for table in paper_of("iot").tables(measure, scale=scale):
        for cell in table.cells:
            found.setdefault(table.title, {}).setdefault((cell.row, cell.column), []).append(cell)
    return found


def test_ratios_between_systems_are_compared_with_the_papers() -> None:
    latencies = tables()["Figures 7 and 80: mean latency up to the 95th percentile"]
    (mysql,) = latencies["Q1 GetSensorData", "MySQL"]
    assert (mysql.printed, mysql.unit, mysql.measured) == ("1313.3975", "ms", 0.0987)
    assert mysql.ratio == pytest.approx(0.0987 / 1.3133975)
    assert (mysql.variant, mysql.is_substitute) == ("sql-id", True)
    assert mysql.note == "same table printed twice; repeated in the text"
    (both,) = latencies["Q1 GetSensorData", "MySQL / Cassandra"]
    assert (both.printed, both.measured, both.is_derived) == ("79.3", pytest.approx(98.7), True)
    assert both.ratio == pytest.approx(98.7 / (1313.3975 / 16.5589))
    (peak,) = latencies["Q2 GetPeakData", "MySQL / Cassandra"]
    assert (peak.measured, peak.ratio, peak.state, peak.why) == (None, None, "failed", "because")


def test_measured_values_have_the_interval_that_runs_gave() -> None:
    values = {"latency(nosql, get_sensor_data)": 0.001, "latency(sql, get_sensor_data)": 0.1, "size_bytes(sql)": 1e8}

    def find(figure: Figure) -> Found:
        value = values.get(str(figure))
        return Found(value, "not run" if value is None else "measured")

    def interval(expression: Expression) -> Interval:
        value = float(expression.evaluate([values[str(figure)] for figure in expression.figures]))
        is_of_runs = not str(expression).startswith("size_bytes")
        return Interval(value, value * 0.9, value * 1.1, 0.95, 3, between_runs=is_of_runs)

    found = {
        (cell.row, cell.column): cell
        for table in paper_of("iot").tables(measured_by(find, interval), scale=1.0)
        for cell in table.cells
        if cell.measured is not None
    }
    mysql = found["Q1 GetSensorData", "MySQL"]
    assert (mysql.low, mysql.high) == (pytest.approx(0.09), pytest.approx(0.11))
    assert mysql.ratio_ends == (pytest.approx(0.09 / 1.3133975), pytest.approx(0.11 / 1.3133975))
    both = found["Q1 GetSensorData", "MySQL / Cassandra"]
    assert (both.measured, both.low, both.high) == (pytest.approx(100.0), pytest.approx(90.0), pytest.approx(110.0))
    once = [cell for cell in found.values() if cell.figure == "size_bytes(sql)"]
    assert once
    assert all(cell.low is None and cell.ratio_ends is None for cell in once)


def test_what_is_too_small_has_no_ratio() -> None:
    measure = measured_by(lambda _: Found(1e6, "measured"))
    for scale, state in ((1.0, "measured"), (0.5, "below scale")):
        (table,) = (table for table in paper_of("iot").tables(measure, scale=scale) if "partitions" in table.title)
        cell = table.cells[0]
        assert (cell.measured, cell.state) == (1e6, state)
        assert (cell.ratio is None) == (state == "below scale")


def test_values_that_contradict_one_another_stay_side_by_side() -> None:
    (table,) = (
        table
        for table in paper_of("cassandra-tuning").tables(lambda _: Found(2.0, "measured"))
        if "in the text: memtables" in table.title
    )
    cells = [cell for cell in table.cells if (cell.row, cell.column) == ("memtable_cleanup_threshold 0.11", "cache-memory-used")]
    assert [cell.note for cell in cells] == ["contradiction: Table 14 gives 4691.66"]
    text = paper_of("log-analytics").tables(lambda _: Found(2.0, "measured"))
    places: dict[tuple[str, str, str], set[str]] = {}
    for of in text:
        for cell in of.cells:
            places.setdefault((of.title, cell.row, cell.column), set()).add(cell.printed)
    assert {"74,550,00", "74,550,000"} in places.values()


def test_cells_of_several_datasets_are_one_list() -> None:
    def of(size: str, measured: float | None) -> PublishedTable:
        state = "not run" if measured is None else "measured"
        cell = PublishedCell.model_validate(
            {"row": size, "column": "CA", "printed": "1", "unit": "s", "value": 1.0, "measured": measured, "state": state}
        )
        return PublishedTable(title="t", columns=["CA"], cells=[cell])

    (merged,) = tables_of_datasets([[of("1GB", 1.0), of("all", 2.0)], [of("2GB", 3.0), of("all", None)]])
    assert {cell.row: cell.measured for cell in merged.cells} == {"1GB": 1.0, "all": 2.0, "2GB": 3.0}


# The page.


def test_the_page_has_the_papers_tables(tmp_path: Path) -> None:
    measure = measured_by(
        lambda figure: Found(MEASURED.get(str(figure)), "measured" if str(figure) in MEASURED else "not run", "because")
    )
    section = published_section(paper_of("iot").tables(measure, scale=0.02, conditions="Measured at scale 0.02."))
    page = write_page(Page("study iot", "t", [], [section], ""), tmp_path).read_text(encoding="utf-8")
    for text in (
        "Published and measured",
        "1313.3975 ms",
        "here 98.7 ms",
        "0.0751 ×",
        "Measured at scale 0.02.",
        "11 700 m2",
        "describes the data",
    ):
        assert text in page, text
    assert published_section([]) is None
