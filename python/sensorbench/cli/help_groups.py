"""How help is ordered: the headings of the list of commands, and the examples of each command."""

import tomllib
from functools import cache
from importlib.resources import files

from rich.markup import escape

PANELS: dict[str, tuple[str, ...]] = {
    "Start": ("init", "quickstart", "validate", "doctor"),
    "Measure": (
        "study",
        "run",
        "stress",
        "capacity",
        "set-rate",
        "tune",
        "elasticity",
        "consistency",
        "ycsb",
        "cassandra-stress",
        "tsbs",
        "traffic",
    ),
    "Decide": ("databases", "choose", "recommend"),
    "Read results": ("report", "watch", "compare", "gate", "history", "claims"),
    "Publish results": ("bundle", "verify", "site"),
    "Data": ("data", "schema", "operations"),
    "Servers": ("lab", "target", "hosts"),
}

# Commands that print no table.
_NO_TABLES = {
    ("bundle",),
    ("site",),
    ("set-rate",),
    ("ycsb", "load"),
    ("ycsb", "run"),
    ("cassandra-stress",),
    ("tsbs", "load"),
    ("tsbs", "run"),
    ("data", "describe"),
    ("data", "generate"),
    ("data", "checksum"),
    ("data", "import"),
    ("data", "export"),
    ("data", "clean"),
    ("lab", "up"),
    ("lab", "add-node"),
    ("lab", "start-node"),
    ("lab", "remove-node"),
    ("lab", "down"),
    ("target", "clean"),
    ("watch",),
    ("history", "plot"),
    ("history", "export"),
}


def prints_tables(path: tuple[str, ...]) -> bool:
    """Whether a command prints a table, which --format has as rows."""
    return path not in _NO_TABLES


@cache
def examples() -> dict[str, list[str]]:
    """Two command lines for each command, by the words that call it."""
    return tomllib.loads(files("sensorbench.cli").joinpath("examples.toml").read_text(encoding="utf-8"))


def epilog_of(path: tuple[str, ...]) -> str | None:
    """What stands below the help of a command, as rich's markup: its examples."""
    lines = examples().get(" ".join(path))
    return "\n".join(["Examples:", *(f"  {escape(line)}" for line in lines)]) if lines else None
