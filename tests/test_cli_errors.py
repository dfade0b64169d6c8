"""Bad input gets one clear message: file, line or key, what was expected; exit code 2, before anything is written."""

import json
from pathlib import Path

import pytest
from pydantic import field_validator

import sensorbench
from sensorbench import toml_file
from sensorbench.errors import UsageError
from sensorbench.results.stored import DamagedResultsError, as_model
from tests.conftest import Cli

EXPERIMENT = """\
dataset = "beijing-air-quality"
scale = 0.01
[[target]]
url = "sqlite"
schema = "my-schema.toml"
[workload]
mix = { get_peak_data = 1 }
operations = 10
"""

SCHEMA = """\
database = "sqlite"
summary = "mine"
[create]
statements = ["CREATE TABLE m (site INTEGER, zone INTEGER, sensor TEXT, time INTEGER, value REAL)"]
[load_query.m]
query = "SELECT site, zone, sensor, time, value FROM measurements"
[operation.get_peak_data]
statement = "SELECT max(value) FROM m WHERE site = :site AND zone = :zone AND sensor = :sensor AND time >= :from AND time < :to"
"""


def check(cli: Cli, folder: Path, *, experiment: str = EXPERIMENT, schema: str = SCHEMA, options: tuple[str, ...] = ()) -> str:
    """Runs an experiment that must be refused; returns the message."""
    (folder / "experiment.toml").write_text(experiment, encoding="utf-8")
    (folder / "my-schema.toml").write_text(schema, encoding="utf-8")
    out = folder / "out"
    outcome = cli("run", folder / "experiment.toml", "--out", out, "--no-open", *options)
    assert outcome.exit_code == 2, outcome
    assert not out.exists(), "nothing may be written"
    assert "Traceback" not in outcome.err
    return outcome.err.replace(str(folder) + "/", "")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('summary = "mine"', 'summary = "mine"\nsumary = "x"', "my-schema.toml, line 3, sumary: unknown key"),
        ("[load_query.m]", "[fill.m]", "my-schema.toml, line 5, fill: unknown key; it is called load_query now"),
        ('summary = "mine"\n', "", "my-schema.toml, summary: this key is missing"),
        ("[create]\nstatements", "[create]\nstatement", "my-schema.toml, line 4, create.statement: unknown field `statement`, expected `statements`"),
        ("statement = \"SELECT max(value)", "statment = \"SELECT max(value)", "my-schema.toml, line 8, operation.get_peak_data.statment: unknown field"),
        ("SELECT max(value) FROM m ", "SELECT max(reading) FROM m ", "my-schema.toml, line 8, operation.get_peak_data.statement: no such column: reading"),
        ("SELECT max(value) FROM m ", "SELEC max(value) FROM m ", 'my-schema.toml, line 8, operation.get_peak_data.statement: near "SELEC": syntax error'),
        ("time < :to", "time < :until", "the operation has no parameter :until; expected one of :site, :zone, :sensor, :from, :to"),
        ("SELECT max(value) FROM", "SELECT value, time FROM", "the statement returns 2 columns; the operation has 1 (peak)"),
        ("time, value FROM measurements", "time, reading FROM measurements", "my-schema.toml, line 6, load_query.m.query: "),
        ("CREATE TABLE m", "CREATE TABEL m", 'my-schema.toml, line 4, create.statements[0]: near "TABEL": syntax error'),
        ("[load_query.m]\n", '[load_query.m]\norder = ["tiem"]\n', "my-schema.toml, line 6, load_query.m.order: the query has no column 'tiem'"),
        ('database = "sqlite"', 'database = "fjall"', "my-schema.toml, line 1, database: this schema is for fjall, but the target is sqlite"),
        ("[operation.get_peak_data]", "[operation.get_peak]", "the operation get_peak_data is missing; the schema has get_peak"),
        ('database = "sqlite"', "database = sqlite", "my-schema.toml, line 1: "),
        ("CREATE TABLE m", "CREATE TABLE ${name}", "${name} is not a parameter of the schema"),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_used(cli: Cli, tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in SCHEMA
    message = check(cli, tmp_path, schema=SCHEMA.replace(old, new))
    assert expected in message, message


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("operations = 10", "operation = 10", "experiment.toml, line 8, workload.operation: unknown key"),
        ("operations = 10", "operations = 10\nschedule = { in_flight = 2 }", "line 9, workload.schedule.in_flight: unknown key; it is called concurrency now"),
        ("operations = 10", "operations = 10\nwarm_up = 20", "experiment.toml, line 9, workload.warm_up: unknown key; it is called warmup now"),
        ("operations = 10", "operations = 10\nrepeat = 2", "experiment.toml, line 9, workload.repeat: unknown key; it is called repetitions now"),
        ("operations = 10", "operations = 10\nwarmup = 20", "it is not a number of operations any more (it is 20)"),
        ("operations = 10", 'operations = 10\nwarmup = "20"', "expected a length of time above zero such as 500ms, 30s, 5m or 8h"),
        # Keys that another file once had are unknown here as any other.
        ("operations = 10", "operations = 10\nvariants = 2", "experiment.toml, line 9, workload.variants: unknown key\n"),
        ("operations = 10", "operations = 0", "experiment.toml, line 8, workload.operations: Input should be greater than or equal to 1 (it is 0)"),
        ("operations = 10", "", "experiment.toml, line 6, workload: expected duration, or operations (a count)"),
        ("operations = 10", 'duration = "5 minutes"', "expected a length of time above zero such as 500ms, 30s, 5m or 8h"),
        ("operations = 10", "operations = 10\nschedule = { rate = 0 }", "experiment.toml, line 9, workload.schedule.rate: "),
        ("operations = 10", "operations = 10\nschedule = {}", "expected concurrency (closed loop), or rate or segments (open loop)"),
        ("get_peak_data = 1", "get_peek_data = 1", "experiment.toml, line 7, workload.mix.get_peek_data: there is no such operation"),
        ("get_peak_data = 1", "get_peak_data = -1", "the weights of a mix must be at least zero"),
        ('url = "sqlite"', 'url = "sqlit"', "experiment.toml, line 4, target[0].url: --target sqlit: expected the name of a database (null, sqlite, fjall,"),
        ('url = "sqlite"', 'url = "sqlite:x.db?speed=fast"', "unknown option speed; expected one of cache_mib, journal_mode, mmap_mib, synchronous"),
        ('url = "sqlite"', 'url = "sqlite:"', "expected the path of a file"),
        ('schema = "my-schema.toml"', 'schema = "my"', "there is no schema 'my' of sqlite; expected one of natural, star, or a file (.toml)"),
        ('schema = "my-schema.toml"', 'schema = "other.toml"', "other.toml: no such file"),
        ('schema = "my-schema.toml"', 'schema = "my-schema.toml"\nparameters = { a = 1 }', "the schema has no parameter 'a'"),
        ('dataset = "beijing-air-quality"', 'dataset = "bejing"', "there is no dataset"),
        ("scale = 0.01", "scale = 1.5", "experiment.toml, line 2, scale: Input should be less than or equal to 1"),
        ("scale = 0.01", 'operations = "senses"', "there is no operation set 'senses'; expected one of articles, iot_benchmark, logs, mapreduce, patterns, registers, sensors"),
        ("operations = 10", "operations = 10\nchoice = { serie = \"sequential\" }", "choice: there is no parameter source 'serie'; expected one of series"),
    ],
)  # fmt: skip
def test_an_experiment_that_cannot_be_run(cli: Cli, tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in EXPERIMENT
    assert expected in check(cli, tmp_path, experiment=EXPERIMENT.replace(old, new))


def test_what_a_check_says_is_said_without_the_words_of_the_library(tmp_path: Path) -> None:
    class Even(toml_file.FileModel):
        number: int

        @field_validator("number")
        @classmethod
        def _is_even(cls, number: int) -> int:
            if number % 2:
                raise ValueError("expected an even number")
            return number

    file = tmp_path / "even.toml"
    with pytest.raises(UsageError) as in_toml:
        toml_file.parse("number = 3", Even, file)
    assert str(in_toml.value) == f"{file}, line 1, number: expected an even number (it is 3)"
    with pytest.raises(DamagedResultsError) as in_results:
        as_model(file, {"number": 3}, Even)
    assert str(in_results.value).removesuffix(". Restore it from a copy").endswith("damaged: number: expected an even number")
    # Whoever takes the library's text takes its "Value error, " as well.
    package = Path(sensorbench.__file__).parent
    assert {
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        if '["msg"]' in file.read_text(encoding="utf-8").replace("'", '"')
    } == {"errors.py"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("workload.operations", "expected key=value"),
        ("target[3].url=sqlite", "there is no target[3] in the file"),
        ("workload.opertions=5", "workload.opertions: unknown key"),
        ("scale=abc", "scale: Input should be a valid number"),
    ],
)
def test_a_change_that_makes_no_sense(cli: Cli, tmp_path: Path, change: str, expected: str) -> None:
    assert expected in check(cli, tmp_path, options=("--set", change))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("study", "run", "iott"), "there is no study 'iott'; expected one of iot"),
        (("study", "run", "iot", "--target", "oracle"), "--target oracle: expected the name of a database"),
        (("study", "run", "iot", "--target", "oracle://me:secret@host/db"), "--target oracle:…: expected the name of a database"),
        (("study", "run", "iot", "--target", "null"), "study iot has no schema for null"),
        (("study", "run", "iot", "--schema", "snowflake"), "study iot has no schema for cassandra among snowflake"),
        (("study", "run", "iot", "--scale", "0"), "--scale 0: expected a share of the full span"),
        (("study", "run", "iot", "--scale", "1e-9"), "leaves less than a minute of the year"),
        (("study", "run", "iot", "--resume"), "--resume: name the folder"),
        (("study", "run", "iot", "--resume", "--out", "nowhere"), "holds no results to continue"),
        (("study", "show", "x"), "there is no study 'x'"),
        (("report", "nowhere"), "nowhere: no results are there (manifest.json is missing)"),
        (("claims", "nowhere"), "nowhere: no results are there"),
        (("compare", "nowhere", "nowhere"), "nowhere: no results are there"),
        (("run", "nowhere.toml"), "nowhere.toml: no such file"),
        (("data", "describe", "nothing"), "there is no dataset 'nothing'"),
        (("data", "generate", "nothing", "--out", "x"), "there is no generator 'nothing'; expected one of cu-bems"),
        (("data", "import", "cu-bems", "--out", "x"), "name the files to import"),
        (
            ("data", "export", "beijing-air-quality", "--format", "xls", "--out", "x"),
            "--format xls: expected one of csv, parquet, influx",
        ),
    ],
)
def test_a_command_that_makes_no_sense(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = cli(*arguments)
    assert outcome.exit_code == 2
    assert expected in outcome.err
    assert "secret" not in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_results_are_not_written_over(cli: Cli, study_folder: Path) -> None:
    outcome = cli("study", "run", "iot", "--out", study_folder)
    assert outcome.exit_code == 2
    assert "is not empty; name another folder with --out, or continue with --resume" in outcome.err


def test_operations_that_all_fail_end_with_1(cli: Cli, tmp_path: Path) -> None:
    failing = SCHEMA.replace("SELECT max(value)", "SELECT abs(-9223372036854775808) + max(value)")
    (tmp_path / "my-schema.toml").write_text(failing, encoding="utf-8")
    (tmp_path / "experiment.toml").write_text(EXPERIMENT, encoding="utf-8")
    outcome = cli("run", tmp_path / "experiment.toml", "--out", tmp_path / "out", "--no-open")
    assert outcome.exit_code == 1
    (ranking,) = json.loads((tmp_path / "out/summary.json").read_text(encoding="utf-8"))["result"]["rankings"]
    assert ranking["excluded"] == "no operation succeeded: integer overflow"
    assert "integer overflow" in (tmp_path / "out/report.html").read_text(encoding="utf-8")


def _plant_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(*_: object) -> None:
        raise ValueError("planted")

    for module in ("cli.report", "app.reports"):
        monkeypatch.setattr(f"sensorbench.{module}.kind_at", planted)


@pytest.mark.parametrize("command", [("report", "x"), ("claims", "x", "--json")])
def test_a_defect_prints_one_line_that_says_how_to_report_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    _plant_defect(monkeypatch)
    outcome = cli(*command)
    assert outcome.exit_code == 1
    (line,) = outcome.err.splitlines()
    assert line.startswith("error: ValueError: planted (a defect of sensorbench")
    assert "Please report it to its maintainers" in line
    assert "--debug" in line
    assert outcome.out == ""


@pytest.mark.parametrize("command", [("--debug", "report", "x"), ("report", "x", "--debug")])
def test_debug_shows_where_an_error_arose(cli: Cli, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    _plant_defect(monkeypatch)
    outcome = cli(*command)
    assert outcome.exit_code == 1
    assert "Traceback (most recent call last)" in outcome.err
    assert "in planted" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("error: ValueError: planted")


def test_debug_changes_no_exit_code(cli: Cli) -> None:
    outcome = cli("report", "nowhere", "--debug")
    assert outcome.exit_code == 2
    assert "in read_manifest" in outcome.err
    assert "--debug" in cli("--help").out
    # Behind `--` a word is the command's own.
    behind = cli("report", "--", "--debug")
    assert behind.exit_code == 2
    assert "Traceback" not in behind.err
    assert "--debug: no results are there" in behind.err
