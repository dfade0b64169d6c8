"""Equal resources: each server that is started for a comparison has the same memory, sized to it, and keeps to the same CPUs."""

import json
import os
from pathlib import Path

import pytest

from sensorbench import lab
from tests.conftest import Cli

DOCUMENT = Path(__file__).parent.parent / "docs" / "how-to" / "equal-resources.md"
EXPERIMENT = """
dataset = "beijing-air-quality"
scale = 0.001
server_memory = "400M"

[[target]]
url = "postgresql"
schema = "natural"

[[target]]
url = "redis"
schema = "by_sensor"

[workload]
mix = { get_sensor_data = 1 }
schedule = { concurrency = 1 }
operations = 20
repetitions = 1
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    file = tmp_path / "experiment.toml"
    file.write_text(EXPERIMENT)
    return file


@pytest.mark.parametrize("name", list(lab.LAB_DATABASES))
def test_what_a_server_is_given_fits_into_its_memory(name: str) -> None:
    database = lab.LAB_DATABASES[name]
    small, large = database.memory_settings(256 << 20), database.memory_settings(16 << 30)
    assert small.keys() == large.keys()
    assert sum(map(_bytes, _reserved(small))) <= 256 << 20
    assert sum(map(_bytes, _reserved(large))) <= 16 << 30
    assert all(_bytes(large[key]) >= _bytes(small[key]) for key in small if small[key][0].isdigit())


def _reserved(settings: dict[str, str]) -> list[str]:
    """What is taken at once: not what the planner counts on, and not the limit of all that there is."""
    of_all = {"effective_cache_size", "postgresql.effective_cache_size", "ram.usage.limit.bytes"}
    return [value for key, value in settings.items() if key not in of_all and value[0].isdigit()]


def _bytes(text: str) -> int:
    return lab.parse_memory(text)


def test_the_document_has_the_rules_as_they_are() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, database in lab.LAB_DATABASES.items():
        (row,) = [line for line in text.splitlines() if line.startswith("|") and f"`{name}`" in line]
        assert database.memory_rule in row


@pytest.mark.parametrize(
    ("url", "option", "value", "expected"),
    [
        ("sqlite", "--server-memory", "1G", "--server-memory: sqlite runs within the client, and has no resources of its own"),
        ("postgresql://db.example/x", "--server-cpus", "1", "--server-cpus: postgresql is a server that is already running"),
        ("postgresql", "--server-memory", "much", "--server-memory much: expected a size such as 512M or 2G"),
        ("postgresql", "--server-cpus", "0", "--server-cpus"),
        ("postgresql", "--server-cpus", "9999", "the client needs at least one of them; give at most"),
    ],
)
def test_what_cannot_be_given_is_refused_before_anything_starts(
    cli: Cli, experiment: Path, url: str, option: str, value: str, expected: str
) -> None:
    text = EXPERIMENT.replace('server_memory = "400M"\n', "").split('[[target]]\nurl = "redis"')[0]
    experiment.write_text(text.replace('"postgresql"', f'"{url}"') + EXPERIMENT[EXPERIMENT.index("[workload]") :])
    out = experiment.parent / "results"
    refused = cli("run", experiment, option, value, "--out", out)
    assert refused.exit_code == 2, refused.out + refused.err
    assert expected in " ".join(refused.err.split())
    assert not out.exists()


def test_a_bad_size_in_a_file_is_named_with_its_place(cli: Cli, experiment: Path) -> None:
    experiment.write_text(EXPERIMENT.replace("400M", "large"))
    refused = cli("run", experiment, "--out", experiment.parent / "results")
    assert refused.exit_code == 2
    assert "experiment.toml, line 4" in refused.err
    assert "server_memory" in refused.err


def test_servers_of_a_comparison_have_the_same_memory_and_the_same_cpus(cli: Cli, lab_home: Path, experiment: Path) -> None:
    out = experiment.parent / "results"
    ran = cli("run", experiment, "--server-cpus", "1", "--out", out, "--no-open", "--json")
    assert ran.exit_code == 0, ran.err
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["plan"]["resources"] == {"memory_bytes": 400 << 20, "cpus": 1}
    servers = manifest["environment"]["servers"]
    assert set(servers) == {"postgresql", "redis"}
    last = sorted(os.sched_getaffinity(0))[-1]
    for server in servers.values():
        assert server["memory_bytes"] == 400 << 20
        assert server["cpus"] == [last]
    assert servers["postgresql"]["settings"]["shared_buffers"] == "102400kB"
    assert servers["redis"]["settings"]["maxmemory"] == str((400 << 20) * 4 // 5)
    unlimited = {name for name, server in servers.items() if not server["memory_by"].startswith("cgroup")}
    warned = [warning["text"] for warning in ran.json["warnings"] if warning["kind"] == "resources"]
    assert len(warned) == len(unlimited)
    other = cli("run", experiment, "--server-memory", "500M", "--out", out, "--resume", "--no-open")
    assert other.exit_code == 2
    assert "was begun with another resources" in " ".join(other.err.split()) or "complete" in other.err
