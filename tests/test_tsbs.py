"""The data and questions of TSBS: rows are those of its distributions, and its queries are answered alike whatever the table."""

from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sensorbench.dataset import Dataset, open_dataset
from sensorbench.dataset.generated import in_this_process
from sensorbench.dataset.registry import generate
from sensorbench.dataset.tsbs import CPU_FIELDS, TsbsParameters, parse_parameters
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.runner import databases
from sensorbench.runner.plan import parameters_of
from sensorbench.schemas import load_operations, load_schema, shipped_schemas
from sensorbench.schemas.shipped import SHIPPED_FOLDER
from tests.conftest import Cli
from tests.servers import LabServers
from tests.tsbs_answers import IOT_NAME, check_answers

# Windows of 12 h lie within it, those of 24 h are all of it; each minute has two rows of a host.
NAME, HOSTS, EPOCHS = "tsbs-cpu-only:hosts=9,duration=13h,interval=30s", 9, 13 * 120
OPERATIONS = load_operations("tsbs_cpu")
# In the order of TSBS's documentation.
QUERIES = (
    "single-groupby-1-1-1", "single-groupby-1-1-12", "single-groupby-1-8-1", "single-groupby-5-1-1", "single-groupby-5-1-12",
    "single-groupby-5-8-1", "cpu-max-all-1", "cpu-max-all-8", "cpu-max-all-32-24", "double-groupby-1", "double-groupby-5",
    "double-groupby-all", "high-cpu-1", "high-cpu-all", "lastpoint", "groupby-orderby-limit",
)  # fmt: skip


@pytest.fixture(scope="module")
def cpu() -> Dataset:
    return open_dataset(NAME)


def test_each_host_has_a_row_each_interval_and_fewer_are_a_part_of_more(cpu: Dataset) -> None:
    described = cpu.describe()
    assert (described.name, described.interval_s, described.generated) == (NAME, 30.0, True)
    assert {name: relation.rows for name, relation in described.relations.items()} == {"cpu": HOSTS * EPOCHS, "hosts": HOSTS}
    assert (described.first_time, described.last_time) == (datetime(2016, 1, 1), datetime(2016, 1, 1, 12, 59, 30))
    with cpu.connect() as all_rows, open_dataset("tsbs-cpu-only:hosts=4,duration=1h,interval=30s").connect() as few:
        columns = "COLUMNS(* EXCLUDE (site)), site"
        expected = all_rows.sql(f"SELECT {columns} FROM cpu WHERE zone < 4 AND time < TIMESTAMP '2016-01-01 01:00'").fetchall()
        assert few.sql(f"SELECT {columns} FROM cpu").fetchall() == expected
        hosts = all_rows.sql("SELECT * FROM hosts WHERE zone < 4").fetchall()
        assert few.sql("SELECT * FROM hosts").fetchall() == hosts
        assert all_rows.sql("SELECT count(*) FROM cpu JOIN hosts USING (site, zone)").fetchall() == [(HOSTS * EPOCHS,)]


def test_the_narrow_form_has_a_reading_for_each_field_of_each_row(cpu: Dataset) -> None:
    with cpu.connect() as connection:
        narrow = connection.sql("SELECT zone, time, sensor, value FROM measurements WHERE zone = 3").fetchall()
        wide = connection.sql(f"SELECT zone, time, {', '.join(CPU_FIELDS)} FROM cpu WHERE zone = 3").fetchall()
    expected = {
        (zone, time, f"cpu.{field}", value)
        for zone, time, *values in wide
        for field, value in zip(CPU_FIELDS, values, strict=True)
    }
    assert (len(narrow), set(narrow)) == (10 * EPOCHS, expected)


def test_a_scale_is_the_beginning_and_any_number_of_threads_writes_the_same(tmp_path: Path) -> None:
    written = {
        threads: generate(
            "tsbs-cpu-only:hosts=300,duration=1h",
            tmp_path / str(threads),
            scale=0.5,
            seed=7,
            write=in_this_process(ProgressReporter(quiet=True), threads),
        ).describe()
        for threads in (1, 3)
    }
    assert written[1].fingerprint == written[3].fingerprint
    assert (written[1].relations["cpu"].rows, written[1].last_time) == (300 * 180, datetime(2016, 1, 1, 0, 29, 50))


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ("hosts=0", "hosts=0"),
        ("hosts=٣", "hosts="),
        ("scale=10", "scale=10"),
        ("duration=1", "duration=1"),
        ("hosts=1,hosts=2", "hosts is given twice"),
        ("duration=5s", "shorter than the interval"),
        ("", "expected hosts=NUMBER"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters: str, names: str) -> None:
    with pytest.raises(UsageError, match=names):
        open_dataset(f"tsbs-cpu-only:{parameters}")


def test_parameters_are_in_the_name_where_they_are_not_the_defaults(cli: Cli, tmp_path: Path) -> None:
    assert parse_parameters("tsbs-cpu-only") == TsbsParameters()
    given = parse_parameters("tsbs-cpu-only:interval=10s,duration=3600s,hosts=100")
    assert (given, given.name_of("tsbs-cpu-only")) == (TsbsParameters(duration=timedelta(hours=1)), "tsbs-cpu-only:duration=1h")
    ended = cli("data", "generate", "tsbs-cpu-only:hosts=2,duration=1m", "--scale", "0.01", "--out", tmp_path / "none")
    assert ended.exit_code == 2
    assert "leaves none of 6 intervals" in ended.err
    assert not (tmp_path / "none").exists()


def test_windows_lie_in_the_data_and_hosts_differ(cpu: Dataset) -> None:
    with cpu.connect() as connection:
        parameters = parameters_of(OPERATIONS, list(QUERIES), connection, "test").tables
    windows = parameters["window_12h"].to_pylist()
    assert len(windows) == 1000
    first, end = datetime(2016, 1, 1), datetime(2016, 1, 1, 13)
    assert all(first <= row["from"] and row["to"] <= end and row["to"] - row["from"] == timedelta(hours=12) for row in windows)
    assert len({row["from"] for row in windows}) == 1000
    assert any(row["from"].microsecond for row in windows)
    eight = [list(row.values()) for row in parameters["hosts_8"].to_pylist()]
    assert len(eight) == 1000
    assert all(len(set(hosts)) == 8 for hosts in eight)
    assert [hosts[0] for hosts in eight] == [row["host1"] for row in parameters["hosts_1"].to_pylist()]
    # There are nine hosts; a query names 32.
    assert all(set(row.values()) == set(range(HOSTS)) for row in parameters["hosts_32"].to_pylist())
    assert parameters["window_24h"].to_pylist()[0]["from"] == first


def test_references_are_what_plain_loops_find(cpu: Dataset) -> None:
    """Of three kinds of query, computed row by row."""
    with cpu.connect() as connection:
        rows = connection.sql(f"SELECT zone, time, {', '.join(CPU_FIELDS)} FROM cpu").fetchall()
        names = dict(connection.sql("SELECT zone, name FROM hosts").fetchall())
        start, end = datetime(2016, 1, 1, 0, 10, 17, 5), datetime(2016, 1, 1, 12, 10, 17, 5)
        window = {"from": start, "to": end}

        def answer(name: str, **parameters: object) -> list[tuple[object, ...]]:
            reference = OPERATIONS.operation[name].reference or ""
            used = connection.extract_statements(reference)[0].named_parameters
            given = {key: value for key, value in {**window, **parameters}.items() if key in used}
            return connection.sql(reference, params=given or None).fetchall()

        minutes: dict[datetime, float] = {}
        sums: dict[tuple[datetime, str], list[float]] = defaultdict(list)
        hot, newest = set(), {}
        for zone, time, *values in rows:
            newest[names[zone]] = (names[zone], time, *values)
            if start <= time < end:
                sums[time.replace(minute=0, second=0), names[zone]].append(values[0])
                if zone == 5:
                    minute = time.replace(second=0)
                    minutes[minute] = max(minutes.get(minute, 0.0), values[0])
                if values[0] > 90.0:
                    hot.add((zone, time, *values))
        assert answer("single-groupby-1-1-12", host1=5) == list(minutes.items())
        assert len(minutes) == 721
        means = [(hour, name, pytest.approx(sum(values) / len(values))) for (hour, name), values in sorted(sums.items())]
        assert answer("double-groupby-1") == means
        assert set(answer("high-cpu-all")) == hot
        assert answer("lastpoint") == sorted(newest.values())


DATABASES = sorted(folder.name for folder in (SHIPPED_FOLDER / "tsbs_cpu").iterdir() if folder.is_dir())


@pytest.mark.parametrize(
    ("database", "name"), [(database, name) for database in DATABASES for name in shipped_schemas("tsbs_cpu", database)]
)
def test_every_schema_has_every_query(cpu: Dataset, database: str, name: str) -> None:
    schema = load_schema(name, operations="tsbs_cpu", database=database)
    assert tuple(OPERATIONS.operation) == QUERIES
    assert set(schema.file.operation) | set(schema.file.cannot) == set(QUERIES)
    with cpu.connect() as workbench:
        assert schema.driver_schema(OPERATIONS, list(schema.file.operation), schema.loaded_columns(workbench))


@pytest.mark.parametrize(
    ("server", "schemas"),
    [
        ("postgresql", ("wide", "narrow")),
        ("questdb", ("wide",)),
        ("clickhouse", ("wide",)),
        ("influxdb", ("wide",)),
        ("iotdb", ("wide",)),
    ],
)
def test_servers_answer_as_the_dataset_says(
    cli: Cli, tmp_path: Path, lab_servers: LabServers, server: str, schemas: tuple[str, ...]
) -> None:
    lab_servers.start(server)
    dialect = databases()[server].dialect
    for operations, dataset in (("tsbs_cpu", NAME), ("tsbs_iot", IOT_NAME)):
        cannot = {name for schema in schemas for name in load_schema(schema, operations=operations, database=dialect).file.cannot}
        assert len(cannot) < 5
        targets = [(f"lab:{server}?namespace=sensorbench_{operations}_{schema}", schema) for schema in schemas]
        check_answers(cli, tmp_path / operations, dataset, operations, targets, cannot=cannot)


def test_embedded_databases_answer_as_the_dataset_says(cli: Cli, tmp_path: Path) -> None:
    targets = [(database, name) for database in ("duckdb", "sqlite") for name in ("wide", "narrow")]
    check_answers(cli, tmp_path, NAME, "tsbs_cpu", targets)
