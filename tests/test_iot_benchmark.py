"""The data and questions of iot-benchmark: values repeat as its do, and questions are answered alike whatever the table."""

import json
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from sensorbench.dataset import Dataset, open_dataset
from sensorbench.dataset.iot_benchmark import IotParameters, parse_parameters
from sensorbench.errors import UsageError
from sensorbench.runner import databases
from sensorbench.schemas import load_operations, load_schema, shipped_schemas
from sensorbench.schemas.shipped import SHIPPED_FOLDER
from tests.conftest import Cli
from tests.generated import written_alike
from tests.servers import LabServers
from tests.streams import check_rules
from tests.tsbs_answers import check_answers

NAME, DEVICES, SENSORS, STEPS = "iot-benchmark:groups=2,devices=4,sensors=10,steps=300", 4, 10, 300
# The time before the first reading.
START = datetime(2021, 12, 31, 16)
OPERATIONS = load_operations("iot_benchmark")
QUERIES = tuple(f"q{number}" for number in range(1, 13))
WRITTEN = ("write_batch", "get_written_reading")
BATCH = 10
# Few series, so that a batch that comes some twenty batches late is behind others of its series.
FEW_SERIES = "iot-benchmark:devices=2,sensors=5,steps=200"
Rows = list[tuple[object, ...]]


@pytest.fixture(scope="module")
def devices() -> Dataset:
    return open_dataset(NAME)


def test_each_device_takes_the_values_of_its_sensors_in_steps_of_its_own(devices: Dataset) -> None:
    described = devices.describe()
    assert (described.name, described.interval_s, described.readings) == (NAME, 5.0, DEVICES * SENSORS * STEPS)
    assert (described.first_time, described.last_time) == (START + timedelta(seconds=5), START + timedelta(seconds=5 * STEPS))
    with devices.connect() as connection:
        assert connection.sql("SELECT DISTINCT site, zone FROM measurements ORDER BY zone").fetchall() == [
            (0, 0), (1, 1), (0, 2), (1, 3),
        ]  # fmt: skip
        values: dict[tuple[int, str], list[float]] = {}
        for zone, sensor, value in connection.sql(
            "SELECT zone, sensor, value FROM measurements ORDER BY zone, sensor, time"
        ).fetchall():
            values.setdefault((zone, sensor), []).append(value)
    for sensor in {sensor for _, sensor in values}:
        prepared = values[0, sensor][:100]
        for device in range(DEVICES):
            assert values[device, sensor] == [prepared[step * (device + 1) % 100] for step in range(STEPS)]
    assert len(set(values[0, "s_4"])) == 1
    assert len(set(values[0, "s_2"])) == 2
    assert values[0, "s_0"][:100] == sorted(values[0, "s_0"][:100])


def test_any_number_of_threads_writes_the_same_and_a_scale_is_the_beginning(tmp_path: Path) -> None:
    written = written_alike("iot-benchmark:devices=10,sensors=30,steps=1000", tmp_path, 0.8)
    assert written.readings == 10 * 30 * 800


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ("devices=0", "devices=0"),
        ("types=TEXT", "types=TEXT"),
        ("devices=1,devices=2", "given twice"),
        ("steps=1.5", "steps=1.5"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters: str, names: str) -> None:
    with pytest.raises(UsageError, match=names):
        open_dataset(f"iot-benchmark:{parameters}")
    assert parse_parameters("iot-benchmark:sensors=200,devices=1").name == "iot-benchmark:devices=1"
    assert parse_parameters("iot-benchmark") == IotParameters()


def _answer(connection: duckdb.DuckDBPyConnection, name: str, parameters: dict[str, object]) -> Rows:
    """The reference answer to a question."""
    reference = OPERATIONS.operation[name].reference or ""
    used = connection.extract_statements(reference)[0].named_parameters
    return connection.sql(reference, params={key: value for key, value in parameters.items() if key in used}).fetchall()


def test_references_are_what_plain_loops_find(devices: Dataset) -> None:
    start, end = START + timedelta(seconds=35), START + timedelta(seconds=285)
    parameters: dict[str, object] = {"from": start, "to": end, "zone": 1, "zone2": 2, "low": -5.0}
    with devices.connect() as connection:
        below = 0
        for number in range(SENSORS):
            sensor = f"s_{number}"
            of_devices: dict[int, list[tuple[datetime, float]]] = {
                zone: connection.sql(
                    f"SELECT time, value FROM measurements WHERE zone = {zone} AND sensor = '{sensor}' ORDER BY time"
                ).fetchall()
                for zone in (1, 2)
            }
            answers = {name: _answer(connection, name, {**parameters, "sensor": sensor}) for name in QUERIES}
            whole = of_devices[1]
            window = [row for row in whole if start <= row[0] <= end]
            above = [row for row in window if row[1] > -5.0]
            below += len(window) - len(above)
            buckets = Counter(
                start + (time - start) // timedelta(seconds=20) * timedelta(seconds=20) for time, _ in window if time < end
            )
            other = [row for row in of_devices[2] if start <= row[0] <= end]
            assert len(window) == 51
            assert answers["q1"] == window[:1]
            assert (sorted(answers["q2"]), sorted(answers["q3"])) == (window, above)
            assert [answers[name] for name in ("q4", "q5", "q6")] == [
                [(51,)], [(sum(value > -5.0 for _, value in whole),)], [(len(above),)],
            ]  # fmt: skip
            assert answers["q7"] == sorted(buckets.items())
            assert answers["q8"] == [(1, sensor, *whole[-1])]
            assert (answers["q9"], answers["q10"]) == (window[::-1], above[::-1])
            assert answers["q11"] == sorted(buckets.items(), reverse=True)
            assert (set(answers["q12"]), len(answers["q12"])) == ({*window, *other}, len({*window, *other}))
        assert below > 0


DATABASES = sorted(folder.name for folder in (SHIPPED_FOLDER / "iot_benchmark").iterdir() if folder.is_dir())


@pytest.mark.parametrize(
    ("database", "name"), [(database, name) for database in DATABASES for name in shipped_schemas("iot_benchmark", database)]
)
def test_every_schema_has_every_question_or_says_why_not(devices: Dataset, database: str, name: str) -> None:
    schema = load_schema(name, operations="iot_benchmark", database=database)
    assert tuple(OPERATIONS.operation) == (*QUERIES, *WRITTEN)
    assert set(schema.file.operation) | set(schema.file.cannot) == {*QUERIES, *WRITTEN}
    with devices.connect() as workbench:
        assert schema.driver_schema(OPERATIONS, list(schema.file.operation), schema.loaded_columns(workbench))


@pytest.mark.parametrize("server", ["postgresql", "questdb", "clickhouse", "influxdb", "iotdb", "cassandra", "victoriametrics"])
def test_servers_answer_as_the_dataset_says(cli: Cli, tmp_path: Path, lab_servers: LabServers, server: str) -> None:
    lab_servers.start(server)
    dialect = databases()[server].dialect
    (schema,) = shipped_schemas("iot_benchmark", dialect)
    cannot = {*WRITTEN, *load_schema(schema, operations="iot_benchmark", database=dialect).file.cannot}
    targets = [(f"lab:{server}?namespace=sensorbench_iotb", schema)]
    check_answers(cli, tmp_path, NAME, "iot_benchmark", targets, cannot=cannot)
    if "get_written_reading" in load_schema(schema, operations="iot_benchmark", database=dialect).file.operation:
        (tmp_path / "late").mkdir()
        check_late_batches(cli, tmp_path / "late", targets)


def check_late_batches(cli: Cli, folder: Path, targets: list[tuple[str, str]]) -> None:
    """Batches come late and again, as iot-benchmark's disorder has them; each of their readings is accounted for."""
    accounts = check_rules(
        cli, folder, targets, "iot_benchmark", write="write_batch", readings=BATCH, dataset=FEW_SERIES, scale=1.0
    )
    for of_write in accounts.values():
        assert of_write["lateness"]["out_of_order"] > 0.1


def test_late_batches_are_accounted_for(cli: Cli, tmp_path: Path) -> None:
    check_late_batches(cli, tmp_path, [("duckdb", "by_time")])


def test_what_was_written_is_read_back(cli: Cli, tmp_path: Path) -> None:
    """The verification of iot-benchmark: batches are written while questions are asked, and each is looked for."""
    path = tmp_path / "mixed.toml"
    mix = ", ".join(f"{name} = 1" for name in QUERIES)
    path.write_text(
        f'dataset = "{NAME}"\noperations = "iot_benchmark"\n[[target]]\nurl = "duckdb"\nschema = "by_time"\nparameters = {{ batch = 10 }}\n'
        f"[workload]\nmix = {{ write_batch = 12, {mix} }}\noperations = 240\nrepetitions = 1\n",
        encoding="utf-8",
    )
    ended = cli("run", path, "--out", tmp_path / "out", "--no-open")
    assert ended.exit_code == 0, ended.err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["answers_equal"] is True
    (contents,) = summary["result"]["contents"].values()
    assert (contents["wrong"], contents["lost_writes"]) == (0, 0)
    assert contents["read_back"] == contents["acknowledged_writes"] > 50
