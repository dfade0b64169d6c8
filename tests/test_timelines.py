"""The schemas of timelines: each can be used, says what is wrong with it, and answers ranges like DuckDB, wherever they begin and end."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sensorbench import _engine, lab
from sensorbench.analysis.equality import Answer, difference
from sensorbench.dataset import Dataset, open_dataset
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.results.ownership import Claim
from sensorbench.runner.load import load_variant
from sensorbench.runner.plan import parameters_of
from sensorbench.runner.prepare import prepare_tables
from sensorbench.runner.validate import sampling_interval_of
from sensorbench.runner.variants import Variant, parse_target
from sensorbench.schemas import Schema, load_operations, load_schema, shipped_schemas
from sensorbench.schemas.arrow_types import ARROW_TYPES
from sensorbench.schemas.operations import operations_file
from sensorbench.schemas.shipped import SHIPPED_FOLDER
from sensorbench.schemas.time_buckets import SamplingInterval
from sensorbench.verification import contents as contents_checks
from sensorbench.verification.answers import answers_by_operation, reference_answer
from sensorbench.verification.ask_each import ask_each
from sensorbench.verification.contents import WrittenRows, check_contents
from tests.conftest import TEST_OWNER, Cli, server_url

DATABASES = sorted(folder.name for folder in (SHIPPED_FOLDER / "timelines").iterdir() if folder.is_dir())
OPERATIONS = load_operations("timelines")

# 4,800 readings of each of 6 sensors, one a second.
SCALE, READINGS = 0.004, 4800
FIRST = datetime(2014, 1, 1)
# At this scale rows of 10k are 600 readings, rows of 5MB 1,200 or more. Those of 4,200 have a border after 2,400 readings.
ROW = 600

# What is loaded into a server of the lab stays there: other tests have the namespace that is usual.
OWN = "sensorbench_timelines"
QUIET = ProgressReporter(quiet=True)


@dataclass(frozen=True)
class Layout:
    """A schema with parameters chosen; the others have their defaults."""

    database: str
    schema: str
    parameters: tuple[tuple[str, str | int], ...] = ()

    def __str__(self) -> str:
        chosen = [f"{name}={value}" for name, value in self.parameters]
        return "-".join([self.database.replace("+", "_"), self.schema, *chosen])

    def on(self, dataset: Dataset) -> Schema:
        dialect = self.database.partition("+")[0]
        schema = load_schema(self.schema, operations="timelines", database=dialect, parameters=dict(self.parameters))
        with dataset.connect() as workbench:
            return schema.on(sampling_interval_of(workbench, dataset.scale))


def layout(database: str, schema: str, **parameters: str | int) -> Layout:
    return Layout(database, schema, tuple(parameters.items()))


@pytest.fixture(scope="module")
def timelines() -> Dataset:
    return open_dataset("sensor-timelines", scale=SCALE)


def every_value(database: str, name: str) -> list[dict[str, Any]]:
    """The defaults, and each other value of each parameter with the defaults of the others."""
    declared = load_schema(name, operations="timelines", database=database).file.parameters
    others = [{key: value} for key, choice in declared.items() for value in choice.values if value != choice.default]
    return [{}, *others]


@pytest.mark.parametrize(
    ("database", "name"), [(database, name) for database in DATABASES for name in shipped_schemas("timelines", database)]
)
def test_every_schema_can_be_used(timelines: Dataset, database: str, name: str) -> None:
    workbench = timelines.connect()
    for parameters in every_value(database, name):
        schema = layout(database, name, **parameters).on(timelines)
        # What is missing says why.
        assert (schema.name, set(schema.file.operation) | set(schema.file.cannot)) == (name, set(OPERATIONS.operation))
        assert schema.driver_schema(OPERATIONS, list(schema.file.operation), schema.loaded_columns(workbench)), parameters


# The words that timelines brought, each of them once.
SCHEMA = """\
database = "cassandra"
summary = "Rows that are looked up in a table of their own, or computed."
bytes_a_reading = 21.0
[parameters]
metadata = { values = ["own_table", "computed"], default = "own_table" }
width = { values = ["10k", "5MB"], default = "5MB" }
batch = { values = [50, 150], default = 150 }
encoding = { values = ["text", "packed"], default = "packed" }
tables = { values = [1, 6], default = 6 }
[tables]
count = "${tables}"
by = "zone"
[create]
statements = [
    "CREATE TABLE batches_{table} (zone int, sensor text, row bigint, start bigint, bytes blob, PRIMARY KEY ((zone, sensor, row), start))",
    { statement = "CREATE TABLE rows (zone int, sensor text, row bigint, PRIMARY KEY (zone, sensor, row))", when = { metadata = ["own_table"] } },
]
[load_query."batches_{table}"]
query = "SELECT zone, sensor, time, value FROM measurements"
derive = { row = { floor = "time", every = "rows of ${width}" } }
order = ["zone", "sensor", "row", "time"]
encode = { encoding = "${encoding}", group = ["zone", "sensor", "row"], every = "batches of ${batch}", start_column = "start", bytes_column = "bytes" }
[load_query.rows]
when = { metadata = ["own_table"] }
query = "SELECT zone, sensor, time FROM measurements"
derive = { row = { floor = "time", every = "rows of ${width}" } }
distinct = ["zone", "sensor", "row"]
order = ["zone", "sensor", "row"]
[[operation.get_range]]
when = { metadata = ["own_table"] }
derive = { first = { floor = ":from", every = "batches of ${batch}" } }
statement = "SELECT bytes FROM batches_{table} WHERE zone = :zone AND sensor = :sensor AND row = :row AND start >= :first AND start < :to"
returns = [{ name = "bytes", type = "bytes" }]
decode = { column = "bytes", encoding = "${encoding}", from = ":from", to = ":to" }
[operation.get_range.for_each]
name = "row"
from = ":from"
to = ":to"
every = "rows of ${width}"
[operation.get_range.for_each.list]
statement = "SELECT sensor, row FROM rows WHERE zone = :zone"
returns = [{ name = "sensor", type = "text" }, { name = "row", type = "timestamp" }]
start = "row"
own = { sensor = ":sensor" }
[[operation.get_range]]
when = { metadata = ["computed"] }
derive = { first = { floor = ":from", every = "batches of ${batch}" } }
statement = "SELECT bytes FROM batches_{table} WHERE zone = :zone AND sensor = :sensor AND row = :row AND start >= :first AND start < :to"
returns = [{ name = "bytes", type = "bytes" }]
decode = { column = "bytes", encoding = "${encoding}", from = ":from", to = ":to" }
for_each = { name = "row", from = ":from", to = ":to", every = "rows of ${width}" }
[operation.get_written_reading]
like = "get_range"
[operation.append_readings]
readings = "${batch}"
derive = { row = { floor = ":time", every = "rows of ${width}" }, start = { floor = ":time", every = "batches of ${batch}" } }
encode = { name = "bytes", encoding = "${encoding}" }
statement = "INSERT INTO batches_{table} (zone, sensor, row, start, bytes) VALUES (:zone, :sensor, :row, :start, :bytes)"
also = [{ statement = "INSERT INTO rows (zone, sensor, row) VALUES (:zone, :sensor, :row)", once = [":zone", ":sensor", ":row"] }]
"""


def used(text: str, dataset: Dataset, folder: Path) -> dict[str, Any]:
    """The schema that a file with this text says, as the engine takes it."""
    (folder / "schema.toml").write_text(text, encoding="utf-8")
    schema = load_schema(str(folder / "schema.toml"), operations="timelines", database="cassandra")
    with dataset.connect() as workbench:
        schema = schema.on(sampling_interval_of(workbench, dataset.scale))
        return schema.driver_schema(OPERATIONS, list(schema.file.operation), schema.loaded_columns(workbench))


def test_the_words_of_timelines(timelines: Dataset, tmp_path: Path) -> None:
    whole = used(SCHEMA, timelines, tmp_path)
    assert list(whole["tables"]) == [*(f"batches_{number}" for number in range(6)), "rows"]


EVERY = "expected a length of time such as '15 minutes', '1 day' or '1 month'"
LIKE = "an operation with the statements of another says nothing else, and the other has statements of its own"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('["10k", "5MB"], default = "5MB"', '["10q"], default = "10q"', f"line 20, load_query.batches_{{table}}.derive.row.every: {EVERY}"),
        ('every = "batches of ${batch}" } }\nencode', 'every = "batches of 0" } }\nencode', f"line 56, operation.append_readings.derive.start.every: {EVERY}"),
        ('row = { floor = ":time", every = "rows of ${width}" }', 'row = { floor = ":time", every = "rows of 0MB" }', f"line 56, operation.append_readings.derive.row.every: {EVERY}"),
        ("bytes_a_reading = 21.0\n", "", "line 19, load_query.batches_{table}.derive.row.every: 'rows of 5MB' needs bytes_a_reading at the top of the schema"),
        ('["text", "packed"], default = "packed"', '["zip"], default = "zip"', "line 22, load_query.batches_{table}.encode.encoding: 'zip': expected one of text, packed, gorilla"),
        ('encode = { encoding = "${encoding}"', 'encode = { encoding = "zip"', "line 22, load_query.batches_{table}.encode.encoding: expected one of text, packed, gorilla (it is 'zip')"),
        ('decode = { column = "bytes", encoding = "${encoding}"', 'decode = { column = "bytes", encoding = "${encodin}"', "line 34, operation.get_range[0].decode.encoding: ${encodin} is not a parameter of the schema; expected one of: metadata, width, batch, encoding, tables"),
        ('when = { metadata = ["computed"] }', 'when = { metadata = ["compute"] }', "line 46, operation.get_range[1].when: parameter metadata is never 'compute'; expected some of ['own_table', 'computed']"),
        ('when = { metadata = ["computed"] }', 'when = { metadat = ["computed"] }', "line 46, operation.get_range[1].when: ${metadat} is not a parameter of the schema"),
        ('[load_query.rows]\nwhen = { metadata = ["own_table"] }', '[load_query.rows]\nwhen = { metadata = ["none"] }', "line 24, load_query.rows.when: parameter metadata is never 'none'"),
        (')", when = { metadata = ["own_table"] }', ')", when = { metadata = ["none"] }', "line 16, create.statements[1]: parameter metadata is never 'none'"),
        ('when = { metadata = ["computed"] }', 'when = { metadata = ["own_table", "computed"] }', "line 45, operation.get_range[1]: both this and operation.get_range[0] are for {'metadata': 'own_table', "),
        ('when = { metadata = ["own_table"] }\nderive = { first', 'when = { metadata = ["computed"], width = ["10k"] }\nderive = { first', "line 29, operation.get_range: none of its parts is for {'metadata': 'own_table', "),
        ('like = "get_range"', 'like = "get_range"\nreturns = []', f"line 52, operation.get_written_reading: {LIKE}"),
        ('like = "get_range"', 'like = "get_range"\nstatement = "SELECT 1"', f"line 52, operation.get_written_reading: {LIKE}"),
        ('like = "get_range"', 'like = "get_written_reading"', f"line 52, operation.get_written_reading: {LIKE}"),
        ('like = "get_range"', 'like = "get_ranges"', "line 53, operation.get_written_reading.like: there is no operation 'get_ranges'; expected one of get_range, "),
        ('readings = "${batch}"', 'readings = "${metadata}"', "line 55, operation.append_readings.readings: 'own_table': expected a whole number above zero"),
        ('readings = "${batch}"', "readings = 0", "line 55, operation.append_readings.readings: 0: expected a whole number above zero"),
        ('own = { sensor = ":sensor" }', 'own = { senso = ":sensor" }', "line 44, operation.get_range[0].for_each.list.own: there is no column 'senso'; expected one of sensor, row"),
        ('own = { sensor = ":sensor" }', 'own = { sensor = ":senso" }', "line 44, operation.get_range[0].for_each.list.own.sensor: ':senso': expected one of :site, :zone, :sensor, :from, :to"),
        ('own = { sensor = ":sensor" }', 'own = { sensor = ":zone" }', "line 35, operation.get_range[0].for_each: what is listed must have the start of a stretch, a timestamp, and the columns that distinguish its own rows"),
        ('start = "row"\n', 'start = "rows"\n', "line 43, operation.get_range[0].for_each.list.start: there is no column 'rows'; expected one of sensor, row"),
        ('start = "row"\n', 'start = "sensor"\n', "line 35, operation.get_range[0].for_each: what is listed must have the start of a stretch, a timestamp"),
        ('once = [":zone", ":sensor", ":row"]', 'once = [":zone", ":rows"]', "line 59, operation.append_readings.also.once: there is no parameter :rows, neither of the operation nor derived"),
        ('count = "${tables}"', 'count = "many"', "line 11, tables.count: 'many': expected a whole number above zero"),
        ('by = "zone"', 'by = "place"', 'line 19, load_query.batches_{table}.query: Binder Error: Referenced column "place" not found'),
        ('encode = { name = "bytes"', 'encode = { name = "bytes", time = ":zone"', "line 57, operation.append_readings.encode: the time of a reading must be a timestamp, its value a double"),
        ('encode = { name = "bytes"', 'encode = { name = "zone"', "line 57, operation.append_readings.encode: there is a parameter :zone already; choose another name"),
        ('distinct = ["zone", "sensor", "row"]', 'distinct = ["zone", "place"]', 'line 25, load_query.rows.query: Binder Error: Referenced column "place" not found'),
        ('order = ["zone", "sensor", "row"]\n', 'order = ["time"]\n', "line 28, load_query.rows.order: the query has no column 'time'; expected some of zone, sensor, row"),
        ("[load_query.rows]\n", '[load_query.rows]\ntable = "batches_{table}"\n', "line 23, load_query.rows: it gives {'zone': 'integer', 'sensor': 'text', 'row': 'timestamp'}, but another load query gives the table batches_0 "),
        ("[load_query.rows]\n", '[load_query.rows]\ntable = "a row"\n', "line 23, load_query.rows: 'a row': the name of a table must be a word"),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_used(timelines: Dataset, tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in SCHEMA
    with pytest.raises(UsageError) as raised:
        used(SCHEMA.replace(old, new), timelines, tmp_path)
    assert f"{tmp_path / 'schema.toml'}, {expected}" in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('choice = "sequential"', 'choice = "uniform"', '{file}: parameter source new_times counts per series, which must be a parameter source with choice = "sequential"'),
        ('per = "series"', 'per = "sensors"', '{file}: parameter source new_times counts per sensors, which must be a parameter source with choice = "sequential"'),
        ('[parameter_source.values]\n', '[parameter_source.values]\nper = "series"\n', "{file}, line {values}, parameter_source.values: per is only for numbers"),
        ('each = ["new_times", "values"]', 'each = ["new_times", "ranges"]', "{file}, line {append}, operation.append_readings: each names 'ranges', which is none of the operation's parameter sources"),
        ('time = "time"\n', 'time = "value"\n', "operations {file}, parameter_source.live: span.time is 'value'; expected one of time"),
        ('min = "SELECT 1", max', 'min = "SELECT 2", max', "operations {file}, parameter_source.written: span: expected an interval and two numbers, all above zero and min not above max; found (1, 2, 1)"),
        ('"SELECT to_microseconds(1)"', '"SELECT to_microseconds(0)"', "operations {file}, parameter_source.written: span: expected an interval and two numbers, all above zero"),
    ],
)  # fmt: skip
def test_operations_that_cannot_be_used(timelines: Dataset, tmp_path: Path, old: str, new: str, expected: str) -> None:
    text = operations_file("timelines").read_text(encoding="utf-8")
    assert old in text
    file = tmp_path / "operations.toml"
    file.write_text(text.replace(old, new), encoding="utf-8")
    lines = file.read_text(encoding="utf-8").splitlines()
    of = {"values": lines.index("[parameter_source.values]") + 1, "append": lines.index("[operation.append_readings]") + 1}
    with pytest.raises(UsageError) as raised, timelines.connect() as workbench:
        parameters_of(load_operations(str(file)), ["get_new_range", "get_written_reading"], workbench, f"operations {file}")
    assert expected.format(file=file, **of) in str(raised.value)


def test_readings_of_one_operation_need_rows_of_their_own(timelines: Dataset) -> None:
    append = OPERATIONS.operation["append_readings"].model_copy(update={"each": []})
    for parameters in ({"batch": 50}, {}):
        schema = layout("fjall", "typed", **parameters).on(timelines)
        if parameters:
            with pytest.raises(UsageError, match=r"operation\.append_readings\.readings: .* all readings would be the same"):
                schema.work("append_readings", append)
        else:
            assert schema.work("append_readings", append)["readings"] == 1


@pytest.mark.parametrize(
    ("layout", "scale", "readings_a_row"),
    [
        (layout("cassandra", "typed", width="10k"), 1.0, 10_200),
        (layout("cassandra", "typed", width="100k"), 1.0, 100_200),
        (layout("cassandra", "typed", width="100k"), 0.1, 10_200),
        (layout("cassandra", "typed", width="100k"), 0.004, 600),
        (layout("cassandra", "typed", width="5MB"), 1.0, 199_800),
        (layout("cassandra", "batched", width="5MB", encoding="text"), 0.004, 3000),
        (layout("redis", "typed", width="10MB"), 1.0, 83_400),
        (layout("redis", "batched", width="10MB", encoding="packed"), 0.01, 9000),
    ],
    ids=str,
)
def test_rows_shrink_with_the_dataset(timelines: Dataset, layout: Layout, scale: float, readings_a_row: int) -> None:
    step_us = 1_000_000
    schema = layout.on(timelines).on(SamplingInterval(step_us, scale))
    assert schema.bucket_of("rows of ${width}", "fill") == {"microseconds": readings_a_row * step_us}


@contextmanager
def loaded(layout: Layout, dataset: Dataset, folder: Path) -> Iterator[tuple[Schema, _engine.Target]]:
    """A dataset in a layout, in a namespace of its own, which is gone at the end."""
    schema = layout.on(dataset)
    variant = place_of(layout, schema, folder)
    target = variant.engine_target()
    with dataset.connect() as workbench:
        columns = schema.loaded_columns(workbench)
        tables = prepare_tables(dataset, schema, columns, workbench, QUIET)
    whole = schema.driver_schema(OPERATIONS, list(schema.file.operation), columns)
    load_variant(
        variant, target, whole, tables, dataset.describe().readings, "", claim=Claim(TEST_OWNER, "replace"), reporter=QUIET
    )
    try:
        yield schema, target
    finally:
        target.remove(owner=TEST_OWNER.to_json())


def place_of(place: Layout, schema: Schema, folder: Path) -> Variant:
    url = server_url(place.database, OWN) if place.database in lab.LAB_DATABASES else f"{place.database}:{folder / 'data'}"
    return Variant(str(place), parse_target(url), schema, url, None)


def questions() -> dict[str, tuple[float, float]]:
    """Ranges by what is special about them: from (included) to (excluded), in seconds after the first reading."""
    return {
        "in a batch": (ROW + 153, ROW + 170),
        "over batches": (ROW + 10, ROW + 487),
        "over a border of rows": (ROW - 5, ROW + 5),
        "over rows": (ROW - 37, 4 * ROW + 11),
        "a row": (ROW, 2 * ROW),
        "one more on both sides": (ROW - 1, 2 * ROW + 1),
        "one less on both sides": (ROW + 1, 2 * ROW - 1),
        "a batch": (150, 300),
        "up to a row": (2 * ROW - 250, 2 * ROW),
        "from a row on": (4 * ROW, 4 * ROW + 700),
        "one reading": (77, 78),
        "first of a row": (2 * ROW, 2 * ROW + 1),
        "last of a row": (2 * ROW - 1, 2 * ROW),
        "first reading": (0, 1),
        "last reading": (READINGS - 1, READINGS),
        "between readings": (10.2, 10.7),
        "from between readings": (10.2, 12.000001),
        "empty": (100, 100),
        "backwards": (2 * ROW + 300, 100),
        "from before the first": (-1000, 50),
        "up to the first": (-50, 0),
        "until after the last": (READINGS - 20, READINGS + 5000),
        "from the end on": (READINGS, READINGS + 100),
        "before all": (-5000, -4000),
        "after all": (READINGS + 3000, READINGS + 4000),
        "all": (0, READINGS),
        "more than all": (-10_000, READINGS + 10_000),
    }


def readings_in(since: float, until: float) -> int:
    """How many readings a range has, of a sensor with one each second."""
    return max(0, min(READINGS, math.ceil(until)) - max(0, math.ceil(since)))


# The last one is there in no zone.
SENSORS = [(0, "sensor_000"), (5, "sensor_005"), (1, "sensor_000")]


@dataclass(frozen=True)
class Questions:
    """Questions with their names, their parameters, and the answers of DuckDB."""

    names: list[str]
    parameters: pa.Table
    expected: list[Answer]

    @classmethod
    def of(cls, dataset: Dataset, sensors: list[tuple[int, str]], ranges: dict[str, tuple[float, float]]) -> "Questions":
        """Each range of each sensor."""
        rows = [
            (0, zone, sensor, *(FIRST + timedelta(seconds=seconds) for seconds in range_))
            for zone, sensor in sensors
            for range_ in ranges.values()
        ]
        operation = OPERATIONS.operation["get_range"]
        types = [ARROW_TYPES[value_type] for value_type in operation.parameters.values()]
        columns = [pa.array(column, type_) for column, type_ in zip(zip(*rows, strict=True), types, strict=True)]
        parameters = pa.table(dict(zip(operation.parameters, columns, strict=True)))
        with dataset.connect() as workbench:
            expected = [reference_answer(workbench, "get_range", operation, row) for row in parameters.to_pylist()]
        return cls([f"{name}, {sensor} in {zone}" for zone, sensor in sensors for name in ranges], parameters, expected)

    def problems(self, target: _engine.Target, schema: Schema) -> dict[str, str]:
        """What is wrong with the answers of a target, by question."""
        operation = OPERATIONS.operation["get_range"]
        answers = ask_each(target, "get_range", operation, schema, self.parameters, concurrency=4).answers
        by_operation = answers_by_operation(answers)
        found = {}
        for k, (name, answer) in enumerate(zip(self.names, self.expected, strict=True)):
            given = by_operation[0].find(k) if 0 in by_operation else None
            found[name] = "no answer came" if given is None else difference(given, answer)
        return {name: problem for name, problem in found.items() if problem}


@pytest.fixture(scope="module")
def asked_questions(timelines: Dataset) -> Questions:
    """All questions; the reference itself is known to have as many rows as it should."""
    asked_questions = Questions.of(timelines, SENSORS, questions())
    of_each = [readings_in(*range_) for range_ in questions().values()]
    assert [answer.rows for answer in asked_questions.expected] == [*of_each, *of_each, *([0] * len(of_each))]
    return asked_questions


BATCHES, ENCODINGS = (50, 100, 150, 200, 300), ("text", "packed", "gorilla")
ROWS_OF_CASSANDRA = ("none", "same_table", "own_table", "index", "sai", "computed")

EMBEDDED = [
    layout("fjall", "typed"),
    *(layout("fjall", "batched", batch=batch, encoding=encoding) for batch in BATCHES for encoding in ENCODINGS),
    *(layout("duckdb", "typed", key=key) for key in ("none", "primary")),
    *(layout("duckdb", "batched", batch=batch, encoding=encoding) for batch, encoding in ((50, "text"), (300, "gorilla"))),
]
ON_SERVERS = [
    layout("postgresql", "typed"),
    *(layout("postgresql", "batched", batch=batch, encoding=encoding) for batch in (50, 300) for encoding in ENCODINGS),
    layout("clickhouse", "typed"),
    layout("clickhouse", "batched", batch=300, encoding="gorilla"),
    layout("iotdb", "typed"),
    layout("prometheus", "typed"),
    *(layout("questdb", "typed", partition=partition) for partition in ("DAY", "MONTH")),
    *(layout("questdb", "batched", batch=batch, encoding=encoding) for batch, encoding in ((50, "text"), (300, "gorilla"))),
    *(layout("redis", "typed", metadata=metadata, width="10k") for metadata in ("own_table", "computed")),
    *(
        layout("redis", "batched", metadata=metadata, width=width, batch=batch, encoding=encoding)
        for metadata, width, batch in [("own_table", "5MB", 150), ("computed", "10k", 300)]
        for encoding in ENCODINGS
    ),
    layout("redis+cluster", "typed", width="10k"),
    layout("redis+cluster", "batched", width="10k"),
    *(
        layout("cassandra", "typed", metadata=metadata, width="10k", tables=1)
        for metadata in ROWS_OF_CASSANDRA
        if metadata != "same_table"
    ),
    layout("cassandra", "typed", metadata="same_table", width="5MB", tables=5),
    layout("cassandra", "typed", metadata="same_table", width="10k", tables=1, value="text"),
    *(
        layout("cassandra", "batched", metadata=metadata, width=width, batch=batch, encoding=encoding, tables=tables)
        for metadata, width, batch, encoding, tables in [
            ("none", "10k", 50, "text", 1),
            ("same_table", "5MB", 150, "text", 5),
            ("own_table", "10k", 300, "packed", 1),
            ("index", "10k", 150, "gorilla", 1),
            ("sai", "10k", 300, "text", 1),
            ("computed", "5MB", 100, "gorilla", 1),
        ]
    ),
]


@pytest.mark.parametrize("layout", EMBEDDED, ids=str)
def test_ranges_are_as_expected(layout: Layout, timelines: Dataset, asked_questions: Questions, tmp_path: Path) -> None:
    with loaded(layout, timelines, tmp_path) as (schema, target):
        assert asked_questions.problems(target, schema) == {}


@pytest.mark.parametrize("layout", ON_SERVERS, ids=str)
def test_ranges_are_as_expected_on_servers(
    layout: Layout, timelines: Dataset, asked_questions: Questions, lab_servers: dict[str, lab.Instance], tmp_path: Path
) -> None:
    with loaded(layout, timelines, tmp_path) as (schema, target):
        assert asked_questions.problems(target, schema) == {}


@pytest.mark.parametrize("tables", [5, 100])
def test_a_hundred_sensors_lie_in_tables_of_cassandra(lab_servers: dict[str, lab.Instance], tables: int, tmp_path: Path) -> None:
    dataset = open_dataset("sensor-timelines-100", scale=0.01)
    sensors = [(zone, f"sensor_{zone:03}") for zone in (0, 4, 5, 37, 99)]
    asked_questions = Questions.of(dataset, sensors, {"all": (-100, 1000), "some": (148, 433), "none": (600, 1200)})
    assert [answer.rows for answer in asked_questions.expected] == [600, 285, 0] * len(sensors)
    with loaded(layout("cassandra", "batched", metadata="own_table", tables=tables), dataset, tmp_path) as (schema, target):
        assert {fill.table for fill in schema.load_queries()} == {
            *(f"readings_{number}" for number in range(tables)),
            "rows_of_sensor",
        }
        assert asked_questions.problems(target, schema) == {}


EXPERIMENT = """
dataset = "sensor-timelines"
scale = 0.004
operations = "timelines"
{targets}
[workload]
mix = {{ append_readings = 6, get_range = 1, get_new_range = 1, get_written_reading = 1 }}
schedule = {{ concurrency = 4 }}
operations = {operations}
repetitions = {repeat}
"""
TARGET = """
[[target]]
url = "{url}"
schema = "{schema}"
parameters = {parameters}
"""


def written_and_checked(
    cli: Cli, folder: Path, urls: dict[str, str], layouts: list[Layout], operations: int, repeat: int = 1
) -> dict[str, Any]:
    """The summary of an experiment that writes, in which nothing failed."""
    targets = [
        TARGET.format(
            url=urls[place.database],
            schema=place.schema,
            parameters="{ " + ", ".join(f"{name} = {json.dumps(value)}" for name, value in place.parameters) + " }",
        )
        for place in layouts
    ]
    file = folder / "experiment.toml"
    file.write_text(EXPERIMENT.format(targets="".join(targets), operations=operations, repeat=repeat), encoding="utf-8")
    ended = cli("run", file, "--out", folder / "out", "--no-open", "--replace")
    assert ended.exit_code == 0, ended.err
    summary: dict[str, Any] = json.loads((folder / "out" / "summary.json").read_text(encoding="utf-8"))
    assert len(summary["result"]["client_health"]) == len(layouts)
    for facts in summary["result"]["client_health"].values():
        assert facts["started"] == facts["ok"] == repeat * operations, facts
    return summary


def check_written(summary: dict[str, Any], count: int) -> None:
    assert summary["answers_equal"] is True
    assert len(summary["result"]["contents"]) == count
    for contents in summary["result"]["contents"].values():
        assert (contents["wrong"], contents["lost_writes"], contents["problems"]) == (0, 0, [])
        assert contents["queried"] > 0
        assert contents["read_back"] == contents["acknowledged_writes"] > 0


def test_what_was_written_is_all_there(cli: Cli, tmp_path: Path) -> None:
    layouts = [layout("fjall", "typed"), layout("fjall", "typed", batch=50), layout("fjall", "batched")]
    check_written(written_and_checked(cli, tmp_path, {"fjall": "fjall"}, layouts, 400, repeat=2), len(layouts))


def test_what_was_written_to_all_servers_is_all_there(cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path) -> None:
    layouts = [
        layout("postgresql", "typed", batch=50),
        layout("postgresql", "batched"),
        layout("redis", "typed"),
        layout("redis", "batched", encoding="gorilla"),
        layout("redis+cluster", "batched", metadata="computed"),
        layout("cassandra", "typed", metadata="same_table", tables=1),
        layout("cassandra", "typed", metadata="own_table", batch=50, tables=1),
        layout("cassandra", "batched", metadata="same_table", batch=50, tables=5),
        layout("cassandra", "batched", metadata="own_table", encoding="gorilla", tables=1),
    ]
    urls = {database: server_url(database, OWN) for database in ("postgresql", "redis", "redis+cluster", "cassandra")}
    check_written(written_and_checked(cli, tmp_path, urls, layouts, 200), len(layouts))


# So many that each range of the questions has the first of them.
WRITTEN = 900


def readings(count: int, changed: dict[int, float] | None = None) -> pa.Table:
    """This many readings of the first sensor after those of the dataset, some with other values than usual."""
    times = [FIRST + timedelta(seconds=READINGS + number) for number in range(count)]
    values = [(changed or {}).get(number, 20.0 + number % 7) for number in range(count)]
    columns = {"site": [0] * count, "zone": [0] * count, "sensor": ["sensor_000"] * count, "time": times, "value": values}
    types = OPERATIONS.operation["append_readings"].parameters
    return pa.table({name: pa.array(column, ARROW_TYPES[types[name]]) for name, column in columns.items()})


def checked(target: _engine.Target, dataset: Dataset, schema: Schema, claimed: pa.Table) -> dict[str, Any]:
    """What the check of the contents finds where these readings are said to have been acknowledged."""
    written = WrittenRows({"append_readings": claimed}, {}, acknowledged_count=len(claimed), unknown_count=0, known=True)
    return check_contents(target, dataset, OPERATIONS, schema, written, seed=42).model_dump()


@pytest.mark.parametrize(
    ("claimed", "lost", "problem"),
    [
        (readings(WRITTEN), 0, None),
        (readings(WRITTEN + 1), 1, f"1 of {WRITTEN + 1} acknowledged writes are not there"),
        (readings(WRITTEN, {10: 99.0}), 0, "rows, as expected, but with other values"),
    ],
    ids=["as it is", "one more", "another value"],
)
def test_what_is_not_as_it_was_acknowledged_is_found(
    timelines: Dataset, tmp_path: Path, claimed: pa.Table, lost: int, problem: str | None
) -> None:
    with loaded(layout("fjall", "typed"), timelines, tmp_path) as (schema, target):
        append = OPERATIONS.operation["append_readings"]
        ask_each(target, "append_readings", append, schema, readings(WRITTEN))
        contents = checked(target, timelines, schema, claimed)
    assert (contents["read_back"], contents["lost_writes"]) == (len(claimed), lost)
    assert contents["wrong"] == len(contents["problems"])
    assert any(problem in entry["problem"] for entry in contents["problems"]) if problem else contents["wrong"] == 0, contents


def test_questions_that_there_is_no_time_for_are_counted(
    timelines: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents_checks, "REFERENCES_S", -1.0)
    with loaded(layout("fjall", "typed"), timelines, tmp_path) as (schema, target):
        ask_each(target, "append_readings", OPERATIONS.operation["append_readings"], schema, readings(WRITTEN))
        contents = checked(target, timelines, schema, readings(WRITTEN))
    assert (contents["queried"], contents["wrong"], contents["lost_writes"]) == (0, 0, 0)
    assert contents["not_reached"] >= 25


def test_of_batches_that_were_acknowledged_none_may_be_missing(timelines: Dataset, tmp_path: Path) -> None:
    claimed = readings(150)
    with loaded(layout("fjall", "batched"), timelines, tmp_path) as (schema, target):
        contents = checked(target, timelines, schema, claimed)
    assert (contents["read_back"], contents["lost_writes"]) == (1, 1)


def test_postgresql_keeps_batches_as_they_are(timelines: Dataset, lab_servers: dict[str, lab.Instance], tmp_path: Path) -> None:
    query = """
        SELECT (SELECT count(*) FROM batches WHERE octet_length(payload) > 2040),
            (SELECT count(*) FROM batches WHERE pg_column_size(payload) < octet_length(payload)),
            (SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE oid = 'batches'::regclass)
    """
    columns = [{"name": name, "type": "integer"} for name in ("long", "compressed", "bytes_elsewhere")]
    operation = {"name": "ask", "parameters": [], "columns": columns, "order": [], "statement": {"statement": query}}
    with loaded(layout("postgresql", "batched", batch=300, encoding="packed"), timelines, tmp_path) as (_, target):
        assert json.loads(target.execute_once(json.dumps(operation), pa.table({}).to_reader())) == [[96, 0, 0]]
