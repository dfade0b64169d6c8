"""The star schema with MySQL's plan for the locations with a sensor: on a real MariaDB it reads a few rows, and answers as the plain one does."""

import json
from typing import Any

import pytest

from sensorbench.report import build
from sensorbench.results import ComparisonResult, read_comparison
from tests.conftest import run_main
from tests.servers import LabServers

Q4 = "get_floor_zone_data"
PLAIN, PLANNED = "mariadb-star", "mariadb-star_mysql_plan"
# All cells of the building have some sensors, and no sensor is at all of them.
SCALE, READINGS, LOCATIONS, OPERATIONS = 0.002, 165_000, 28, 38


@pytest.fixture(scope="module")
def result(lab_servers: LabServers, tmp_path_factory: pytest.TempPathFactory) -> ComparisonResult:
    """Both schemas, asked for nothing else."""
    lab_servers.start("mariadb")
    folder = tmp_path_factory.mktemp("plan")
    targets = "".join(f'[[target]]\nurl = "lab:mariadb"\nschema = "{schema}"\n' for schema in ("star", "star_mysql_plan"))
    (folder / "experiment.toml").write_text(
        f'dataset = "cu-bems"\nscale = {SCALE}\n{targets}[workload]\nmix = {{ {Q4} = 1 }}\noperations = {OPERATIONS}\nrepetitions = 1\n',
        encoding="utf-8",
    )
    with pytest.MonkeyPatch.context() as patch:
        # Drawing pictures takes most of a report's time.
        patch.setattr(build, "write_chart_files", lambda *_: None)
        assert run_main(("run", folder / "experiment.toml", "--replace", "--no-open", "--out", folder / "out")) == 0
    return read_comparison(folder / "out")


def rows_read(result: ComparisonResult, variant: str, *counters: str) -> float:
    """What the server counted of some kinds of reading from the beginning of a run to its end."""
    (run,) = result.runs[variant]
    table = run.table("status")
    assert table is not None
    counted: dict[str, list[float]] = {}
    for row in table.sort_by("time_ns").to_pylist():
        counted.setdefault(row["name"], []).append(row["value"])
    return sum(counted[name][-1] - counted[name][0] for name in counters)


def tables(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The tables of a plan, in the order in which they are read."""
    loop = plan["query_block"]["temporary_table"]["nested_loop"]
    return [(step.get("block-nl-join") or step)["table"] for step in loop]


def test_the_recorded_plan_takes_sensors_then_locations_then_the_first_fact(result: ComparisonResult) -> None:
    plan = tables(json.loads(result.plans[PLANNED][Q4].text))
    assert [table["table_name"] for table in plan] == ["s", "l", "m"]
    facts = plan[-1]
    assert facts["distinct"] is True
    assert facts["key"] == "measurements_sensor_location"
    assert facts["used_key_parts"] == ["sensor_id", "location_id"]
    # By itself the server begins with the facts.
    assert '"distinct": true' not in result.plans[PLAIN][Q4].text


def test_of_each_pair_of_sensor_and_location_one_fact_is_read(result: ComparisonResult) -> None:
    # Look-ups and steps along an index: of a pair, one look-up, and no step to its next fact.
    looked_up = rows_read(result, PLANNED, "Handler_read_key")
    stepped = rows_read(result, PLANNED, "Handler_read_next")
    assert 0 < looked_up <= 2 * LOCATIONS * OPERATIONS
    assert stepped <= LOCATIONS * OPERATIONS
    plain = rows_read(result, PLAIN, "Handler_read_key", "Handler_read_next", "Handler_read_rnd_next")
    assert plain > READINGS / 19 * OPERATIONS / 2


def test_both_give_the_answers_that_the_dataset_has(result: ComparisonResult) -> None:
    assert result.summary is not None
    assert result.summary.answers_equal is True
    answers = result.summary.result.answers[Q4]
    assert answers.compared >= OPERATIONS
    assert answers.compared_with_reference > 0
