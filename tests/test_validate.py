"""`sensorbench validate`: each kind of file is recognised, and what is wrong with it is said with its place; nothing needs a server."""

from pathlib import Path

import pytest

from sensorbench.app.validation import check_files
from sensorbench.progress import ProgressReporter
from sensorbench.schemas.shipped import SHIPPED_FOLDER
from tests.conftest import Cli

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "docs" / "example"
PACKAGE = ROOT / "python" / "sensorbench"
KINDS = [
    (EXAMPLE / "experiment.toml", "experiment"),
    (EXAMPLE / "water.toml", "dataset mapping"),
    (EXAMPLE / "by-time.toml", "schema"),
    (EXAMPLE / "operations.toml", "operation set"),
    (PACKAGE / "benchmarks" / "tune" / "spaces" / "sqlite.toml", "search space"),
    (PACKAGE / "studies" / "iot" / "claims.toml", "claims"),
    (ROOT / "tests" / "fixtures" / "cassandra-stress" / "readings.yaml", "profile of cassandra-stress"),
]


def problems_of(path: Path) -> list[str]:
    (checked,) = check_files([path], ProgressReporter(quiet=True))
    return checked.problems


@pytest.mark.parametrize(("path", "kind"), KINDS, ids=lambda value: value if isinstance(value, str) else "")
def test_each_kind_is_recognised_and_right(path: Path, kind: str, cli: Cli) -> None:
    outcome = cli("validate", path, "--json")
    assert outcome.exit_code == 0, outcome.out
    (file,) = outcome.json
    assert (file["kind"], file["ok"], file["problems"]) == (kind, True, [])


def test_properties_of_ycsb_are_recognised(tmp_path: Path) -> None:
    file = tmp_path / "workloada"
    text = (
        "workload=site.ycsb.workloads.CoreWorkload\nrecordcount=1000\noperationcount=1000\nreadproportion=1\nupdateproportion=0\n"
    )
    file.write_text(text, encoding="utf-8")
    (checked,) = check_files([file], ProgressReporter(quiet=True))
    assert (checked.kind, checked.problems) == ("properties of YCSB", [])
    file.write_text(text.replace("1000", "many", 1), encoding="utf-8")
    assert problems_of(file) == [f"{file}, line 2, recordcount: 'many': expected a whole number"]


def test_every_schema_and_operation_set_of_the_package_is_right() -> None:
    files = sorted(SHIPPED_FOLDER.glob("*/*/*.toml")) + sorted(SHIPPED_FOLDER.glob("*/operations.toml"))
    wrong = {file.path: file.problems for file in check_files(files, ProgressReporter(quiet=True)) if not file.is_ok}
    assert wrong == {}


def test_a_file_of_options_is_checked_for_all_commands(tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "sensorbench.toml"
    file.write_text('seed = 3\n[study.run.iot]\nscale = 0.1\n[init]\ntime_zone = "UTC"\n', encoding="utf-8")
    assert cli("validate", file).exit_code == 0
    for line, expected in (
        ("force = true", "--force can destroy data or lift a safeguard"),
        ('timezone = "x"', "line 2, init.timezone: unknown key"),
    ):
        file.write_text(f"[init]\n{line}\n", encoding="utf-8")
        outcome = cli("validate", file)
        assert outcome.exit_code == 2
        assert expected in outcome.out


def copied(folder: Path) -> Path:
    """The worked example in a folder of the test's."""
    for file in filter(Path.is_file, EXAMPLE.iterdir()):
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


# The file that is changed, what is replaced in it, and what is then said of a file.
PLANTED = [
    ("operations.toml", "avg(value) AS mean FROM measurements", "avg(valu) AS mean FROM measurements", "operations.toml", "operation.mean_of_hour.reference: Binder Error"),
    ("operations.toml", "SELECT avg(value) AS mean", "SELECT count(*) AS mean", "operations.toml", "it gives mean (integer); expected the columns of the operation: mean (double)"),
    ("operations.toml", "SELECT avg(value) AS mean", "SELECT avg(value) AS mean", "operations.toml", ""),
    ("operations.toml", "WHERE sensor = 'flow_l_per_min'\"", "WHERE sensor = 'none'\"", "operations.toml", "the query finds no candidates"),
    ("by-time.toml", "time < :to\"", "time < :until\"", "by-time.toml", "line 19, operation.mean_of_hour: the operation has no parameter :until"),
    ("by-time.toml", "FROM measurements", "FROM measurement", "by-time.toml", "line 16, load_query.readings.query"),
    ("by-time.toml", "FROM measurements", "FROM measurement", "experiment.toml", "line 16, load_query.readings.query"),
    ("experiment.toml", "new_flow = 1", "new_flo = 1", "experiment.toml", "workload.mix.new_flo: there is no such operation"),
    ("experiment.toml", 'schema = "heap.toml"', 'schema = "hep.toml"', "experiment.toml", "hep.toml: no such file"),
    ("water.toml", "inst_rate", "instrate", "water.toml", "line 1: there is no column 'instrate'"),
    ("water.toml", 'unit = "s"', 'unit = "min"', "water.toml", "line 8, time.unit: Input should be 's', 'ms', 'us' or 'ns' (it is 'min')"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "old", "new", "checked", "expected"), PLANTED)
def test_a_planted_mistake_is_found(changed: str, old: str, new: str, checked: str, expected: str, tmp_path: Path) -> None:
    folder = copied(tmp_path)
    text = (folder / changed).read_text(encoding="utf-8")
    assert old in text
    (folder / changed).write_text(text.replace(old, new), encoding="utf-8")
    problems = problems_of(folder / checked)
    assert (expected in problems[0]) if expected else problems == []


def test_all_files_are_checked_and_all_wrong_keys_are_said(tmp_path: Path, cli: Cli) -> None:
    wrong = tmp_path / "schema.toml"
    wrong.write_text('database = "sqlite"\nsummry = "x"\n\n[operation.a]\nwhen = 3\n', encoding="utf-8")
    nothing = tmp_path / "notes.md"
    nothing.write_text("# Notes\nnone\n", encoding="utf-8")
    outcome = cli("validate", wrong, tmp_path / "missing.toml", nothing, EXAMPLE / "water.toml")
    assert outcome.exit_code == 2
    assert f"{wrong}: 3 errors in this schema" in outcome.out
    for place in ("schema.toml, summary: this key is missing", "line 2, summry: unknown key", "line 5, operation.a.when"):
        assert place in outcome.out
    assert "missing.toml: no such file" in outcome.out
    assert "notes.md: expected one of experiment, dataset mapping, schema" in outcome.out
    assert "water.toml: ok  dataset mapping" in outcome.out


def test_answers_are_asked_for_whatever_else_a_workload_does(tmp_path: Path, cli: Cli) -> None:
    """Late readings need operations that write, which are left out; and a moment is too short for twenty executions."""
    file = tmp_path / "late.toml"
    file.write_text(
        """
dataset = "beijing-air-quality"
scale = 0.002
[[target]]
url = "sqlite"
schema = "natural"
[workload]
mix = { get_sensor_data = 1, insert_reading = 1 }
schedule = { rate = 50 }
duration = "10ms"
warmup = "0"
[workload.delivery]
duplicates = { share = 0.1 }
""",
        encoding="utf-8",
    )
    checked = cli("validate", file, "--answers")
    assert checked.exit_code == 0, checked.out + checked.err
    assert "equal answers to 1 read" in " ".join(checked.out.split())
