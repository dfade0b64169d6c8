"""The data and questions of TSM-Bench: rows have the features that their dataset names, and questions are answered alike whatever the table."""

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import correlation, fmean

import duckdb
import pytest

from sensorbench.dataset import Dataset, open_dataset
from sensorbench.dataset.export import export
from sensorbench.dataset.tsm import PRESETS, SENSORS, parse_parameters
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.runner import VariantSpec, Workload, databases, make_variants, parse_target
from sensorbench.runner.plan import parameters_of
from sensorbench.runner.workload import Schedule, Segment
from sensorbench.schemas import load_operations, load_schema, shipped_schemas
from sensorbench.schemas.shipped import SHIPPED_FOLDER
from sensorbench.studies import STUDIES, StudyOptions, plan_study
from tests.conftest import Cli, made_once
from tests.generated import written_alike
from tests.servers import LabServers
from tests.tsbs_answers import check_answers

# Windows of an hour lie within it, longer ones are all of it.
NAME, STATIONS, EPOCHS = "tsm-d-long:stations=10,duration=3h,interval=1m", 10, 180
# The same, and windows of a minute have six readings, as in TSM-Bench.
FINE = "tsm-d-long:stations=10,duration=70m,interval=10s"
START = datetime(2019, 3, 1)
OPERATIONS = load_operations("tsm")
QUERIES = tuple(f"q{number}" for number in range(1, 8))
# Each question with one of TSM-Bench's settings changed; two ask for one station always.
RANGES = ("-minute", "-hour", "-week", "-month")
CHANGED = (*RANGES, "-5-stations", "-10-stations", "-1-sensor", "-10-sensors", "-50-sensors", "-100-sensors")
SETTINGS = tuple(query + changed for query in QUERIES for changed in ("", *(CHANGED if query not in ("q6", "q7") else RANGES)))
# What needs rows that were written.
ONLINE = ("q1-newest", "q3-newest", "append_rows", "get_written_row")
Rows = list[tuple[object, ...]]


@pytest.fixture(scope="module")
def stations() -> Dataset:
    return open_dataset(NAME)


def test_each_station_has_a_row_each_interval_and_fewer_are_a_part_of_more(stations: Dataset) -> None:
    described = stations.describe()
    assert (described.name, described.interval_s, described.values_per_reading) == (NAME.replace("stations=10,", ""), 60.0, 100)
    assert (described.first_time, described.last_time) == (START, START + timedelta(minutes=179))
    with stations.connect() as whole, open_dataset("tsm-d-long:stations=4,duration=1h,interval=1m").connect() as few:
        expected = whole.sql("SELECT * FROM stations WHERE site < 4 AND time < TIMESTAMP '2019-03-01 01:00'").fetchall()
        assert (len(expected), few.sql("SELECT * FROM stations").fetchall()) == (4 * 60, expected)
        assert whole.sql("SELECT count(*) FROM (SELECT DISTINCT site, time FROM stations)").fetchall() == [(STATIONS * EPOCHS,)]
        narrow = whole.sql("SELECT site, zone, time, sensor, value FROM measurements WHERE site = 3").fetchall()
        wide = whole.sql(f"SELECT site, 0, time, {', '.join(SENSORS)} FROM stations WHERE site = 3").fetchall()
    assert len(narrow) == 100 * EPOCHS
    assert set(narrow) == {
        (*key, sensor, value)
        for *key, values in ((*row[:3], row[3:]) for row in wide)
        for sensor, value in zip(SENSORS, values, strict=True)
    }


def test_sensors_walk_between_0_and_1_and_a_few_percent_are_filtered(stations: Dataset) -> None:
    with stations.connect() as connection:
        low, high, step, above = connection.sql(
            "SELECT min(value), max(value), max(abs(value - before)), avg((value > 0.95)::INT) FROM (SELECT value, lag(value) OVER "
            "(PARTITION BY site, sensor ORDER BY time) AS before FROM measurements)"
        ).fetchall()[0]
        assert connection.sql("SELECT count(*) FROM measurements WHERE value <> trunc(value * 1000) / 1000").fetchall() == [(0,)]
    assert 0.0 <= low < 0.01 < 0.99 < high <= 1.0
    assert step < 0.06
    assert 0.02 < above < 0.09


def test_a_scale_is_the_beginning_and_any_number_of_threads_writes_the_same(tmp_path: Path) -> None:
    written = written_alike("tsm-d-multi:stations=60,duration=1h", tmp_path, 0.5)
    assert (written.relations["stations"].rows, written.last_time) == (60 * 180, datetime(2019, 2, 1, 0, 29, 50))


def test_the_presets_are_those_of_tsm_bench() -> None:
    shapes = {name: (preset.stations, preset.epochs, preset.stations * preset.epochs * 100) for name, preset in PRESETS.items()}
    assert shapes == {
        "tsm-d-long": (10, 518_400, 518_400_000),
        "tsm-d-long-small": (10, 5_184, 5_184_000),
        "tsm-d-multi": (2_000, 86_400, 17_280_000_000),
        "tsm-d-multi-small": (20, 86_400, 172_800_000),
        "tsm-features": (1, 10_000, 1_000_000),
    }
    given = parse_parameters("tsm-features:repeats=90,duration=1h")
    assert given.name == "tsm-features:duration=1h,repeats=90"
    assert parse_parameters("tsm-features:outliers=0").name == "tsm-features"


@pytest.mark.parametrize(
    ("dataset", "names"),
    [
        ("tsm-d-long:stations=0", "stations=0"),
        ("tsm-d-long:sensors=10", "sensors=10"),
        ("tsm-d-long:repeats=10", "repeats=10"),
        ("tsm-d-long:stations=1,stations=2", "stations is given twice"),
        ("tsm-d-long:duration=5s", "shorter than the interval"),
        ("tsm-features:repeats=101", "repeats=101"),
        ("tsm-features:repeats=10,delta=5", "feature is given twice"),
        ("tsm-features:delta=0", "delta=0"),
        ("tsm-features:scarcity=١", "scarcity="),
    ],
)
def test_parameters_that_make_no_sense_are_refused(dataset: str, names: str) -> None:
    with pytest.raises(UsageError, match=names):
        open_dataset(dataset)


def _of_feature(feature: str) -> list[list[float | None]]:
    """The values of each sensor of a grid of this many rows, in the order of time."""
    with open_dataset(f"tsm-features:{feature},duration=5h").connect() as connection:
        return [
            list(of)
            for of in zip(*connection.sql(f"SELECT {', '.join(SENSORS)} FROM stations ORDER BY time").fetchall(), strict=True)
        ]


def test_values_have_the_feature_that_their_dataset_names() -> None:
    def share(series: Iterator[bool]) -> float:
        found = list(series)
        return sum(found) / len(found)

    repeated = _of_feature("repeats=70")
    assert share(a == b for of in repeated for a, b in pairwise(of)) == pytest.approx(0.7, abs=0.01)
    scarce = _of_feature("scarcity=30")
    assert share(value is None for of in scarce for value in of) == pytest.approx(0.3, abs=0.01)
    assert all(0.0 <= value < 1.0 for of in scarce for value in of if value is not None)
    outliers = _of_feature("outliers=10")
    # 2.7% of the outliers lie where other values do.
    assert share(value is not None and not 0.0 <= value < 1.0 for of in outliers for value in of) == pytest.approx(
        0.0973, abs=0.005
    )
    steps = [abs(b - a) for of in _of_feature("delta=5") for a, b in pairwise(of) if a is not None and b is not None]
    assert max(steps) <= 5.0
    assert fmean(steps) == pytest.approx(2.5, abs=0.02)


def test_values_that_are_missing_are_no_fields_of_exported_points(tmp_path: Path) -> None:
    dataset = open_dataset("tsm-features:scarcity=99,duration=5m")
    (file,) = export(dataset, "influx", tmp_path / "out")
    lines = file.read_text(encoding="utf-8").splitlines()
    with dataset.connect() as connection:
        points, values = connection.sql("SELECT count(DISTINCT time), count(*) FROM measurements").fetchall()[0]
    assert (len(lines), sum(line.count("=") for line in lines)) == (points, values + points)
    assert 0 < points < 30
    assert all(line.startswith("stations,site=0 s") for line in lines)


def test_windows_lie_in_the_data_where_they_can_and_stations_differ() -> None:
    with open_dataset("tsm-d-long:duration=26h,interval=10m").connect() as connection:
        parameters = parameters_of(OPERATIONS, list(OPERATIONS.operation), connection, "test").tables
    first, end = START - timedelta(milliseconds=5), START + timedelta(hours=26)
    lengths = {"window_minute": timedelta(minutes=1), "window_hour": timedelta(hours=1), "window_day": timedelta(days=1)}
    for source, length in lengths.items():
        windows = parameters[source].to_pylist()
        assert len({row["from"] for row in windows}) == len(windows) == 500
        assert all(first <= row["from"] and row["to"] <= end and row["to"] - row["from"] == length for row in windows)
    # A week and a month are longer than the data: all windows have all of them.
    for source in ("window_week", "window_month"):
        assert {row["from"] for row in parameters[source].to_pylist()} == {first}
    five = [list(row.values()) for row in parameters["stations_5"].to_pylist()]
    assert all(len(set(sites)) == 5 for sites in five)
    assert [sites[0] for sites in five] == [row["site1"] for row in parameters["stations_1"].to_pylist()]
    assert all(set(row.values()) == set(range(10)) for row in parameters["stations_10"].to_pylist())


def _answer(connection: duckdb.DuckDBPyConnection, name: str, parameters: dict[str, object]) -> Rows:
    """The reference answer to a question."""
    reference = OPERATIONS.operation[name].reference or ""
    used = connection.extract_statements(reference)[0].named_parameters
    return connection.sql(reference, params={key: value for key, value in parameters.items() if key in used}).fetchall()


def test_references_are_what_plain_loops_find(stations: Dataset) -> None:
    """Of all seven questions, computed row by row."""
    with stations.connect() as connection:
        start, end = START + timedelta(minutes=10, seconds=17), START + timedelta(minutes=130, seconds=17)
        parameters: dict[str, object] = {"from": start, "to": end, "site1": 4}
        rows = [
            (time, site, *values)
            for time, site, *values in connection.sql(
                "SELECT time, site, s0, s1, s2 FROM stations WHERE site = 4 ORDER BY time"
            ).fetchall()
            if start < time < end
        ]
        found_above = 0
        assert len(rows) == 120
        assert set(_answer(connection, "q1", parameters)) == set(rows)
        # Of some station values are above the limit.
        for site in range(STATIONS):
            of_site = connection.sql(f"SELECT time, site, s0, s1, s2 FROM stations WHERE site = {site}").fetchall()
            above = {row for row in of_site if start < row[0] < end and row[2] > 0.95}
            assert set(_answer(connection, "q2", {**parameters, "site1": site})) == above
            found_above += len(above)
        assert found_above > 0
        means = [(4, *(pytest.approx(fmean(values)) for values in list(zip(*rows, strict=True))[2:]))]
        assert _answer(connection, "q3", parameters) == means
        by_hour = defaultdict(list)
        for time, _, *values in rows:
            by_hour[time.replace(minute=0)].append(values)
        assert {row[:2]: row[2:] for row in _answer(connection, "q4", parameters)} == {
            (4, hour): tuple(pytest.approx(fmean(of)) for of in zip(*found, strict=True)) for hour, found in by_hour.items()
        }
        finer = _answer(connection, "q5", parameters)
        assert len(finer) == 119 * 12 + 1
        for (before, after), step in zip(pairwise(rows), range(0, len(finer), 12), strict=False):
            for share in range(12):
                time, site, *values = finer[step + share]
                assert (time, site) == (before[0] + timedelta(seconds=5 * share), 4)
                assert values == pytest.approx([a + (b - a) * share / 12 for a, b in zip(before[2:], after[2:], strict=True)])
        assert sorted(_answer(connection, "q6", parameters)) == [
            (time, a, b, pytest.approx((a + b) / 2)) for time, _, a, b, _ in rows
        ]
        assert _answer(connection, "q7", parameters) == [
            (pytest.approx(correlation([row[2] for row in rows], [row[3] for row in rows])),)
        ]


DATABASES = sorted(folder.name for folder in (SHIPPED_FOLDER / "tsm").iterdir() if folder.is_dir())


@pytest.mark.parametrize(
    ("database", "name"), [(database, name) for database in DATABASES for name in shipped_schemas("tsm", database)]
)
def test_every_schema_has_every_question_or_says_why_not(stations: Dataset, database: str, name: str) -> None:
    schema = load_schema(name, operations="tsm", database=database)
    assert tuple(OPERATIONS.operation) == (*SETTINGS, *ONLINE)
    assert set(schema.file.operation) | set(schema.file.cannot) == {*SETTINGS, *ONLINE}
    with stations.connect() as workbench:
        assert schema.driver_schema(OPERATIONS, list(schema.file.operation), schema.loaded_columns(workbench))


@pytest.mark.parametrize(
    ("server", "schemas"),
    [
        ("postgresql", ("wide", "narrow")),
        ("questdb", ("wide",)),
        ("clickhouse", ("wide",)),
        ("influxdb", ("wide",)),
        ("iotdb", ("wide",)),
        ("cassandra", ("by_station",)),
        ("victoriametrics", ("by_station",)),
    ],
)
def test_servers_answer_as_the_dataset_says(
    cli: Cli, tmp_path: Path, lab_servers: LabServers, server: str, schemas: tuple[str, ...]
) -> None:
    lab_servers.start(server)
    files = {schema: load_schema(schema, operations="tsm", database=databases()[server].dialect).file for schema in schemas}
    cannot = {*ONLINE, *(name for file in files.values() for name in file.cannot)}
    targets = [(f"lab:{server}?namespace=sensorbench_tsm_{schema}", schema) for schema in schemas]
    check_answers(cli, tmp_path, FINE, "tsm", targets, cannot=cannot)


def test_an_embedded_database_answers_as_the_dataset_says(cli: Cli, tmp_path: Path) -> None:
    check_answers(cli, tmp_path, FINE, "tsm", [("duckdb", "wide"), ("duckdb", "narrow")], cannot=ONLINE)


@pytest.mark.parametrize(("batch", "operations", "least"), [(1, 400, 200), (10, 120, 60)])
def test_questions_are_asked_while_rows_are_written_and_all_are_there_at_the_end(
    cli: Cli, tmp_path: Path, batch: int, operations: int, least: int
) -> None:
    path = tmp_path / "online.toml"
    path.write_text(
        f'dataset = "{NAME}"\noperations = "tsm"\n[[target]]\nurl = "duckdb"\nschema = "wide"\nparameters = {{ batch = {batch} }}\n'
        '[workload]\nmix = { append_rows = 40, q1 = 1, q3 = 1, "q1-newest" = 1, "q3-newest" = 1 }\nschedule = { rate = 200 }\n'
        f"operations = {operations}\nrepetitions = 1\n",
        encoding="utf-8",
    )
    ended = cli("run", path, "--out", tmp_path / "out", "--no-open")
    assert ended.exit_code == 0, ended.err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["answers_equal"] is True
    (contents,) = summary["result"]["contents"].values()
    assert (contents["wrong"], contents["lost_writes"]) == (0, 0)
    assert contents["acknowledged_writes"] > least
    assert contents["read_back"] == contents["acknowledged_writes"]


def test_what_a_variant_cannot_answer_changes_no_rate_of_the_others() -> None:
    schema = load_schema("wide", operations="tsm", database="duckdb")
    (variant,) = make_variants([VariantSpec(parse_target("duckdb"), schema, operations=("append_rows", "q1"))], Path("nowhere"))
    workload = Workload(mix={"append_rows": 100, "q1": 1, "q5": 6}, schedule=Schedule(rate=107, concurrency=4), duration="1s")
    of_variant = variant.workload(workload)
    assert (of_variant.mix, of_variant.schedule.rate) == ({"append_rows": 100, "q1": 1}, pytest.approx(101))
    steps = Schedule(segments=[Segment(from_=10.7, to=107, length="1s")], concurrency=4)
    (segment,) = variant.workload(workload.model_copy(update={"schedule": steps})).schedule.segments
    assert (segment.from_, segment.to) == (pytest.approx(10.1), pytest.approx(101))


def test_rows_of_a_higher_rate_are_written_together(tmp_path: Path) -> None:
    """Ten writes a second at every rate; `--sweep` compares other numbers of rows, whatever the part says."""
    names = ("online_10000", "online_100000", "asked_14")
    for swept, expected in (({}, [[10], [100], [10]]), ({"batch": ["1", "50"]}, [[1, 50]] * 3)):
        options = StudyOptions(targets=("duckdb",), parts=names, scale=0.001, sweeps=swept)
        parts = plan_study(STUDIES["tsm"], options, tmp_path, ProgressReporter(quiet=True))
        found = {part.name: [variant.schema.parameters["batch"] for variant in part.comparison.variants] for part in parts}
        assert found == dict(zip(names, expected, strict=True))
        assert {part.comparison.workload.mix["append_rows"] for part in parts} == {10}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a few parts of the study on DuckDB, on an hour and a half of the data and a thousand rows of the grid."""
    few = ("online_10000", "asked_14", "base", "repeats_90", "scarcity_90")
    small = ("--scale", "0.001", "--repetitions", "1", "--duration", "1s", "--warmup", "0", "--no-open")
    parts = [word for part in few for word in ("--part", part)]
    return made_once(tmp_path_factory, "tsm", "study", "run", "tsm", "--target", "duckdb", *parts, *small)


def test_the_study_draws_latency_over_ingestion_its_mirror_and_storage(study: Path) -> None:
    summary = json.loads((study / "summary.json").read_text(encoding="utf-8"))
    sections = {section["title"]: section for section in summary["result"]["sections"]}
    assert list(sections) == [
        "Query latency over the rate of ingestion",
        "Writing over the rate of queries",
        "Bytes per value by features of values",
    ]
    online, mirror, storage = sections.values()
    assert summary["answers_equal"] is True
    ((variant, wanted, reached, share, *latencies),) = online["rows"]
    assert (variant, wanted) == ("duckdb-wide", 10_000.0)
    assert reached == pytest.approx(share * wanted)
    # How much of it was reached depends on the machine; more than was offered is not written, but for rounding of a short run.
    assert 0.0 < share < 1.5
    assert all(latency > 0.0 for latency in latencies if latency is not None)
    assert next(curves["title"] for curves in online["curves"]) == "q1 while rows are written"
    assert [row[1] for row in mirror["rows"]] == pytest.approx([7.0, 14.0])
    (curve,) = mirror["curves"]
    assert [point["order"] for point in curve["points"]] == pytest.approx([7.0, 14.0])
    encodings = {f"{encoding}, batches of 600" for encoding in ("text", "packed", "gorilla")}
    taken = {(row[1], row[2]): row[3:] for row in storage["rows"] if row[0] not in encodings}
    encoded = {(row[0], row[1]): row[3] for row in storage["rows"] if row[0] in encodings}
    # Values that repeat are those that gorilla is made for; a text has as many characters of each.
    assert {name for name, _ in encoded} == encodings
    assert encoded["gorilla, batches of 600", "repeated values, %"] < 0.5 * encoded["gorilla, batches of 600", "none"]
    assert encoded["text, batches of 600", "none"] > encoded["packed, batches of 600", "none"] > 8.0
    assert set(taken) == {("none", None), ("repeated values, %", 90.0), ("missing values, %", 90.0)}
    plain, repeated = taken["none", None][0], taken["repeated values, %", 90.0]
    assert repeated[1] == pytest.approx(repeated[0] / plain)
    judged = {claim["id"]: claim["verdict"] for claim in summary["claims"]}
    assert set(judged.values()) == {"not tested"}
    assert len(judged) == 18
    assert "Bytes per value by repeats" in (study / "report.html").read_text(encoding="utf-8")
