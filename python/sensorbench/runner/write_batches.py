"""Batches that a variant is loaded in: how many rows each has, how many are sent at the same time, and at which rate they come."""

import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sensorbench.errors import UsageError
from sensorbench.schemas.recommended_batches import RecommendedBatches, recommended_batches, recommended_for
from sensorbench.schemas.undivided_loads import why_undivided

if TYPE_CHECKING:
    from sensorbench.runner.variants import TargetSpec, VariantSpec
    from sensorbench.schemas import Schema

BATCH_ROWS, WRITERS, WRITE_RATE = "batch_rows", "writers", "write_rate"
# What `--sweep` names of batches.
KEYS = (BATCH_ROWS, WRITERS, WRITE_RATE)
RECOMMENDED = "recommended"
# As many as TSBS has, where nobody says how many.
DEFAULT_ROWS = 10_000
DEFAULT_WRITERS = 1
# Keys that are swept without levels, too: those of the target are so many times fewer, as recommended, and so many times more.
WITH_DEFAULT_LEVELS = (BATCH_ROWS, WRITERS)
_FACTOR = 10


@dataclass(frozen=True)
class DefaultLevels:
    """What a key is swept at where nobody names levels.

    Args:
        key: one of `WITH_DEFAULT_LEVELS`.
        levels: in rising order.
        basis: what they rest on, in a sentence.
        source: the address of the recommendation; None if there is none.

    """

    key: str
    levels: tuple[int, ...]
    basis: str
    source: str | None = None


@dataclass(frozen=True)
class WriteBatches:
    """How rows are handed to a database that is loaded in batches, each of which is acknowledged by itself.

    Args:
        rows: rows of a batch; the last one of a table has what is left.
        writers: how many are sent at the same time.
        rate: rows per second: each batch has an intended start, whatever the database does. Without it, a writer sends the next batch
            when its last one was acknowledged.
        default_levels: of the keys that have one of their default levels here.

    """

    rows: int = DEFAULT_ROWS
    writers: int = DEFAULT_WRITERS
    rate: float | None = None
    default_levels: tuple[DefaultLevels, ...] = ()


def chosen_batches(spec: "VariantSpec", key: str, text: str) -> tuple[WriteBatches, str]:
    """The batches of a variant with one of `KEYS` chosen, and the choice as a number.

    Args:
        spec: the variant, with what is chosen already.
        key: one of `KEYS`.
        text: a number above zero, or `recommended`.

    Raises:
        UsageError: for what is not a number, and where no recommendation is known.

    """
    known = _known_of(spec)
    batches = spec.batches or WriteBatches(rows=(known and known.rows) or DEFAULT_ROWS)
    number = _recommended(spec, key, known) if text == RECOMMENDED else _number(key, text)
    if key == WRITE_RATE:
        return replace(batches, rate=float(number)), str(number)
    return replace(batches, rows=number) if key == BATCH_ROWS else replace(batches, writers=number), str(number)


def default_levels(spec: "VariantSpec", key: str) -> DefaultLevels:
    """What a key of `WITH_DEFAULT_LEVELS` is swept at for a variant where nobody names levels: a tenth of what is recommended for its database,
    that, and ten times as many. A database that has one writer stays at one.
    """
    name = spec.target.database.name
    if key == WRITERS and (why := why_one_writer(spec.target, spec.schema)) is not None:
        return DefaultLevels(key, (1,), f"{name}: writers at 1, because {why}")
    known = _known_of(spec)
    number = None if known is None else _recommended_number(known, key)
    source: str | None = None
    if known is not None and number is not None:
        middle, origin, source = number, f"the recommended number ({known.origin}: {known.says}),", known.source
    else:
        middle = DEFAULT_ROWS if key == BATCH_ROWS else DEFAULT_WRITERS
        origin = f"{middle:,}, since no number is recommended,"
    levels = tuple(level for level in (middle // _FACTOR, middle, middle * _FACTOR) if level)
    *others, last = (f"{level:,}" for level in levels)
    around = "a tenth of it and ten times as many" if levels[0] < middle else "and ten times as many"
    return DefaultLevels(key, levels, f"{name}: {key} at {', '.join(others)} and {last}: {origin} {around}", source)


def _known_of(spec: "VariantSpec") -> RecommendedBatches | None:
    return recommended_for(spec.target.database.name, spec.target.database.dialect)


def _recommended_number(known: RecommendedBatches, key: str) -> int | None:
    return known.rows if key == BATCH_ROWS else known.writers_with(os.cpu_count() or 1)


def _number(key: str, text: str) -> int:
    try:
        number = int(text.replace("_", ""))
    except ValueError:
        number = 0
    if number < 1:
        also = "" if key == WRITE_RATE else f", or {RECOMMENDED}"
        raise UsageError(f"--sweep {key}={text}: expected a whole number above 0{also}")
    return number


def _recommended(spec: "VariantSpec", key: str, known: RecommendedBatches | None) -> int:
    number = None if known is None or key == WRITE_RATE else _recommended_number(known, key)
    if number is not None:
        return number
    having = [
        name for name, entry in recommended_batches().items() if key != WRITE_RATE and _recommended_number(entry, key) is not None
    ]
    of_whom = f"; it is known of {', '.join(having)}" if having else ""
    raise UsageError(
        f"--sweep {key}={RECOMMENDED}: no number is recommended for {spec.target.database.name}{of_whom}; expected a number"
    )


def why_one_writer(target: "TargetSpec", schema: "Schema") -> str | None:
    """Why a database is loaded by one writer at a time with a schema; None if several can load it."""
    if target.database.embedded:
        return "the process that loads owns its database"
    options = [f"{name}={value}" for name, value in target.url_options.items()]
    return why_undivided(target.database.name, options, json.dumps(schema.file.create))


def check_batches(spec: "VariantSpec") -> None:
    """Raises UsageError if a variant cannot be loaded in the batches that it has."""
    if spec.batches is None:
        return
    target, writers = spec.target, spec.batches.writers
    if target.loader:
        raise UsageError(
            f"load={target.loader}: a tool of the database's own makes its own batches; leave out {' and '.join(KEYS)}"
        )
    if writers > 1 and (why := why_one_writer(target, spec.schema)) is not None:
        raise UsageError(f"--sweep {WRITERS}={writers}: {target.database.name} has one writer, because {why}")
