"""Which operation sets and schemas are shipped: files by their places, none of them read."""

from pathlib import Path

SHIPPED_FOLDER = Path(__file__).parent
OPERATIONS_FILE = "operations.toml"


def shipped_operations() -> list[str]:
    """The names of the shipped operation sets."""
    return sorted(folder.parent.name for folder in SHIPPED_FOLDER.glob(f"*/{OPERATIONS_FILE}"))


def shipped_schemas(operations: str, database: str) -> dict[str, Path]:
    """The files of the shipped schemas of a database (its dialect) for a set of operations, by name."""
    return {file.stem: file for file in sorted((SHIPPED_FOLDER / operations / database).glob("*.toml"))}


def shipped_dialects() -> list[str]:
    """The databases (their dialects) that any schema is shipped for."""
    return sorted({file.parent.name for file in SHIPPED_FOLDER.glob("*/*/*.toml")})
