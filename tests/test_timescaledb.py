"""TimescaleDB, of which there is no server here: PostgreSQL without the extension is refused, and what the package has for it is whole."""

import re
from pathlib import Path

import pytest

from sensorbench import _engine, lab
from sensorbench.catalog import entries
from sensorbench.catalog.capability import measurable
from sensorbench.results.durability import durability_of
from sensorbench.schemas import load_operations, load_schema, shipped_schemas
from tests.conftest import Cli

ROOT = Path(__file__).parent.parent
SCHEMAS = {
    "sensors": ("aggregated", "columnstore", "hypertable"),
    "logs": ("columnstore", "hypertable"),
    "timelines": ("columnstore", "hypertable"),
    "registers": ("registers",),
}
EXPERIMENT = """
dataset = "beijing-air-quality"
scale = 0.001
operations = "sensors"
[[target]]
url = "{url}"
schema = "hypertable"
[workload]
mix = {{ get_sensor_data = 1 }}
schedule = {{ concurrency = 1 }}
operations = 10
"""


def url_of(instance: lab.Instance, scheme: str) -> str:
    (node,) = instance.nodes
    return f"{scheme}://sensorbench:{instance.password()}@{node.host}:{node.port}/postgres?namespace=sensorbench_extension"


def test_a_server_without_the_extension_is_refused_and_nothing_is_left(
    cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path
) -> None:
    instance = lab_servers["postgresql"]
    file = tmp_path / "experiment.toml"
    file.write_text(EXPERIMENT.format(url=url_of(instance, "timescaledb")), encoding="utf-8")
    ended = cli("run", file, "--out", tmp_path / "out", "--no-open", "--replace")
    words = " ".join(ended.err.split())
    assert ended.exit_code == 2, ended.err
    assert "the extension timescaledb is not in the database" in words
    assert 'relation "timescaledb_information.hypertables" does not exist' in words, "the server's own words"
    assert "the server has no such extension to create: install TimescaleDB there" in words
    assert instance.password() not in words
    assert not (tmp_path / "out").exists()
    assert "sensorbench_extension" not in _engine.Target(url_of(instance, "postgresql")).namespaces()


def test_operations_are_expressed_or_declared_with_a_reason() -> None:
    for operations, names in SCHEMAS.items():
        assert tuple(sorted(shipped_schemas(operations, "timescaledb"))) == names
        for name in names:
            file = load_schema(name, operations=operations, database="timescaledb").file
            assert set(file.operation) | set(file.cannot) == set(load_operations(operations).operation)
            assert "Not run by this project" in file.summary


def test_it_is_measured_by_url_alone_and_its_durability_is_that_of_postgresql() -> None:
    assert measurable(entries()["timescaledb"]) == "by-url"
    assert durability_of("TimescaleDB", {"synchronous_commit": "off", "fsync": "on"}) == "memory"
    assert durability_of("TimescaleDB", {"synchronous_commit": "on", "fsync": "on"}) == "disk"


@pytest.mark.parametrize("file", sorted((ROOT / "docker").glob("*.yml")), ids=lambda file: file.stem)
def test_compose_files_publish_ports_on_loopback_alone(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    published = [port for ports in re.findall(r"^ *ports: \[(.*)\]$", text, flags=re.MULTILINE) for port in ports.split(", ")]
    assert all(port.startswith('"127.0.0.1:') for port in published), published
    # Who shares the host's network listens on loopback by its own settings.
    assert published or ("network_mode: host" in text and "127.0.0.1" in text)
