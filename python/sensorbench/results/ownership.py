"""In whose name namespaces at targets are created: the results folder that an ownership marker names."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal
from uuid import uuid4

# What is wanted of a namespace: it must be free; what another folder created is used; what the same folder created is continued; what
# sensorbench created is replaced. The engine decides what follows from that (crates/sensorbench-driver/src/ownership.rs).
Intent = Literal["create", "attach", "resume", "replace"]


def new_id() -> str:
    """An id for a results folder, which moves with it."""
    return uuid4().hex


@dataclass(frozen=True)
class Owner:
    """A results folder: its id, and where it is."""

    id: str
    folder: str

    @classmethod
    def of(cls, id_: str, folder: Path) -> "Owner":
        """The folder with this id, as a marker names it."""
        return cls(id_, str(folder.absolute()))

    def to_json(self) -> str:
        """The owner as the engine takes it."""
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Claim:
    """What a results folder wants of a namespace."""

    owner: Owner
    intent: Intent
