"""The data and questions of TSBS: rows are those of its distributions, and its queries are answered alike whatever the table."""

from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from docsite.lists import NOT_RUN

from sensorbench.compat.tsbs.plan import all_queries
from sensorbench.dataset import Dataset, open_dataset
from sensorbench.dataset.tsbs import CPU_FIELDS, TsbsParameters, parse_parameters
from sensorbench.dataset.tsbs_devops import FIELDS, OWN_TAGS, WITH_DECIMALS, own_tag
from sensorbench.errors import UsageError
from sensorbench.runner import databases
from sensorbench.runner.plan import parameters_of
from sensorbench.schemas import load_operations, load_schema, shipped_schemas
from sensorbench.schemas.shipped import SHIPPED_FOLDER
from tests.conftest import Cli
from tests.generated import written_alike
from tests.servers import LabServers
from tests.tsbs_answers import DEVOPS_NAME, IOT_NAME, check_answers

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
    written = written_alike("tsbs-cpu-only:hosts=300,duration=1h", tmp_path, 0.5)
    assert (written.relations["cpu"].rows, written.last_time) == (300 * 180, datetime(2016, 1, 1, 0, 29, 50))


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


CHURN = "tsbs-cpu-single:hosts=200,duration=100m,churn=0.1,period=10m"


def test_churn_replaces_a_share_of_the_hosts_in_each_period_and_leaves_as_many(tmp_path: Path) -> None:
    written = written_alike(CHURN, tmp_path, 0.5)
    assert written.relations["cpu"].rows == 200 * 300
    with open_dataset(CHURN).connect() as connection:
        periods = connection.sql("""
            SELECT count(DISTINCT zone) FILTER (time = period), count(DISTINCT zone) FILTER (time = first), count(DISTINCT zone)
            FROM (SELECT *, time_bucket(INTERVAL 10 MINUTE, time) AS period FROM cpu)
            JOIN (SELECT zone, min(time) AS first FROM cpu GROUP BY zone) USING (zone)
            GROUP BY period ORDER BY period
        """).fetchall()
        alive, new, seen = zip(*periods, strict=True)
        assert alive == (200,) * 10
        # The first hosts are all new.
        assert new == pytest.approx((220, *(20,) * 9), abs=1)
        assert seen == pytest.approx((220,) * 10, abs=1)
        joined = connection.sql(
            "SELECT count(*), count(DISTINCT zone), count(DISTINCT name) FROM cpu JOIN hosts USING (site, zone)"
        )
        rows, series, names = joined.fetchall()[0]
        assert (rows, series) == (200 * 600, names)
        assert connection.sql("SELECT count(*) FROM hosts").fetchall() == [(series,)]
        assert series == pytest.approx(400, abs=2)
        # A host is not there again once it has ended.
        gaps = connection.sql(
            "SELECT count(*) FROM (SELECT zone FROM cpu GROUP BY zone HAVING count(*) * 10 <> epoch(max(time) - min(time)) + 10)"
        )
        assert gaps.fetchall() == [(0,)]
    with open_dataset(CHURN).connect() as renewed, open_dataset("tsbs-cpu-single:hosts=200,duration=100m").connect() as plain:
        values = "SELECT zone % 200 AS place, time, usage_user FROM cpu ORDER BY ALL"
        assert renewed.sql(values).fetchall() == plain.sql(values).fetchall()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tsbs-cpu-single:churn=0", "churn=0"),
        ("tsbs-cpu-single:churn=1.5", "churn=1.5"),
        ("tsbs-cpu-single:period=1h", "give churn, too"),
        ("tsbs-devops:churn=0.1", "churn=0.1"),
        ("tsbs-cpu-single:hosts=2000000000,duration=1h,churn=1,period=10s", "give a longer period, or fewer hosts"),
    ],
)
def test_churn_that_makes_no_sense_is_refused(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        open_dataset(name)


def test_parameters_are_in_the_name_where_they_are_not_the_defaults(cli: Cli, tmp_path: Path) -> None:
    assert parse_parameters("tsbs-cpu-only") == TsbsParameters()
    given = parse_parameters("tsbs-cpu-only:interval=10s,duration=3600s,hosts=100")
    assert (given, given.name_of("tsbs-cpu-only")) == (TsbsParameters(duration=timedelta(hours=1)), "tsbs-cpu-only:duration=1h")
    assert parse_parameters(CHURN).name_of("tsbs-cpu-single") == CHURN
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
USE_CASES = {"cpu-only": NAME, "cpu-single": "tsbs-cpu-single:hosts=2,duration=10m", "devops": "tsbs-devops:hosts=2,duration=10m"}
# The schemas that each server of the test answers with, by operation set.
SERVERS: dict[str, dict[str, tuple[str, ...]]] = {
    "postgresql": {"tsbs_cpu": ("wide", "narrow"), "tsbs_iot": ("wide", "narrow")},
    "questdb": {"tsbs_cpu": ("wide",), "tsbs_iot": ("wide",)},
    "clickhouse": {"tsbs_cpu": ("wide",), "tsbs_iot": ("wide",)},
    "influxdb": {"tsbs_cpu": ("wide",), "tsbs_iot": ("wide",)},
    "iotdb": {"tsbs_cpu": ("wide",), "tsbs_iot": ("wide",)},
    "mariadb": {"tsbs_cpu": ("wide",), "tsbs_iot": ("wide",)},
    "cassandra": {"tsbs_cpu": ("wide",), "tsbs_iot": ("wide",)},
    "victoriametrics": {"tsbs_iot": ("wide",)},
}
EMBEDDED: dict[str, dict[str, tuple[str, ...]]] = {
    database: {"tsbs_cpu": ("wide", "narrow"), "tsbs_iot": ("wide", "narrow")} for database in ("duckdb", "sqlite")
}
# All queries of what cannot be asked anything, and those that a database's language has no words for.
INEXPRESSIBLE = {
    ("tsbs_cpu", "victoriametrics"): 16,
    ("tsbs_cpu", "cassandra"): 9,
    ("tsbs_cpu", "influxdb"): 3,
    ("tsbs_iot", "cassandra"): 14,
    ("tsbs_iot", "victoriametrics"): 14,
    ("tsbs_iot", "influxdb"): 4,
    ("tsbs_iot", "iotdb"): 4,
}


@pytest.mark.parametrize(
    ("database", "name"), [(database, name) for database in DATABASES for name in shipped_schemas("tsbs_cpu", database)]
)
def test_every_schema_has_every_query_and_the_tables_of_every_use_case(database: str, name: str) -> None:
    schema = load_schema(name, operations="tsbs_cpu", database=database)
    assert tuple(OPERATIONS.operation) == QUERIES
    assert set(schema.file.operation) | set(schema.file.cannot) == set(QUERIES)
    # A narrow table has room for any metric.
    assert ("use_case" in schema.file.parameters) == (name == "wide")
    for use_case, dataset in USE_CASES.items():
        chosen = schema.with_parameters({"use_case": use_case}) if name == "wide" else schema
        with open_dataset(dataset).connect() as workbench:
            columns = chosen.loaded_columns(workbench)
            queries = [query for query in all_queries(use_case) if chosen.asks(query)]
            assert chosen.driver_schema(OPERATIONS, queries, columns)
            loaded = {table: set(of_table) for table, of_table in columns.items()}
        if name == "wide":
            fields = FIELDS if use_case == "devops" else {"cpu": CPU_FIELDS[: 1 if use_case == "cpu-single" else None]}
            assert loaded.keys() - {"hosts"} == fields.keys()
            for measurement, of_measurement in fields.items():
                assert loaded[measurement] >= {*of_measurement, "host", "time", *OWN_TAGS.get(measurement, ())}
            assert ("usage_system" in loaded["cpu"]) == (use_case != "cpu-single")


def test_every_schema_is_compared_on_a_server_or_says_that_it_was_not_run() -> None:
    """What the matrix in the documentation says of schemas."""
    compared = {
        (operations, databases()[name].dialect, schema)
        for name, of_name in (SERVERS | EMBEDDED).items()
        for operations, schemas in of_name.items()
        for schema in schemas
    }
    for operations in ("tsbs_cpu", "tsbs_iot"):
        folders = [folder.name for folder in (SHIPPED_FOLDER / operations).iterdir() if folder.is_dir()]
        for database, name in [(folder, name) for folder in folders for name in shipped_schemas(operations, folder)]:
            file = load_schema(name, operations=operations, database=database).file
            is_compared = (operations, database, name) in compared
            assert is_compared != (NOT_RUN in file.summary or not file.operation), (operations, database, name)
            assert len(file.cannot) == INEXPRESSIBLE.get((operations, database), 0), (operations, database, name)
        servers = [name for name, of_name in SERVERS.items() if operations in of_name]
        assert len(servers) >= 6, "each name of TSBS on at least six servers"


@pytest.mark.parametrize("server", SERVERS)
def test_servers_answer_as_the_dataset_says(cli: Cli, tmp_path: Path, lab_servers: LabServers, server: str) -> None:
    lab_servers.start(server)
    dialect = databases()[server].dialect
    for use_case, operations, dataset in (
        ("cpu-only", "tsbs_cpu", NAME),
        ("devops", "tsbs_cpu", DEVOPS_NAME),
        ("", "tsbs_iot", IOT_NAME),
    ):
        schemas = SERVERS[server].get(operations)
        if schemas is None:
            continue
        cannot = {name for schema in schemas for name in load_schema(schema, operations=operations, database=dialect).file.cannot}
        case = use_case.replace("-", "_") or "iot"
        targets = [(f"lab:{server}?namespace=sensorbench_tsbs_{case}_{schema}", schema) for schema in schemas]
        check_answers(cli, tmp_path / case, dataset, operations, targets, cannot=cannot, use_case=use_case)


def test_embedded_databases_answer_as_the_dataset_says(cli: Cli, tmp_path: Path) -> None:
    targets = [(database, name) for database in ("duckdb", "sqlite") for name in ("wide", "narrow")]
    check_answers(cli, tmp_path / "cpu", NAME, "tsbs_cpu", targets)
    check_answers(cli, tmp_path / "devops", DEVOPS_NAME, "tsbs_cpu", targets, use_case="devops")


# Devops, and the use case of one metric.


def test_cpu_metrics_and_hosts_are_the_same_in_every_use_case_of_servers(cpu: Dataset) -> None:
    hosts, span = "hosts=4,duration=1h", "interval=30s"
    with (
        cpu.connect() as only,
        open_dataset(f"tsbs-devops:{hosts},{span}").connect() as devops,
        open_dataset(f"tsbs-cpu-single:{hosts},{span}").connect() as single,
    ):
        tags = "site, zone, name, region, service_environment"
        expected = only.sql("SELECT * FROM cpu WHERE zone < 4 AND time < TIMESTAMP '2016-01-01 01:00'").fetchall()
        assert devops.sql("SELECT * FROM cpu").fetchall() == expected
        assert single.sql("SELECT * FROM cpu").fetchall() == [row[:4] for row in expected]
        of_hosts = only.sql(f"SELECT {tags} FROM hosts WHERE zone < 4").fetchall()
        assert devops.sql(f"SELECT {tags} FROM hosts").fetchall() == of_hosts
        assert single.sql(f"SELECT {tags} FROM hosts").fetchall() == of_hosts
        assert single.sql("SELECT DISTINCT sensor FROM measurements").fetchall() == [("cpu.usage_user",)]


def test_each_host_has_a_row_of_nine_measurements_with_101_fields(tmp_path: Path) -> None:
    written = written_alike("tsbs-devops:hosts=300,duration=1h", tmp_path, 0.5)
    described = written
    rows = {name: relation.rows for name, relation in described.relations.items()}
    assert rows == {**dict.fromkeys(FIELDS, 300 * 180), "hosts": 300}
    assert list(FIELDS) == ["cpu", "diskio", "disk", "kernel", "mem", "net", "nginx", "postgresl", "redis"]
    assert [len(fields) for fields in FIELDS.values()] == [10, 7, 7, 6, 9, 8, 7, 16, 31]
    assert (described.readings, described.values) == (9 * 300 * 180, 101 * 300 * 180)
    assert described.values_per_reading == pytest.approx(101 / 9)
    columns = {f"{own_tag(measurement, tag)}" for measurement, tags in OWN_TAGS.items() for tag in tags}
    assert set(described.relations["hosts"].columns) >= columns
    with open_dataset("tsbs-devops:hosts=3,duration=10m").connect() as connection:
        sensors = {sensor for (sensor,) in connection.sql("SELECT DISTINCT sensor FROM measurements").fetchall()}
        assert sensors == {f"{measurement}.{field}" for measurement, fields in FIELDS.items() for field in fields}
        assert connection.sql("SELECT count(*) FROM measurements").fetchall() == [(101 * 3 * 60,)]


def test_measurements_of_servers_have_the_distributions_of_tsbs() -> None:
    """What follows from TSBS's rules: bounds, what is constant, what follows from another field, and the mean steps of counters."""
    gib, terabyte, steps = 2.0**30, 2.0**40, 1079
    with open_dataset("tsbs-devops:hosts=40,duration=3h").connect() as connection:

        def found(query: str) -> tuple[float, ...]:
            return connection.sql(query).fetchall()[0]

        def holds(condition: str, relation: str) -> bool:
            return found(f"SELECT bool_and({condition}) FROM {relation}") == (True,)

        for relation, fields in FIELDS.items():
            for field in fields:
                if f"{relation}.{field}" not in WITH_DECIMALS:
                    assert holds(f"{field} = trunc({field})", relation), f"{relation}.{field}"
        assert holds(f"total = {terabyte} AND used = total - free AND used_percent = trunc(100 * used / total)", "disk")
        assert holds("inodes_total = total / 4096 AND inodes_free = trunc(free / 4096)", "disk")
        assert holds("inodes_used = inodes_total - inodes_free", "disk")
        assert found(f"SELECT min(free), max(free) - {steps * 50} FROM disk") == pytest.approx(
            (terabyte / 2, terabyte / 2), abs=200
        )
        assert set(connection.sql(f"SELECT DISTINCT total / {gib} FROM mem").fetchall()) == {(8.0,), (12.0,), (16.0,)}
        assert holds("free = available AND available = total - used", "mem")
        assert holds("least(used, cached, buffered) >= 0 AND greatest(used, cached, buffered) <= total", "mem")
        for of in ("used", "available", "buffered"):
            assert holds(f"abs({of}_percent - 100 * {of} / total) < 1e-9", "mem")
        for relation, field in (("mem", "total"), ("kernel", "boot_time")):
            assert found(f"SELECT max(n) FROM (SELECT count(DISTINCT {field}) AS n FROM {relation} GROUP BY zone)") == (1,)
        lowest, highest = found("SELECT min(boot_time), max(boot_time) FROM kernel")
        assert 0 <= lowest < 40 < 200 < highest < 240
        # Counters start at 0, never fall, and grow by their mean step.
        for relation, field, step in (
            ("diskio", "reads", 50), ("diskio", "write_bytes", 100), ("diskio", "io_time", 5), ("kernel", "interrupts", 5),
            ("net", "packets_recv", 50), ("net", "drop_out", 5), ("nginx", "accepts", 5), ("redis", "keyspace_hits", 50),
        ):  # fmt: skip
            mean, smallest, start = found(
                f"SELECT avg(step), min(step), max(start) FROM (SELECT {field} - lag({field}) OVER hosts AS step, "
                f"first({field}) OVER hosts AS start FROM {relation} WINDOW hosts AS (PARTITION BY zone ORDER BY time))"
            )
            assert [mean, start] == pytest.approx([step, 0], rel=0.01), f"{relation}.{field}"
            assert smallest >= 0, f"{relation}.{field}"
        # Steps of 5 in the mean reach a bound of 100 within 30 intervals, and of 1,000 within 250.
        later = "WHERE time >= TIMESTAMP '2016-01-01 01:00'"
        for relation, field, bound in (
            ("nginx", "active", 100), ("nginx", "waiting", 100), ("postgresl", "numbackends", 1000), ("postgresl", "deadlocks", 1000),
            ("redis", "mem_fragmentation_ratio", 100), ("redis", "sync_full", 1000), ("redis", "connected_clients", 10_000),
        ):  # fmt: skip
            assert found(f"SELECT min({field}), max({field}) FROM {relation} {later}") == (bound, bound), f"{relation}.{field}"
        assert holds("uptime_in_seconds = epoch_us(time - TIMESTAMP '2016-01-01') / 1e6", "redis")
        last = f"WHERE time = TIMESTAMP '2016-01-01' + INTERVAL {steps * 10} SECOND"
        assert found(f"SELECT avg(temp_bytes) FROM postgresl {last}")[0] == pytest.approx(1024 * steps, rel=0.01)
        assert found(f"SELECT avg(used_memory) - {8 * gib} FROM redis {last}")[0] == pytest.approx(50 * steps, rel=0.01)
        # Without bounds it walks by 1 in the mean.
        assert found(f"SELECT avg(instantaneous_ops_per_sec) FROM redis {last}")[0] == pytest.approx(steps, rel=0.03)
