"""What holds for every command: help, what is printed and how, completion."""

import csv
import io
import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.table import Table
from rich.text import Text
from typer.main import get_command

from sensorbench.cli.command import Command
from sensorbench.cli.help_groups import PANELS, examples, prints_tables
from sensorbench.cli.main import app
from sensorbench.cli.settings import keys_of, option_names
from sensorbench.terminal import Rows, TableFormat, formatted, rows_of
from tests.commands import commands
from tests.conftest import SMALL, Cli, new_lab_home
from tests.test_replay import reads
from tests.test_startup import LARGE

EXAMPLE = Path(__file__).parent.parent / "docs" / "example" / "experiment.toml"
TRAFFIC = Path(__file__).parent / "fixtures" / "traffic" / "postgresql.csv"
PROGRAM = Path(sys.executable).with_name("sensorbench")
LEAVES = {path: command for path, command in commands(get_command(app)) if isinstance(command, Command)}
GROUPS = [path for path, command in commands(get_command(app)) if not isinstance(command, Command)]


def options_of(command: Any) -> set[str]:
    return {word for parameter in command.params for word in parameter.opts if word.startswith("-")}


def test_the_walk_finds_every_command() -> None:
    assert len(LEAVES) > 40
    # A command that is none of ours would have nothing of what is tested here.
    leaves = [path for path, command in commands(get_command(app)) if not getattr(command, "commands", None)]
    assert sorted(leaves) == sorted(LEAVES)


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_each_command_has_the_options_of_all(path: tuple[str, ...]) -> None:
    shared = {"--json", "--quiet", "-q", "--verbose", "-v", "--no-color"}
    assert shared <= options_of(LEAVES[path])
    assert not prints_tables(path) or "--format" in options_of(LEAVES[path])


@pytest.mark.parametrize("path", [*GROUPS, *LEAVES], ids=lambda path: " ".join(path) or "sensorbench")
def test_each_command_has_a_short_option_for_help(cli: Cli, path: tuple[str, ...]) -> None:
    short, long = cli(*path, "-h"), cli(*path, "--help")
    assert short.exit_code == long.exit_code == 0
    assert short.out == long.out
    assert "Usage:" in short.out


def test_each_command_of_the_first_list_stands_under_one_heading(cli: Cli) -> None:
    headed = [name for names in PANELS.values() for name in names]
    assert len(headed) == len(set(headed))
    listed = set(get_command(app).commands)
    assert listed <= set(headed), f"name these in PANELS of cli/help_groups.py: {listed - set(headed)}"
    shown = cli("-h").out
    for panel, names in PANELS.items():
        assert not listed & set(names) or f"─ {panel} ─" in shown


def test_there_are_two_examples_of_each_command_and_of_nothing_else() -> None:
    assert set(examples()) == {" ".join(path) for path in LEAVES}
    assert {len(lines) for lines in examples().values()} == {2}


@pytest.mark.parametrize("words", examples())
def test_each_example_is_a_line_of_its_command(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str) -> None:
    parsed: list[tuple[str, ...]] = []
    monkeypatch.setattr(Command, "invoke", lambda command, _: parsed.append(command.path))
    monkeypatch.chdir(tmp_path)
    for line in examples()[words]:
        program, *arguments = shlex.split(line)
        assert program == "sensorbench"
        outcome = cli(*arguments)
        assert outcome.exit_code == 0, outcome.err
    assert parsed == [tuple(words.split())] * 2
    assert "Examples:" in cli(*words.split(), "-h").out


# Commands whose JSON the tests of another module read, since it takes servers or long runs.
JSON_ELSEWHERE = {
    "watch": "test_watch",
    "tune": "test_tune",
    "elasticity run": "test_elasticity_run",
    "elasticity compare": "test_elasticity_run",
    "elasticity analyse": "test_elasticity",
    "doctor": "test_doctor",
    "hosts check": "test_hosts_runs",
    "cassandra-stress": "test_cassandra_stress",
    "lab up": "test_lab",
    "lab status": "test_lab",
    "lab add-node": "test_lab",
    "lab remove-node": "test_lab",
    "lab start-node": "test_cassandra_lab",
    "set-rate": "test_stress",
    "traffic record": "test_traffic_record",
}
# Commands that print by the function of another one.
JSON_AS = {
    "quickstart": "run",
    "capacity": "stress",
    "study run log-analytics": "study run iot",
    "study run sensor-schemas": "study run iot",
    "study run layouts": "study run iot",
    "study run tsbs": "study run iot",
    "study run tsm": "study run iot",
    "study run cardinality": "study run iot",
    "study run cassandra-tuning": "stress",
    "study run elasticity": "stress",
    "study run mapreduce": "stress",
}
WORKLOAD = "recordcount=10\noperationcount=10\nworkload=site.ycsb.workloads.CoreWorkload\nreadproportion=1\nupdateproportion=0\n"
MAPPING = """\
name = "rows"
title = "Two rows"
source = "a test"
license = "none"
files = ["rows.csv"]
time = { column = "when" }
site = 1
zone = 1
sensors = { a = "a" }
"""
HISTORY = "".join(
    json.dumps({"process": 0, "type": kind, "f": "write", "key": 1, "value": 1, "time": time}) + "\n"
    for time, kind in enumerate(("invoke", "ok"))
)


def json_lines(folder: Path, study: Path) -> dict[str, tuple[object, ...]]:
    """A command line with --json that needs no server, for each command that has one."""
    (folder / "workload").write_text(WORKLOAD, encoding="utf-8")
    (folder / "history.jsonl").write_text(HISTORY, encoding="utf-8")
    (folder / "rows.csv").write_text("when,a\n2024-01-01 00:00:00,1\n2024-01-01 01:00:00,2\n", encoding="utf-8")
    (folder / "rows.toml").write_text(MAPPING, encoding="utf-8")
    store = ("--store", folder / "history.duckdb")
    trace = reads(1, 1, 0.0).write(folder / "trace")
    base, load = ("--target", f"sqlite:{folder}/ycsb.db", "-P", folder / "workload"), folder / "load"
    tsbs = ("--target", f"duckdb:{folder}/tsbs.db", "--scale", "2", "--timestamp-end", "2016-01-01T00:10:00Z")
    return {
        "study list": (),
        "study show": ("iot",),
        "study run iot": (*SMALL, "--target", "sqlite", "--schema", "natural", "--out", folder / "iot"),
        "run": (EXAMPLE, "--set", "workload.duration=200ms", "--out", folder / "run", "--no-open"),
        "stress": (
            "--target",
            "null",
            "--rates",
            "200",
            "--step-duration",
            "1s",
            "--warmup",
            "0",
            "--out",
            folder / "stress",
            "--no-open",
        ),
        "init": (folder / "rows.csv", "--database", "sqlite", "--out", folder / "started"),
        "validate": (folder / "rows.toml",),
        "schema list": ("--database", "sqlite"),
        "schema show": ("natural", "--database", "sqlite", "--operations", "sensors"),
        "operations list": (),
        "operations show": ("get_peak_data",),
        "consistency check": (folder / "history.jsonl",),
        "ycsb load": (*base, "--out", load),
        "ycsb run": (*base, "--out", folder / "ycsb"),
        "tsbs load": (*tsbs, "--out", folder / "tsbs-load"),
        "tsbs run": (*tsbs, "--queries", "lastpoint", "--max-queries", "2", "--out", folder / "tsbs"),
        "traffic replay": (trace, "null:", "--out", folder / "replay", "--no-open"),
        "traffic import": (TRAFFIC, "--out", folder / "traffic"),
        "traffic describe": (folder / "traffic", "--no-open"),
        "traffic fit": (folder / "traffic", "--out", folder / "fitted", "--no-open"),
        "traffic anonymise": (folder / "traffic", "--key", folder / "rows.csv", "--out", folder / "anonymous"),
        "report": (study, "--no-open"),
        "compare": (study, study),
        "claims": (study,),
        "gate": (
            EXAMPLE.with_name("gate.toml"),
            "--set",
            "workload.operations=20",
            "--margin",
            "1000000",
            "--repetitions",
            "4",
            "--out",
            folder / "gate",
            "--no-open",
        ),
        "history add": (study, *store),
        "history list": store,
        "history show": store,
        "history plot": (*store, "--out", folder / "page", "--no-open"),
        "history export": (*store, "--out", folder / "figures.csv"),
        "bundle": (study, "--out", folder / "study.sbz"),
        "verify": (folder / "study.sbz",),
        "site": (folder / "study.sbz", "--out", folder / "site", "--no-verify"),
        "databases": (),
        "choose": ("--query", "range"),
        "recommend": (),
        "data list": (),
        "data describe": ("beijing-air-quality",),
        "data generate": ("cu-bems", "--scale", "0.0001", "--out", folder / "generated"),
        "data checksum": ("beijing-air-quality", "--scale", "0.02"),
        "data fit": ("beijing-air-quality", "--scale", "0.02", "--out", folder / "fitted.json"),
        "data import": (folder / "rows.toml", "--out", folder / "imported"),
        "data export": ("beijing-air-quality", "--scale", "0.02", "--out", folder / "files"),
        "data clean": ("--yes",),
        "lab databases": (),
        "lab list": (),
        "lab down": ("--all", "--yes"),
        "target list": (f"sqlite:{folder}/ycsb.db",),
        "target clean": (f"sqlite:{folder}/ycsb.db", "--yes"),
    }


def test_what_json_prints_is_one_document(cli: Cli, tmp_path: Path, study_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENSORBENCH_CACHE", str(tmp_path / "cache"))
    lines = json_lines(tmp_path, study_folder)
    for words, arguments in lines.items():
        outcome = cli(*words.split(), *arguments, "--json")
        assert outcome.exit_code == 0, (words, outcome.err)
        assert isinstance(json.loads(outcome.out), dict | list), words
    assert sorted([*lines, *JSON_ELSEWHERE, *JSON_AS]) == sorted(" ".join(path) for path in LEAVES)
    assert set(JSON_AS.values()) <= set(lines)


@pytest.mark.parametrize("words", JSON_ELSEWHERE)
def test_the_json_of_other_commands_is_read_elsewhere(words: str) -> None:
    module = (Path(__file__).parent / f"{JSON_ELSEWHERE[words]}.py").read_text(encoding="utf-8")
    assert '"--json"' in module
    assert f'"{words.rpartition(" ")[2]}"' in module


def test_rows_of_tables_in_each_format(cli: Cli) -> None:
    rows = json.loads(cli("study", "list", "--format", "json").out)
    assert {row["study"] for row in rows} >= {"iot", "layouts"}
    read = list(csv.DictReader(io.StringIO(cli("study", "list", "--format", "csv").out)))
    assert read == rows
    title, under, *lines = cli("study", "list", "--format", "markdown").out.splitlines()
    assert title == "| study | what | databases | claims |"
    assert under == "| --- | --- | --- | --- |"
    assert len(lines) == len(rows)
    assert lines[0].startswith(f"| {rows[0]['study']} | ")


def test_what_is_no_table_goes_to_standard_error_with_a_format(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with new_lab_home() as home:
        monkeypatch.setenv("SENSORBENCH_LAB", str(home))
        assert cli("lab", "list", "--format", "csv").out == ""
        nothing = cli("lab", "list", "--format", "json")
    assert json.loads(nothing.out) == []
    assert "no instance is running" in nothing.err


def test_several_tables_are_one_document(cli: Cli) -> None:
    first, second = json.loads(cli("databases", "--format", "json").out)
    assert first["title"] == "today"
    assert [row["database"] for row in first["rows"]] == [row["database"] for row in second["rows"]]
    one, _, other = cli("databases", "--format", "csv").out.partition("\n\n")
    assert len(one.splitlines()) == len(other.splitlines()) == len(first["rows"]) + 1


def test_a_format_and_json_are_two_documents(cli: Cli) -> None:
    outcome = cli("study", "list", "--format", "csv", "--json")
    assert outcome.exit_code == 2
    assert "give one of them" in outcome.err
    assert cli("study", "list", "--format", "xml").exit_code == 2


def test_columns_without_a_name_of_their_own_get_one() -> None:
    table = Table()
    for name in ("", "a", "a", Text("b|")):
        table.add_column(name, justify="right" if name == "a" else "left")
    table.add_row("x", Text("1", "green"), "2", "y|z")
    found = rows_of(table)
    assert found == Rows("", ["column 1", "a", "a 2", "b|"], [False, True, True, False], [["x", "1", "2", "y|z"]])
    assert formatted([found], TableFormat.MARKDOWN) == (
        "| column 1 | a | a 2 | b\\| |\n| --- | ---: | ---: | --- |\n| x | 1 | 2 | y\\|z |\n"
    )


def test_quiet_leaves_results_warnings_and_errors(cli: Cli, tmp_path: Path) -> None:
    line = ("stress", "--target", "null", "--rates", "200", "--step-duration", "1s", "--warmup", "0", "--no-open", "--out")
    loud, quiet = cli(*line, tmp_path / "loud"), cli(*line, tmp_path / "quiet", "-q")
    assert "results go to" in loud.err
    assert quiet.err == ""
    assert "rate/s" in quiet.out
    assert f"report: {tmp_path / 'quiet'}" in quiet.out
    assert "error: " in cli("-q", "report", tmp_path / "nowhere").err


def test_verbose_says_steps_and_statements(cli: Cli, tmp_path: Path) -> None:
    line = ("study", "run", "iot", *SMALL, "--target", "sqlite", "--schema", "natural", "--out")
    plain, verbose = cli(*line, tmp_path / "plain"), cli(*line, tmp_path / "verbose", "-v")
    assert "CREATE TABLE" not in plain.err
    assert "CREATE TABLE" in verbose.err
    assert "all answers were equal" in verbose.out
    both = cli("study", "list", "-q", "-v")
    assert both.exit_code == 2
    assert "contradict" in both.err


def on_a_terminal(*words: object, **environment: str) -> str:
    """What the program prints on a terminal, on standard output or standard error."""
    own, theirs = pty.openpty()
    unset = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    process = subprocess.Popen(
        [PROGRAM, *map(str, words)], stdout=theirs, stderr=theirs, env={**unset, "TERM": "xterm-256color", **environment}
    )
    os.close(theirs)
    text = b""
    try:
        while part := os.read(own, 65536):
            text += part
    except OSError:  # how Linux says that nobody writes any more
        pass
    process.wait()
    os.close(own)
    return text.decode()


@pytest.mark.parametrize("words", ["-h", "stress -h", "stress --no-such-option", "databases", "report nowhere"])
def test_no_color_prints_no_escape_codes(words: str) -> None:
    assert "\x1b[" in on_a_terminal(*words.split())
    for plain in (on_a_terminal(*words.split(), "--no-color"), on_a_terminal(*words.split(), NO_COLOR="1")):
        assert plain.strip()
        assert "\x1b" not in plain


def test_no_color_has_lines_instead_of_bars() -> None:
    line = ("data", "checksum", "beijing-air-quality", "--scale", "0.02")
    assert "\x1b[" in on_a_terminal(*line)
    assert "\x1b" not in on_a_terminal(*line, SENSORBENCH_NO_COLOR="1")


def test_a_process_has_its_colours_back(cli: Cli) -> None:
    import typer.rich_utils

    before = typer.rich_utils.COLOR_SYSTEM
    assert cli("study", "list", "--no-color").exit_code == 0
    assert typer.rich_utils.COLOR_SYSTEM is None
    assert cli("study", "list").exit_code == 0
    assert before == typer.rich_utils.COLOR_SYSTEM


IN_BASH = """
source <(_SENSORBENCH_COMPLETE=source_bash sensorbench)
complete -p sensorbench
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_sensorbench_completion sensorbench
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("sensorbench st", {"study", "stress"}),
        ("sensorbench lab add", {"add-node"}),
        ("sensorbench study run sens", {"sensor-schemas"}),
        ("sensorbench stress --ra", {"--rates", "--ramp"}),
        ("sensorbench study list --format m", {"markdown"}),
    ],
)
def test_bash_completes(words: str, expected: set[str]) -> None:
    path = f"{PROGRAM.parent}:{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "--norc", "-c", IN_BASH.format(words=words)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": path},
    )
    registered, *found = ended.stdout.splitlines()
    assert registered.endswith("_sensorbench_completion sensorbench")
    assert set(found) == expected


@pytest.mark.parametrize(("shell", "action"), [("zsh", {}), ("fish", {"_TYPER_COMPLETE_FISH_ACTION": "get-args"})])
@pytest.mark.parametrize(("words", "expected"), [("sensorbench st", "stress"), ("sensorbench stress --ra", "--rates")])
def test_other_shells_complete(shell: str, action: dict[str, str], words: str, expected: str) -> None:
    """These shells may not be installed here: what their scripts ask for is asked for here."""
    asked = {"_SENSORBENCH_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": words, **action}
    ended = subprocess.run([PROGRAM], capture_output=True, text=True, check=True, env={**os.environ, **asked})
    assert expected in ended.stdout
    asked["_SENSORBENCH_COMPLETE"] = f"source_{shell}"
    script = subprocess.run([PROGRAM], capture_output=True, text=True, check=True, env={**os.environ, **asked}).stdout
    assert f"_SENSORBENCH_COMPLETE=complete_{shell}" in script


def test_completion_is_installed_where_the_shell_looks(tmp_path: Path) -> None:
    line = f"{shlex.quote(str(PROGRAM))} --install-completion; true"
    ended = subprocess.run(
        ["bash", "--norc", "-c", line], capture_output=True, text=True, check=True, env={**os.environ, "HOME": str(tmp_path)}
    )
    assert "bash completion installed in" in ended.stdout
    assert "_sensorbench_completion" in (tmp_path / ".bash_completions" / "sensorbench.sh").read_text(encoding="utf-8")
    shown = subprocess.run(["bash", "--norc", "-c", line.replace("install", "show")], capture_output=True, text=True, check=True)
    assert "complete -o default -F _sensorbench_completion sensorbench" in shown.stdout


@pytest.mark.parametrize(
    ("words", "is_large"), [("sensorbench st", False), ("sensorbench lab u", False), ("sensorbench run -", True)]
)
def test_completion_imports_what_it_completes_alone(words: str, is_large: bool) -> None:
    asked = {"_SENSORBENCH_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": words}
    line = [sys.executable, "-X", "importtime", PROGRAM]
    ended = subprocess.run(line, capture_output=True, text=True, check=True, env={**os.environ, **asked})
    imported = {row.rpartition("|")[2].strip() for row in ended.stderr.splitlines()}
    assert bool(imported & LARGE) == is_large


def test_a_study_that_there_is_not_completes_to_nothing() -> None:
    asked = {"_SENSORBENCH_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "sensorbench study run iott --"}
    ended = subprocess.run([PROGRAM], capture_output=True, text=True, check=True, env={**os.environ, **asked})
    assert "error" not in ended.stdout + ended.stderr


def test_the_list_of_options_is_that_of_the_commands() -> None:
    names = {key for command in LEAVES.values() for parameter in command.params for key in keys_of(parameter)}
    assert option_names() == names, "write cli/option_names.txt again: python -m tests.write_option_names"
