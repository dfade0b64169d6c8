"""Operations that are one statement for each time bucket or each shard: their answers are those that DuckDB computes."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sensorbench.schemas import load_operations, load_schema
from tests.conftest import Cli

EXPERIMENT = """\
dataset = "river.toml"
operations = "operations.toml"
[[target]]
url = "sqlite"
schema = "by-month.toml"
[[target]]
url = "sqlite"
schema = "by-quarter.toml"
[[target]]
url = "sqlite"
schema = "by-shard.toml"
[workload]
mix = { readings = 1, newest_readings = 1, peak = 1, how_many = 1, levels = 1, total = 1 }
order = "in turn"
schedule = { concurrency = 2 }
operations = 300
repetitions = 1
"""

DATASET = """\
name = "river"
title = "Two winters of a river's level, made up"
files = ["river.csv"]
time = { column = "at", unit = "s" }
site = 1
zone = 1
sensors = { level = "level" }
"""

# Ranges of no day, within a month, over the ends of months, and of seven months.
OPERATIONS = """\
[parameter_source.ranges]
query = '''
SELECT DISTINCT date_trunc('day', time) AS "from", date_trunc('day', time) + to_days(days) AS "to"
FROM measurements, (SELECT unnest([0, 1, 20, 31, 60, 210]) AS days) ORDER BY ALL
'''
[parameter_source.sensors]
query = "SELECT DISTINCT sensor FROM measurements"

[operation.readings]
title = "Readings"
question = "All readings of a range, oldest first."
parameter_sources = ["sensors", "ranges"]
parameters = { sensor = "text", from = "timestamp", to = "timestamp" }
columns = [{ name = "time", type = "timestamp" }, { name = "value", type = "double" }]
order = [{ column = "time" }]
reference = "SELECT time, value FROM measurements WHERE sensor = $sensor AND time >= $from AND time < $to"

[operation.newest_readings]
title = "Newest readings"
question = "All readings of a range, newest first."
parameter_sources = ["sensors", "ranges"]
parameters = { sensor = "text", from = "timestamp", to = "timestamp" }
columns = [{ name = "time", type = "timestamp" }, { name = "value", type = "double" }]
order = [{ column = "time", direction = "descending" }]
reference = "SELECT time, value FROM measurements WHERE sensor = $sensor AND time >= $from AND time < $to"

[operation.peak]
title = "Peak"
question = "The highest level of a range."
parameter_sources = ["sensors", "ranges"]
parameters = { sensor = "text", from = "timestamp", to = "timestamp" }
columns = [{ name = "peak", type = "double" }]
reference = "SELECT max(value) AS peak FROM measurements WHERE sensor = $sensor AND time >= $from AND time < $to"

[operation.how_many]
title = "How many"
question = "The number of readings of a range."
parameter_sources = ["sensors", "ranges"]
parameters = { sensor = "text", from = "timestamp", to = "timestamp" }
columns = [{ name = "readings", type = "integer" }]
reference = "SELECT count(*) AS readings FROM measurements WHERE sensor = $sensor AND time >= $from AND time < $to"

[operation.levels]
title = "Levels"
question = "All readings of a range, in any order."
parameter_sources = ["sensors", "ranges"]
parameters = { sensor = "text", from = "timestamp", to = "timestamp" }
columns = [{ name = "time", type = "timestamp" }, { name = "value", type = "double" }]
reference = "SELECT time, value FROM measurements WHERE sensor = $sensor AND time >= $from AND time < $to"

[operation.total]
title = "Total"
question = "The levels of a range added up."
parameter_sources = ["sensors", "ranges"]
parameters = { sensor = "text", from = "timestamp", to = "timestamp" }
columns = [{ name = "total", type = "double", computed = true }]
reference = "SELECT sum(value) AS total FROM measurements WHERE sensor = $sensor AND time >= $from AND time < $to"
"""

# A reading is found by its month alone: a statement for a month that was left out, or asked twice, would show.
BY_MONTH = """\
database = "sqlite"
summary = "Buckets of a month."
[create]
statements = ["CREATE TABLE level (sensor TEXT, month INTEGER, time INTEGER, value REAL, PRIMARY KEY (sensor, month, time)) WITHOUT ROWID"]
[load_query.level]
query = "SELECT sensor, date_trunc('month', time) AS month, time, value FROM measurements"
[operation.readings]
statement = "SELECT time, value FROM level WHERE sensor = :sensor AND month = :month AND time >= :from AND time < :to ORDER BY time"
for_each = { name = "month", from = ":from", to = ":to", every = "1 month" }
[operation.newest_readings]
statement = "SELECT time, value FROM level WHERE sensor = :sensor AND month = :month AND time >= :from AND time < :to ORDER BY time DESC"
for_each = { name = "month", from = ":from", to = ":to", every = "1 month" }
[operation.peak]
statement = "SELECT max(value) FROM level WHERE sensor = :sensor AND month = :month AND time >= :from AND time < :to"
for_each = { name = "month", from = ":from", to = ":to", every = "1 month" }
returns = [{ name = "peak", type = "double" }]
reduce = { function = "max", column = "peak" }
[operation.how_many]
statement = "SELECT time FROM level WHERE sensor = :sensor AND month = :month AND time >= :from AND time < :to"
for_each = { name = "month", from = ":from", to = ":to", every = "1 month" }
returns = [{ name = "time", type = "timestamp" }]
reduce = { function = "count", column = "time" }
"""

MONTHS_OF_LEVELS = """
[operation.levels]
statement = "SELECT time, value FROM level WHERE sensor = :sensor AND month = :month AND time >= :from AND time < :to"
for_each = { name = "month", from = ":from", to = ":to", every = "1 month" }
[operation.total]
statement = "SELECT sum(value) FROM level WHERE sensor = :sensor AND month = :month AND time >= :from AND time < :to"
for_each = { name = "month", from = ":from", to = ":to", every = "1 month" }
returns = [{ name = "total", type = "double" }]
reduce = { function = "sum", column = "total" }
"""

# Rows are spread over shards: a shard that was left out, or asked twice, would show.
BY_SHARD = """\
database = "sqlite"
summary = "Four shards."
[create]
statements = ["CREATE TABLE level (shard INTEGER, sensor TEXT, time INTEGER, value REAL, PRIMARY KEY (shard, sensor, time)) WITHOUT ROWID"]
[load_query.level]
query = "SELECT CAST(hash(time) % 4 AS INTEGER) AS shard, sensor, time, value FROM measurements"
[operation.readings]
statement = "SELECT time, value FROM level WHERE shard IN (0, 1, 2, 3) AND sensor = :sensor AND time >= :from AND time < :to ORDER BY time"
[operation.newest_readings]
statement = "SELECT time, value FROM level WHERE shard IN (0, 1, 2, 3) AND sensor = :sensor AND time >= :from AND time < :to ORDER BY time DESC"
[operation.peak]
statement = "SELECT max(value) FROM level WHERE shard = :shard AND sensor = :sensor AND time >= :from AND time < :to"
for_each = { name = "shard", shards = 4 }
returns = [{ name = "peak", type = "double" }]
reduce = { function = "max", column = "peak" }
[operation.how_many]
statement = "SELECT count(*) FROM level WHERE shard = :shard AND sensor = :sensor AND time >= :from AND time < :to"
for_each = { name = "shard", shards = 4 }
returns = [{ name = "readings", type = "integer" }]
reduce = { function = "sum", column = "readings" }
[operation.levels]
statement = "SELECT time, value FROM level WHERE shard = :shard AND sensor = :sensor AND time >= :from AND time < :to"
for_each = { name = "shard", shards = 4 }
[operation.total]
statement = "SELECT sum(value) FROM level WHERE shard = :shard AND sensor = :sensor AND time >= :from AND time < :to"
for_each = { name = "shard", shards = 4 }
returns = [{ name = "total", type = "double" }]
reduce = { function = "sum", column = "total" }
"""

# Calendar stretches of the other client functions: batches of a quarter, and a parameter made from another one.
BY_QUARTER = """\
database = "sqlite"
summary = "Batches of a quarter, and buckets of a year."
[create]
statements = [
    "CREATE TABLE batch (sensor TEXT, quarter INTEGER, readings BLOB, PRIMARY KEY (sensor, quarter))",
    "CREATE TABLE level (sensor TEXT, year INTEGER, time INTEGER, value REAL)",
]
[load_query.batch]
query = "SELECT sensor, time, value FROM measurements"
order = ["sensor", "time"]
encode = { encoding = "packed", group = ["sensor"], every = "3 months", start_column = "quarter", bytes_column = "readings" }
[load_query.level]
query = "SELECT sensor, date_trunc('year', time) AS year, time, value FROM measurements"
[operation.readings]
statement = "SELECT readings FROM batch WHERE sensor = :sensor AND quarter = :quarter"
for_each = { name = "quarter", from = ":from", to = ":to", every = "3 months" }
returns = [{ name = "readings", type = "bytes" }]
decode = { column = "readings", encoding = "packed", from = ":from", to = ":to" }
[operation.newest_readings]
derive = { first_year = { floor = ":from", every = "1 year" }, last_year = { floor = ":to", every = "1 year" } }
statement = '''SELECT time, value FROM level
WHERE sensor = :sensor AND year IN (:first_year, :last_year) AND time >= :from AND time < :to ORDER BY time DESC'''
[operation.peak]
statement = "SELECT readings FROM batch WHERE sensor = :sensor AND quarter = :quarter"
for_each = { name = "quarter", from = ":from", to = ":to", every = "3 months" }
returns = [{ name = "readings", type = "bytes" }]
decode = { column = "readings", encoding = "packed", from = ":from", to = ":to" }
reduce = { function = "max", column = "value" }
[operation.how_many]
statement = "SELECT count(*) FROM level WHERE sensor = :sensor AND time >= :from AND time < :to"
[operation.levels]
statement = "SELECT time, value FROM level WHERE sensor = :sensor AND time >= :from AND time < :to"
[operation.total]
statement = "SELECT value FROM level WHERE sensor = :sensor AND time >= :from AND time < :to"
returns = [{ name = "value", type = "double" }]
reduce = { function = "sum", column = "value" }
"""


def levels(first: datetime) -> list[str]:
    """A winter and spring, every six hours."""
    return [f"{(first + timedelta(hours=6 * n)).timestamp():.0f},{n * 37 % 101 + n / 7}" for n in range(4 * 200)]


@pytest.fixture
def river(tmp_path: Path) -> Path:
    # Around the beginning of 1970, and through a February with a leap day.
    rows = [*levels(datetime(1969, 10, 20, tzinfo=UTC)), *levels(datetime(2015, 11, 20, tzinfo=UTC))]
    (tmp_path / "river.csv").write_text("\n".join(["at,level", *rows, ""]), encoding="utf-8")
    for name, text in {
        "river.toml": DATASET,
        "operations.toml": OPERATIONS,
        "by-month.toml": BY_MONTH + MONTHS_OF_LEVELS,
        "by-quarter.toml": BY_QUARTER,
        "by-shard.toml": BY_SHARD,
        "experiment.toml": EXPERIMENT,
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_answers_over_several_statements_equal_the_reference(cli: Cli, river: Path) -> None:
    ended = cli("run", river / "experiment.toml", "--out", river / "out", "--no-open")
    assert ended.exit_code == 0, ended.err
    summary: dict[str, Any] = json.loads((river / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["answers_equal"] is True
    assert len(summary["result"]["answers"]) == 6
    for answers in summary["result"]["answers"].values():
        assert (answers["equal"], answers["mismatch_count"]) == (True, 0)
        assert answers["compared_with_reference"] >= 40
    assert len(summary["result"]["client_health"]) == 3
    for facts in summary["result"]["client_health"].values():
        assert facts["started"] == facts["ok"] == 300, "several statements are one operation"


@pytest.mark.parametrize(
    ("every", "expected"),
    [
        ("15 minutes", {"microseconds": 900_000_000}),
        ("1 day", {"microseconds": 86_400_000_000}),
        ("1 month", {"months": 1}),
        ("3 months", {"months": 3}),
        ("2 years", {"months": 24}),
    ],
)
def test_names_become_numbers(river: Path, every: str, expected: dict[str, int]) -> None:
    schema_file = river / "by-month.toml"
    schema_file.write_text(BY_MONTH.replace('every = "1 month"', f'every = "{every}"'), encoding="utf-8")
    peak = load_operations(str(river / "operations.toml")).operation["peak"]
    work = load_schema(str(schema_file), operations="operations.toml", database="sqlite").work("peak", peak)
    assert work["for_each"] == {"name": "month", "parts": {"time_buckets": {"from": 1, "to": 2, "every": expected}}}


def test_shards_are_counted(river: Path) -> None:
    levels = load_operations(str(river / "operations.toml")).operation["levels"]
    work = load_schema(str(river / "by-shard.toml"), operations="operations.toml", database="sqlite").work("levels", levels)
    assert work["for_each"] == {"name": "shard", "parts": {"shards": 4}}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('every = "1 month"', 'every = "1 fortnight"', "line 9, operation.readings.for_each.every: expected a length of time such as '15 minutes', '1 day' or '1 month'"),
        ('every = "1 month"', 'every = "0 months"', "line 9, operation.readings.for_each.every: "),
        ('from = ":from"', 'from = ":start"', "line 9, operation.readings.for_each.from: ':start': expected one of :sensor, :from, :to"),
        ('to = ":to"', 'to = ":sensor"', "line 9, operation.readings.for_each: from and to must be timestamps, the time buckets above zero"),
        ('to = ":to", ', "", "line 9, operation.readings.for_each: expected either from, to and every (stretches of time), or shards (how many there are)"),
        ('to = ":to", ', 'to = ":to", shards = 4, ', "line 9, operation.readings.for_each: expected either from, to and every (stretches of time), or shards"),
        ('from = ":from", to = ":to", every = "1 month"', "shards = 0", "line 9, operation.readings.for_each.shards: Input should be greater than or equal to 1 (it is 0)"),
        ('from = ":from", to = ":to", every = "1 month"', "shards = 4", "line 9, operation.readings.for_each: rows of several shards are in no order, but the answer to the operation has one"),
        ('name = "month"', 'name = "to"', "line 9, operation.readings.for_each: there is a parameter :to already; choose another name"),
        ('name = "month"', 'name = "quarter"', "line 7, operation.readings: the operation has no parameter :month; expected one of :sensor, :from, :to, :quarter"),
        ('name = "month"', 'name = "month", order = "descending"', "line 9, operation.readings.for_each.order: unknown key"),
    ],
)  # fmt: skip
def test_a_declaration_that_cannot_be_used(cli: Cli, river: Path, old: str, new: str, expected: str) -> None:
    schema_file = river / "by-month.toml"
    assert old in BY_MONTH
    schema_file.write_text((BY_MONTH + MONTHS_OF_LEVELS).replace(old, new), encoding="utf-8")
    ended = cli("run", river / "experiment.toml", "--out", river / "out", "--no-open")
    assert ended.exit_code == 2, ended
    assert f"{schema_file}, {expected}" in ended.err
    assert not (river / "out").exists()
