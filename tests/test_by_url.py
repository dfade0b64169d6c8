"""CrateDB, GreptimeDB and InfluxDB 3, which the lab cannot start: another server is refused, and what the package has for them is whole."""

from pathlib import Path

import pytest

from sensorbench import _engine, lab
from sensorbench.catalog import entries
from sensorbench.catalog.capability import measurable
from sensorbench.results.durability import durability_of
from sensorbench.schemas import load_operations, load_schema, shipped_schemas
from tests.conftest import Cli

SCHEMAS = {
    ("sensors", "cratedb"): ("partitioned", "plain"),
    ("registers", "cratedb"): ("registers",),
    ("sensors", "greptimedb"): ("append_only", "tagged"),
    ("registers", "greptimedb"): ("registers",),
    ("tsbs_cpu", "greptimedb"): ("wide",),
    ("sensors", "influxdb3"): ("by_sensor", "wide"),
    ("sensors", "influxdb2+flux"): ("by_sensor", "wide"),
}
EXPERIMENT = """
dataset = "beijing-air-quality"
scale = 0.001
operations = "sensors"
[[target]]
url = "{url}"
schema = "{schema}"
[workload]
mix = {{ get_sensor_data = 1 }}
schedule = {{ concurrency = 1 }}
operations = 10
"""


def url_of(instance: lab.Instance, scheme: str, namespace: str, database: str = "") -> str:
    (node,) = instance.nodes
    return f"{scheme}://sensorbench:{instance.password()}@{node.host}:{node.port}{database}?namespace={namespace}"


@pytest.mark.parametrize(
    ("name", "database", "schema", "product", "words"),
    [
        ("cratedb", "", "plain", "CrateDB", 'database "doc" does not exist'),
        ("greptimedb", "/postgres", "tagged", "GreptimeDB", 'relation "information_schema.build_info" does not exist'),
    ],
)
def test_a_postgresql_is_refused_and_nothing_is_left(
    name: str,
    database: str,
    schema: str,
    product: str,
    words: str,
    cli: Cli,
    lab_servers: dict[str, lab.Instance],
    tmp_path: Path,
) -> None:
    instance, namespace = lab_servers["postgresql"], f"sensorbench_{name}"
    file = tmp_path / "experiment.toml"
    url = url_of(instance, name, namespace, database)
    file.write_text(EXPERIMENT.format(url=url, schema=schema), encoding="utf-8")
    ended = cli("run", file, "--out", tmp_path / "out", "--no-open", "--replace")
    said = " ".join(ended.err.split())
    assert ended.exit_code != 0, ended.err
    assert product in said
    assert words in said, "the server's own words"
    assert instance.password() not in said
    assert not (tmp_path / "out").exists()
    assert namespace not in _engine.Target(url_of(instance, "postgresql", namespace, "/postgres")).namespaces()


def test_operations_are_expressed_or_declared_with_a_reason() -> None:
    for (operations, database), names in SCHEMAS.items():
        assert tuple(sorted(shipped_schemas(operations, database))) == names
        for name in names:
            file = load_schema(name, operations=operations, database=database).file
            assert set(file.operation) | set(file.cannot) == set(load_operations(operations).operation)
            assert "Not run by this project" in file.summary


def test_they_are_measured_by_url_alone_in_the_class_that_their_documentation_names() -> None:
    for name in ("cratedb", "greptimedb", "influxdb3"):
        assert measurable(entries()[name]) == "by-url"
    assert durability_of("CrateDB", {}) == "disk"
    assert durability_of("GreptimeDB", {}) == "cache"
    assert durability_of("InfluxDB 3", {"a write waits until it is": "in the object store"}) == "disk"
    assert durability_of("InfluxDB 3", {"a write waits until it is": "in memory"}) == "memory"
