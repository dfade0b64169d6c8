"""Retention in accelerated time: what is done when, what must be there afterwards, and that whatever is done wrongly is found.

The wrong databases are SQLite with other statements: one that removes a day too much, one a day too little, and one whose
maximum is wrong.
"""

import html
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pydantic import ValidationError

from sensorbench.results import read_comparison
from sensorbench.results.retention import EXPIRE, ROLLUP, SIZE, read_retention
from sensorbench.runner import Workload, retention_watch
from sensorbench.runner.retention import AcceleratedTime, Retention, RetentionAction, microseconds, step_us
from sensorbench.runner.retention_watch import RetainedStream
from sensorbench.schemas import shipped_schemas
from sensorbench.schemas.engine_types import DriverStatement
from sensorbench.verification.accounting_queries import GROUP, LOADED_NS, WORD, expect
from sensorbench.verification.retention import Retained, TimeToLive, expire
from sensorbench.wording import counted
from tests.conftest import Cli, Outcome
from tests.servers import LabServers

DAY_US = microseconds("1d")

EXPERIMENT = """
dataset = "beijing-air-quality"
scale = 0.002
operations = "sensors"
{targets}

[workload]
mix = {{ insert_reading = 3, get_sensor_data = 1 }}
schedule = {{ rate = 500, arrival = "poisson" }}
duration = "2s"
repetitions = 1

[workload.delivery]
disorder = {{ model = "batch", size = 400, ratio = 0.5 }}

[workload.retention]
span = "30d"
keep = "7d"
rollup = {{ interval = "1h"{lookback} }}
"""

SCHEMA = """
database = "sqlite"
summary = "For tests."
duplicates = "first"

[create]
statements = ["CREATE TABLE measurements (site INTEGER, zone INTEGER, sensor TEXT, time INTEGER, value REAL, PRIMARY KEY (site, zone, sensor, time))"]

[load_query.measurements]
query = "SELECT site, zone, sensor, time, value FROM measurements"

[operation.get_sensor_data]
statement = "SELECT time, value FROM measurements WHERE site = :site AND zone = :zone AND sensor = :sensor AND time >= :from AND time < :to"

[operation.insert_reading]
statement = "INSERT INTO measurements (site, zone, sensor, time, value) VALUES (:site, :zone, :sensor, :time, :value)"

[retention]
expires_by = "DELETE"
rolls_up_by = "INSERT … SELECT"
{grace}

[retention.create]
statements = ["CREATE TABLE buckets (site INTEGER, zone INTEGER, sensor TEXT, start INTEGER, n INTEGER, low REAL, high REAL, total REAL, PRIMARY KEY (site, zone, sensor, start))"]

[retention.expire]
statement = "DELETE FROM measurements WHERE time < {before} RETURNING 1"
returns = [{{ name = "removed", type = "integer" }}]

[retention.rollup]
statement = '''
INSERT OR {conflict} INTO buckets
SELECT site, zone, sensor, time / :width * :width, count(*), min(value), max(value) {wrong}, sum(value)
FROM measurements WHERE time >= :from AND time < :to GROUP BY 1, 2, 3, 4
'''

[retention.rollup_rows]
statement = "SELECT site, zone, sensor, start, n, low, high, total FROM buckets"
"""

RIGHT = {"before": ":before", "conflict": "REPLACE", "wrong": "", "grace": ""}
# As a time to live does it, which goes by the wall clock.
BY_CLOCK = "CAST(unixepoch('subsec') * 1000000 AS INTEGER) - :age * 1000"
HOUR_OF_GRACE = 'grace = "1 hour"'
PLANTED = {
    "right": {},
    "too_much": {"before": f":before + {DAY_US}"},
    "too_little": {"before": f":before - {DAY_US}"},
    "wrong_max": {"wrong": "+ 1.0"},
    "by_clock": {"before": BY_CLOCK, "grace": HOUR_OF_GRACE},
    "by_clock_late": {"before": f"{BY_CLOCK} - {DAY_US}", "grace": HOUR_OF_GRACE},
}


def run(
    cli: Cli,
    folder: Path,
    targets: list[tuple[str, str]],
    lookback: str = "",
    exit_code: int = 0,
    experiment: str = EXPERIMENT,
) -> tuple[Outcome, dict[str, Any]]:
    folder.mkdir(exist_ok=True)
    listed = "".join(f'\n[[target]]\nurl = "{url}"\nschema = "{schema}"\n' for url, schema in targets)
    file = folder / "experiment.toml"
    file.write_text(experiment.format(targets=listed, lookback=lookback), encoding="utf-8")
    ended = cli("run", file, "--out", folder / "out", "--no-open")
    assert ended.exit_code == exit_code, f"{ended.out}\n{ended.err}"
    return ended, json.loads((folder / "out" / "summary.json").read_text(encoding="utf-8"))


def accounts_at(
    server: str, cli: Cli, folder: Path, schemas: dict[str, str], experiment: str = EXPERIMENT
) -> dict[str, dict[str, Any]]:
    """The accounts of schemas at a server of the lab, by the last part of their variants' ids, some of which are wrong; no action of them fails."""
    targets = [(f"lab:{server}?namespace=sensorbench_retention_{name}", schema) for name, schema in schemas.items()]
    _, summary = run(cli, folder, targets, exit_code=1, experiment=experiment)
    assert {action["failed"] for of in summary["result"]["retention"].values() for action in of["actions"]} == {0}
    return accounts_of(summary)


def accounts_of(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The accounts of the only write of each variant, by the last part of its id."""
    found = {}
    for variant, checks in summary["result"]["contents"].items():
        (found[variant.rpartition("-")[2]],) = checks["accounting"]
    return found


def test_an_action_covers_what_came_since_the_last_one_and_before_it_as_far_as_its_lookback() -> None:
    retention = Retention.model_validate({"span": "30d", "keep": "7d", "rollup": {"interval": "1h", "lookback": "2d"}})
    first = 100 * DAY_US + microseconds("90m")
    readings = AcceleratedTime(retention, first, step_us=microseconds("1h"), pace=1.0)
    assert readings.origin_us == 100 * DAY_US + microseconds("1h")
    # Day 101 begins 22.5 readings later.
    assert readings.next_action(22) is None
    action = readings.next_action(23)
    assert action is not None
    assert (action.time_us, action.from_us, action.to_us, action.before_us) == (
        101 * DAY_US,
        readings.origin_us,
        101 * DAY_US,
        94 * DAY_US,
    )
    assert readings.next_action(23) is None
    readings.note_rolled_up(action)
    # Of days that came meanwhile, the last one does it. It begins two days before the one before ended, if there was anything yet.
    action = readings.next_action(23 + 4 * 24)
    assert action is not None
    assert (action.time_us, action.from_us, action.to_us, action.before_us) == (
        105 * DAY_US,
        readings.origin_us,
        105 * DAY_US,
        98 * DAY_US,
    )
    # It fails: what it should have rolled up is left to the next one.
    assert (readings.last_action(23 + 4 * 24).from_us, readings.last_action(23 + 4 * 24).before_us) == (
        readings.origin_us,
        98 * DAY_US,
    )
    readings.note_rolled_up(action)
    action = readings.next_action(23 + 5 * 24)
    assert action is not None
    assert (action.time_us, action.from_us) == (106 * DAY_US, 103 * DAY_US)
    readings.note_rolled_up(action)
    last = readings.last_action(23 + 5 * 24)
    assert (last.from_us, last.before_us) == (104 * DAY_US, 99 * DAY_US)
    assert last.to_us > readings.now_us(23 + 5 * 24)


def test_times_go_on_by_the_span_also_where_readings_are_sent_again() -> None:
    retention = Retention(span="30d", keep="7d")
    for pace in (1.0, 0.95, 1.02):
        step = step_us(retention, 10_000, pace)
        assert step % 1000 == 0
        assert AcceleratedTime(retention, 0, step, pace).now_us(10_000) == pytest.approx(30 * DAY_US, rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"retention": {"span": "7d", "keep": "7d"}}, "expected more than keep"),
        (
            {"retention": {"span": "30d", "keep": "7d", "every": "90m", "rollup": {"interval": "1h"}}},
            "every: expected a multiple of rollup.interval",
        ),
        ({"retention": {"span": "30d", "keep": "7d", "rollup": {"interval": "7m"}}}, "a day is not a multiple of 7m"),
        ({"retention": {"span": "30d", "keep": "7d", "rollup": {"interval": "1h", "lookback": "8d"}}}, "rollup.lookback"),
        ({"retention": {"span": "300d", "keep": "7d", "every": "1m"}}, "expected at most 10,000"),
        ({"repetitions": 3}, "expected 1 with retention"),
        ({"warmup": "1s"}, 'expected "0" with retention'),
        ({"operations": None, "duration": "2s"}, "expected operations, or schedule.rate and duration"),
        ({"log": "none"}, "record of each operation"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], says: str) -> None:
    keys = {
        "mix": {"insert_reading": 1},
        "operations": 100,
        "repetitions": 1,
        "retention": {"span": "30d", "keep": "7d"},
        **changes,
    }
    with pytest.raises(ValidationError, match=says):
        Workload.model_validate(keys)


@pytest.mark.parametrize(
    ("schema", "lookback", "says"),
    [
        ("star", "", "does not say how readings expire in sqlite-star"),
        ("schema.toml", "", "keeps no rollup"),
        ("unit.toml", "", "workload.retention.keep"),
        ("wrong.toml", "", "line 26, retention.expire: the operation has no parameter :befor"),
    ],
)
def test_schemas_that_cannot_do_it_are_refused_before_anything_is_written(
    cli: Cli, tmp_path: Path, schema: str, lookback: str, says: str
) -> None:
    whole = SCHEMA.format(**RIGHT)
    without = whole[: whole.index("[retention.rollup]")].replace('rolls_up_by = "INSERT … SELECT"', "")
    (tmp_path / "schema.toml").write_text(without, encoding="utf-8")
    (tmp_path / "unit.toml").write_text(whole.replace("[retention]", '[retention]\nunit = "5 days"'), encoding="utf-8")
    (tmp_path / "wrong.toml").write_text(whole.replace("time < :before", "time < :befor"), encoding="utf-8")
    file = tmp_path / "experiment.toml"
    file.write_text(
        EXPERIMENT.format(targets=f'\n[[target]]\nurl = "sqlite"\nschema = "{schema}"\n', lookback=lookback), encoding="utf-8"
    )
    ended = cli("run", file, "--out", tmp_path / "out", "--no-open")
    assert ended.exit_code == 2
    assert says in ended.err.replace("\n", " ")
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """One run of each planted schema under the same writes."""
    from tests.conftest import run_main

    folder = tmp_path_factory.mktemp("planted")
    for name, words in PLANTED.items():
        text = SCHEMA.format(**{**RIGHT, **words})
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    targets = "".join(f'\n[[target]]\nurl = "sqlite"\nschema = "{name}.toml"\n' for name in PLANTED)
    (folder / "experiment.toml").write_text(EXPERIMENT.format(targets=targets, lookback=""), encoding="utf-8")
    run_main(("run", folder / "experiment.toml", "--out", folder / "out", "--no-open"))
    return folder, json.loads((folder / "out" / "summary.json").read_text(encoding="utf-8"))


def test_what_expired_and_was_rolled_up_rightly_is_found_to_be_right(planted: tuple[Path, dict[str, Any]]) -> None:
    of_write = accounts_of(planted[1])["right"]
    retention = of_write["retention"]
    rollup = retention["rollup"]
    assert (of_write["lost"], retention["not_expired"]) == (0, 0)
    assert retention["kept"] > 100
    # More than was written: what was loaded expired, too.
    assert retention["expired"] > of_write["readings"] > retention["kept"]
    assert rollup["rows"] == rollup["right"] > 500
    assert (rollup["missing"], rollup["differ"], rollup["extra"], rollup["by_late"], rollup["undecided"]) == (0, 0, 0, 0, 0)


def test_actions_that_fail_are_counted_with_their_error_wherever_results_are_shown(cli: Cli, tmp_path: Path) -> None:
    overflow = "time < :before + abs(-9223372036854775807 - 1)"
    text = SCHEMA.format(**RIGHT).replace("time < :before", overflow)
    tmp_path.joinpath("fails.toml").write_text(text, encoding="utf-8")
    ended, summary = run(cli, tmp_path, [("sqlite", "fails.toml")], exit_code=1)
    ((variant, of),) = summary["result"]["retention"].items()
    expire = of["actions"][1]
    assert (expire["kind"], expire["failed"]) == ("expire", expire["count"] + 1)
    says = f"{counted(expire['failed'], 'expire action')} failed: {expire['first_error']}"
    assert "integer overflow" in says
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for shown in (ended.out, html.unescape(page)):
        assert says in shown
    assert accounts_of(summary)[variant.rpartition("-")[2]]["retention"]["not_expired"] > 100


def test_a_rollup_that_does_not_look_back_lacks_late_readings_and_nothing_else(cli: Cli, tmp_path: Path) -> None:
    ended, summary = run(cli, tmp_path, [("sqlite", "natural")], lookback=', lookback = "1h"')
    (of_write,) = accounts_of(summary).values()
    rollup = of_write["retention"]["rollup"]
    assert rollup["by_late"] == rollup["missing"] + rollup["differ"] + rollup["extra"] > 0
    assert (of_write["lost"], of_write["retention"]["not_expired"]) == (0, 0)
    # How far to look back is the user's choice.
    assert summary["answers_equal"] is True
    assert "all of them by late readings" in ended.out
    assert "all of them by late readings" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_what_is_removed_too_early_is_lost_and_what_is_removed_too_late_is_still_there(
    planted: tuple[Path, dict[str, Any]],
) -> None:
    accounts = accounts_of(planted[1])
    assert accounts["too_much"]["lost"] > 0 == accounts["too_much"]["retention"]["not_expired"]
    assert accounts["too_little"]["retention"]["not_expired"] > 0 == accounts["too_little"]["lost"]
    # A day of thirty, of which three quarters of a thousand operations are writes.
    assert accounts["too_little"]["retention"]["not_expired"] == pytest.approx(25, abs=15)
    for name, says in (
        ("too_much", "it was acknowledged, and is not there"),
        ("too_little", "it is older than what is kept, and is there"),
    ):
        (checks,) = (checks for variant, checks in planted[1]["result"]["contents"].items() if variant.endswith(name))
        assert any(problem["problem"].startswith(says) for problem in checks["problems"])
    assert planted[1]["answers_equal"] is False


def test_what_expires_by_the_clock_may_be_there_for_its_grace_and_no_longer(planted: tuple[Path, dict[str, Any]]) -> None:
    accounts = accounts_of(planted[1])
    in_time, too_late = accounts["by_clock"], accounts["by_clock_late"]
    assert (in_time["lost"], in_time["retention"]["not_expired"], too_late["lost"]) == (0, 0, 0)
    assert in_time["retention"]["rollup"]["right"] == in_time["retention"]["rollup"]["rows"] > 500
    # Those of the hour before are neither kept nor expired.
    exactly = accounts["right"]["retention"]
    assert 0 <= exactly["expired"] - in_time["retention"]["expired"] < 5
    assert in_time["retention"]["kept"] == exactly["kept"]
    assert too_late["retention"]["not_expired"] > 10


def test_a_rollup_that_computes_wrongly_is_not_explained_by_late_readings(planted: tuple[Path, dict[str, Any]]) -> None:
    rollup = accounts_of(planted[1])["wrong_max"]["retention"]["rollup"]
    assert rollup["differ"] == rollup["rows"] > 0
    assert rollup["by_late"] == 0
    (checks,) = (checks for variant, checks in planted[1]["result"]["contents"].items() if variant.endswith("wrong_max"))
    assert checks["problems"][0]["problem"].startswith("the row of the rollup has other values")


def test_actions_sizes_and_latencies_beside_them_are_kept_and_shown(planted: tuple[Path, dict[str, Any]]) -> None:
    folder, summary = planted
    result = read_comparison(folder / "out")
    ((variant, (only,)),) = ((name, runs) for name, runs in result.runs.items() if name.endswith("right"))
    events = read_retention(only.folder)
    assert events is not None
    assert {event.kind for event in events} == {SIZE, ROLLUP, EXPIRE}
    assert all(event.start_ns <= event.end_ns for event in events)
    # SQLite may be locked when its size is wanted; an action waits for the lock.
    assert [event.error for event in events if event.kind != SIZE and event.error] == []
    assert [event.is_last for event in events if event.kind == EXPIRE][-1] is True
    actions = [event for event in events if event.kind != SIZE]
    assert [event.kind for event in actions] == [ROLLUP, EXPIRE] * (len(actions) // 2)
    of = summary["result"]["retention"][variant]
    assert [action["count"] for action in of["actions"]] == [len(actions) // 2 - 1] * 2
    assert of["actions"][0]["count"] >= 2
    # Everything that is gone was removed by these actions, and each says how much it was.
    assert of["actions"][1]["removed"] == accounts_of(summary)["right"]["retention"]["expired"]
    writes = next(beside for beside in of["latency"] if beside["operation"] == "insert_reading")
    assert writes["beside"] > 0 < writes["others"]
    noted = only.table("events")
    assert noted is not None
    assert noted["name"].to_pylist().count("expire begins") == of["actions"][1]["count"]
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert "What expired, and what did that cost?" in page
    charts = {file.stem for file in (folder / "out" / "charts").glob("*.svg")}
    assert {"retention-size", "retention-latency-insert_reading", "retention-latency-get_sensor_data"} <= charts


def test_postgresql_drops_partitions_or_deletes_rows_and_has_the_same_left(
    cli: Cli, lab_servers: LabServers, tmp_path: Path
) -> None:
    lab_servers.start("postgresql")
    targets = [(f"lab:postgresql?namespace=sensorbench_retention_{name}", name) for name in ("natural", "daily")]
    ended, summary = run(cli, tmp_path, targets)
    accounts = accounts_of(summary)
    assert accounts.keys() == {"natural", "daily"}
    for of_write in accounts.values():
        retention = of_write["retention"]
        assert (of_write["lost"], retention["not_expired"]) == (0, 0)
        assert retention["rollup"]["right"] == retention["rollup"]["rows"] > 0
    assert accounts["natural"]["retention"] == accounts["daily"]["retention"]
    by = {variant.rpartition("-")[2]: of for variant, of in summary["result"]["retention"].items()}
    assert {action["failed"] for of in by.values() for action in of["actions"]} == {0}
    assert by["natural"]["actions"][1]["removed"] == accounts["natural"]["retention"]["expired"]
    assert by["daily"]["actions"][1]["removed"] is None
    assert "each as it must be" in ended.out


def test_questdb_drops_partitions_and_a_day_too_much_and_days_too_little_are_found(
    cli: Cli, lab_servers: LabServers, tmp_path: Path
) -> None:
    lab_servers.start("questdb")
    text = shipped_schemas("sensors", "questdb")["as_sent"].read_text(encoding="utf-8")
    right = "timestamp < :before"
    # The last three days stay, and one goes that should not.
    wrong = f"{right} - {3 * DAY_US} OR (timestamp >= :before AND {right} + {DAY_US})"
    assert text.count(right) == 1
    (tmp_path / "wrong.toml").write_text(text.replace(right, wrong), encoding="utf-8")
    accounts = accounts_at("questdb", cli, tmp_path, {"right": "as_sent", "wrong": "wrong.toml"})
    of_right, of_wrong = accounts["as_sent"]["retention"], accounts["wrong"]["retention"]
    assert (accounts["as_sent"]["lost"], of_right["not_expired"]) == (0, 0)
    assert of_right["kept"] > 100 < of_right["expired"]
    assert of_right["rollup"]["right"] == of_right["rollup"]["rows"] > 500
    assert accounts["wrong"]["lost"] > 0 < of_wrong["not_expired"]


def test_influxdb_deletes_and_a_day_too_much_or_too_little_is_found(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    lab_servers.start("influxdb")
    text = shipped_schemas("sensors", "influxdb")["by_sensor"].read_text(encoding="utf-8")
    right = "time < :before"
    assert text.count(right) == 1
    schemas = {"right": "by_sensor"}
    for name, shift in (("too_much", "+ 1d"), ("too_little", "- 1d")):
        (tmp_path / f"{name}.toml").write_text(text.replace(right, f"{right} {shift}"), encoding="utf-8")
        schemas[name] = f"{name}.toml"
    accounts = accounts_at("influxdb", cli, tmp_path, schemas)
    retention = accounts["by_sensor"]["retention"]
    assert (accounts["by_sensor"]["lost"], retention["not_expired"]) == (0, 0)
    assert retention["rollup"]["right"] == retention["rollup"]["rows"] > 500
    assert accounts["too_much"]["lost"] > 0 == accounts["too_much"]["retention"]["not_expired"]
    assert accounts["too_little"]["retention"]["not_expired"] > 0 == accounts["too_little"]["lost"]


WITHOUT_ROLLUP = EXPERIMENT.replace('rollup = {{ interval = "1h"{lookback} }}\n', "").replace("size = 400", "size = 100")
# A time to live refuses readings that are later than they are kept. Where a server falls behind, as it may at 500 per second, nearly all are.
IN_TIME = WITHOUT_ROLLUP.replace("rate = 500", "rate = 200").replace('duration = "2s"', 'duration = "5s"')


def test_iotdb_has_a_time_to_live_or_deletes_and_a_day_too_much_is_found(
    cli: Cli, lab_servers: LabServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab_servers.start("iotdb")
    shutil.copy(shipped_schemas("sensors", "iotdb")["tags"], tmp_path / "too_much.toml")
    execute = retention_watch.execute_retention

    # The length of the time to live is a literal, which no schema can make shorter.
    def a_day_too_much(stream: RetainedStream, statement: DriverStatement, action: RetentionAction) -> list[list[object]]:
        too_much = DAY_US if "too_much" in stream.target.url else 0
        return execute(stream, statement, replace(action, before_us=action.before_us + too_much))

    monkeypatch.setattr(retention_watch, "execute_retention", a_day_too_much)
    schemas = {"ttl": "tags", "delete": "locations", "too_much": "too_much.toml"}
    accounts = accounts_at("iotdb", cli, tmp_path, schemas, IN_TIME)
    for name in ("tags", "locations"):
        retention = accounts[name]["retention"]
        assert (accounts[name]["lost"], retention["not_expired"]) == (0, 0)
        assert retention["kept"] > 100 < retention["expired"]
    assert accounts["too_much"]["lost"] > 0 == accounts["too_much"]["retention"]["not_expired"]


# For a time to live that counts whole seconds from the write: 12 of 18.
BY_WRITE = (
    WITHOUT_ROLLUP.replace("rate = 500", "rate = 100").replace('duration = "2s"', 'duration = "18s"').replace('"7d"', '"20d"')
)


def test_cassandra_expires_readings_so_long_after_their_write(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    lab_servers.start("cassandra")
    text = shipped_schemas("sensors", "cassandra")["by_sensor"].read_text(encoding="utf-8")
    assert text.count("${ttl_s}") == 1
    (tmp_path / "too_much.toml").write_text(text.replace("${ttl_s}", "6"), encoding="utf-8")
    found = {}
    # What is read later has expired meanwhile: each has a run of its own.
    for name, schema, exit_code in (("right", "by_sensor", 0), ("wrong", f"{tmp_path}/too_much.toml", 1)):
        target = f"lab:cassandra?namespace=sensorbench_retention_{name}"
        _, summary = run(cli, tmp_path / name, [(target, schema)], "", exit_code, BY_WRITE)
        (of_write,) = accounts_of(summary).values()
        found[name] = of_write, summary
    of_write, summary = found["right"]
    (load,) = summary["result"]["load"].values()
    retention = of_write["retention"]
    assert (of_write["lost"], retention["not_expired"], retention["ttl_s"]) == (0, 0, 12)
    assert retention["expired"] > 100 < retention["kept"] - load["rows"]
    assert found["wrong"][0]["lost"] > 0 == found["wrong"][0]["retention"]["not_expired"]


class FixedLife(TimeToLive):
    """At a time at which what was written at 500 expires, with a margin of 200."""

    def written_ns(self, later_s: float) -> int:
        return 500 + (200 if later_s > 0 else -200)


DAY_ONE = "TIMESTAMP '2020-01-01'"


@pytest.mark.parametrize(
    ("deliveries", "is_expired", "may_be_gone"),
    [
        ([(100, 200, True)], True, False),
        ([(100, 200, True), (900, 950, True)], False, False),
        ([(500, 600, True)], False, True),
        ([(900, 1000, True)], False, False),
        # One of unknown outcome may have been written last, or first.
        ([(100, 200, True), (150, 250, False)], False, True),
        # What was loaded has no time to live.
        ([(LOADED_NS, LOADED_NS, True)], False, False),
    ],
)
def test_what_expires_by_its_write_is_known_by_its_last_delivery(
    deliveries: list[tuple[int, int, bool]], is_expired: bool, may_be_gone: bool
) -> None:
    with duckdb.connect() as accounts:
        rows = ", ".join(f"({DAY_ONE}, 7::UBIGINT, 1.0, {is_ok}, {start}, {end})" for start, end, is_ok in deliveries)
        accounts.execute(f"CREATE TABLE delivered AS FROM (VALUES {rows}) AS known(time, hash, ranked, is_ok, start_ns, end_ns)")
        accounts.execute(GROUP.format(key='"time"', word=WORD))
        expect(accounts, "last", '"time"', "admitted", "grouped")
        expire(accounts, '"time"', '"time"', Retained(None, [], None, 0, 1, life=FixedLife(ttl_s=0, offset_ns=0)))
        found = accounts.sql("SELECT is_expired, may_be_gone, rows, is_sure FROM expected").fetchall()
    assert found == [(is_expired, may_be_gone, int(not is_expired), not may_be_gone)]


def test_a_time_to_live_of_few_seconds_and_of_unknown_length_are_refused(cli: Cli, tmp_path: Path) -> None:
    whole = SCHEMA.format(**RIGHT)
    without = whole[: whole.index("[retention]")] + '[retention]\nages_from = "write"\nexpires_by = "TTL"\n'
    (tmp_path / "schema.toml").write_text(without, encoding="utf-8")
    file = tmp_path / "experiment.toml"
    target = '\n[[target]]\nurl = "sqlite"\nschema = "schema.toml"\n'
    closed = BY_WRITE.replace(
        'schedule = {{ rate = 100, arrival = "poisson" }}', "schedule = {{ concurrency = 1 }}\noperations = 10"
    )
    for experiment, says in ((WITHOUT_ROLLUP, "Expected at least 5 s"), (closed, "expected schedule.rate")):
        file.write_text(experiment.format(targets=target), encoding="utf-8")
        ended = cli("run", file, "--out", tmp_path / "out", "--no-open")
        assert ended.exit_code == 2
        assert says in ended.err.replace("\n", " ")
        assert not (tmp_path / "out").exists()


def test_a_materialized_view_of_clickhouse_has_late_readings_at_once(cli: Cli, tmp_path: Path) -> None:
    _, summary = run(cli, tmp_path, [("chdb", "rolled_up")])
    (of_write,) = accounts_of(summary).values()
    assert (of_write["lost"], of_write["retention"]["not_expired"]) == (0, 0)
    assert of_write["retention"]["rollup"]["right"] == of_write["retention"]["rollup"]["rows"] > 0
    (of,) = summary["result"]["retention"].values()
    assert of["is_kept_by_database"] is True
    assert [action["kind"] for action in of["actions"]] == ["expire"]
