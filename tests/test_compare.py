"""Results against results: compare, A/A check, regression."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sensorbench.analysis.verdicts import Verdict, compare
from tests.conftest import Cli

EXAMPLE = Path(__file__).parent.parent / "docs" / "example" / "experiment.toml"


def test_a_result_compared_with_itself_is_equivalent(cli: Cli, study_folder: Path) -> None:
    ended = cli("compare", study_folder, study_folder, "--json")
    assert ended.exit_code == 0, ended.err
    comparisons = ended.json["comparisons"]
    assert len(comparisons) == 16
    assert {(row["verdict"], row["ratio"]) for row in comparisons} == {("equivalent", 1.0)}
    assert ended.json["differences"] == []


def test_settings_of_a_result_are_compared(cli: Cli, study_folder: Path) -> None:
    ended = cli("compare", f"{study_folder}:fjall-by_sensor", f"{study_folder}:sqlite-star", "--json")
    assert ended.exit_code == 0, ended.err
    (row,) = [row for row in ended.json["comparisons"] if row["operation"] == "get_sensor_data"]
    assert row["ratio"] == pytest.approx(row["a_s"] / row["b_s"])
    assert row["low"] < row["ratio"] < row["high"]


def test_what_else_differs_is_told(cli: Cli, study_folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(study_folder, other, ignore=shutil.ignore_patterns("data"))
    manifest = json.loads((other / "manifest.json").read_text(encoding="utf-8"))
    manifest["environment"]["kernel"] = "another"
    manifest["workload"]["seed"] = 99
    (other / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    ended = cli("compare", study_folder, other)
    assert ended.exit_code == 0
    message = " ".join(ended.err.split())
    assert "the workloads differ in seed" in message
    assert "the machines differ: kernel" in message


def test_a_setting_that_is_not_there_is_refused(cli: Cli, study_folder: Path) -> None:
    ended = cli("compare", f"{study_folder}:nothing", study_folder)
    assert ended.exit_code == 2
    assert "has no setting 'nothing'" in " ".join(ended.err.split())


def test_the_aa_check_runs_a_target_against_itself(cli: Cli, tmp_path: Path) -> None:
    ended = cli("aa", EXAMPLE, "--set", "workload.duration=500ms", "--out", tmp_path / "aa", "--json")
    assert ended.exit_code == 0, ended.err
    comparisons = ended.json["comparisons"]
    assert {row["operation"] for row in comparisons} == {"mean_of_hour", "readings_of_hour", "new_flow"}
    assert len({row["a"] for row in comparisons} | {row["b"] for row in comparisons}) == 2
    assert ended.json["different"] == [row["operation"] for row in comparisons if row["verdict"] in {"faster", "slower"}]


def test_a_difference_that_the_aa_check_sees_is_told(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slower(*samples: Any, **options: Any) -> Verdict:
        return replace(compare(*samples, **options), word="slower")

    monkeypatch.setattr("sensorbench.cli.compare.compare_samples", slower)
    ended = cli("aa", EXAMPLE, "--set", "workload.duration=200ms", "--out", tmp_path / "aa", "--json")
    assert ended.exit_code == 0, ended.err
    assert sorted(ended.json["different"]) == ["mean_of_hour", "new_flow", "readings_of_hour"]


def test_results_like_the_earlier_ones_are_as_before(cli: Cli, study_folder: Path) -> None:
    ended = cli("regression", study_folder, study_folder, study_folder, study_folder, "--json")
    assert ended.exit_code == 0, ended.err
    assert {row["word"] for row in ended.json["figures"]} == {"as before"}
    few = cli("regression", study_folder, study_folder, "--json")
    assert {row["word"] for row in few.json["figures"]} == {"inconclusive"}


def test_a_regression_ends_with_1(cli: Cli, study_folder: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    shutil.copytree(study_folder, slow, ignore=shutil.ignore_patterns("data"))
    for log in slow.glob("experiments/*/run-*/operations.parquet"):
        table = pq.read_table(log)
        service_ns = pc.subtract(table["end_ns"].cast("int64"), table["start_ns"].cast("int64"))
        doubled = pc.add(table["end_ns"].cast("int64"), service_ns).cast(table.schema.field("end_ns").type)
        pq.write_table(table.set_column(table.column_names.index("end_ns"), "end_ns", doubled), log)
    ended = cli("regression", slow, study_folder, study_folder, study_folder)
    assert ended.exit_code == 1
    assert "slower than before: sqlite-star get_sensor_data" in " ".join(ended.err.split())
