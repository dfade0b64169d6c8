"""Servers whose settings are the flags of their command line, which they print themselves."""

import re
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path

from sensorbench.errors import FailedError
from sensorbench.lab.processes import call
from sensorbench.lab.state_dirs import ServerUser


@cache
def printed_flags(program: Path, word: str, user: ServerUser, flag: re.Pattern[str]) -> tuple[re.Match[str], ...]:
    """The flags that a program prints when it is called with a word, as a pattern finds them. Raises FailedError if it finds none."""
    printed = call([program, word], folder=Path("/"), user=user, environment={})
    found = tuple(flag.finditer(printed.stdout + printed.stderr))
    if not found:
        raise FailedError(f"{program.name} {word} printed no flags: {printed.stderr.strip()[-300:]}")
    return found


def problem_of_flag(
    flag: str,
    value: str,
    known: Collection[str],
    of_the_lab: re.Pattern[str],
    printed_by: str,
    refusal: Callable[[str, str], str],
) -> str:
    """What is wrong with a flag that somebody sets; empty if nothing is.

    Args:
        flag: its name.
        value: what it is set to.
        known: the names of the server's flags.
        of_the_lab: those that the lab sets itself.
        printed_by: the command that prints the server's flags, for the message.
        refusal: what the server says of a flag and a value that it does not take; empty if it takes it.

    """
    if flag not in known:
        return f"it is not among the flags that {printed_by} prints"
    if of_the_lab.fullmatch(flag):
        return "the lab keeps to its own"
    return refusal(flag, value)


def with_problems(settings: Mapping[str, str], problem: Callable[[str, str], str]) -> dict[str, str]:
    """The settings that have a problem, with what it is."""
    found = {key: problem(key, value) for key, value in settings.items()}
    return {key: why for key, why in found.items() if why}
