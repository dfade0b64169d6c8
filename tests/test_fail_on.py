"""Conditions that end a command with exit code 1."""

import json
from pathlib import Path
from typing import Any

import pytest

from sensorbench.cli.fail_on import fail_on_load, parse_load_conditions
from sensorbench.errors import FailedError, UsageError
from sensorbench.results.summary.stress import StressFigures
from tests.conftest import Cli

LOAD = ("stress", "--target", "null", "--rates", "200:400:200", "--step-duration", "1s", "--warmup", "0", "--no-open", "--json")


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    from tests.conftest import made_once

    out = made_once(tmp_path_factory, "fail-on", *LOAD)
    result: dict[str, Any] = json.loads((out / "summary.json").read_text(encoding="utf-8"))["result"]
    return result


def said(condition: str, figures: dict[str, Any], **changes: Any) -> str | None:
    """What is said of a condition at steps whose figures are changed so."""
    steps = []
    for step in figures["steps"]:
        counts = {**step["counts"], **changes.get("counts", {})}
        response = None if changes.get("none") else {**step["response_s"], **changes.get("response_s", {})}
        steps.append({**step, "counts": counts, "response_s": response})
    found = {**figures, "steps": steps, "capacity": changes.get("capacity")}
    try:
        fail_on_load(parse_load_conditions([condition]), StressFigures.model_validate(found))
    except FailedError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("condition", "changes", "expected"),
    [
        ("p99>20ms", {"response_s": {"p99": 0.021}}, "--fail-on p99>20ms holds: p99 was 21.0 ms at 200/s (and at 1 more)"),
        ("p99>20ms", {"response_s": {"p99": 0.020}}, None),
        ("p99>=20ms", {"response_s": {"p99": 0.020}}, "--fail-on p99>=20ms holds"),
        ("p50 > 0.5ms", {"response_s": {"median": 0.001}}, "p50 was 1.00 ms"),
        ("p99.9>1s", {"response_s": {"p999": 2.0}}, "p99.9 was 2.00 s"),
        ("mean<1s", {"response_s": {"mean": 0.5}}, "mean was 500 ms"),
        ("max>1s,mean>1s", {"response_s": {"mean": 2.0, "max": 0.5}}, "--fail-on mean>1s holds"),
        ("p99>20ms", {"none": True}, "no operation ended at 200/s"),
        ("errors>0", {"counts": {"error": 1, "timeout": 2}}, "errors was 3 at 200/s"),
        ("errors>0", {"counts": {"error": 0, "timeout": 0}}, None),
        ("dropped>1%", {"counts": {"offered": 100, "dropped": 2}}, "dropped was 2"),
        ("dropped>2%", {"counts": {"offered": 100, "dropped": 2}}, None),
        ("capacity<300", {"capacity": {"met_per_s": 200.0, "missed_per_s": 400.0, "is_confirmed": True, "trials": 1, "client_bound": None}}, "the capacity was 200/s"),
        ("capacity<200", {"capacity": {"met_per_s": 200.0, "missed_per_s": 400.0, "is_confirmed": True, "trials": 1, "client_bound": None}}, None),
        ("capacity<1", {"capacity": {"met_per_s": None, "missed_per_s": 400.0, "is_confirmed": True, "trials": 1, "client_bound": None}}, "the capacity was 0/s"),
    ],
)  # fmt: skip
def test_conditions_on_load(figures: dict[str, Any], condition: str, changes: dict[str, Any], expected: str | None) -> None:
    found = said(condition, figures, **changes)
    assert found is None if expected is None else found is not None and expected in found, found


def test_of_a_search_only_the_capacity_counts(figures: dict[str, Any]) -> None:
    capacity = {"met_per_s": 200.0, "missed_per_s": 400.0, "is_confirmed": True, "trials": 1, "client_bound": None}
    steps = [{**step, "response_s": {**step["response_s"], "p99": step["rate_per_s"] / 10_000}} for step in figures["steps"]]
    assert [step["response_s"]["p99"] for step in steps] == [0.02, 0.04]
    assert said("p99>30ms", {**figures, "steps": steps}, capacity=capacity) is None
    assert said("p99>30ms", {**figures, "steps": steps}) == "--fail-on p99>30ms holds: p99 was 40.0 ms at 400/s"


@pytest.mark.parametrize(
    "text", ["p99", "p99=20ms", "p98>1ms", "p99>20", "p99>-1ms", "errors>1ms", "dropped>x%", "capacity>1%", "p99>1ms,", ""]
)
def test_a_condition_that_makes_no_sense(cli: Cli, tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"^--fail-on .*expected"):
        parse_load_conditions([text])
    ended = cli(*LOAD, "--fail-on", text, "--out", tmp_path / "out")
    assert ended.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_stress_writes_and_prints_its_results_all_the_same(cli: Cli, tmp_path: Path) -> None:
    line = (*LOAD, "--fail-on", "p99<10s", "--fail-on", "errors>0", "--out", tmp_path / "out")
    ended = cli(*line)
    assert ended.exit_code == 1
    (said,) = [row for row in ended.err.splitlines() if row.startswith("error: ")]
    assert said.startswith("error: --fail-on p99<10s holds: p99 was ")
    assert ended.json["status"] == "complete"
    assert (tmp_path / "out" / "report.html").exists()
    assert cli(*LOAD, "--fail-on", "p99>10s", "--out", tmp_path / "other").exit_code == 0
    refused = cli(*LOAD, "--fail-on", "capacity<1", "--out", tmp_path / "none")
    assert refused.exit_code == 2
    assert "does not search the capacity" in refused.err


HISTORY = [
    (0, "invoke", "write", 1), (0, "ok", "write", 1),
    (0, "invoke", "write", 2), (0, "ok", "write", 2),
    (1, "invoke", "read", None), (1, "ok", "read", 1),
]  # fmt: skip


def test_findings_of_a_history(cli: Cli, tmp_path: Path) -> None:
    lines = [
        json.dumps({"process": process, "type": kind, "f": name, "key": 7, "value": value, "time": time * 10})
        for time, (process, kind, name, value) in enumerate(HISTORY, start=1)
    ]
    file = tmp_path / "history.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    check = ("consistency", "check", file)
    assert cli(*check).exit_code == 0
    failed = cli(*check, "--fail-on", "lost,stale")
    assert failed.exit_code == 1
    assert failed.err == "error: --fail-on lost: 1 found; stale: 1 found\n"
    assert "lost writes" in failed.out
    as_json = cli(*check, "--fail-on", "stale", "--json")
    assert (as_json.exit_code, as_json.json["stale_reads"]["count"]) == (1, 1)
    assert cli(*check, "--fail-on", "never-written,failed-seen").exit_code == 0
    refused = cli(*check, "--fail-on", "lost,old")
    assert refused.exit_code == 2
    assert "there is no 'old'; expected some of lost, stale," in refused.err


def test_slower_results(cli: Cli, study_folder: Path) -> None:
    sides = (f"{study_folder}:fjall-by_sensor", f"{study_folder}:sqlite-star")
    rows = cli("compare", *sides, "--json").json["comparisons"]
    is_slower = any(row["verdict"] == "slower" and row["ratio"] > 1.05 for row in rows)
    is_faster = any(row["verdict"] == "faster" and row["ratio"] < 1 / 1.05 for row in rows)
    assert is_slower or is_faster
    for a, b, expected in ((*sides, is_slower), (*reversed(sides), is_faster)):
        ended = cli("compare", a, b, "--fail-on", "slower")
        assert ended.exit_code == expected
        assert ("error: --fail-on slower: " in ended.err) == expected
        assert "A / B" in ended.out
    # Beyond a margin that is larger than any difference, nothing is slower.
    assert cli("compare", *sides, "--fail-on", "slower", "--margin", "1e9").exit_code == 0
    assert cli("compare", *sides, "--fail-on", "faster").exit_code == 2
