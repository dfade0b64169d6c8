"""How durable writes are when they are acknowledged, by what servers report of their settings."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

DurabilityClass = Literal["memory", "cache", "disk"]


class DurabilityRule(BaseModel):
    """The class of a server with some settings."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    durability: DurabilityClass = Field(alias="class")
    when: dict[str, str] = {}


class DurabilityRules(BaseModel):
    """The classes of a database's servers: that of the first rule which holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    rules: tuple[DurabilityRule, ...]


def durability_of(database: str, settings: Mapping[str, str]) -> DurabilityClass | None:
    """Where a write is when it is acknowledged; None if that is not known.

    Args:
        database: What the server calls itself.
        settings: What it reports of its settings.

    """
    known = durability_rules().get(database)
    lowered = {name: value.lower() for name, value in settings.items()}
    found = (rule for rule in known.rules if rule.when.items() <= lowered.items()) if known else iter(())
    return next((rule.durability for rule in found), None)


@cache
def durability_rules() -> dict[str, DurabilityRules]:
    """What is known of databases, by the names that their servers give themselves."""
    text = Path(__file__).with_name("durability.toml").read_text(encoding="utf-8")
    return {name: DurabilityRules.model_validate(entry) for name, entry in tomllib.loads(text).items()}
