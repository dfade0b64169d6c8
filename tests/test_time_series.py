"""Time-series databases over HTTP: what their servers keep when they are killed, and the answers of every schema."""

import json
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from sensorbench import lab
from sensorbench._engine import Target
from sensorbench.lab.processes import wait_until
from tests.conftest import TEST_OWNER, Cli
from tests.servers import LabServers

POINTS = {
    "create": {"points": {"t": {"tags": ["sensor"], "fields": ["value"]}}},
    "tables": {
        "t": [{"name": "sensor", "type": "text"}, {"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"}]
    },
}
ROWS = 1000


def summary_of(out: Path) -> dict[str, Any]:
    return json.loads((out / "summary.json").read_text(encoding="utf-8"))


def test_what_influxdb_has_acknowledged_outlives_its_process(lab_home: Path) -> None:
    instance = lab.up(lab.ServerSpec("influxdb", name="killed"))
    target = Target(lab.url_of(instance))
    target.create(json.dumps(POINTS), "", intent="create", owner=TEST_OWNER.to_json())
    times = pa.array(range(ROWS), pa.timestamp("us"))
    rows = pa.table({"sensor": ["a"] * ROWS, "time": times, "value": [float(number) for number in range(ROWS)]})
    load = target.load("t", rows.to_reader())
    assert load.wait(60.0)
    (node,) = instance.nodes
    assert node.process is not None
    process = psutil.Process(node.process.pid)
    process.kill()
    assert wait_until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, timeout_s=10.0)
    lab.restart("killed")
    assert target.count("t") == ROWS
    lab.down("killed")


@pytest.mark.parametrize(("study", "schemas"), [("iot", ("by_sensor", "wide"))])
def test_every_schema_gives_the_answers_of_others(
    cli: Cli, lab_servers: LabServers, tmp_path: Path, study: str, schemas: tuple[str, ...]
) -> None:
    lab_servers.start("influxdb")
    out = tmp_path / "out"
    named = [word for schema in (*schemas, "natural") for word in ("--schema", schema)]
    ended = cli("study", "run", study, "--target", "lab:influxdb", "--target", "sqlite", *named, "--dataset", "beijing-air-quality",
                "--scale", "0.001", "--operations", "40", "--repetitions", "1", "--no-open", "--out", out)  # fmt: skip
    assert ended.exit_code == 0, ended.err
    summary = summary_of(out)
    assert summary["answers_equal"] is True
    assert {variant["id"] for variant in summary["variants"]} == {
        "sqlite-natural",
        *(f"influxdb-{schema}" for schema in schemas),
    }
    # Debian's version is named, and not ranked against a current database.
    described = summary["result"]["load"][f"influxdb-{schemas[0]}"]["description"]
    assert (described["database"], described["version"][:4]) == ("InfluxDB", "1.6.")
    assert {place["variant"] for ranking in summary["result"]["rankings"] for place in ranking["places"]} == {"sqlite-natural"}
