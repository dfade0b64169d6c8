"""The building-sensor study on real servers, from nothing to a report; and what happens when a server dies."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sensorbench import lab
from sensorbench.lab.processes import processes_of
from sensorbench.results import read_comparison
from sensorbench.studies import STUDIES
from tests.conftest import Cli
from tests.servers import LabServers
from tests.streams import AGAIN, check_rules, schemas_with_a_rule

# The study over all servers takes four minutes alone on two cores, and shares them with the other worker's tests.
pytestmark = pytest.mark.timeout(1200)

TINY = ("--dataset", "beijing-air-quality", "--scale", "0.01", "--operations", "80", "--no-open")
VARIANTS = {
    "cassandra-by_sensor",
    "cassandra-by_sensor_month",
    "cassandra-by_sensor_tables",
    "cassandra-generic",
    "influxdb-by_sensor",
    "influxdb-wide",
    "mariadb-star",
    "mariadb-star_mysql_plan",
    "mariadb-star_composite",
    "mariadb-star_wide",
    "mariadb-natural",
    "postgresql-star",
    "postgresql-star_composite",
    "postgresql-natural",
    "postgresql-partitioned",
    "questdb-by_time",
    "questdb-series",
    "questdb-as_sent",
    "redis-by_sensor",
    "redis-cluster-by_sensor",
    "prometheus-by_sensor",
    "prometheus-info",
    "victoriametrics-by_sensor",
    "victoriametrics-info",
    "clickhouse-natural",
    "clickhouse-by_time",
    "clickhouse-replacing",
    "iotdb-tags",
    "iotdb-locations",
    "iotdb-paths",
}


def summary_of(out: Path) -> dict[str, Any]:
    return json.loads((out / "summary.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def study(lab_servers: LabServers, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All schemas on servers of the lab that stay."""
    from tests.conftest import run_main

    out = tmp_path_factory.mktemp("servers") / "iot"
    # Documents, HBase and what lies over it are asked less, because they are slow: tests/test_documents.py, tests/test_hbase_driver.py, tests/test_time_series.py.
    names = [name for name in lab_servers if not name.startswith(("ferretdb", "hbase", "opentsdb"))]
    lab_servers.start(*names)
    targets = [word for name in names for word in ("--target", f"lab:{name}")]
    assert run_main(("study", "run", "iot", *targets, *TINY, "--repetitions", "3", "--out", out)) == 0
    return out


def test_all_servers_give_equal_answers(study: Path) -> None:
    summary = summary_of(study)
    assert summary["answers_equal"] is True
    assert {variant["id"] for variant in summary["variants"]} == VARIANTS
    assert summary["result"]["known_answers"].keys() == VARIANTS
    assert {checks["wrong"] for checks in summary["result"]["known_answers"].values()} == {0}
    assert len(summary["result"]["answers"]) == 4
    assert all(equality["compared_with_reference"] > 0 for equality in summary["result"]["answers"].values())


def test_claims_are_judged_on_servers(study: Path) -> None:
    claims = {claim["id"]: claim for claim in summary_of(study)["claims"]}
    scaled = {claim.id for claim in STUDIES["iot"].claims if claim.min_scale}
    assert {claims[name]["verdict"] for name in scaled} == {"below minimum scale"}
    # Spikes, of which IOT-10 speaks, need not occur in a short run.
    others = claims.keys() - scaled - {"IOT-10", "IOT-22"}
    assert others == {"IOT-3", "IOT-7", "IOT-11", "IOT-18", "IOT-19"}
    for name in others:
        assert claims[name]["verdict"] not in {"not tested", "below minimum scale"}, claims[name]
    # The paper's MySQL is not there; MariaDB stands for it, and is named.
    assert claims["IOT-3"]["substitutes"] == {"sql": "mariadb-star"}
    assert "mariadb-star for mysql/star" in claims["IOT-3"]["reason"]
    # About the locations with a sensor, what has MySQL's plan stands for it.
    assert claims["IOT-18"]["substitutes"] == {"sql": "mariadb-star", "sql_planned": "mariadb-star_mysql_plan"}
    assert "mariadb-star_mysql_plan for mysql/star" in claims["IOT-18"]["reason"]


def test_sections_say_plan_partition_and_order(study: Path) -> None:
    sections = {section["title"]: section for section in summary_of(study)["result"]["sections"]}
    plans = {row[0]: row[1:3] + row[4:] for row in sections["The plan for the locations with a sensor"]["rows"]}
    assert plans["mariadb-star_mysql_plan"] == ["s → l → m", "left", "yes"]
    assert plans["mariadb-star"][2] == "no"
    (partition,) = sections["How large a partition becomes"]["rows"]
    variant, largest, readings, of_reading, year, five_years, _ = partition
    assert variant == "cassandra-by_sensor"
    assert largest / readings == pytest.approx(of_reading)
    assert five_years == pytest.approx(5 * year)
    orders = {row[0]: row[1:] for row in sections["The order of answers"]["rows"]}
    assert orders["mariadb-star"] == ["none promised", None, None]
    declared, checked, in_order = orders["cassandra-by_sensor"]
    assert (declared, in_order) == ("time descending", checked)
    assert checked > 0
    drawn = {file.stem for file in (study / "charts").glob("*.svg")}
    assert {"requests-get_sensor_data-mariadb-star-all", "use-processors", "use-megabytes", "use-disk_bytes_per_s"} <= drawn
    assert "requests-get_floor_zone_data-mariadb-star_mysql_plan-all" in drawn
    assert "requests-get_sensor_data-mariadb-star_mysql_plan-all" not in drawn


def test_each_kind_of_system_has_a_made_and_a_generic_model(study: Path) -> None:
    models = summary_of(study)["result"]["models"]
    assert {(row["kind"], row["operation"]) for row in models} >= {("nosql", "get_sensor_data"), ("sql", "get_peak_data")}
    shaped = {row["kind"]: (row["shaped"]["variant"], row["generic"]["variant"]) for row in models}
    assert shaped == {"nosql": ("cassandra-by_sensor", "cassandra-generic"), "sql": ("mariadb-natural", "mariadb-star")}
    assert all(row["ratio"]["value"] > 0.0 for row in models)


def test_servers_are_watched_on_the_runs_clock(study: Path) -> None:
    result = read_comparison(study)
    assert {variant: len(runs) for variant, runs in result.runs.items()} == dict.fromkeys(VARIANTS, 3)
    for variant, runs in result.runs.items():
        for run in runs:
            resources = run.table("resources").to_pylist()
            server = variant.rpartition("-")[0]
            of_server = [row for row in resources if row["process"].partition(":")[0] == server]
            assert of_server, f"{variant}: { ({row['process'] for row in resources}) }"
            assert max(row["memory_bytes"] for row in of_server) > 1_000_000
            totals = run.manifest.totals
            assert totals is not None
            assert max(row["time_ns"] for row in resources) <= totals.duration_ns + 2_000_000_000
            # The other servers are up, too, and their idle use is known.
            assert {row["process"].partition(":")[0] for row in resources} >= {
                "client",
                "cassandra",
                "mariadb",
                "postgresql",
                "redis",
            }


def test_loads_are_counted_and_sized(study: Path) -> None:
    summary = summary_of(study)
    for variant in VARIANTS:
        load = summary["result"]["load"][variant]
        assert load["readings_per_s"] > 0
        if load["size"].get("unknown"):
            # They report the size of all their data together, and both of their schemas lie there, or of a part of them.
            assert variant.startswith(("victoriametrics", "prometheus", "iotdb"))
        else:
            assert load["size"]["total_bytes"] > 0
        assert load["description"]["version"]


def test_no_password_reaches_results(study: Path, lab_servers: LabServers) -> None:
    # Cassandra and HBase ask for none; asking for one would make it.
    passwords = [instance.password().encode() for instance in lab_servers.started() if instance.credentials.exists()]
    assert len(passwords) >= 4
    for file in study.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert not any(password in content for password in passwords), file


# The dialects of servers that take a stream.
STREAMED = {
    "cassandra": "cassandra",
    "clickhouse": "clickhouse",
    "hbase": "hbase",
    "influxdb": "influxdb",
    "iotdb": "iotdb",
    "mariadb": "mysql",
    "opentsdb": "opentsdb",
    "postgresql": "postgresql",
    "prometheus": "prometheus",
    "redis": "redis",
    "victoriametrics": "victoriametrics",
}
# Of what is sent again, these refuse some with an error, or all.
REFUSES = {"mariadb", "postgresql", "prometheus"}


@pytest.mark.parametrize("server", STREAMED)
def test_streams_are_accounted_for_by_the_rule_of_each_schema(
    cli: Cli, lab_servers: LabServers, tmp_path: Path, server: str
) -> None:
    lab_servers.start(server)
    schemas = schemas_with_a_rule(STREAMED[server])
    # Row keys have a salt or not for all of a server's data.
    targets = [(f"lab:{server}?namespace=sensorbench_streams_{name}", name) for name in schemas if name != "salted"]
    accounts = check_rules(cli, tmp_path, targets)
    refused = {of_write["unknown"] for of_write in accounts.values()}
    assert all(0 < unknown <= AGAIN for unknown in refused) if server in REFUSES else refused == {0}


def test_what_sensorbench_did_not_create_is_not_touched(
    cli: Cli, study: Path, lab_servers: dict[str, lab.Instance], tmp_path: Path
) -> None:
    # What the first study loaded is still there.
    refused = cli("study", "run", "iot", "--target", "lab:redis", *TINY, "--out", tmp_path / "refused")
    assert refused.exit_code == 2
    assert "give --replace" in " ".join(refused.err.split())
    assert not (tmp_path / "refused").exists()
    replaced = cli("study", "run", "iot", "--target", "lab:redis", *TINY, "--replace", "--out", tmp_path / "replaced")
    assert replaced.exit_code == 0, replaced.err


def test_bare_names_start_servers_that_are_gone_afterwards(cli: Cli, lab_home: Path, tmp_path: Path) -> None:
    before = {row["name"] for row in cli("lab", "list", "--json").json}
    ended = cli("study", "run", "iot", "--target", "postgresql", "--target", "redis", "--schema", "natural", "--schema", "by_sensor", *TINY,
                "--repetitions", "1", "--out", tmp_path / "out")  # fmt: skip
    assert ended.exit_code == 0, ended.err
    assert summary_of(tmp_path / "out")["answers_equal"] is True
    assert {row["name"] for row in cli("lab", "list", "--json").json} == before
    servers = summary_of(tmp_path / "out")["environment"]["servers"]
    assert len(servers) == 2
    assert all(server["version"] for server in servers.values())


def test_a_server_that_dies_in_a_run_leaves_a_readable_result(cli: Cli, lab_home: Path, tmp_path: Path) -> None:
    out, instance = tmp_path / "out", lab.up(lab.ServerSpec("redis", name="dying"))

    def kill_when_it_runs() -> None:
        end_s = time.monotonic() + 300.0
        while not list(out.glob("experiments/*/run-1/segments/intervals-*.parquet")) and time.monotonic() < end_s:
            time.sleep(0.05)
        for process in processes_of(instance.folder):
            process.kill()

    killer = threading.Thread(target=kill_when_it_runs)
    killer.start()
    ended = cli(
        "study",
        "run",
        "iot",
        "--target",
        "lab:dying",
        *TINY[:4],
        "--operations",
        "3000000",
        "--repetitions",
        "1",
        "--no-open",
        "--out",
        out,
    )
    killer.join()
    lab.down("dying")
    assert ended.exit_code == 1
    assert instance.nodes[0].host in " ".join(ended.err.split())
    assert (out / "summary.json").exists()
    assert (out / "report.html").exists()
    assert instance.nodes[0].process is not None
    assert instance.nodes[0].process.find() is None
