"""Asks for needs one after the other, on a terminal or from lines."""

from collections.abc import Sequence
from dataclasses import dataclass

import typer

from sensorbench.catalog import YES, Given, Machine, NeedKind, choice_of, need_kinds
from sensorbench.errors import UsageError
from sensorbench.progress import error_console

# Behind an answer: it counts, but is optional.
_OPTIONAL_MARK = "?"
_YES = {"y", "yes"}
_NO = {"n", "no", "-"}


@dataclass(frozen=True)
class Answers:
    """What was given before, and what was answered; which of the answers are wishes."""

    given: dict[str, Sequence[str]]
    wishes: tuple[str, ...]


def interview(given: Given, machine: Machine) -> Answers:
    """Asks for each need that is not given yet. Raises UsageError when lines end before the questions do."""
    screen = error_console()
    screen.print(
        f"An empty line: does not matter. Add {_OPTIONAL_MARK} to an answer if it is a wish, not a must.", highlight=False
    )
    answers: dict[str, Sequence[str]] = {}
    wishes = []
    for name, kind in need_kinds().items():
        if name in given:
            answers[name] = given[name]
            continue
        texts, is_optional = _ask(name, kind, machine)
        if texts:
            answers[name] = texts
            wishes += [name] if is_optional else []
    return Answers(answers, tuple(wishes))


def _ask(name: str, kind: NeedKind, machine: Machine) -> tuple[list[str], bool]:
    """Asks until an answer makes sense: the choices, and whether they are wishes."""
    screen = error_console()
    screen.print(f"\n{kind.question}", style="bold", highlight=False)
    for choice, about in kind.choices.items():
        screen.print(f"  {choice}: {about.text}", highlight=False)
    while True:
        line = _line(name, kind)
        texts = line.removesuffix(_OPTIONAL_MARK).replace(",", " ").split()
        try:
            return _choices(name, kind, texts, machine), line.endswith(_OPTIONAL_MARK)
        except UsageError as error:
            screen.print(str(error).removeprefix("--"), highlight=False)


def _line(name: str, kind: NeedKind) -> str:
    typer.echo(f"{name}{' (several, with commas)' if kind.several else ''}: ", nl=False, err=True)
    try:
        return input().strip().lower() if kind.number != "bytes" else input().strip()
    except EOFError:
        typer.echo(err=True)
        raise UsageError(f"standard input ended before {name} was answered; an empty line skips it") from None


def _choices(name: str, kind: NeedKind, texts: list[str], machine: Machine) -> list[str]:
    if list(kind.choices) == [YES]:
        if not set(texts) <= _YES | _NO:
            raise UsageError(f"--{name} {' '.join(texts)}: expected yes or no")
        return [YES] if set(texts) & _YES else []
    if len(texts) > 1 and not kind.several:
        raise UsageError(f"--{name} {' '.join(texts)}: expected one answer")
    for text in texts:
        choice_of(name, text, machine)
    return texts
