"""Spellings of earlier versions, and those of today: the one table of them, and what is said to who uses an old one."""

from collections.abc import Sequence
from dataclasses import dataclass

from sensorbench.errors import UsageError


@dataclass(frozen=True)
class Renamed:
    """An old spelling. `old` is an option of `command`, or empty if the command itself has another name; `new` is what to write now."""

    command: str
    old: str
    new: str
    note: str = ""


_IS_DURATION = "it is a duration now, such as 10s, or 0 for none"
_OF_SERVERS = "--set changes keys of an experiment file alone"

RENAMED = (
    Renamed("guarantees check", "", "sensorbench consistency check"),
    Renamed("guarantees", "", "sensorbench consistency"),
    Renamed("selfbench", "", "sensorbench doctor"),
    Renamed("aa", "", "sensorbench doctor EXPERIMENT"),
    Renamed("regression", "", "sensorbench history show --fail-on worse", "or `sensorbench compare NEW OLD --fail-on slower`"),
    Renamed("stress", "--find-capacity", "sensorbench capacity"),
    *(Renamed("stress", option, f"sensorbench capacity {option}") for option in ("--objective", "--precision", "--confirm")),
    *(Renamed("stress", option, f"sensorbench capacity {option}") for option in ("--from", "--max-rate")),
    *(Renamed(command, "--warm-up", "--warmup") for command in ("stress", "tune")),
    *(Renamed(command, "--warm-up", "--warmup", _IS_DURATION) for command in ("study run", "elasticity run")),
    *(Renamed(command, "--step", "--step-duration") for command in ("stress", "tune")),
    *(Renamed(command, "--repeat", "--repetitions") for command in ("study run", "elasticity run")),
    *(Renamed(command, "--set", "--server-setting", _OF_SERVERS) for command in ("lab up", "elasticity run")),
    Renamed("tune", "--start", "--server-setting"),
    Renamed("recommend", "--study", "sensorbench recommend FOLDER"),
    Renamed("choose", "--results", "sensorbench choose FOLDER"),
    Renamed("study show", "--results", "sensorbench study show NAME FOLDER"),
)


def refuse_renamed_command(words: Sequence[str]) -> None:
    """Raises UsageError if the words of the command line begin with the name of a command that has another one now."""
    for renamed in RENAMED:
        name = renamed.command.split()
        if not renamed.old and list(words[: len(name)]) == name:
            raise UsageError(_message(renamed.command, renamed))


def refuse_renamed_option(command: str, option: str) -> None:
    """Raises UsageError for an option of earlier versions.

    Args:
        command: the words after the program's name, as they were given: `study run iot`.
        option: the option that this command does not know.

    """
    for renamed in RENAMED:
        if renamed.old == option and f"{command} ".startswith(f"{renamed.command} "):
            raise UsageError(_message(option, renamed))


def _message(old: str, renamed: Renamed) -> str:
    note = f"; {renamed.note}" if renamed.note else ""
    return f"{old} is an earlier spelling: use `{renamed.new}`{note}"
