"""Streams: late, duplicate and missing readings, exact accounting of what was acknowledged, and freshness by markers.

The databases that lose, keep the wrong one or are late are SQLite with a trigger, another conflict clause, or a question that looks the other way for
a while: whatever checks them sees an ordinary database.
"""

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sensorbench.analysis.censored import quantile_bounds
from sensorbench.errors import UsageError
from sensorbench.results import RunResult, read_comparison
from sensorbench.results.freshness import measured_markers, read_markers
from sensorbench.results.summary.accounting import Rule
from sensorbench.runner import Workload
from sensorbench.runner.freshness import MarkerPlace
from sensorbench.verification import accounting
from sensorbench.verification.accounting_queries import GROUP, RIGHT, WORD, expect
from tests.conftest import Cli, Outcome
from tests.streams import WRONG, check_rules

EXPERIMENT = """
dataset = "beijing-air-quality"
scale = 0.002
operations = "sensors"

[[target]]
url = "{url}"
schema = "{schema}"

[workload]
mix = {{ insert_reading = 1 }}
schedule = {{ concurrency = 4 }}
operations = {writes}
repetitions = 1
timeout = "10s"
{workload}
"""

TABLE = """
CREATE TABLE measurements (
    site INTEGER, zone INTEGER, sensor TEXT, time INTEGER, value REAL {more})
"""

SCHEMA = """
database = "sqlite"
summary = "For tests."
{declared}

[create]
statements = ['''{table}''', {created}]

[load_query.measurements]
query = "SELECT site, zone, sensor, time, value FROM measurements"

[operation.get_sensor_data]
statement = '''
SELECT time, value FROM measurements
WHERE site = :site AND zone = :zone AND sensor = :sensor AND time >= :from AND time < :to {seen}
'''

[operation.insert_reading]
statement = "INSERT INTO measurements (site, zone, sensor, time, value) VALUES (:site, :zone, :sensor, :time, :value) {on_conflict}"
"""

KEY = ", PRIMARY KEY (site, zone, sensor, time)"
UPSERT = "ON CONFLICT DO UPDATE SET value = excluded.value"
DELIVERY = """
[workload.delivery]
disorder = { model = "poisson", ratio = 0.2, mean = 30 }
duplicates = { share = 0.05, values = "other", window = 200 }
gaps = { share = 0.1, length = 5 }
late_after = "10h"
"""


def schema(
    folder: Path, declared: str = "", *, key: str = KEY, created: str = "", on_conflict: str = UPSERT, seen: str = ""
) -> Path:
    file = folder / "schema.toml"
    table = TABLE.format(more=key)
    file.write_text(
        SCHEMA.format(declared=declared, table=table, created=created, on_conflict=on_conflict, seen=seen), encoding="utf-8"
    )
    return file


def run(
    cli: Cli, folder: Path, workload: str, *, writes: int = 4000, shipped: str = "", url: str = "sqlite"
) -> tuple[Outcome, dict[str, Any]]:
    file = folder / "experiment.toml"
    file.write_text(
        EXPERIMENT.format(url=url, schema=shipped or "schema.toml", writes=writes, workload=workload), encoding="utf-8"
    )
    ended = cli("run", file, "--out", folder / "out", "--no-open")
    summary = folder / "out" / "summary.json"
    return ended, json.loads(summary.read_text(encoding="utf-8")) if summary.exists() else {}


def accounted(
    cli: Cli, folder: Path, workload: str = DELIVERY, *, exit_code: int = 0, **more: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The accounts of the only write of the only variant, and the summary."""
    ended, summary = run(cli, folder, workload, **more)
    assert ended.exit_code == exit_code, ended.err
    (checks,) = summary["result"]["contents"].values()
    (of_write,) = checks["accounting"]
    return of_write, summary


def run_of(folder: Path) -> RunResult:
    ((only,),) = read_comparison(folder / "out").runs.values()
    return only


def test_every_acknowledged_reading_is_there_when_the_last_write_counts(cli: Cli, tmp_path: Path) -> None:
    schema(tmp_path, 'duplicates = "last"')
    of_write, summary = accounted(cli, tmp_path)
    assert {name: of_write[name] for name in WRONG} == dict.fromkeys(WRONG, 0)
    assert (of_write["rule"], of_write["acknowledged"], of_write["unknown"]) == ("last", 4000, 0)
    assert of_write["again"] == 200
    assert of_write["readings"] == 3800
    assert summary["answers_equal"] is True
    assert [ranking["excluded"] for ranking in summary["result"]["rankings"]] == [None]
    # A fifth is late by some thirty readings of the stream, which are of many series; duplicates come late, too.
    lateness = of_write["lateness"]
    assert 0.02 < lateness["out_of_order"] < 0.3
    assert lateness["time_s"]["max"] > 10 * 3600 > 0.0
    assert 0.0 < lateness["late"] < lateness["out_of_order"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Is every acknowledged reading there?" in page
    assert not list((tmp_path / "out").glob("accounting-*"))


def test_acknowledged_readings_that_were_lost_are_found(cli: Cli, tmp_path: Path) -> None:
    # Of the readings that come after the dataset, which ends on 4 March 2013, those of one hour in 41 are acknowledged and forgotten.
    loses = """'''
    CREATE TRIGGER loses BEFORE INSERT ON measurements WHEN NEW.time > 1362398400000000 AND (NEW.time / 3600000000) % 41 = 7
    BEGIN SELECT RAISE(IGNORE); END'''"""
    schema(tmp_path, 'duplicates = "last"', created=loses)
    of_write, summary = accounted(cli, tmp_path, exit_code=1)
    assert of_write["lost"] > 20
    assert (of_write["wrong_winners"], of_write["extra"], of_write["other_values"]) == (0, 0, 0)
    assert summary["answers_equal"] is False
    assert [ranking["excluded"] for ranking in summary["result"]["rankings"]] == [
        "what was written was not found again as it should be"
    ]
    (checks,) = summary["result"]["contents"].values()
    assert "it was acknowledged, and is not there" in checks["problems"][0]["problem"]


def test_a_wrong_winner_among_duplicates_is_found_and_the_rule_that_explains_it_is_named(cli: Cli, tmp_path: Path) -> None:
    schema(tmp_path, 'duplicates = "last"', on_conflict="ON CONFLICT DO NOTHING")
    of_write, summary = accounted(cli, tmp_path, exit_code=1)
    # Some of the values that are sent again are those that were there.
    assert 150 < of_write["wrong_winners"] <= 200
    assert (of_write["lost"], of_write["extra"], of_write["explained_by"]) == (0, 0, "first")
    assert summary["answers_equal"] is False
    assert "the first write counts" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_duplicates_that_are_kept_are_too_many_where_one_should_count(cli: Cli, tmp_path: Path) -> None:
    schema(tmp_path, 'duplicates = "last"', key="", on_conflict="")
    of_write, _ = accounted(cli, tmp_path, exit_code=1)
    assert 150 < of_write["extra"] <= 200
    assert (of_write["lost"], of_write["explained_by"]) == (0, "both")


@pytest.mark.parametrize(
    ("rule", "more"),
    [
        ("both", {"key": "", "on_conflict": ""}),
        ("first", {"on_conflict": "ON CONFLICT DO NOTHING"}),
        ("highest", {"on_conflict": "ON CONFLICT DO UPDATE SET value = max(value, excluded.value)"}),
        ("distinct", {"key": KEY.replace("time)", "time, value)"), "on_conflict": "ON CONFLICT DO NOTHING"}),
        ("any", {"on_conflict": "ON CONFLICT DO UPDATE SET value = iif(random() > 0, value, excluded.value)"}),
    ],
)
def test_each_rule_is_verified(cli: Cli, tmp_path: Path, rule: str, more: dict[str, str]) -> None:
    schema(tmp_path, f'duplicates = "{rule}"', **more)
    of_write, _ = accounted(cli, tmp_path)
    assert {name: of_write[name] for name in WRONG} == dict.fromkeys(WRONG, 0)
    assert of_write["again"] == 200


def test_readings_are_accounted_for_some_at_a_time_as_all_at_once(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Parts begin and end within a series.
    loses = """'''
    CREATE TRIGGER loses BEFORE INSERT ON measurements WHEN NEW.time > 1362398400000000 AND (NEW.time / 3600000000) % 41 = 7
    BEGIN SELECT RAISE(IGNORE); END'''"""
    found = []
    for name, part in (("whole", accounting._PART), ("parts", 70)):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.setattr(accounting, "_PART", part)
        monkeypatch.setattr(accounting, "_ALIKE", 1)
        schema(folder, 'duplicates = "last"', created=loses, on_conflict="ON CONFLICT DO NOTHING")
        of_write, _ = accounted(cli, folder, exit_code=1, writes=400)
        assert len(of_write["lateness"].pop("rows")) == len(of_write["lateness"].pop("time_s")) == 3
        # Of two clients that met either may have been first.
        assert 5 < of_write.pop("wrong_winners") <= 20
        for key in ("lateness", "undecided", "segments", "unstable"):
            of_write.pop(key)
        found.append(of_write)
    assert found[0] == found[1]
    assert found[0]["lost"] > 2


@pytest.mark.parametrize("variant", ["sqlite natural", "duckdb by_time", "duckdb natural", "duckdb keyed", "fjall by_sensor"])
def test_the_rules_of_shipped_schemas_are_those_of_the_database(cli: Cli, tmp_path: Path, variant: str) -> None:
    url, shipped = variant.split()
    of_write, _ = accounted(cli, tmp_path, url=url, shipped=shipped, writes=600)
    assert {name: of_write[name] for name in WRONG} == dict.fromkeys(WRONG, 0)
    # What a key refuses is an error: nobody acknowledged it, and it is not there.
    refused = of_write["rule"] == "first"
    assert of_write["unknown"] == (30 if refused else 0)
    assert of_write["again"] == (0 if refused else 30)


def test_the_rules_of_the_starter_set_are_those_of_the_database(cli: Cli, tmp_path: Path) -> None:
    targets = [
        ("sqlite", "by_sensor"),
        ("sqlite", "by_time"),
        ("duckdb", "by_sensor"),
        ("duckdb", "by_time"),
        ("fjall", "by_sensor"),
    ]
    accounts = check_rules(cli, tmp_path, targets, operations="starter")
    assert [of_write["rule"] for of_write in accounts.values()] == ["first", "both", "both", "both", "last"]


def test_series_that_come_and_go_are_delivered_and_found(cli: Cli, tmp_path: Path) -> None:
    schema(tmp_path, 'duplicates = "last"')
    # Of the twelve places, one in ten is replaced every hundred hours of 4,000.
    churn = '[workload.delivery]\nchurn = { share = 0.1, period = "100h", parameter = "zone" }\n'
    of_write, _ = accounted(cli, tmp_path, churn)
    assert {name: of_write[name] for name in WRONG} == dict.fromkeys(WRONG, 0)
    assert of_write["readings"] == 4000


# What must be there, against a database that is tried out in every way that time allows.


def outcomes(rule: Rule, deliveries: list[tuple[int, int, int, bool]]) -> set[tuple[int, ...]]:
    """What may be there of one reading after deliveries (start, end, value, acknowledged): each takes effect at a moment between its start and
    its end, one of unknown outcome at any moment from its start on, or never.
    """
    found = set()
    known = [number for number, delivery in enumerate(deliveries) if delivery[3]]
    unknown = [number for number, delivery in enumerate(deliveries) if not delivery[3]]
    for count in range(len(unknown) + 1):
        for took_effect in itertools.combinations(unknown, count):
            for order in itertools.permutations([*known, *took_effect]):
                # Whoever ended before another one started took effect first.
                if any(
                    deliveries[later][3] and deliveries[later][1] < deliveries[earlier][0]
                    for place, earlier in enumerate(order)
                    for later in order[place + 1 :]
                ):
                    continue
                values = [deliveries[number][2] for number in order]
                kept = {
                    "last": [values[-1:]],
                    "first": [values[:1]],
                    "both": [sorted(values)],
                    "highest": [[max(values)] if values else []],
                    "distinct": [sorted(set(values))],
                    "any": [[value] for value in values] or [[]],
                }
                found.update(map(tuple, kept[rule]))
    return found


delivery = st.tuples(st.integers(0, 12), st.integers(1, 8), st.integers(1, 3), st.booleans()).map(
    lambda drawn: (drawn[0], drawn[0] + drawn[1], drawn[2], drawn[3])
)


@pytest.fixture(scope="module")
def accounts() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


HASHES = {1: 2**63 + 11, 2: 2**62 + 5, 3: 17}


@pytest.mark.parametrize("rule", ["last", "first", "both", "highest", "distinct", "any"])
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(delivery, min_size=1, max_size=4))
def test_what_may_be_there_is_what_some_order_of_the_deliveries_leaves(
    accounts: duckdb.DuckDBPyConnection, rule: Rule, deliveries: list[tuple[int, int, int, bool]]
) -> None:
    rows = ", ".join(
        f"({number}, {start}, {end}, {is_ok}, {HASHES[value]}, {float(value)}, 1)"
        for number, (start, end, value, is_ok) in enumerate(deliveries)
    )
    for table in ("delivered", "grouped", "expected"):
        accounts.execute(f"DROP TABLE IF EXISTS {table}")
    columns = "arrival BIGINT, start_ns BIGINT, end_ns BIGINT, is_ok BOOLEAN, hash UBIGINT, ranked DOUBLE, k INT"
    accounts.execute(f"CREATE TABLE delivered ({columns}); INSERT INTO delivered VALUES {rows}")
    accounts.execute(GROUP.format(key="k", word=WORD))
    expect(accounts, rule, "k", "expected", "grouped")
    possible = outcomes(rule, deliveries)
    sizes = {len(values) for values in possible}
    every = [
        values
        for size in range(len(deliveries) + 1)
        # Of several deliveries of unknown outcome that add up only the number of rows is known.
        if rule not in {"both", "distinct"} or size in {min(sizes), min(sizes) + 1, max(sizes)}
        for values in itertools.combinations_with_replacement((1, 2, 3), size)
    ]
    found = ", ".join(
        f"({number}, {len(values)}, CAST({sum(HASHES[value] for value in values) % WORD} AS UBIGINT))"
        for number, values in enumerate(every)
    )
    is_right = accounts.execute(
        f"SELECT number, {RIGHT}, is_sure FROM expected, (VALUES {found}) given(number, found_rows, found_hash)"
    ).fetchall()
    assert {every[number] for number, right, _ in is_right if right} == possible & set(every)
    assert not is_right[0][2] or len(possible) == 1


# Freshness.

LAG_S = 0.15
# SQLite's clock has milliseconds.
NOW_MS = "CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER)"
FRESHNESS = """
[workload.freshness]
rate = 20
poll = "5ms"
within = "2s"
"""


def schema_with_a_lag(folder: Path) -> None:
    """Rows are returned LAG_S after they were written, and no sooner."""
    schema(
        folder,
        'duplicates = "last"',
        key=f", written_ms INTEGER DEFAULT ({NOW_MS})",
        on_conflict="",
        seen=f"AND written_ms + {round(LAG_S * 1000)} <= {NOW_MS}",
    )


def test_a_known_lag_lies_within_the_bounds(cli: Cli, tmp_path: Path) -> None:
    schema_with_a_lag(tmp_path)
    paced = FRESHNESS.replace("[workload.freshness]", 'duration = "2s"\n[workload.freshness]')
    ended, summary = run(cli, tmp_path, paced, writes=100_000)
    assert ended.exit_code == 0, ended.err
    (found,) = summary["result"]["freshness"].values()
    whole = found["whole"]
    assert whole["markers"] == whole["seen"] > 20
    assert (whole["at_once"], whole["failed"]) == (0, 0)
    # Eight that are watched for a little more than 150 ms are enough for twenty per second, also on a machine that is busy.
    assert whole["late"] <= whole["markers"] / 2
    markers = measured_markers(run_of(tmp_path))
    table = read_markers(run_of(tmp_path).folder)
    assert markers is not None
    assert table is not None
    # The insert itself took place between start and end of the write: the true lag from its acknowledgement is that much shorter, and
    # SQLite's clock cuts to a millisecond.
    write_s = float(np.max(table["end_ns"].to_numpy() - table["start_ns"].to_numpy())) / 1e9
    assert (markers.low_s <= LAG_S + 0.001).all(), markers.low_s.max()
    assert (markers.high_s >= LAG_S - write_s - 0.001).all(), markers.high_s.min()
    for bounds in whole["quantiles_s"].values():
        assert bounds["low_s"] <= LAG_S + 0.001
        assert bounds["high_s"] >= LAG_S - write_s - 0.001
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "How soon is a reading visible?" in page
    assert 'data-chart="freshness"' in page


def test_markers_that_wait_for_others_are_counted(cli: Cli, tmp_path: Path) -> None:
    schema_with_a_lag(tmp_path)
    paced = FRESHNESS.replace("[workload.freshness]", 'duration = "2s"\n[workload.freshness]\nwatched = 1')
    ended, summary = run(cli, tmp_path, paced, writes=100_000)
    assert ended.exit_code == 0, ended.err
    (found,) = summary["result"]["freshness"].values()
    # Twenty per second, of which one can be watched at a time: all but the first wait.
    assert found["whole"]["late"] >= found["whole"]["markers"] - 2 > 0
    assert "workload.freshness.watched" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_markers_and_a_delivery_are_accounted_for_together_and_freshness_is_shown_by_rate(cli: Cli, tmp_path: Path) -> None:
    schema(tmp_path, 'duplicates = "last"')
    rates = 'schedule = { segments = [{ from = 200, length = "1s" }, { from = 600, length = "1s" }] }\nduration = "2s"'
    ended, summary = run(cli, tmp_path, DELIVERY + FRESHNESS, writes=5000)
    assert ended.exit_code == 0, ended.err
    (checks,) = summary["result"]["contents"].values()
    (of_write,) = checks["accounting"]
    assert {name: of_write[name] for name in WRONG} == dict.fromkeys(WRONG, 0)
    markers = read_markers(run_of(tmp_path).folder)
    assert markers is not None
    assert of_write["acknowledged"] == 5000 + pc.sum(pc.equal(markers["outcome"], "ok")).as_py()
    (found,) = summary["result"]["freshness"].values()
    # One process: what it has written it sees.
    assert found["whole"]["at_once"] == found["whole"]["markers"] > 0
    text = (tmp_path / "experiment.toml").read_text(encoding="utf-8")
    (tmp_path / "experiment.toml").write_text(text.replace("schedule = { concurrency = 4 }", rates), encoding="utf-8")
    ended = cli("run", tmp_path / "experiment.toml", "--out", tmp_path / "paced", "--no-open")
    assert ended.exit_code == 0, ended.err
    summary = json.loads((tmp_path / "paced" / "summary.json").read_text(encoding="utf-8"))
    (found,) = summary["result"]["freshness"].values()
    assert [of_rate["rate"] for of_rate in found["by_rate"]] == ["200", "600"]
    assert sum(of_rate["markers"] for of_rate in found["by_rate"]) == found["whole"]["markers"]


@given(st.integers(1, 5), st.integers(1, 4), st.floats(0.0, 50.0), st.integers(0, 1000))
def test_no_two_markers_of_any_runs_have_the_same_time(runs: int, markers: int, between: float, operations: int) -> None:
    numbers = [
        MarkerPlace(between, run, runs, operations * run).number(marker) for run in range(runs) for marker in range(markers * 50)
    ]
    assert len(set(numbers)) == len(numbers)


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 5), st.floats(0, 1)), min_size=1, max_size=60))
def test_true_quantiles_lie_between_their_bounds(drawn: list[tuple[float, float, float]]) -> None:
    low = np.array([start for start, _, _ in drawn])
    high = low + np.array([width for _, width, _ in drawn])
    true = np.sort(low + (high - low) * np.array([place for _, _, place in drawn]))
    shares = {"p50": 0.5, "p90": 0.9, "max": 1.0}
    for name, (lower, upper) in quantile_bounds(low, high, shares).items():
        at = true[max(0, int(np.ceil(shares[name] * len(true) - 1e-9)) - 1)]
        assert lower - 1e-9 <= at <= upper + 1e-9


# What cannot be.


def workload(**keys: Any) -> Workload:
    return Workload.model_validate({"mix": {"insert_reading": 1}, "operations": 10, **keys})


@pytest.mark.parametrize(
    ("delivery", "expected"),
    [
        ({"disorder": {"model": "poisson"}}, "poisson needs mean"),
        ({"disorder": {"model": "ratio", "max": 9, "mean": 3}}, "ratio has no mean"),
        ({"disorder": {"model": "batch", "size": 10, "ratio": 0.01}}, "at least one to come first"),
        ({"disorder": {"model": "poisson", "mean": 100, "max": 10}}, "expected the mean"),
        ({"duplicates": 0.7}, "less than or equal to 0.5"),
        ({"gaps": {"share": 0.1, "length": 0}}, "greater than or equal to 1"),
        ({"late_after": "soon"}, "expected a length of time"),
        ({"burst": {"every": "1s", "length": "2s", "factor": 3}}, "expected less than every"),
        ({"burst": {"every": "10s", "length": "2s", "factor": 3}}, "expected schedule.rate"),
    ],
)
def test_a_delivery_that_is_none_is_refused(delivery: Mapping[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        workload(delivery=delivery)


def test_bursts_are_steps_of_the_schedule() -> None:
    bursts = workload(
        duration="25s",
        schedule={"rate": 100},
        delivery={"burst": {"every": "10s", "length": "2s", "factor": 5}},
    )
    (phase,) = bursts.with_concurrency(embedded=True).phases(0, 1)
    pace = phase.get("pace")
    assert pace is not None
    steps = [(segment["from_per_s"], segment.get("length_s")) for segment in pace["segments"]]
    assert steps == [(100.0, 8.0), (500.0, 2.0)] * 3 + [(100.0, None)]


def test_what_a_delivery_needs_of_operations_and_schemas_is_said(cli: Cli, tmp_path: Path) -> None:
    schema(tmp_path)
    ended, _ = run(cli, tmp_path, DELIVERY)
    assert ended.exit_code == 2
    assert "does not say which of several writes of one reading counts" in ended.err
    assert 'duplicates = "last"' in ended.err
    churn = '[workload.delivery]\nchurn = { share = 0.1, period = "1h", parameter = "sensor" }\n'
    ended, _ = run(cli, tmp_path, churn)
    assert ended.exit_code == 2
    assert "'sensor' is not an integer that identifies a series of insert_reading; expected site or zone" in ended.err
    text = (tmp_path / "experiment.toml").read_text(encoding="utf-8")
    (tmp_path / "experiment.toml").write_text(text.replace("insert_reading = 1", "get_sensor_data = 1"), encoding="utf-8")
    ended = cli("run", tmp_path / "experiment.toml", "--out", tmp_path / "out", "--no-open")
    assert ended.exit_code == 2
    assert "is a write with key and read_by" in ended.err


def test_a_marker_is_a_single_reading(cli: Cli, tmp_path: Path) -> None:
    """Markers are refused where a write has several readings, and found with `batch = 1`."""
    experiment = (
        'dataset = "iot-benchmark:devices=2,sensors=5,steps=200"\noperations = "iot_benchmark"\n'
        '[[target]]\nurl = "duckdb"\nschema = "by_time"\nparameters = {{ batch = {batch} }}\n'
        '[workload]\nmix = {{ write_batch = 1 }}\nschedule = {{ rate = 50 }}\nduration = "1s"\nrepetitions = 1\n'
        "[workload.freshness]\nrate = 5\n"
    )
    for batch, code in ((10, 2), (1, 0)):
        (tmp_path / "markers.toml").write_text(experiment.format(batch=batch), encoding="utf-8")
        ended = cli("run", tmp_path / "markers.toml", "--out", tmp_path / "out", "--no-open")
        assert ended.exit_code == code, ended.err
        if code:
            assert "writes 10 readings by each write_batch, and a marker is a single one" in ended.err


def test_a_rule_for_each_value_of_a_parameter_is_needed(tmp_path: Path) -> None:
    from sensorbench.schemas import load_schema

    file = schema(
        tmp_path, 'duplicates = { keys = { none = "both" } }\nparameters.keys = { values = ["none", "dedup"], default = "none" }'
    )
    with pytest.raises(UsageError, match=r"duplicates\.keys: expected a rule for each value"):
        load_schema(str(file), operations="sensors", database="sqlite")
    rules = 'duplicates = { keys = { none = "both", dedup = "last" } }\nparameters.keys = { values = ["none", "dedup"], default = "none" }'
    loaded = load_schema(str(schema(tmp_path, rules)), operations="sensors", database="sqlite")
    assert loaded.duplicate_rule == "both"
    assert loaded.with_parameters({"keys": "dedup"}).duplicate_rule == "last"


def test_a_setting_of_the_server_may_have_another_rule() -> None:
    from sensorbench.schemas import load_schema

    loaded = load_schema("by_sensor", operations="sensors", database="victoriametrics")
    assert loaded.duplicate_rule == "both"
    assert [loaded.duplicate_rule_at(settings) for settings in ({}, {"dedup.minScrapeInterval": "0s"})] == ["both", "both"]
    assert loaded.duplicate_rule_at({"dedup.minScrapeInterval": "1ms"}) == "any"
