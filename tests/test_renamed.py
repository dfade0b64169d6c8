"""Spellings of earlier versions say what to write now, and end with 2."""

import pytest

from sensorbench.cli.renamed import RENAMED, Renamed
from tests.conftest import Cli

# What stands between a command and its options.
WORDS = {"study run": ("iot",), "lab up": ("postgresql",), "study show": ("iot",)}


@pytest.mark.parametrize("renamed", RENAMED, ids=lambda renamed: f"{renamed.command} {renamed.old}".strip())
def test_an_old_spelling_says_the_new_one(cli: Cli, renamed: Renamed) -> None:
    words = WORDS.get(renamed.command, ()) if renamed.old else ()
    ended = cli(*renamed.command.split(), *words, *([renamed.old, "1"] if renamed.old else []))
    assert ended.exit_code == 2
    said = " ".join(ended.err.split())
    assert f"{renamed.old or renamed.command} is an earlier spelling: use `{renamed.new}`" in said
    assert ended.out == ""


@pytest.mark.parametrize("renamed", RENAMED, ids=lambda renamed: f"{renamed.command} {renamed.old}".strip())
def test_the_new_spelling_is_there(cli: Cli, renamed: Renamed) -> None:
    """What the table says exists: the command's help has it."""
    new = renamed.new.split()
    names = [word for word in new if not word.startswith("-") and word.islower() and word != "sensorbench"]
    command = (names if new[0] == "sensorbench" else renamed.command.split()) or renamed.command.split()
    helped = cli(*command, *WORDS.get(" ".join(command), ())[:1] * (command == ["study", "run"]), "--help")
    assert helped.exit_code == 0, helped.err
    for option in (word for word in new if word.startswith("-")):
        assert option in helped.out
    assert not renamed.old or f"{renamed.old} " not in helped.out


def test_an_option_that_never_was_is_unknown_as_before(cli: Cli) -> None:
    ended = cli("stress", "--find-nothing")
    assert (ended.exit_code, "No such option" in ended.err, "earlier spelling" in ended.err) == (2, True, False)
    ended = cli("nothing")
    assert (ended.exit_code, "No such command" in ended.err) == (2, True)


def test_a_value_is_no_old_command(cli: Cli) -> None:
    """`aa` may be a file or a name where a command takes one."""
    ended = cli("study", "show", "aa")
    assert (ended.exit_code, "earlier spelling" in ended.err) == (2, False)
