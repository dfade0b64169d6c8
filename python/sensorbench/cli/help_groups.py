"""How help is ordered: the headings of the list of commands, and the examples of each command."""

from rich.markup import escape

PANELS: dict[str, tuple[str, ...]] = {
    "Start": ("init", "quickstart", "validate", "doctor", "selfbench", "aa"),
    "Measure": (
        "study",
        "run",
        "stress",
        "capacity",
        "set-rate",
        "tune",
        "elasticity",
        "consistency",
        "guarantees",
        "ycsb",
        "cassandra-stress",
    ),
    "Decide": ("databases", "choose", "recommend"),
    "Read results": ("report", "compare", "claims", "regression"),
    "Data": ("data", "schema", "operations"),
    "Servers": ("lab", "target"),
}

# Commands that print no table.
_NO_TABLES = {
    ("set-rate",),
    ("ycsb", "load"),
    ("ycsb", "run"),
    ("cassandra-stress",),
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
}

_STUDIES = {
    "iot": ("--target sqlite --target duckdb --scale 0.1", "--part queries --repeat 5"),
}

# Two for each command, without the program's name.
EXAMPLES: dict[str, tuple[str, str]] = {}


def prints_tables(path: tuple[str, ...]) -> bool:
    """Whether a command prints a table, which --format has as rows."""
    return path not in _NO_TABLES


def examples_of(path: tuple[str, ...]) -> list[str]:
    """Command lines that show a command, as they are typed."""
    return [f"sensorbench {words}" for words in EXAMPLES.get(" ".join(path), ())]


def epilog_of(path: tuple[str, ...]) -> str | None:
    """What stands below the help of a command."""
    lines = [f"  {escape(example)}" for example in examples_of(path)]
    return "\n".join(["Examples:", *lines]) if lines else None
