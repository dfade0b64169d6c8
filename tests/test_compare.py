"""Results against results: compare, A/A check."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.conftest import Cli, forget_checksums

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


def changed_copy(folder: Path, to: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of results with another manifest."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("data"))
    forget_checksums(to)
    manifest = json.loads((to / "manifest.json").read_text(encoding="utf-8"))
    change(manifest)
    (to / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return to


def test_another_machine_is_a_warning(cli: Cli, study_folder: Path, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["environment"]["kernel"] = "another"
        manifest["plan"]["workload"]["repetitions"] = 7

    other = changed_copy(study_folder, tmp_path / "other", change)
    ended = cli("compare", study_folder, other)
    assert ended.exit_code == 0, ended.err
    message = " ".join(ended.err.split())
    assert "the machines differ: kernel" in message
    assert "the workloads differ in repetitions" in message
    assert "A is" in ended.out, "verdicts are given"


@pytest.mark.parametrize(
    ("part", "key", "value", "expected"),
    [
        ("workload", "seed", 99, "the workloads differ in seed"),
        ("workload", "mix", {"get_peak_data": 1}, "the workloads differ in mix"),
        ("dataset", "fingerprint", "0123", "the datasets differ: "),
        ("dataset", "operations", "mine", "the operation sets differ: sensors and mine"),
    ],
)
def test_other_data_or_another_workload_is_refused(
    cli: Cli, study_folder: Path, tmp_path: Path, part: str, key: str, value: object, expected: str
) -> None:
    other = changed_copy(study_folder, tmp_path / "other", lambda manifest: manifest["plan"][part].update({key: value}))
    refused = cli("compare", study_folder, other)
    assert refused.exit_code == 2
    assert expected in " ".join(refused.err.split())
    assert "--force" in refused.err
    assert refused.out == ""
    forced = cli("compare", study_folder, other, "--force")
    assert forced.exit_code == 0, forced.err
    assert expected in " ".join(forced.err.split())
    assert not [word for word in ("A is", "equivalent", "faster", "slower", "difference", "inconclusive") if word in forced.out]
    told = cli("compare", study_folder, other, "--force", "--json").json
    assert {(row["verdict"], row["reason"]) for row in told["comparisons"]} == {(None, None)}
    assert all(row["a_s"] > 0 and row["b_s"] > 0 and row["ratio"] > 0 for row in told["comparisons"])
    assert any(expected in difference for difference in told["differences"])


def test_a_workload_of_an_earlier_version_lacks_only_what_is_usual(cli: Cli, study_folder: Path, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        assert manifest["plan"]["workload"].pop("order") == "random"

    other = changed_copy(study_folder, tmp_path / "other", change)
    assert cli("compare", study_folder, other).exit_code == 0
    unusual = changed_copy(
        study_folder, tmp_path / "unusual", lambda manifest: manifest["plan"]["workload"].update(order="in turn")
    )
    assert cli("compare", other, unusual).exit_code == 2


def test_a_setting_that_is_not_there_is_refused(cli: Cli, study_folder: Path) -> None:
    ended = cli("compare", f"{study_folder}:nothing", study_folder)
    assert ended.exit_code == 2
    assert "has no variant 'nothing'" in " ".join(ended.err.split())


def test_results_that_are_slower_end_with_1(cli: Cli, study_folder: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    shutil.copytree(study_folder, slow, ignore=shutil.ignore_patterns("data"))
    forget_checksums(slow)
    for log in slow.glob("experiments/*/run-*/operations.parquet"):
        table = pq.read_table(log)
        service_ns = pc.subtract(table["end_ns"].cast("int64"), table["start_ns"].cast("int64"))
        doubled = pc.add(table["end_ns"].cast("int64"), service_ns).cast(table.schema.field("end_ns").type)
        pq.write_table(table.set_column(table.column_names.index("end_ns"), "end_ns", doubled), log)
    ended = cli("compare", slow, study_folder, "--fail-on", "slower")
    assert ended.exit_code == 1
    assert "--fail-on slower: " in ended.err
    # Which of the operations vary so little that twice as long is no accident, the machine decides.
    assert "(2 times)" in ended.err
