"""`sensorbench init`: CSV files as people have them, what is found in them, and that what is written runs."""

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sensorbench.app.starter import MARKER, STARTER, dataset_name, make_starter, starter_databases, starter_targets
from sensorbench.dataset import open_dataset
from sensorbench.dataset.csv_profile import CsvProfile, Wanted, look_at
from sensorbench.dataset.mapping import FILE_NAME
from sensorbench.errors import UsageError
from sensorbench.runner import databases, parse_target
from sensorbench.schemas import load_operations, load_schema, shipped_schemas
from tests.conftest import Cli

TIMES = [datetime(2024, 3, 1) + timedelta(minutes=10 * number) for number in range(300)]


def rows(header: str, line: Callable[[datetime, str, float], str], series: str = "a") -> str:
    """A file: for each time and series a line, with a value that is the same in every test."""
    numbers = random.Random(1)
    return "\n".join([header, *(line(time, one, round(numbers.random() * 30 + 1, 2)) for time in TIMES for one in series)]) + "\n"


def comma(value: float) -> str:
    return str(value).replace(".", ",")


LONG = rows("time,sensor,value", lambda time, one, value: f"{time.isoformat()}Z,{one},{value}", "abc")
# Name: the file, then what is found in it: time, keys, values, and the rows of the dataset.
SHAPES: dict[str, tuple[str, dict[str, object], list[str], list[str], int]] = {
    "one reading a row": (LONG, {"column": "time"}, ["sensor"], ["value"], 900),
    "semicolons, decimal commas, German dates": (
        rows("Zeit;Außen °C;Feuchte %", lambda time, _, value: f"{time:%d.%m.%Y %H:%M};{comma(value)};{comma(value / 2)}"),
        {"column": "Zeit", "format": "%d.%m.%Y %H:%M"},
        [],
        ["Außen °C", "Feuchte %"],
        600,
    ),
    "milliseconds, a numeric key, a text that is none": (
        rows(
            "ts,device_id,temperature,humidity,status",
            lambda time, one, value: (
                f"{int(time.timestamp()) * 1000},{ord(one)},{value},{value / 2:.1f},{'ok' if value > 5 else 'low'}"
            ),
            "abc",
        ),
        {"column": "ts", "unit": "ms"},
        ["device_id"],
        ["temperature", "humidity"],
        1800,
    ),
    "nanoseconds": (
        rows("time,host,usage", lambda time, one, value: f"{int(time.timestamp()) * 10**9},{one},{value}", "ab"),
        {"column": "time", "unit": "ns"},
        ["host"],
        ["usage"],
        600,
    ),
    "blanks in the header, missing values": (
        rows(
            "Date Time, Room Name ,Temp (C)",
            lambda time, one, value: f"{time},{one},{'NA' if time.hour == 3 else '' if time.hour == 4 else value}",
            ["Kitchen", "Living room"],  # type: ignore[arg-type]
        ),
        {"column": "Date Time"},
        ["Room Name"],
        ["Temp (C)"],
        # Two of 24 hours have no values, on two whole days.
        2 * (300 - 2 * 2 * 6),
    ),
    "place and quantity": (
        rows(
            "station,parameter,utc,value,unit",
            lambda time, one, value: f"DE{one},pm10,{time.isoformat()}Z,{value},µg\nDE{one},no2,{time.isoformat()}Z,{value},µg",
            "ab",
        ),
        {"column": "utc"},
        ["station", "parameter"],
        ["value"],
        1200,
    ),
    "American dates with a row number": (
        "id,recorded_at,reading\n"
        + "".join(f"{number},{time:%m/%d/%Y %I:%M:%S %p},{number}.5\n" for number, time in enumerate(TIMES)),
        {"column": "recorded_at", "format": "%m/%d/%Y %I:%M:%S %p"},
        [],
        ["reading"],
        300,
    ),
    "date and time of day in two columns, empty columns": (
        rows("Date;Time;CO(GT);T;;", lambda time, _, value: f"{time:%d/%m/%Y};{time:%H.%M.%S};{comma(value)};{comma(value)};;"),
        {"columns": ["Date", "Time"], "format": "%d/%m/%Y %H.%M.%S"},
        [],
        ["CO(GT)", "T"],
        600,
    ),
    "year, month, day, hour": (
        "year,month,day,hour,PM2.5,wd,station\n" + "".join(f"{t.year},{t.month},{t.day},{t.hour},1.5,N,A\n" for t in TIMES[::6]),
        {"columns": ["year", "month", "day", "hour"]},
        ["station"],
        ["PM2.5"],
        50,
    ),
    "tabs": (rows("time\tflow", lambda time, _, value: f"{time}\t{value}"), {"column": "time"}, [], ["flow"], 300),
    "a row without a time": (
        rows("time,flow", lambda time, _, value: f"{time},{value}") + "soon,3.5\n",
        {"column": "time"},
        [],
        ["flow"],
        300,
    ),
}


def starter_in(folder: Path, profile: CsvProfile, *names: str) -> Path:
    """The folder with the files of init."""
    targets = starter_targets(names or ("sqlite",), ())
    make_starter(profile, dataset_name(profile.files), targets, folder).write(folder, force=False)
    return folder


@pytest.mark.parametrize("shape", SHAPES)
def test_a_file_is_recognised_and_its_mapping_imports_all_of_it(shape: str, tmp_path: Path) -> None:
    text, time, keys, values, count = SHAPES[shape]
    file = tmp_path / "some [odd] name (1).csv"
    file.write_text(text, encoding="utf-8")
    found = look_at([file], Wanted())
    assert (found.time.model_dump(exclude_none=True), found.keys, found.values) == (time, keys, values)
    folder = starter_in(tmp_path / "out", found)
    with open_dataset(str(folder / "dataset.toml")).connect() as workbench:
        rows_found, low, high = workbench.sql("SELECT count(*), min(time), max(time) FROM measurements").fetchall()[0]
    assert (rows_found, low.date(), high.date()) == (count, TIMES[0].date(), TIMES[-1].date())


def test_files_of_one_sensor_each_are_told_from_files_of_one_month_each(tmp_path: Path) -> None:
    text = rows("timestamp,flow", lambda time, _, value: f"{time.isoformat()}+01:00,{value}")
    lines = text.splitlines(keepends=True)
    contents = {"pump1": text, "pump2": text, "part1": "".join(lines[:150]), "part2": lines[0] + "".join(lines[150:])}
    for name, content in contents.items():
        (tmp_path / f"{name}.csv").write_text(content, encoding="utf-8")
    pumps = look_at([tmp_path / "pump1.csv", tmp_path / "pump2.csv"], Wanted())
    assert pumps.keys == [FILE_NAME]
    with open_dataset(str(starter_in(tmp_path / "pumps", pumps) / "dataset.toml")).connect() as workbench:
        found = workbench.sql("SELECT sensor, count(*), min(time) FROM measurements GROUP BY ALL ORDER BY ALL").fetchall()
    # The offset of the cells is taken into account.
    assert found == [(name, 300, TIMES[0] - timedelta(hours=1)) for name in ("pump1", "pump2")]
    parts = look_at([tmp_path / "part1.csv", tmp_path / "part2.csv"], Wanted())
    assert (parts.keys, parts.values) == ([], ["flow"])
    assert (
        open_dataset(str(starter_in(tmp_path / "parts", parts) / "dataset.toml")).describe().relations["measurements"].rows == 300
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "line 1: expected the names of the columns"),
        (b"time,value\n", "there are no rows below the names of the columns"),
        (b"2024-03-01T00:00:00,t1,3.5\n2024-03-01T00:01:00,t1,3.5\n", "expected the names of the columns, found 2024-03-01"),
        (b"Hello world\nno csv\n", "no column of times is recognised among Hello world (no csv)"),
        (b"time,a\n2024-01-01T00:00:00,x\n", "no column of numbers is recognised: a (x)"),
        (bytes(range(1, 256)), "neither UTF-8 nor Windows-1252 (Latin-1); if it is text, name the encoding with --encoding"),
        (b"a,b\x00\n1,2\n", "not a CSV file: expected text, found zero bytes"),
        ("time;Температура\n2024-02-01;1,5\n".encode("cp1251"), "line 1: not UTF-8, and it does not look like Windows-1252"),
        ("Zeit;Küche\n01.02.2024;1,5\n".encode("cp850"), "line 1: neither UTF-8 nor Windows-1252"),
        ("time,Küche\n2024-02-01,1.5\n".encode() + b"2024-02-02,\xe4\n", "line 3: not UTF-8, though other lines are"),
        ("time,value\n2024-02-01,1.5\n".encode("utf-16-le"), "is read with --encoding utf-16-le or utf-16-be"),
        ("time,value\n2024-02-01,1.5\n".encode("utf-16")[:-1], "not a CSV file in the encoding utf-16: truncated data"),
        (b'time,p\n2024-02-01,"1,013"\n2024-02-02,"1,021"\n', "say which, with --decimal ',' or --thousands ','"),
        (b"time;p\n2024-02-01;1,013\n2024-02-02;998\n", "a comma could be the decimal separator or the thousands separator"),
        (b"time;a;b\n2024-02-01;1,5;1.5\n", "written in several ways: a (1,5): a decimal comma; b (1.5): a decimal point"),
    ],
)
def test_what_is_no_table_of_readings_is_refused(content: bytes, expected: str, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    outcome = cli("init", tmp_path / "x.csv", "--out", tmp_path / "out")
    assert outcome.exit_code == 2
    assert expected in outcome.err
    assert not (tmp_path / "out").exists()


# Name: encoding, the rows below the header "time;Ort;Außen °C", the numbers in them, and what the mapping file says.
WRITTEN: dict[str, tuple[str, list[str], list[float], list[str]]] = {
    "Latin-1": ("latin-1", ["1,5", "2,25"], [1.5, 2.25], ['encoding = "windows-1252"', 'decimal = ","']),
    "Windows-1252": ("windows-1252", ["1.5", "2.5"], [1.5, 2.5], ['encoding = "windows-1252"']),
    "UTF-16, little end first": ("utf-16", ["1.5", "2.5"], [1.5, 2.5], ['encoding = "utf-16"']),
    "UTF-8 with a byte order mark": ("utf-8-sig", ["1.5", "2.5"], [1.5, 2.5], []),
    "points between thousands": (
        "utf-8", ["1.234,5", "12.345.678", "7", "-1.000,25"], [1234.5, 12345678, 7, -1000.25], ['decimal = ","', 'thousands = "."'],
    ),
    "commas between thousands": (
        "utf-8", ["1,234.5", "999", "12,345,678"], [1234.5, 999, 12345678], ['decimal = "."', 'thousands = ","'],
    ),
    "only commas, two in a number": ("utf-8", ["1,234,567", "999"], [1234567, 999], ['thousands = ","']),
    "blanks": ("latin-1", ["1 234,5", "1\xa0234\xa0567", "3"], [1234.5, 1234567, 3], ['decimal = ","', 'thousands = " "']),
    "narrow blanks": ("utf-8", ["1\u202f234", "999"], [1234, 999], ['thousands = " "']),
    "apostrophes": ("utf-8", ["1'234.5", "1\u2019234'567", "3.25"], [1234.5, 1234567, 3.25], ["thousands = \"'\""]),
    "three decimals": ("utf-8", ["1.234", "21.500"], [1.234, 21.5], []),
    "three decimals after commas": ("utf-8", ["1,234", "21,500"], [1.234, 21.5], ['decimal = ","']),
}  # fmt: skip


@pytest.mark.parametrize("how", WRITTEN)
def test_numbers_and_encodings_are_recognised_and_imported(how: str, tmp_path: Path) -> None:
    encoding, cells, values, keys = WRITTEN[how]
    text = "time;Ort;Außen °C\n" + "".join(f"{TIMES[n]};Küche {n % 2}…;{cell}\n" for n, cell in enumerate(cells))
    if encoding == "latin-1":
        text = text.replace("…", "")
    file = tmp_path / "x.csv"
    file.write_bytes(text.encode(encoding))
    profile = look_at([file], Wanted(keys=("Ort",)))
    folder = starter_in(tmp_path / "out", profile)
    written = (folder / "dataset.toml").read_text(encoding="utf-8").splitlines()
    assert [key for key in keys if key not in written] == []
    assert ('encoding = "' in "\n".join(written)) == (encoding in {"latin-1", "windows-1252", "utf-16"})
    with open_dataset(str(folder / "dataset.toml")).connect() as workbench:
        found = [value for (value,) in workbench.sql("SELECT value FROM measurements ORDER BY time").fetchall()]
        sensors = {name for (name,) in workbench.sql("SELECT DISTINCT sensor FROM measurements").fetchall()}
    assert found == values
    assert all(sensor.startswith("Küche") for sensor in sensors)


def test_what_is_read_as_windows_1252_is_shown(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "x.csv").write_bytes("time;Außen\n2024-02-01;1,5\n2024-02-02;2,5\n".encode("cp1252"))
    outcome = cli("init", tmp_path / "x.csv", "--out", tmp_path / "out")
    assert outcome.exit_code == 0, outcome.err
    assert "line 1: not UTF-8; the file is read as Windows-1252 (Latin-1): 'Außen'; --encoding says otherwise" in " ".join(
        outcome.out.split()
    )


def test_the_user_says_how_numbers_and_characters_are_written(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_bytes('time,Температура\n2024-02-01,"1,013"\n2024-02-02,"1,021"\n'.encode("cp1251"))
    for said, expected in ((Wanted(encoding="cp1251", thousands=","), 1013.0), (Wanted(encoding="cp1251", decimal=","), 1.013)):
        profile = look_at([file], said)
        assert profile.values == ["Температура"]
        folder = starter_in(tmp_path / str(expected), profile)
        with open_dataset(str(folder / "dataset.toml")).connect() as workbench:
            assert workbench.sql("SELECT min(value) FROM measurements").fetchall() == [(expected,)]
    with pytest.raises(UsageError, match="--encoding: there is no encoding 'klingon'; expected a name such as utf-8"):
        look_at([file], Wanted(encoding="klingon"))


def test_files_of_two_encodings_are_refused(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.csv" for name in ("a", "b", "ascii")]
    for file, encoding, place in zip(files, ("utf-8", "cp1252", "ascii"), ("Küche", "Küche", "Bad"), strict=True):
        file.write_bytes(f"time,room,value\n2024-02-01,{place},1.5\n2024-02-02,{place},2.5\n".encode(encoding))
    assert look_at([files[1], files[2]], Wanted()).encoding == "windows-1252"
    with pytest.raises(UsageError, match=r"several encodings: .*a\.csv: utf-8; .*b\.csv: windows-1252"):
        look_at(files, Wanted())


def test_a_sign_in_another_place_is_no_number(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "x.csv").write_text("time;value\n2024-02-01;1.234,5\n2024-02-02;1.23\n", encoding="utf-8")
    (tmp_path / "x.toml").write_text(
        'name = "x"\nfiles = ["x.csv"]\ntime = { column = "time" }\ndecimal = ","\nthousands = "."\nsensors = { v = "value" }\n',
        encoding="utf-8",
    )
    outcome = cli("data", "import", tmp_path / "x.toml", "--out", tmp_path / "out")
    assert outcome.exit_code == 2
    assert "line 3, column value: '1.23' is not a number" in outcome.err


def test_what_the_user_says_counts(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text(
        rows("when,zone,a,b", lambda time, one, value: f"{time:%d/%m/%Y %H:%M},{one},{value},{value}", "xy"), encoding="utf-8"
    )
    wanted = Wanted(("when",), "%d/%m/%Y %H:%M", None, "Europe/Berlin", ("zone",), ("b",))
    found = look_at([file], wanted)
    assert (found.time.zone, found.keys, found.values, found.ignored) == (
        "Europe/Berlin",
        ["zone"],
        ["b"],
        {"a": "not named by --value"},
    )
    with pytest.raises(UsageError, match=r"there is no column 'nope'; the columns are when, zone, a, b"):
        look_at([file], Wanted(keys=("nope",)))
    with pytest.raises(UsageError, match="there is no time zone 'Mars/Base'; expected a name such as Europe/Berlin"):
        look_at([file], Wanted(time_zone="Mars/Base"))


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a CSV file, which is the current one."""
    (tmp_path / "readings.csv").write_text(LONG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SHORT = ("--set", "workload.duration=200ms", "--set", "workload.warmup=50ms", "--no-open")


@pytest.mark.parametrize("names", [("sqlite",), ("fjall", "sqlite")])
def test_what_init_writes_validates_and_runs(names: tuple[str, ...], written: Path, cli: Cli) -> None:
    outcome = cli("init", "readings.csv", *(word for name in names for word in ("--database", name)))
    assert outcome.exit_code == 0, outcome.err
    assert "sensorbench validate experiment.toml" in outcome.out
    files = [str(path.relative_to(written)) for path in written.rglob("*.toml")]
    assert cli("validate", *files).exit_code == 0
    outcome = cli("run", "experiment.toml", "--out", "results", *SHORT, "--json")
    assert outcome.exit_code == 0, outcome.err
    assert outcome.json["answers_equal"] is True
    expected = {"latest_reading", "readings_of_day", "peak_of_day", "insert_reading"} | (
        {"hourly_means"} if "fjall" not in names else set()
    )
    assert set(outcome.json["result"]["operations"]) == expected
    assert len(outcome.json["variants"]) == 2


def test_nothing_is_overwritten_but_what_init_wrote(written: Path, cli: Cli) -> None:
    assert cli("init", "readings.csv").exit_code == 0
    again = cli("init", "readings.csv")
    assert again.exit_code == 2
    assert "dataset.toml is there already; name another folder with --out" in again.err
    assert cli("init", "readings.csv", "--force").exit_code == 0
    (written / "operations.toml").write_text("# mine\n", encoding="utf-8")
    forced = cli("init", "readings.csv", "--force")
    assert forced.exit_code == 2
    assert "--force overwrites only what `sensorbench init` wrote" in forced.err
    assert (written / "operations.toml").read_text(encoding="utf-8") == "# mine\n"
    assert (written / "dataset.toml").read_text(encoding="utf-8").startswith(MARKER)


def test_a_password_stays_out_of_the_files(written: Path, cli: Cli) -> None:
    outcome = cli("init", "readings.csv", "--target", "postgresql://bench:s3cret@db.example/plant")
    assert outcome.exit_code == 0, outcome.err
    assert "SENSORBENCH_POSTGRESQL_PASSWORD" in outcome.out
    texts = [path.read_text(encoding="utf-8") for path in written.rglob("*.toml")]
    assert not any("s3cret" in text for text in [*texts, outcome.out])
    assert 'url = "postgresql://bench@db.example/plant"' in (written / "experiment.toml").read_text(encoding="utf-8")


def test_a_file_of_credentials_is_found_from_the_folder_of_the_experiment(written: Path, cli: Cli) -> None:
    Path("login.toml").write_text('user = "bench"\npassword = "s3cret"\n', encoding="utf-8")
    outcome = cli("init", "readings.csv", "--target", "postgresql://db.example/plant?credentials=login.toml&tls=on")
    assert outcome.exit_code == 0, outcome.err
    place = Path("login.toml").absolute()
    expected = f'url = "postgresql://db.example/plant?credentials={place}&tls=on"'
    assert expected in (written / "experiment.toml").read_text(encoding="utf-8")


def test_without_files_and_a_terminal_nobody_is_asked(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    outcome = cli("init")
    assert outcome.exit_code == 2
    assert "name CSV files, for example `sensorbench init readings.csv`" in outcome.err


@pytest.mark.parametrize("database", starter_databases())
def test_each_database_has_a_schema_that_its_driver_accepts(database: str) -> None:
    """The driver's own check of the statements, for each value of each parameter; what is missing says why."""
    operations = load_operations(STARTER)
    dialect = databases()[database].dialect
    with open_dataset("beijing-air-quality", scale=0.01).connect() as workbench:
        for name in shipped_schemas(STARTER, dialect):
            schema = load_schema(name, operations=STARTER, database=dialect)
            assert set(schema.file.operation) | set(schema.file.cannot) == set(operations.operation)
            choices = [{key: value} for key, choice in schema.file.parameters.items() for value in choice.values]
            for changed in [schema, *map(schema.with_parameters, choices)]:
                changed.driver_schema(operations, list(schema.file.operation), changed.loaded_columns(workbench))


def test_a_server_is_compared_with_an_embedded_database() -> None:
    targets = starter_targets((), ("postgresql://db.example/plant",))
    assert [target.dialect for target in targets] == ["sqlite", "postgresql"]
    assert parse_target(targets[0].url).place == "folder"
    with pytest.raises(UsageError, match="--database oracle: expected one of sqlite"):
        starter_targets(("oracle",), ())
