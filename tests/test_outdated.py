"""Outdated versions of databases are measured and shown, and ranked against current ones only where it is asked for."""

import json
from pathlib import Path
from typing import Any

import pytest

from sensorbench.results.outdated import current_versions, why_outdated
from tests.conftest import Cli

EXPERIMENT = """
dataset = "beijing-air-quality"
scale = 0.002
operations = "sensors"
[[target]]
url = "sqlite"
schema = "natural"
[[target]]
url = "fjall"
schema = "by_sensor"
[workload]
mix = { get_sensor_data = 1 }
schedule = { concurrency = 1 }
operations = 100
repetitions = 3
"""


@pytest.mark.parametrize(
    ("database", "version", "is_outdated"),
    [
        ("InfluxDB", "1.6.7~rc0", True),
        ("InfluxDB", "1.8", False),
        ("InfluxDB", "1.10.0", False),
        ("InfluxDB", "v2.7.12", False),
        ("InfluxDB", "unknown", False),
        ("VictoriaMetrics", "unknown", True),
        ("VictoriaMetrics", "v1.130.0", False),
        ("VictoriaMetrics", "v1.79.5", True),
        ("Prometheus", "2.42.0+ds", True),
        ("Prometheus", "3.16.0", False),
        ("PostgreSQL", "9.0", False),
    ],
)
def test_versions_before_the_current_one_are_outdated(database: str, version: str, is_outdated: bool) -> None:
    why = why_outdated(database, version)
    assert (why is not None) is is_outdated
    assert why is None or current_versions()[database].why in why


def summary_of(cli: Cli, out: Path, *options: str) -> dict[str, Any]:
    file = out.with_suffix(".toml")
    file.write_text(EXPERIMENT, encoding="utf-8")
    ended = cli("run", file, "--out", out, "--no-open", *options)
    assert ended.exit_code == 0, ended.err
    return json.loads((out / "summary.json").read_text(encoding="utf-8"))


def test_outdated_versions_are_ranked_only_when_asked_for(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sensorbench.benchmarks.comparison.summary.why_outdated",
        lambda database, version: "fjall 0 is outdated: it is a test" if database == "fjall" else None,
    )
    left_out = summary_of(cli, tmp_path / "out")
    (ranking,) = left_out["result"]["rankings"]
    assert [place["variant"] for place in ranking["places"]] == ["sqlite-natural"]
    assert ranking["outdated"] == {"fjall-by_sensor": "fjall 0 is outdated: it is a test"}
    (warning,) = [warning for warning in left_out["warnings"] if warning["kind"] == "outdated"]
    assert (warning["variant"], "--include-outdated" in warning["action"]) == ("fjall-by_sensor", True)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "is clearly the fastest" not in page
    assert "the others are outdated" in page
    ranked = summary_of(cli, tmp_path / "all", "--include-outdated")
    (ranking,) = ranked["result"]["rankings"]
    assert {place["variant"] for place in ranking["places"]} == {"sqlite-natural", "fjall-by_sensor"}
    assert not ranking["outdated"]
    assert not [warning for warning in ranked["warnings"] if warning["kind"] == "outdated"]
