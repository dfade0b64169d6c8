"""The databases that are built in, as the engine registers them."""

import json
from dataclasses import dataclass

from sensorbench import _engine


@dataclass(frozen=True)
class Database:
    """A database that is built in. `dialect` is the word in its schema files; one that is `in_memory` keeps all its data there;
    `many_processes` may use a target at the same time where that is so; `bulk_load` is what it has for much data at once, past its ordinary writes, if loading goes by that;
    `replays` says whose recorded statements it executes again, by the name that traces have, `any` if it looks at none.
    """

    name: str
    dialect: str
    summary: str
    embedded: bool
    in_memory: bool
    many_processes: bool
    relational: bool
    bulk_load: str | None
    replays: str | None


def databases() -> dict[str, Database]:
    """The databases that are built in, by name."""
    return {entry["name"]: Database(**entry) for entry in json.loads(_engine.databases())}
