"""The trucks of TSBS: what is delivered has its distributions, and its queries are answered alike whatever the table."""

from collections import defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest

from sensorbench.compat.tsbs.caveats import DEGENERATE
from sensorbench.dataset import Dataset, open_dataset
from sensorbench.dataset.tsbs_iot import FIELDS
from sensorbench.errors import UsageError
from sensorbench.runner.plan import parameters_of
from sensorbench.schemas import load_operations, load_schema, shipped_schemas
from sensorbench.schemas.shipped import SHIPPED_FOLDER
from tests.conftest import Cli
from tests.generated import written_alike
from tests.tsbs_answers import IOT_NAME, check_answers

OPERATIONS = load_operations("tsbs_iot")
# In the order of TSBS's documentation; then those that ask the same with other limits, and what one of them says literally.
QUERIES = (
    "single-last-loc", "last-loc", "low-fuel", "high-load", "stationary-trucks", "long-driving-sessions", "long-daily-sessions",
    "avg-vs-projected-fuel-consumption", "avg-daily-driving-duration", "avg-daily-driving-session", "avg-load", "daily-activity",
    "breakdown-frequency",
)  # fmt: skip
OTHERS = (
    "stationary-trucks-calibrated", "long-driving-sessions-calibrated", "long-daily-sessions-calibrated",
    "avg-daily-driving-duration-calibrated", "avg-daily-driving-session-calibrated", "breakdown-frequency-as-written",
)  # fmt: skip
START = datetime(2016, 1, 1)
Rows = list[tuple[object, ...]]


@pytest.fixture(scope="module")
def iot() -> Dataset:
    return open_dataset(IOT_NAME)


def answer(connection: duckdb.DuckDBPyConnection, name: str, parameters: dict[str, object]) -> Rows:
    """The reference answer to a query."""
    reference = OPERATIONS.operation[name].reference or ""
    used = connection.extract_statements(reference)[0].named_parameters
    given = {key: value for key, value in parameters.items() if key in used}
    return connection.sql(reference, params=given or None).fetchall()


def test_both_measurements_arrive_in_one_order_and_the_narrow_form_has_what_is_not_null(iot: Dataset) -> None:
    described = iot.describe()
    rows = {name: relation.rows for name, relation in described.relations.items()}
    assert (described.name, described.interval_s, set(rows)) == (IOT_NAME, 50.0, {"readings", "diagnostics", "trucks"})
    assert described.readings == rows["readings"] + rows["diagnostics"]
    assert described.values == 7 * rows["readings"] + 3 * rows["diagnostics"]
    assert described.values_per_reading == pytest.approx(5.0, abs=0.02)
    with iot.connect() as connection:
        for relation in FIELDS:
            assert connection.sql(f"SELECT arrival FROM {relation}").fetchall() == sorted(
                connection.sql(f"SELECT DISTINCT arrival FROM {relation}").fetchall()
            )
            assert connection.sql(f"SELECT count(*) FROM {relation} JOIN trucks USING (site, zone)").fetchall() == [
                (rows[relation],)
            ]
        assert connection.sql("SELECT arrival FROM readings INTERSECT SELECT arrival FROM diagnostics").fetchall() == []
        not_null = {
            f"{relation}.{field}": connection.sql(f"SELECT count({field}), sum({field}) FROM {relation}").fetchall()[0]
            for relation, fields in FIELDS.items()
            for field in fields
        }
        narrow = connection.sql("SELECT sensor, count(*), sum(value) FROM measurements GROUP BY sensor").fetchall()
    assert {sensor: (count, pytest.approx(total)) for sensor, count, total in narrow} == not_null


def test_any_number_of_threads_writes_the_same_and_other_parameters_are_refused(tmp_path: Path) -> None:
    written = written_alike("tsbs-iot:trucks=700,duration=10m", tmp_path, 0.9)
    assert (written.first_time, written.last_time) == (START, START + timedelta(seconds=530))
    with pytest.raises(UsageError, match="hosts=3' is not a parameter; expected trucks=NUMBER"):
        open_dataset("tsbs-iot:hosts=3")


def test_the_data_and_the_calibrated_limits_are_as_tsbs_has_them(tmp_path: Path) -> None:
    """The self-checks of TSBS's data: what was found by a simulation of its rules over three days at one row in 10 s."""
    trucks, epochs = 40, 3 * 8640
    dataset = open_dataset(f"tsbs-iot:trucks={trucks}")
    with dataset.connect() as connection:
        velocity = connection.sql(
            "SELECT quantile_cont(mean, [0.01, 0.05, 0.5, 0.95]) FROM ("
            "SELECT avg(velocity) AS mean FROM readings GROUP BY zone, time_bucket(INTERVAL 10 MINUTE, time))"
        ).fetchall()[0][0]
        assert velocity == pytest.approx([5.8, 9.8, 49, 89], abs=2.5)
        low, idle, worst = connection.sql(
            "SELECT avg((fuel_state < 0.1)::INT), avg((status = 0)::INT), avg((status = 5)::INT) FROM diagnostics"
        ).fetchall()[0]
        assert low == pytest.approx(0.097, abs=0.01)
        assert [idle, worst] == pytest.approx([0.258, 0.115], abs=0.02)
        heavy = connection.sql(
            "SELECT model, avg((current_load / load_capacity > 0.9)::INT), avg((current_load > load_capacity)::INT) "
            "FROM diagnostics JOIN trucks USING (site, zone) GROUP BY model ORDER BY model"
        ).fetchall()
        expected = [("F-150", 0.64, 0.60), ("G-2000", 0.10, 0.0), ("H-2", 0.73, 0.70)]
        assert [name for name, *_ in heavy] == [name for name, *_ in expected]
        assert [share for row in heavy for share in row[1:]] == pytest.approx(
            [share for row in expected for share in row[1:]], abs=0.02
        )
        metrics = connection.sql("SELECT count(*) FROM measurements").fetchall()[0][0]
        assert metrics / (trucks * epochs) == pytest.approx(8.84, abs=0.05)
        fleets = dict(connection.sql("SELECT site, count(*) FROM trucks GROUP BY site").fetchall())
        parameters = parameters_of(OPERATIONS, list(OPERATIONS.operation), connection, "test").tables
        # The share of a fleet that is in the answer, in the mean over windows.
        shares = {
            "stationary-trucks": (0.0, 0.0),
            "stationary-trucks-calibrated": (0.05, 0.04),
            "long-driving-sessions": (1.0, 0.0),
            "long-driving-sessions-calibrated": (0.20, 0.06),
            "long-daily-sessions": (1.0, 0.0),
            "long-daily-sessions-calibrated": (0.18, 0.06),
        }
        for name, (share, tolerance) in shares.items():
            found = whole = 0
            for number in range(24):
                draw = {
                    key: value
                    for source in OPERATIONS.operation[name].parameter_sources
                    for key, value in parameters[source].slice(number % parameters[source].num_rows, 1).to_pylist()[0].items()
                }
                found += len(answer(connection, name, draw))
                whole += fleets[draw["fleet"]]
            assert found / whole == pytest.approx(share, abs=tolerance), name
    assert set(DEGENERATE) - {"breakdown-frequency-as-written"} == {name.removesuffix("-calibrated") for name in OTHERS[:5]}


def test_references_are_what_plain_loops_find(iot: Dataset) -> None:
    """Of four kinds of query, computed row by row."""
    with iot.connect() as connection:
        rows = connection.sql("SELECT zone, time, velocity FROM readings").fetchall()
        states = connection.sql("SELECT zone, time, fuel_state, status FROM diagnostics").fetchall()
        tags = {zone: tuple(of) for zone, *of in connection.sql("SELECT zone, name, driver, site, model FROM trucks").fetchall()}
        buckets: dict[int, dict[datetime, list[float]]] = defaultdict(lambda: defaultdict(list))
        for zone, time, velocity in rows:
            bucket = buckets[zone][START + (time - START) // timedelta(minutes=10) * timedelta(minutes=10)]
            if velocity is not None:
                bucket.append(velocity)
        sessions: dict[tuple[str, datetime], list[float]] = defaultdict(list)
        for zone, of_truck in buckets.items():
            start, before = None, None
            for bucket, velocities in sorted(of_truck.items()):
                drives = sum(velocities) / len(velocities) > 25.0
                if drives and before is False:
                    start = bucket
                    # A day has its row also where none of its sessions ends.
                    sessions.setdefault((tags[zone][0], start.replace(hour=0, minute=0)), [])
                elif start is not None and not drives and before:
                    sessions[tags[zone][0], start.replace(hour=0, minute=0)].append((bucket - start).total_seconds())
                before = drives
        found = answer(connection, "avg-daily-driving-session-calibrated", {"velocity": 25.0})
        assert found == [
            (name, day, pytest.approx(sum(lengths) / len(lengths)) if lengths else None)
            for (name, day), lengths in sorted(sessions.items())
        ]
        assert len(found) > 16

        newest: dict[int, tuple[datetime, float | None]] = {}
        broken: dict[int, dict[datetime, list[bool]]] = defaultdict(lambda: defaultdict(list))
        for zone, time, fuel_state, status in states:
            if zone not in newest or newest[zone][0] < time:
                newest[zone] = (time, fuel_state)
            broken[zone][START + (time - START) // timedelta(minutes=10) * timedelta(minutes=10)].append(status == 0)
        low = {fleet: answer(connection, "low-fuel", {"fleet": fleet, "limit": 0.1}) for fleet in range(1, 5)}
        for fleet, answered in low.items():
            expected = {
                (*tags[zone][:2], state)
                for zone, (_, state) in newest.items()
                if tags[zone][2] == fleet and state is not None and state < 0.1
            }
            assert (set(answered), len(answered)) == (expected, len(expected))
        assert 0 < sum(map(len, low.values())) < 16
        breakdowns: dict[str, int] = defaultdict(int)
        for zone, of_truck in broken.items():
            are = [sum(flags) >= len(flags) / 2 for _, flags in sorted(of_truck.items())]
            breakdowns[tags[zone][3]] += sum(not now and then for now, then in pairwise(are))
        assert dict(answer(connection, "breakdown-frequency", {"share": 0.5})) == breakdowns
        by_arrival = connection.sql(
            "SELECT count(*) FROM (SELECT time < lag(time) OVER (PARTITION BY zone ORDER BY arrival) AS late FROM readings) WHERE late"
        )
        assert by_arrival.fetchall()[0][0] > 0


DATABASES = sorted(folder.name for folder in (SHIPPED_FOLDER / "tsbs_iot").iterdir() if folder.is_dir())


@pytest.mark.parametrize(
    ("database", "name"), [(database, name) for database in DATABASES for name in shipped_schemas("tsbs_iot", database)]
)
def test_every_schema_has_every_query(iot: Dataset, database: str, name: str) -> None:
    schema = load_schema(name, operations="tsbs_iot", database=database)
    assert tuple(OPERATIONS.operation) == (*QUERIES, *OTHERS)
    assert set(schema.file.operation) | set(schema.file.cannot) == {*QUERIES, *OTHERS}
    with iot.connect() as workbench:
        assert schema.driver_schema(OPERATIONS, list(schema.file.operation), schema.loaded_columns(workbench))


def test_embedded_databases_answer_as_the_dataset_says(cli: Cli, tmp_path: Path) -> None:
    targets = [(database, name) for database in ("duckdb", "sqlite") for name in ("wide", "narrow")]
    check_answers(cli, tmp_path, IOT_NAME, "tsbs_iot", targets)
