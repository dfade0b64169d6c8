"""Which databases several load generators cannot load at the same time, which is data: `undivided_loads.toml`, by database."""

import functools
from collections.abc import Collection
from pathlib import Path

from sensorbench.toml_file import FileModel, load

UNDIVIDED_FILE = Path(__file__).parent / "undivided_loads.toml"


class UndividedLoad(FileModel):
    """Why a database is loaded by one process: always, or with an option of its URL or with words of a schema's commands alone."""

    because: str
    option: str | None = None
    words: list[str] = []


class _UndividedLoads(FileModel):
    database: dict[str, UndividedLoad]


@functools.cache
def _undivided_loads() -> dict[str, UndividedLoad]:
    return load(UNDIVIDED_FILE, _UndividedLoads, lambda content: {"database": content}).database


def why_undivided(database: str, options: Collection[str], create: str) -> str | None:
    """Why several processes cannot load a database at the same time; None if they can.

    Args:
        database: its name.
        options: those of its URL, each as `name=value`.
        create: what the schema creates (JSON).

    """
    found = _undivided_loads().get(database)
    if found is None or (found.option is not None and found.option not in options):
        return None
    return found.because if not found.words or any(f'"{word}"' in create for word in found.words) else None
