"""Sweeps: every choice of a target's options and a schema's parameters is a variant of its own."""

import json
from pathlib import Path

import pytest

from tests.conftest import Cli

EXPERIMENT = """
dataset = "azure-vm-noise"
scale = 0.05
operations = "logs"
[[target]]
url = "sqlite:{place}"
schema = "relational"
[workload]
mix = {{ look_up = 1 }}
operations = 30
repetitions = 2
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.toml"
    path.write_text(EXPERIMENT.format(place=tmp_path / "data.db"), encoding="utf-8")
    return path


def test_every_choice_is_measured_and_named(cli: Cli, experiment: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweeps = ("--sweep", "index=none,key", "--sweep", "synchronous=off,full")
    outcome = cli("run", experiment, *sweeps, "--out", out, "--no-open")
    assert outcome.exit_code == 0, outcome.err
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert summary["answers_equal"] is True
    found = {variant["id"]: variant for variant in summary["variants"]}
    assert list(found) == [
        f"sqlite-relational-index={index}-synchronous={level}" for index in ("none", "key") for level in ("off", "full")
    ]
    for name, variant in found.items():
        assert f"index={variant['schema_parameters']['index']}-" in name
        described = summary["result"]["load"][name]["description"]["settings"]["synchronous"]
        assert (described, name.endswith("=off")) in {("0", True), ("2", False)}, "as SQLite numbers them"
        assert summary["result"]["query_plans"][name]["look_up"]["access"] == (
            "scan" if "index=none" in name else "index log_key"
        )


@pytest.mark.parametrize(
    ("sweep", "problem"),
    [
        ("index", "--sweep index: expected KEY=VALUE,VALUE"),
        ("index=none,", "--sweep index=none,: expected KEY=VALUE,VALUE"),
        ("index=none,most", "has it at none, key, key_value"),
        ("speed=1,2", "speed"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused(cli: Cli, experiment: Path, tmp_path: Path, sweep: str, problem: str) -> None:
    outcome = cli("run", experiment, "--sweep", sweep, "--out", tmp_path / "none")
    assert outcome.exit_code == 2
    assert problem in outcome.err
    assert not (tmp_path / "none").exists()
