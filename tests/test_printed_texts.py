"""What is printed is what the sources say: help texts, claims and messages, square brackets and line breaks included."""

import re
from collections.abc import Callable

import pytest
import typer
import typer.rich_utils
from typer.main import get_command

from sensorbench import lab, terminal
from sensorbench.cli.help_texts import with_plain_help
from sensorbench.cli.main import app
from sensorbench.progress import ProgressReporter, console, print_labelled
from sensorbench.studies import FACTOR_STUDIES, OTHER_STUDIES, STUDIES
from tests.commands import commands
from tests.conftest import Cli

# Nothing is broken into lines at this width.
WIDE = 2000


def words(text: str) -> str:
    """A text as one line."""
    return " ".join(text.split())


COMMANDS = dict(commands(get_command(app)))
CLAIMS = {name: study.claims for name, study in {**STUDIES, **FACTOR_STUDIES, **OTHER_STUDIES}.items()}


@pytest.fixture(autouse=True)
def _is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typer.rich_utils, "MAX_WIDTH", WIDE)
    monkeypatch.setattr(terminal, "WIDTH_ELSEWHERE", WIDE)


@pytest.fixture
def help_of(cli: Cli) -> Callable[..., str]:
    def shown(*path: str) -> str:
        ended = cli(*path, "--help")
        assert ended.exit_code == 0, ended.err
        return re.sub(r"\x1b\[[0-9;]*m", "", ended.out)

    return shown


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_is_printed_as_it_is_written(help_of: Callable[..., str], path: tuple[str, ...]) -> None:
    command, shown = COMMANDS[path], help_of(*path)
    lines = [words(line.strip("│ ")) for line in shown.splitlines()]
    assert command.help
    for paragraph in command.help.split("\n\n"):
        assert words(paragraph) in lines
    described = [parameter for parameter in command.params if getattr(parameter, "help", None)]
    for parameter in described:
        assert any(words(parameter.help) in line for line in lines), parameter.help
    for name, item in getattr(command, "commands", {}).items():
        # A list has the first paragraph, in one line.
        assert f"{name} {words(item.help.split(chr(10) * 2)[0])}" in lines


def test_help_that_looks_like_markup_or_is_broken_is_printed_as_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    planted = typer.Typer(help="[bold]All[/bold] of [it].")

    @planted.command("one")
    def one(size: int = typer.Option(1, help="A size [default: 5; 3 embedded].")) -> None:
        """Does what needs sensorbench[spark],
        and more.
        """

    @planted.command("two")
    def two() -> None:
        """Does nothing [/] else."""

    command = with_plain_help(get_command(planted))
    for arguments in ([], ["one"]):
        with pytest.raises(SystemExit):
            command([*arguments, "--help"], standalone_mode=True)
    shown = words(re.sub(r"[│╭╮╰╯─]", "", capsys.readouterr().out))
    for text in (
        "[bold]All[/bold] of [it].",
        "A size [default: 5; 3 embedded].",
        "needs sensorbench[spark], and more.",
        "nothing [/] else.",
    ):
        assert text in shown


@pytest.mark.parametrize("study", CLAIMS)
def test_claims_are_printed_as_they_are_written(cli: Cli, study: str) -> None:
    shown = words(cli("study", "show", study).out)
    for claim in CLAIMS[study]:
        for text in (claim.id, claim.text, claim.form, claim.published):
            assert words(text) in shown, f"{claim.id}: {text}"


def test_a_claim_has_square_brackets() -> None:
    assert "[lat(Q4)" in next(claim.form for claim in CLAIMS["iot"] if claim.id == "IOT-8")


def test_the_lab_says_which_package_is_missing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = [{"version": "1", "here": False, "missing": "install 'x[spark]'"}]
    monkeypatch.setattr(lab, "databases", lambda: [{"database": "spark", "summary": "x", "versions": versions}])
    assert "no: install 'x[spark]'" in cli("lab", "databases").out


def test_no_text_is_markup(capsys: pytest.CaptureFixture[str]) -> None:
    text = "sensorbench[spark] [default: 5] [red]join:x:[/red] [/]"
    console().print(text)
    print_labelled(console(), "note", text)
    ProgressReporter().say(text)
    ProgressReporter().warn(text)
    with ProgressReporter().task(text) as task:
        task.end(text)
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [text, f"note: {text}"]
    assert printed.err.splitlines() == [text, f"warning: {text}", f"  {text}: {text}"]
