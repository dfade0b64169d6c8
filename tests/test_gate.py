"""The gate: base and head interleaved, decided as early as the noise allows."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from benches.history import gate_shares

from sensorbench import lab
from sensorbench.analysis.gate import GateLook, control_differs, decidable_margin, decide, detectable, look_levels, looks_until
from sensorbench.analysis.intervals import Interval
from tests.conftest import Cli, Outcome, server_url

SCHEMA = """
database = "sqlite"
summary = "One table in the order of arrival."
[create]
statements = ["CREATE TABLE readings (sensor TEXT NOT NULL, time INTEGER NOT NULL, site INTEGER, zone INTEGER, value REAL NOT NULL)"]
[settle]
statements = [{settle}]
[load_query.readings]
query = "SELECT sensor, time, site, zone, value FROM measurements"
order = ["time"]
[operation.mean_of_hour]
statement = "SELECT avg(value) FROM readings WHERE sensor = :sensor AND time >= :from AND time < :to"
[operation.new_flow]
statement = "INSERT INTO readings (sensor, time, site, zone, value) VALUES (:sensor, :time, :site, :zone, :value)"
"""
INDEX = '"CREATE INDEX readings_time ON readings (sensor, time)", "ANALYZE"'
EXPERIMENT = """
title = "Mean of an hour"
dataset = "{docs}/water.toml"
operations = "{docs}/operations.toml"
metric = "median"
[[target]]
url = "sqlite"
schema = "indexed.toml"
[workload]
mix = {{ mean_of_hour = 9, new_flow = 1 }}
operations = 300
repetitions = 3
"""
DOCS = Path(__file__).parent.parent / "docs" / "example"


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    (tmp_path / "indexed.toml").write_text(SCHEMA.format(settle=INDEX), encoding="utf-8")
    (tmp_path / "heap.toml").write_text(SCHEMA.format(settle='"ANALYZE"'), encoding="utf-8")
    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT.format(docs=DOCS), encoding="utf-8")
    return path


def test_a_dropped_index_is_found_and_named(cli: Cli, experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = ("--junit", "gate.xml", "--markdown", "gate.md", "--badge", "gate.json")
    ended = cli("gate", experiment, "--head", "heap.toml", "--out", "out", "--no-open", *files)
    assert ended.exit_code == 1, ended.err
    assert "error: slower: mean_of_hour is" in ended.err
    assert "access of mean_of_hour" in ended.out, "what changed is named"
    found = json.loads((tmp_path / "out" / "gate.json").read_text(encoding="utf-8"))
    assert found["verdict"] == "slower"
    assert found["repetitions"] == found["looks"][0] < found["max_repetitions"], "it stops as soon as that is known"
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["plan"]["stopped_after"] == found["repetitions"]
    assert [variant["label"] for variant in manifest["variants"]] == ["base", "base again", "head"]
    assert "Head is slower" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    cases = {case.get("name"): case for case in ElementTree.parse(tmp_path / "gate.xml").getroot().iter("testcase")}
    assert [child.tag for child in cases["mean_of_hour"]] == ["failure"]
    assert "| mean_of_hour |" in (tmp_path / "gate.md").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "gate.json").read_text(encoding="utf-8"))["message"] == "slower"
    # Ours are replaced, and go into a history with base and head as variants of their own.
    assert cli("report", "out", "--no-open").exit_code == 0
    assert "Head is slower" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    added = cli("history", "add", "out", "--json")
    assert added.exit_code == 0, added.err
    names = {series["variant"] for series in cli("history", "show", "--json").json}
    assert names == {"sqlite indexed base", "sqlite indexed base again", "sqlite heap head"}


def test_a_setting_that_costs_is_found_and_named(cli: Cli, experiment: Path, tmp_path: Path) -> None:
    sides = [f"sqlite:{tmp_path}/{name}.db?synchronous={value}" for name, value in (("a", "off"), ("b", "extra"))]
    ended = cli(
        "gate",
        experiment,
        "--base",
        sides[0],
        "--head",
        sides[1],
        "--set",
        "workload.mix={ new_flow = 1 }",
        "--set",
        "workload.operations=100",
        "--out",
        tmp_path / "out",
        "--no-open",
    )
    # Each commit of head waits for the disk, none of base does.
    assert ended.exit_code == 1, ended.err
    assert "slower: new_flow is" in ended.err
    assert "synchronous: 0 → 3" in ended.out


def experiment_of_server(folder: Path, target: str) -> Path:
    """The same experiment, of one operation, for a PostgreSQL, with its two schemas."""
    readings = (
        SCHEMA.replace('"sqlite"', '"postgresql"')
        .replace("time INTEGER", "time timestamptz")
        .replace("value REAL", "value float8")
    )
    for name, settle in (("indexed", INDEX), ("heap", '"ANALYZE"')):
        (folder / f"{name}.toml").write_text(readings.format(settle=settle), encoding="utf-8")
    of_server = (
        EXPERIMENT.format(docs=DOCS)
        .replace('url = "sqlite"', f'url = "{target}"')
        .replace("mean_of_hour = 9, new_flow = 1", "mean_of_hour = 1")
    )
    path = folder / "experiment.toml"
    path.write_text(of_server, encoding="utf-8")
    return path


def check_found(ended: Outcome, out: Path, *, above: float = 1.2) -> dict[str, Any]:
    """A gate of such an experiment found and named the slowdown; what it wrote."""
    assert ended.exit_code == 1, ended.err
    assert "error: slower: mean_of_hour is" in ended.err
    assert "access of mean_of_hour" in ended.out
    gate: dict[str, Any] = json.loads((out / "gate.json").read_text(encoding="utf-8"))
    (found,) = gate["operations"]
    assert found["verdict"] == "slower"
    assert found["ratio"]["low"] > above
    return gate


def test_a_dropped_index_of_a_server_is_found_and_named(cli: Cli, lab_servers: object, tmp_path: Path) -> None:
    experiment = experiment_of_server(tmp_path, server_url("postgresql", "sensorbench_gate"))
    ended = cli("gate", experiment, "--head", "heap.toml", "--margin", "0.2", "--out", tmp_path / "out", "--no-open")
    check_found(ended, tmp_path / "out")


# With these, a PostgreSQL reads whole tables as if there were no index.
NO_INDEXES = {"enable_indexscan": "off", "enable_bitmapscan": "off"}


def test_a_setting_of_a_server_that_the_lab_starts_is_found_and_named(cli: Cli, lab_home: Path, tmp_path: Path) -> None:
    experiment, out = experiment_of_server(tmp_path, "postgresql"), tmp_path / "out"
    given = [f"{key}={value}" for key, value in NO_INDEXES.items()]
    settings = [word for text in given for word in ("--head-server-setting", text)]
    gate = check_found(cli("gate", experiment, *settings, "--margin", "0.2", "--out", out, "--no-open"), out)
    assert (gate["base"]["given"], gate["head"]["given"]) == ([], given)
    for key, value in NO_INDEXES.items():
        assert f"{key}: not said → {value}" in gate["differences"], "the setting is named"


def test_a_slower_one_of_two_servers_by_their_urls_is_found_and_named(cli: Cli, lab_servers: object, tmp_path: Path) -> None:
    experiment, out = experiment_of_server(tmp_path, "postgresql"), tmp_path / "out"
    with lab.borrowed(lab.ServerSpec("postgresql", name="gate-head", settings=NO_INDEXES, stays=False)) as slower:
        urls = server_url("postgresql", "sensorbench_gate_url"), f"{lab.url_of(slower)}&namespace=sensorbench_gate_url"
        sides = ("--base", urls[0], "--head", urls[1])
        # Two servers differ by more than the setting.
        gate = check_found(cli("gate", experiment, *sides, "--margin", "0.2", "--out", out, "--no-open"), out, above=1.0)
        assert slower.password() not in (out / "gate.json").read_text(encoding="utf-8")
    assert gate["base"]["version"] == gate["head"]["version"]
    node = slower.nodes[0]
    assert any(f"{node.host}:{node.port}" in difference for difference in gate["differences"]), "the address is named"


def test_a_budget_that_is_over_is_undecided_and_said(cli: Cli, experiment: Path, tmp_path: Path) -> None:
    badge = tmp_path / "badge.svg"
    ended = cli(
        "gate",
        experiment,
        "--head",
        tmp_path / "heap.toml",
        "--budget",
        "1ms",
        "--out",
        tmp_path / "out",
        "--badge",
        badge,
        "--json",
    )
    assert ended.exit_code == 3, ended.err
    assert "not decidable within the budget" in " ".join(ended.err.split())
    assert ended.json["verdict"] == "undecided"
    assert ended.json["repetitions"] == 1
    assert "undecided" in badge.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "base and head are the same"),
        (("--head", "workload.operations=5"), "different workloads"),
        (("--head", "scale=0.5"), "different datasets"),
        (("--head", "nothing.toml"), "nothing.toml"),
        (("--head", "nosuch"), "expected the name of a database"),
        (("--head-server-setting", "a=b"), "that the lab starts"),
        (("--head-server-setting", "a"), "expected key=value"),
        (("--head", "heap.toml", "--repetitions", "3"), "at least 4 repetitions"),
        (("--head", "heap.toml", "--junit", "experiment.toml"), "did not write this file"),
    ],
)
def test_gates_that_make_no_sense(
    cli: Cli, experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = cli("gate", experiment, *words, "--out", "out", "--no-open")
    assert ended.exit_code == 2, ended.err
    assert expected in " ".join(ended.err.split())
    assert not (tmp_path / "out").exists()


# The rule.

AS_IT_IS = Interval(1.0, 0.99, 1.01, 0.95, 6, between_runs=True)


def interval(low: float, value: float, high: float) -> Interval:
    return Interval(value, low, high, 0.95, 6, between_runs=True)


@pytest.mark.parametrize(
    ("low", "value", "high", "word"),
    [
        (1.1, 1.2, 1.3, "slower"),
        (1.01, 1.03, 1.06, "undecided"),
        (0.98, 1.0, 1.03, "not slower"),
        (0.5, 0.6, 0.7, "not slower"),
        (0.9, 1.0, 1.1, "undecided"),
        (0.9, 1.2, 1.6, "undecided"),
    ],
)
def test_what_an_interval_says(low: float, value: float, high: float, word: str) -> None:
    found = interval(low, value, high)
    assert decide(GateLook(found, found, AS_IT_IS), 0.05) == word
    # Where base differs from itself, nothing follows.
    assert decide(GateLook(found, found, interval(1.1, 1.2, 1.3)), 0.05) == "undecided"
    assert not control_differs(interval(1.01, 1.02, 1.03), 0.05)


def test_looks_are_those_of_the_repetitions() -> None:
    assert looks_until(20) == (4, 6, 9, 13, 20)
    assert looks_until(10) == (4, 6, 9, 10)
    assert looks_until(4) == (4,)
    with pytest.raises(ValueError, match="at least 4"):
        looks_until(3)
    one, several = look_levels((4, 20), 1), look_levels((4, 20), 5)
    assert all(many.slower > single.slower for many, single in zip(several, one, strict=True))
    assert [level.not_slower for level in one] == [level.not_slower for level in several]


def test_a_gate_errs_seldom_and_sees_what_it_says_that_it_can() -> None:
    # Of 300 sessions, 2.5% wrong ones are more than 17 with a probability of 0.0005.
    assert gate_shares(1.0, 0.03, 300, seed=1).slower <= 17 / 300
    assert gate_shares(1.05, 0.03, 300, seed=2).not_slower <= 17 / 300
    assert gate_shares(1.2, 0.05, 100, seed=3).slower >= 0.95
    last = look_levels(looks_until(20), 1)[-1]
    # Of 200 sessions, four of five are fewer than 141 with a probability of 0.0005.
    for deviation in (0.02, 0.1):
        step = detectable(deviation * np.sqrt(2.0), last, 0.05)
        assert gate_shares(1.0 + step, deviation, 200, seed=4).slower >= 141 / 200
        margin = decidable_margin(deviation * np.sqrt(2.0), last)
        assert gate_shares(1.0, deviation, 200, seed=5, margin=margin).not_slower >= 141 / 200
