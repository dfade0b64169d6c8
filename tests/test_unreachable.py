"""A server that refuses connections: every command that takes a URL says so before anything is written."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sensorbench.benchmarks.stress import run as stress
from sensorbench.benchmarks.stress.records import RecordWork
from sensorbench.runner import servers
from tests.conftest import Cli

EXPERIMENT = """
dataset = "beijing-air-quality"
scale = 0.002
[[target]]
url = "{url}"
schema = "natural"
[workload]
mix = {{ get_sensor_data = 1 }}
operations = 10
"""
PROFILE = Path(__file__).parent / "fixtures" / "cassandra-stress" / "readings.yaml"


@pytest.fixture
def address() -> Iterator[str]:
    """A port of this machine at which nothing listens, and nothing begins to."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


COMMANDS = {
    "run": ("postgresql", "run", "{experiment}"),
    "study run": ("postgresql", "study", "run", "iot", "--target", "{url}", "--scale", "0.002", "--no-open"),
    "stress": ("postgresql", "stress", "--target", "{url}", "--rates", "10", "--step-duration", "100ms", "--no-open"),
    "stress of an experiment": ("postgresql", "stress", "--experiment", "{experiment}", "--rates", "10", "--no-open"),
    "stress, Redis": ("redis", "stress", "--target", "{url}", "--rates", "10", "--step-duration", "100ms", "--no-open"),
    "ycsb load": ("postgresql", "ycsb", "load", "--target", "{url}", "-p", "recordcount=10"),
    "ycsb run": ("postgresql", "ycsb", "run", "--target", "{url}", "-p", "recordcount=10", "-p", "operationcount=10"),
    "cassandra-stress": ("cassandra", "cassandra-stress", "{profile}", "--target", "{url}", "--ops", "insert=1", "-n", "9"),
    "elasticity run": (
        "cassandra", "elasticity", "run", "--target", "{url}", "--nodes", "1", "--add-node-command", "true",
        "--dataset", "wikipedia", "--scale", "0.02", "--no-open",
    ),
    "study run mapreduce": (
        "postgresql", "study", "run", "mapreduce", "--target", "{url}", "--spark", "local[2]", "--workers", "1",
        "--dataset", "wikipedia", "--scale", "0.02", "--no-open",
    ),
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_it_is_said_before_anything_is_written(cli: Cli, tmp_path: Path, address: str, command: str) -> None:
    scheme, *words = COMMANDS[command]
    url, out = f"{scheme}://{address}", tmp_path / "results" / "out"
    experiment = tmp_path / "own.toml"
    experiment.write_text(EXPERIMENT.format(url=url), encoding="utf-8")
    ended = cli(*(word.format(url=url, experiment=experiment, profile=PROFILE) for word in words), "--out", out)
    assert ended.exit_code in (1, 2), ended.err
    assert address in ended.err.splitlines()[-1], ended.err
    assert not out.exists()
    assert not out.parent.exists()


def test_one_server_of_two_that_does_not_answer_is_enough(cli: Cli, tmp_path: Path, address: str) -> None:
    """What could be measured is not begun: whoever named both wants them compared."""
    out = tmp_path / "out"
    targets = ("--target", "sqlite", "--target", f"postgresql://{address}")
    ended = cli("study", "run", "iot", *targets, "--scale", "0.002", "--operations", "10", "--no-open", "--out", out)
    assert ended.exit_code == 1
    assert address in ended.err
    assert not out.exists()


def test_without_the_check_a_folder_would_be_left(
    cli: Cli, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "_check_answers", lambda variants: None)
    monkeypatch.setattr(RecordWork, "intent", lambda *_: "create")
    monkeypatch.setattr(stress, "check_namespace", lambda *_: None)
    out = tmp_path / "out"
    ended = cli(
        "stress", "--target", f"postgresql://{address}", "--rates", "10", "--step-duration", "100ms", "--no-open", "--out", out
    )
    assert (ended.exit_code, out.exists()) == (1, True)
