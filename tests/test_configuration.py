"""Options from the environment and from sensorbench.toml."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sensorbench.cli.command import Command
from sensorbench.cli.settings import COMMAND_LINE_ALONE, is_command_lines_alone, variables_of
from tests.conftest import SMALL, Cli
from tests.test_conventions import LEAVES, keys_of

ALONE = sorted({*COMMAND_LINE_ALONE, *(key for command in LEAVES.values() for option in command.params for key in keys_of(option) if is_command_lines_alone(key))})  # fmt: skip
# What the program takes from the environment that is not an option.
VARIABLES = {"SENSORBENCH_CACHE", "SENSORBENCH_LAB", "SENSORBENCH_LAB_INSTANCE", "SENSORBENCH_LAB_SOFTWARE", "SENSORBENCH_TRACE",
             "SENSORBENCH_ODBC_MANAGER"}  # fmt: skip


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str) -> None:
    Path("sensorbench.toml").write_text(text, encoding="utf-8")


def seed_of(cli: Cli, *options: str) -> int:
    """The seed that a command is given."""
    given: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Command, "invoke", lambda _, context: given.append(context.params["seed"]))
        ended = cli("data", "describe", "beijing-air-quality", *options)
    assert ended.exit_code == 0, ended.err
    return given[0]


def test_the_command_line_goes_before_the_environment_before_the_file(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert seed_of(cli) == 42
    write("seed = 1")
    assert seed_of(cli) == 1
    write("seed = 1\n[data]\nseed = 2")
    assert seed_of(cli) == 2
    write("seed = 1\n[data]\nseed = 2\n[data.describe]\nseed = 3")
    assert seed_of(cli) == 3
    monkeypatch.setenv("SENSORBENCH_SEED", "4")
    assert seed_of(cli) == 4
    monkeypatch.setenv("SENSORBENCH_DATA_DESCRIBE_SEED", "5")
    assert seed_of(cli) == 5
    assert seed_of(cli, "--seed", "6") == 6


def test_an_empty_variable_is_none(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENSORBENCH_SEED", "")
    monkeypatch.setenv("SENSORBENCH_YES", "")
    assert seed_of(cli) == 42


def test_several_values_flags_and_the_command_that_results_name(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    write('schema = ["natural", "by_sensor"]\nno-open = true\nout = "here"\n')
    monkeypatch.setenv("SENSORBENCH_TARGET", "sqlite fjall")
    monkeypatch.setenv("SENSORBENCH_QUIET", "yes")
    ended = cli("study", "run", "iot", *SMALL[:-1])
    assert ended.exit_code == 0, ended.err
    assert ended.err == ""
    manifest: dict[str, Any] = json.loads(Path("here/manifest.json").read_text(encoding="utf-8"))
    assert [variant["id"] for variant in manifest["variants"]] == ["sqlite-natural", "fjall-by_sensor"]
    words = [
        "--schema",
        "natural",
        "--schema",
        "by_sensor",
        "--target",
        "sqlite",
        "--target",
        "fjall",
        "--out",
        "here",
        "--no-open",
    ]
    assert sorted(manifest["command"][-len(words) :]) == sorted(words)


@pytest.mark.parametrize("option", ALONE)
@pytest.mark.parametrize("place", ["environment", "of a command", "file", "table", "underscores"])
def test_what_destroys_or_permits_is_the_command_lines_alone(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, option: str, place: str
) -> None:
    variable = option.replace("-", "_").upper()
    if place == "environment":
        monkeypatch.setenv(f"SENSORBENCH_{variable}", "1")
    elif place == "of a command":
        monkeypatch.setenv(f"SENSORBENCH_STRESS_{variable}", "0")
    else:
        name = option.replace("-", "_") if place == "underscores" else option
        write(f"[tune]\n{name} = true" if place == "table" else f"\n{name} = false")
    # The command that is run has no such option: another run would.
    ended = cli("study", "list")
    assert ended.exit_code == 2
    assert ended.out == ""
    expected = {
        "environment": f"SENSORBENCH_{variable}: ",
        "of a command": f"SENSORBENCH_STRESS_{variable}: ",
        "table": f"sensorbench.toml, line 2, tune.{option}: ",
        "file": f"sensorbench.toml, line 2, {option}: ",
        "underscores": f"sensorbench.toml, line 2, {option.replace('-', '_')}: ",
    }[place]
    assert ended.err.startswith(f"error: {expected}--{option} can destroy data or lift a safeguard, so it must be ")
    assert "give the option to the command that needs it" in ended.err
    assert cli("study", "list", "-h").exit_code == 0


def test_nothing_else_is_taken_for_what_permits(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"replace", "yes", "force", "drop-after", "allow-durability"} <= set(ALONE)
    for variable in ("SENSORBENCH_TEST_URL_X", "ALLOW_ME", "SENSORBENCH_NO_SUCH", "OTHER_REPLACE"):
        monkeypatch.setenv(variable, "1")
    assert cli("study", "list").exit_code == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sede = 1", "sensorbench.toml, line 1, sede: unknown key; expected an option of some command"),
        (
            "[data.describe]\nout = 'x'",
            "sensorbench.toml, line 2, data.describe.out: unknown key; expected an option of data describe",
        ),
        ("[dta]\nseed = 1", "sensorbench.toml, line 1, dta: unknown table; expected one of the commands init, quickstart, "),
        (
            "[data.descrbe]\nseed = 1",
            "sensorbench.toml, line 1, data.descrbe: unknown table; expected one of the commands list, describe",
        ),
        ("[data.describe.more]\nseed = 1", "data.describe.more: unknown table; expected a key for each option, no table"),
        (
            "seed = 'abc'",
            "sensorbench.toml, line 1, seed: Input should be a valid integer, unable to parse string as an integer (it is 'abc')",
        ),
        ("seed = [1, 2]", "sensorbench.toml, line 1, seed: expected one value, not a list"),
        ("seed = true", "sensorbench.toml, line 1, seed: expected a text or a number (it is True)"),
        ("seed = 2024-01-01", "sensorbench.toml, line 1, seed: expected a text or a number"),
        ("quiet = 1", "sensorbench.toml, line 1, quiet: expected true or false (it is 1)"),
        ("format = 'xml'", ""),
        ("scale = 1.5", "sensorbench.toml, line 1, scale)"),
        ("seed = ", "sensorbench.toml, line 1: "),
    ],
)
def test_a_file_that_makes_no_sense(cli: Cli, text: str, expected: str) -> None:
    write(text)
    ended = cli("data", "describe", "beijing-air-quality")
    # The command has no --format, another one has.
    assert ended.exit_code == (2 if expected else 0)
    assert expected in ended.err


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        (
            "SENSORBENCH_SEED",
            "abc",
            "SENSORBENCH_SEED: Input should be a valid integer, unable to parse string as an integer (it is 'abc')",
        ),
        ("SENSORBENCH_QUIET", "maybe", "SENSORBENCH_QUIET=maybe: expected true or false"),
        ("SENSORBENCH_SCALE", "1.5", "(--scale is set by SENSORBENCH_SCALE)"),
    ],
)
def test_a_variable_that_makes_no_sense(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, expected: str
) -> None:
    monkeypatch.setenv(variable, value)
    ended = cli("data", "describe", "beijing-air-quality")
    assert ended.exit_code == 2
    assert expected in ended.err


def test_an_option_of_a_model_names_its_place(cli: Cli) -> None:
    write("[stress]\nrates = '5:x:1'\ntarget = 'null'")
    ended = cli("stress", "--out", "out")
    assert ended.exit_code == 2
    assert "(--rates is set by sensorbench.toml, line 2, stress.rates)" in ended.err


def test_variables_of_options_are_their_own() -> None:
    """No two commands share the variable of one of them, and none takes what is not an option."""
    of_one: dict[str, tuple[str, str]] = {}
    for path, command in LEAVES.items():
        for option in command.params:
            for key in keys_of(option):
                variables = variables_of(path, key)
                assert not VARIABLES & set(variables), (path, key)
                for variable, length in zip(variables, range(len(path), -1, -1), strict=True):
                    known = of_one.setdefault(variable, (" ".join(path[:length]), key))
                    assert known == (" ".join(path[:length]), key), variable


def test_the_tests_have_no_options_in_their_environment() -> None:
    assert not {name for name in os.environ if name in {"SENSORBENCH_SEED", "SENSORBENCH_OUT", "SENSORBENCH_FORMAT"}}
