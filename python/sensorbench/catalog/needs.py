"""What somebody may need of a database, which choices there are for each need, and needs of what was given. The choices are in a file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Literal

from pydantic import RootModel

from sensorbench.advisor import bytes_of
from sensorbench.analysis.choosing import Clash, Need
from sensorbench.catalog.axes import FOLDER
from sensorbench.errors import UsageError
from sensorbench.toml_file import FileModel, load

# From this many of the operations on, writes decide.
MANY_WRITES = 0.5
# A choice that is an option without a value.
YES = "yes"


class NeedChoice(FileModel):
    """A choice: what it is, and the words of the axis that meet it."""

    text: str
    accepts: tuple[str, ...]


class NeedKind(FileModel):
    """A need: how it is asked for, the axis that it is about, its choices."""

    question: str
    axis: str
    several: bool = False
    number: Literal["bytes", "share"] | None = None
    choices: dict[str, NeedChoice]


class ClashOfChoices(FileModel):
    """Choices of some needs, any of which clashes with any of those of the others, and why."""

    why: str
    needs: dict[str, tuple[str, ...]]


class _Clashes(FileModel):
    clash: tuple[ClashOfChoices, ...]


class _NeedKinds(RootModel[dict[str, NeedKind]]):
    pass


@dataclass(frozen=True)
class Machine:
    """What a machine has (bytes), by which amounts of data are judged."""

    disk_bytes: float = 1e12
    memory_bytes: float = 64e9


# What was given for each need: choices, or numbers.
Given = Mapping[str, Sequence[str]]


@cache
def need_kinds() -> dict[str, NeedKind]:
    """All needs by name, which is that of their option."""
    return load(FOLDER / "needs.toml", _NeedKinds).root


def needs_of(given: Given, wishes: Sequence[str], machine: Machine) -> list[Need]:
    """The needs that were given; those among `wishes` are optional. Raises UsageError."""
    for name in wishes:
        if name not in given:
            raise UsageError(f"--wish {name}: expected one of the needs that are given: {', '.join(given) or 'there are none'}")
    return [
        _need(name, text, machine, is_must=name not in wishes) for name, texts in given.items() for text in dict.fromkeys(texts)
    ]


def clashes_of(needs: Sequence[Need]) -> list[Clash]:
    """The clashes among needs."""
    names = {need.name for need in needs}
    return [
        Clash(frozenset(together), clash.why)
        for clash in load(FOLDER / "clashes.toml", _Clashes).clash
        for together in product(*(names & {_called(name, choice) for choice in choices} for name, choices in clash.needs.items()))
    ]


def _called(name: str, text: str) -> str:
    """What a need is called."""
    return name if text == YES else f"{name} {text}"


def _need(name: str, text: str, machine: Machine, *, is_must: bool) -> Need:
    kind = need_kinds()[name]
    choice = choice_of(name, text, machine)
    return Need(_called(name, text), kind.axis, frozenset(kind.choices[choice].accepts), is_must)


def choice_of(name: str, text: str, machine: Machine) -> str:
    """The choice that a text is. Raises UsageError that names the option."""
    kind = need_kinds()[name]
    if text in kind.choices:
        return text
    if kind.number is None:
        raise UsageError(f"--{name} {text}: expected one of {', '.join(kind.choices)}")
    return _NUMBERS[kind.number](text, f"--{name}", machine)


def data_bytes_of(given: Given) -> float | None:
    """How many bytes of data were given as a need; None if that is a choice, such as `memory`, or nothing."""
    sizes = [text for text in given.get("data", ()) if text not in need_kinds()["data"].choices]
    return max((bytes_of(text, "--data") for text in sizes), default=None)


def _by_bytes(text: str, option: str, machine: Machine) -> str:
    number = bytes_of(text, option)
    return "memory" if number <= machine.memory_bytes else "disk" if number <= machine.disk_bytes else "cluster"


def _by_share(text: str, option: str, _: Machine) -> str:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0.0 <= share <= 1.0:
        raise UsageError(f"{option} {text}: expected a share from 0 to 1, such as 0.9")
    return "mostly" if share >= MANY_WRITES else "few"


_NUMBERS: dict[str, Callable[[str, str, Machine], str]] = {"bytes": _by_bytes, "share": _by_share}
