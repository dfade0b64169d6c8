"""Datasets: the real sample, the generated building, importers, own data, export."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sensorbench.dataset import cu_bems, open_dataset
from sensorbench.dataset.beijing_air_quality import SHIPPED_FOLDER
from sensorbench.options import DEFAULT_SEED
from tests.conftest import Cli

STATION = """\
"No","year","month","day","hour","PM2.5","PM10","SO2","NO2","CO","O3","TEMP","PRES","DEWP","RAIN","wd","WSPM","station"
1,2013,3,1,0,7,7,3,2,100,91,-2.3,1020.3,-20.7,0,"WNW",3.1,"Huairou"
2,2013,3,1,1,4,4,3,NA,100,92,-2.7,1020.8,-20.5,0,"NNW",1.5,"Huairou"
"""

FLOOR = """\
Date,z1_AC1(kW),z1_Light(kW),z2_S1(degC),z2_S1(RH%),z2_S1(lux)
2019-01-01 00:00:00,1.5,0.2,28.1,60,3
2019-01-01 00:01:00,,0.3,28.2,61,
2019-01-01 00:02:00,2.5,0.4,28.3,62,4
"""


def query(dataset_folder: Path, sql: str) -> list[tuple[object, ...]]:
    with open_dataset(str(dataset_folder)).connect() as connection:
        rows: list[tuple[object, ...]] = connection.sql(sql).fetchall()
        return rows


def test_the_sample_in_the_package_is_what_it_says(cli: Cli) -> None:
    assert sum(file.stat().st_size for file in SHIPPED_FOLDER.iterdir()) <= 6_000_000
    described = cli("data", "describe", "beijing-air-quality", "--json").json
    assert described["license"] == "CC BY 4.0"
    assert described["generated"] is False
    assert described["relations"]["measurements"]["rows"] == 3_038_057
    assert (described["first_time"], described["last_time"], described["interval_s"]) == (
        "2013-03-01T00:00:00",
        "2017-02-28T23:00:00",
        3600.0,
    )
    with open_dataset("beijing-air-quality").connect() as connection:
        assert connection.sql(
            "SELECT count(DISTINCT zone), count(DISTINCT sensor), count(DISTINCT site) FROM measurements"
        ).fetchall() == [(8, 11, 1)]
        assert connection.sql("SELECT count(*) FROM measurements WHERE value IS NULL OR isnan(value)").fetchall() == [(0,)]
        assert (
            connection.sql("SELECT count(*) FROM measurements GROUP BY site, zone, sensor, time HAVING count(*) > 1").fetchall()
            == []
        )
        assert connection.sql("SELECT name FROM locations ORDER BY zone LIMIT 1").fetchall() == [("Aotizhongxin",)]


def test_scaling_shortens_the_span(cli: Cli) -> None:
    described = cli("data", "describe", "beijing-air-quality", "--scale", "0.25", "--json").json
    assert described["last_time"].startswith("2014-03-01")
    assert described["relations"]["measurements"]["rows"] == 751_903
    told = cli("data", "describe", "beijing-air-quality", "--scale", "0.25").out
    # Other tests look for these words in vain, where a dataset has no such thing.
    for part in ("751,903 rows", "span: 2013-03-01 00:00:00 to ", "interval 3600 s", "site is the city"):
        assert part in told


def test_the_generated_building_says_so_and_has_the_printed_zones(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "cu"
    described = cli("data", "generate", "cu-bems", "--scale", "0.002", "--out", out, "--json").json
    assert described["generated"] is True
    assert "generated" in described["title"]
    assert described["interval_s"] == 60.0
    assert "generated, not measured" in cli("data", "describe", out).out
    printed = {
        (1, 1): 1,
        (1, 2): 6,
        (1, 3): 2,
        (1, 4): 2,
        (2, 1): 6,
        (2, 2): 19,
        (2, 3): 5,
        (2, 4): 6,
        (3, 1): 9,
        (3, 2): 6,
        (3, 3): 2,
        (3, 4): 6,
        (3, 5): 6,
    }
    counts = query(out, "SELECT site, zone, count(DISTINCT sensor) FROM measurements GROUP BY ALL")
    assert {(site, zone): count for site, zone, count in counts if site <= 3} == printed
    assert {site for site, _, _ in counts} == {1, 2, 3, 4, 5, 7}, "floor 6 is left out"
    marked = query(out, "SELECT DISTINCT site, source FROM locations WHERE source <> 'printed' ORDER BY ALL")
    assert marked == [(floor, "rule: as floor 3") for floor in (4, 5, 7)]
    assert len(cu_bems.zones()) == 28


def test_the_same_seed_gives_the_same_bytes(cli: Cli, tmp_path: Path) -> None:
    def fingerprint(name: str, *more: object) -> str:
        described: dict[str, str] = cli(
            "data", "generate", "cu-bems", "--scale", "0.001", "--out", tmp_path / name, *more, "--json"
        ).json
        return described["fingerprint"]

    assert fingerprint("a") == fingerprint("b", "--seed", DEFAULT_SEED)
    files = sorted((tmp_path / "a/measurements").iterdir())
    assert [file.name for file in files] == [f"{number:08}.parquet" for number in range(len(files))]
    assert files
    again = sorted((tmp_path / "b/measurements").iterdir())
    assert [(file.name, file.read_bytes()) for file in files] == [(file.name, file.read_bytes()) for file in again]
    assert fingerprint("c", "--seed", 7) != fingerprint("d")


def test_original_station_files_are_imported(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "PRSA_Data_Huairou.csv"
    file.write_text(STATION, encoding="utf-8")
    # The importer is recognised by the columns, too.
    for name, arguments in {"named": ("beijing-air-quality", file), "recognised": (file,)}.items():
        out = tmp_path / name
        outcome = cli("data", "import", *arguments, "--out", out, "--json")
        assert outcome.exit_code == 0, outcome.err
        assert outcome.json["relations"]["measurements"]["rows"] == 21, "22 cells, of which one is NA"
        assert query(out, "SELECT value FROM measurements WHERE sensor = 'NO2'") == [(2.0,)]
        assert query(out, "SELECT value FROM text_measurements ORDER BY time") == [("WNW",), ("NNW",)]


def test_original_floor_files_are_imported(cli: Cli, tmp_path: Path) -> None:
    for floor in (1, 6):
        (tmp_path / f"2019Floor{floor}.csv").write_text(FLOOR, encoding="utf-8")
    out = tmp_path / "cu"
    outcome = cli("data", "import", "cu-bems", tmp_path / "2019Floor1.csv", tmp_path / "2019Floor6.csv", "--out", out, "--json")
    assert outcome.exit_code == 0, outcome.err
    assert outcome.json["relations"]["measurements"]["rows"] == 13, "15 cells, of which two are empty"
    assert any("floor 6 is incomplete" in note for note in outcome.json["notes"])
    assert query(out, "SELECT zone, sensor, count(*) FROM measurements GROUP BY ALL ORDER BY ALL") == [
        (1, "AC1", 2), (1, "Light", 3), (2, "S1_RH", 3), (2, "S1_degC", 3), (2, "S1_lux", 2),
    ]  # fmt: skip


def test_of_two_readings_at_one_time_the_last_one_stays(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "2019Floor1.csv"
    file.write_text(FLOOR + "2019-01-01 00:02:00,9.5,,,,\n", encoding="utf-8")
    out = tmp_path / "cu"
    notes = cli("data", "import", "cu-bems", file, "--out", out, "--json").json["notes"]
    assert any(note.startswith("1 reading left out: another reading has the same sensor and time") for note in notes)
    assert query(out, "SELECT value FROM measurements WHERE sensor = 'AC1' ORDER BY time DESC LIMIT 1") == [(9.5,)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("1.5,0.2", "1.5,oops", "2019Floor1.csv, line 2, column z1_Light(kW): 'oops' is not a number"),
        ("2019-01-01 00:01:00", "yesterday", "2019Floor1.csv, line 3, column Date: 'yesterday' is not a time"),
        ("28.3,62,4", "28.3", "2019Floor1.csv, line 4, column (all): "),
        ("Date,", "When,", "2019Floor1.csv, line 1: there is no column 'Date'; the columns are When, z1_AC1(kW)"),
        ("z1_AC1(kW)", "z1_AC1", "2019Floor1.csv, line 1: column 'z1_AC1' is not of the form z1_AC1(kW)"),
    ],
)
def test_a_bad_file_is_refused_with_its_line_and_nothing_is_written(
    cli: Cli, tmp_path: Path, old: str, new: str, expected: str
) -> None:
    file = tmp_path / "2019Floor1.csv"
    file.write_text(FLOOR.replace(old, new), encoding="utf-8")
    out = tmp_path / "cu"
    outcome = cli("data", "import", "cu-bems", file, "--out", out)
    assert outcome.exit_code == 2
    assert expected in outcome.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2019Floor1.csv"]


def test_bad_rows_are_counted_and_shown_and_may_be_left_out(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "2019Floor1.csv"
    file.write_text(FLOOR.replace("1.5,0.2", "x,y") + "2019-01-01 00:03:00,1\n", encoding="utf-8")
    out = tmp_path / "cu"
    refused = cli("data", "import", "cu-bems", file, "--out", out)
    assert refused.exit_code == 2
    assert "2 bad rows; nothing was written" in refused.err
    skipped = cli("data", "import", "cu-bems", file, "--out", out, "--bad-rows", "skip", "--json")
    assert skipped.exit_code == 0, skipped.err
    assert skipped.json["relations"]["measurements"]["rows"] == 11
    assert any(note.startswith("2 bad rows: what could not be read was left out") for note in skipped.json["notes"])


MAPPING = """\
name = "turbines"
title = "My turbines"
zone_is = "a turbine"
files = ["*.csv"]
site = 1
zone = "turbine"
sensor = "signal"
value = "reading"
time = { column = "when", format = "%d.%m.%Y %H:%M", zone = "Europe/Berlin" }
"""

OWN = """\
when;turbine;signal;reading
01.07.2024 12:00;T2;speed;7.5
01.07.2024 12:10;T2;speed;NA
01.07.2024 12:00;T10;speed;3.25
"""


def test_own_files_are_imported_by_a_mapping(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(OWN, encoding="utf-8")
    (tmp_path / "mapping.toml").write_text(MAPPING, encoding="utf-8")
    out = tmp_path / "out"
    outcome = cli("data", "import", tmp_path / "mapping.toml", "--out", out, "--json")
    assert outcome.exit_code == 0, outcome.err
    rows = query(out, "SELECT zone, sensor, strftime(time, '%H:%M'), value FROM measurements ORDER BY ALL")
    assert rows == [(1, "speed", "10:00", 3.25), (2, "speed", "10:00", 7.5)], "Berlin is two hours ahead of UTC in summer"
    assert query(out, "SELECT zone, name FROM locations ORDER BY ALL") == [(1, "1 / T10"), (2, "1 / T2")]


def test_own_parquet_files_and_wide_files_are_imported(cli: Cli, tmp_path: Path) -> None:
    table = pa.table({"t": [1_700_000_000, 1_700_000_060], "speed": [1.5, None], "power": [10, 20]})
    pq.write_table(table, tmp_path / "wide.parquet")
    (tmp_path / "mapping.toml").write_text(
        'name = "wide"\nfiles = ["wide.parquet"]\nsensors = { speed = "speed", power = "power" }\ntime = { column = "t", unit = "s" }\n',
        encoding="utf-8",
    )
    out = tmp_path / "out"
    assert cli("data", "import", tmp_path / "mapping.toml", "--out", out).exit_code == 0
    assert query(out, "SELECT sensor, epoch(time), value FROM measurements ORDER BY ALL") == [
        ("power", 1_700_000_000.0, 10.0), ("power", 1_700_000_060.0, 20.0), ("speed", 1_700_000_000.0, 1.5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            'zone = "turbine"',
            'zone = "tower"',
            "own.csv, line 1: there is no column 'tower'; the columns are when, turbine, signal, reading",
        ),
        ('zone = "turbine"', 'zon = "turbine"', "mapping.toml, line 6, zon: unknown key"),
        ('files = ["*.csv"]', 'files = ["*.tsv"]', "mapping.toml, line 4, files[0]: '*.tsv' names no file"),
        ('value = "reading"\n', "", "mapping.toml: give either sensor and value"),
        ("%d.%m.%Y %H:%M", "%Y-%m-%d", "own.csv, line 2, column when: '01.07.2024 12:00' is not a time"),
    ],
)
def test_a_mapping_that_does_not_fit(cli: Cli, tmp_path: Path, old: str, new: str, expected: str) -> None:
    (tmp_path / "own.csv").write_text(OWN, encoding="utf-8")
    (tmp_path / "mapping.toml").write_text(MAPPING.replace(old, new), encoding="utf-8")
    outcome = cli("data", "import", tmp_path / "mapping.toml", "--out", tmp_path / "out")
    assert outcome.exit_code == 2
    assert expected in outcome.err
    assert not (tmp_path / "out").exists()


def test_datasets_are_exported(cli: Cli, tmp_path: Path) -> None:
    arguments = ("beijing-air-quality", "--scale", "0.001")
    assert cli("data", "export", *arguments, "--format", "csv", "--out", tmp_path / "csv").exit_code == 0
    lines = (tmp_path / "csv/measurements.csv").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["site,zone,sensor,time,value", "1,1,CO,2013-03-01 00:00:00,300.0"]
    assert cli("data", "export", *arguments, "--format", "parquet", "--out", tmp_path / "parquet").exit_code == 0
    assert pq.read_table(tmp_path / "parquet/measurements.parquet").num_rows == len(lines) - 1
    assert cli("data", "export", *arguments, "--format", "influx", "--out", tmp_path / "influx").exit_code == 0
    points = (tmp_path / "influx/measurements.lp").read_text(encoding="utf-8").splitlines()
    assert points[0] == "measurements,site=1,zone=1,sensor=CO value=300.0 1362096000000000000"
    assert len(points) == len(lines) - 1


def test_a_fitted_generator_comes_close_and_scales(cli: Cli, tmp_path: Path) -> None:
    model = tmp_path / "model.json"
    outcome = cli("data", "fit", "beijing-air-quality", "--scale", "0.2", "--out", model, "--json")
    assert outcome.exit_code == 0, outcome.err
    assert len(outcome.json) == 88
    for entry in outcome.json:
        assert entry["values_ks"] < 0.15, entry
        assert entry["daily_pattern_rms"] < 0.3, entry
        assert abs(entry["gap_share"] - entry["gap_share_generated"]) < 0.01, entry
    out = tmp_path / "more"
    described = cli("data", "generate", model, "--copies", 2, "--days", 30, "--out", out, "--json").json
    assert described["generated"] is True
    assert query(out, "SELECT count(DISTINCT (zone, sensor)) FROM measurements") == [(176,)]
    assert json.loads(model.read_text(encoding="utf-8"))["format"] == 1


def test_datasets_are_listed(cli: Cli) -> None:
    names = {row["name"]: row for row in cli("data", "list", "--json").json}
    assert names["beijing-air-quality"]["shipped"]
    assert names["cu-bems"]["generated"]
    assert names["cu-bems"]["importer"]


# As air-quality networks publish readings: the time in four columns, many sensors a row, one of them text.
STATION_FILE = """\
"No","year","month","day","hour","PM2.5","PM10","SO2","NO2","CO","O3","TEMP","PRES","DEWP","RAIN","WSPM","wd","station"
1,2013,3,1,0,4,4,4,7,300,77,-0.7,1023,-18.8,0,4.4,"NNW","{station}"
2,2013,3,1,1,NA,8,4,7,300,77,-1.1,1023.2,-18.2,0,4.7,"N","{station}"
3,2013,03,01,02,7,7,5,10,300,73,-1.1,1023.5,-18.2,0,5.6,NA,"{station}"
4,2013,3,1,2,7,7,5,10,300,73,-1.1,1023.5,-18.2,0,5.6,"NW","{station}"
5,2013,3,1,23,8,7,5,10,300,73,-1.1,1023.5,-18.2,0.3,5.6,"NW","{station}"
"""
STATIONS = """\
name = "stations"
files = ["PRSA_*.csv"]
zone = "station"
time = { columns = ["year", "month", "day", "hour"] }
sensors = { "PM2.5" = "PM2.5", PM10 = "PM10", SO2 = "SO2", NO2 = "NO2", CO = "CO", O3 = "O3", TEMP = "TEMP", PRES = "PRES", DEWP = "DEWP", RAIN = "RAIN", WSPM = "WSPM" }
text_sensors = { wd = "wd" }
"""


@pytest.fixture
def stations(tmp_path: Path) -> Path:
    """A folder with the files of two stations and a mapping of them."""
    for station in ("Wanliu", "Changping"):
        (tmp_path / f"PRSA_Data_{station}.csv").write_text(STATION_FILE.format(station=station), encoding="utf-8")
    (tmp_path / "stations.toml").write_text(STATIONS, encoding="utf-8")
    return tmp_path


def test_a_mapping_of_stations_gives_the_relations_of_their_own_importer(cli: Cli, stations: Path) -> None:
    files = sorted(stations.glob("*.csv"))
    assert cli("data", "import", "beijing-air-quality", *files, "--out", stations / "theirs").exit_code == 0
    outcome = cli("data", "import", stations / "stations.toml", "--out", stations / "mapped", "--json")
    assert outcome.exit_code == 0, outcome.err
    for relation in ("measurements", "text_measurements"):
        theirs, mapped = (pq.read_table(stations / folder / f"{relation}.parquet") for folder in ("theirs", "mapped"))
        assert mapped.equals(theirs), relation
        assert mapped.num_rows > 0
    places = "SELECT site, zone FROM locations ORDER BY ALL"
    assert query(stations / "mapped", places) == query(stations / "theirs", places) == [(1, 1), (1, 2)]
    texts = "SELECT sensor, strftime(time, '%d %H'), value FROM text_measurements WHERE zone = 2 ORDER BY time"
    assert query(stations / "mapped", texts) == [
        ("wd", "01 00", "NNW"),
        ("wd", "01 01", "N"),
        ("wd", "01 02", "NW"),
        ("wd", "01 23", "NW"),
    ]


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        ("2013,2,30,0", "'2013 2 30 0'"),
        ("2013,3,1,25", "'2013 3 1 25'"),
        ("2013,13,1,0", "'2013 13 1 0'"),
        ("2013,3,1,3.5", "'2013 3 1 3.5'"),
        ("2013,3,,3", "'2013 3 3'"),
        ("2013,March,1,3", "'2013 March 1 3'"),
        ("nan,3,1,3", "'nan 3 1 3'"),
        ("2013,3,1,1e300", "'2013 3 1 1e300'"),
    ],
)
def test_a_date_that_is_none_is_a_bad_row(cli: Cli, stations: Path, cells: str, shown: str) -> None:
    file = stations / "PRSA_Data_Wanliu.csv"
    file.write_text(file.read_text(encoding="utf-8").replace("2013,3,1,1,", f"{cells},"), encoding="utf-8")
    outcome = cli("data", "import", stations / "stations.toml", "--out", stations / "out")
    assert outcome.exit_code == 2
    assert f"PRSA_Data_Wanliu.csv, line 3, column year, month, day, hour: {shown} is not a time" in outcome.err
    assert "text_sensors" not in outcome.err
    assert not (stations / "out").exists()
    skipped = cli("data", "import", stations / "stations.toml", "--out", stations / "out", "--bad-rows", "skip")
    assert skipped.exit_code == 0, skipped.err
    assert query(stations / "out", "SELECT zone, count(*) FROM text_measurements GROUP BY zone ORDER BY zone") == [(1, 4), (2, 3)]


@pytest.mark.parametrize(
    ("time", "columns", "row", "expected"),
    [
        ('columns = ["Y", "M", "D"]', "Y,M,D", "2024,07,01", "2024-07-01 00:00:00"),
        ('columns = ["Y", "M", "D", "h", "min"]', "Y,M,D,h,min", "2024,7,1,12,30", "2024-07-01 12:30:00"),
        ('columns = ["Y", "M", "D", "h", "min", "s"]', "Y,M,D,h,min,s", "2024,7,1,12,30,59", "2024-07-01 12:30:59"),
        ('columns = ["Y", "M", "D", "h"]', "Y,M,D,h", "2024,6,30,24", "2024-07-01 00:00:00"),
        ('columns = ["Y", "M", "D", "h"], zone = "Europe/Berlin"', "Y,M,D,h", "2024,7,1,12", "2024-07-01 10:00:00"),
    ],
)
def test_parts_of_a_time_may_end_anywhere_and_have_a_zone(
    cli: Cli, tmp_path: Path, time: str, columns: str, row: str, expected: str
) -> None:
    (tmp_path / "own.csv").write_text(f"{columns},v\n{row},1.5\n", encoding="utf-8")
    mapping = f'name = "own"\nfiles = ["own.csv"]\ntime = {{ {time} }}\nsensors = {{ v = "v" }}\n'
    (tmp_path / "own.toml").write_text(mapping, encoding="utf-8")
    outcome = cli("data", "import", tmp_path / "own.toml", "--out", tmp_path / "out")
    assert outcome.exit_code == 0, outcome.err
    assert query(tmp_path / "out", "SELECT CAST(time AS VARCHAR), value FROM measurements") == [(expected, 1.5)]


def test_columns_that_only_case_tells_apart_are_refused(cli: Cli, tmp_path: Path) -> None:
    """DuckDB takes them for one, so that minutes would be months."""
    (tmp_path / "own.csv").write_text("Y,M,D,h,m,v\n2024,7,1,12,30,1.5\n", encoding="utf-8")
    mapping = 'name = "own"\nfiles = ["own.csv"]\ntime = { columns = ["Y", "M", "D", "h", "m"] }\nsensors = { v = "v" }\n'
    (tmp_path / "own.toml").write_text(mapping, encoding="utf-8")
    outcome = cli("data", "import", tmp_path / "own.toml", "--out", tmp_path / "out")
    assert outcome.exit_code == 2
    assert "own.csv, line 1: the columns 'M' and 'm' differ in case alone; rename one of them" in outcome.err


def test_parts_of_a_time_are_numbers_in_parquet_files(cli: Cli, tmp_path: Path) -> None:
    table = pa.table({"year": pa.array([2024], pa.int16()), "month": pa.array([7], pa.int8()), "day": [1.0], "v": [2.5]})
    pq.write_table(table, tmp_path / "own.parquet")
    mapping = 'name = "own"\nfiles = ["own.parquet"]\ntime = { columns = ["year", "month", "day"] }\nsensors = { v = "v" }\n'
    (tmp_path / "own.toml").write_text(mapping, encoding="utf-8")
    assert cli("data", "import", tmp_path / "own.toml", "--out", tmp_path / "out").exit_code == 0
    assert query(tmp_path / "out", "SELECT CAST(time AS VARCHAR), value FROM measurements") == [("2024-07-01 00:00:00", 2.5)]


def test_text_that_is_not_declared_says_how_to(cli: Cli, stations: Path) -> None:
    undeclared = STATIONS.replace('text_sensors = { wd = "wd" }\n', "").replace('WSPM = "WSPM" }', 'WSPM = "WSPM", wind = "wd" }')
    (stations / "stations.toml").write_text(undeclared, encoding="utf-8")
    outcome = cli("data", "import", stations / "stations.toml", "--out", stations / "out")
    assert outcome.exit_code == 2
    assert "PRSA_Data_Changping.csv, line 2, column wd: 'NNW' is not a number" in outcome.err
    assert 'declared in the mapping file: text_sensors = { "wind" = "wd" }, and take them out of sensors.' in outcome.err
    assert not (stations / "out").exists()


def test_text_sensors_of_one_reading_a_row_are_named(cli: Cli, tmp_path: Path) -> None:
    own = OWN + "01.07.2024 12:00;T2;state;running\n01.07.2024 12:10;T2;state;NA\n01.07.2024 12:00;T3;state;7\n"
    (tmp_path / "own.csv").write_text(own, encoding="utf-8")
    (tmp_path / "mapping.toml").write_text(MAPPING, encoding="utf-8")
    refused = cli("data", "import", tmp_path / "mapping.toml", "--out", tmp_path / "out")
    assert refused.exit_code == 2
    assert 'text_sensors = ["state"].' in refused.err
    (tmp_path / "mapping.toml").write_text(f'{MAPPING}text_sensors = ["state"]\n', encoding="utf-8")
    outcome = cli("data", "import", tmp_path / "mapping.toml", "--out", tmp_path / "out")
    assert outcome.exit_code == 0, outcome.err
    texts = query(tmp_path / "out", "SELECT zone, sensor, strftime(time, '%H:%M'), value FROM text_measurements ORDER BY ALL")
    assert texts == [(2, "state", "10:00", "running"), (3, "state", "10:00", "7")]
    assert query(tmp_path / "out", "SELECT DISTINCT sensor FROM measurements") == [("speed",)]
    # A place that has texts alone is a place, too.
    assert query(tmp_path / "out", "SELECT zone, name FROM locations ORDER BY ALL") == [
        (1, "1 / T10"),
        (2, "1 / T2"),
        (3, "1 / T3"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            'columns = ["year"',
            'column = "No", columns = ["year"',
            "give either column, or columns in this order: year, month, day, hour",
        ),
        ("columns =", "column_names =", "time.column_names: unknown key"),
        ('["year", "month", "day", "hour"]', '["year", "month"]', "time: a date and a time of day in two columns need a format"),
        ('"hour"]', '"hour"], unit = "s"', "columns have no unit; expected numbers (year, month, day …), or texts with a format"),
        ('"hour"]', '"hours"]', "PRSA_Data_Changping.csv, line 1: there is no column 'hours'"),
        ('{ wd = "wd" }', '["wd"]', "text_sensors: give the names of sensors"),
        ('{ wd = "wd" }', '{ CO = "wd" }', "text_sensors: CO is in sensors, too"),
        ('{ wd = "wd" }', '{ wd = "wind" }', "there is no column 'wind'"),
    ],
)
def test_a_mapping_of_stations_that_does_not_fit(cli: Cli, stations: Path, old: str, new: str, expected: str) -> None:
    assert old in STATIONS
    (stations / "stations.toml").write_text(STATIONS.replace(old, new), encoding="utf-8")
    outcome = cli("data", "import", stations / "stations.toml", "--out", stations / "out")
    assert outcome.exit_code == 2
    assert expected in outcome.err
    assert not (stations / "out").exists()
