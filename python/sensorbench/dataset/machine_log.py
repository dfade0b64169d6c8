"""A generated log of industrial machines: the record of the persistent-log study, at its sizes, with its drift.

The study's own log was not published. Known of it are the numbers of records of four growing pieces, and how many of them
lie in seven ranges of values; the generator reproduces both at any scale. A size is the beginning of the next larger one, as
in the study. A scale is a share of the sensors, not of the time, so that each size keeps its ranges however small it is.
"""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from sensorbench._engine import generate_machine_log
from sensorbench.dataset.dataset import LOG_READINGS, LOG_SCHEMA, Dataset, DatasetWriter, Description
from sensorbench.dataset.generated import WriteFiles
from sensorbench.errors import UsageError

NAME = "machine-log"
GENERATOR_VERSION = 1

START = datetime(2015, 1, 1, tzinfo=UTC)
TICK = timedelta(minutes=10)
SENSORS_A_MACHINE = 10
# The greatest number of which all sizes of the study are multiples.
SENSORS = 30_000
# The longest reading ends before its sensor's next turn.
READING_MS = (1_000, 590_000)


@dataclass(frozen=True)
class Band:
    """A number of records whose values are evenly spread from `low` to below `high`."""

    records: float
    low: float
    high: float


@dataclass(frozen=True)
class Piece:
    """What the log grows by from one size to the next, from the lowest values to the highest."""

    size: str
    records: int
    bands: tuple[Band, ...]


# Records with values in the study's open ranges r1 to r4, as printed: all of them are in the first piece.
IN_2_5_TO_3 = 23_736
IN_2_TO_7 = 213_624
IN_15_6_TO_15_7 = 2_326_128
IN_15_53_TO_15_81 = 5_577_960
# r5 to r7 go on growing: as printed for 4GB, and by the printed percentages for the sizes before.
IN_15_75_TO_16_2 = {"1GB": 0.36 * 19_530_000, "2GB": 10_894_824}
IN_0_TO_16_16 = {"1GB": 0.81 * 19_530_000, "2GB": 18_388_477}
IN_0_TO_16_72 = {"1GB": 0.81 * 19_530_000, "2GB": 0.90 * 37_800_000, "4GB": 47_631_229}


def _split(records: float, *bounds: tuple[float, float]) -> list[Band]:
    """Bands with the same density."""
    width = sum(high - low for low, high in bounds)
    return [Band(records * (high - low) / width, low, high) for low, high in bounds]


def _first_piece(size: str, records: int) -> Piece:
    """19% lie below zero; 1% are values of machines that start; the rest lies below 16.16, none from there to 16.72."""
    starting = _split(IN_2_TO_7 - IN_2_5_TO_3, (2.0, 2.5), (3.0, 7.0))
    around_r3 = _split(IN_15_53_TO_15_81 - IN_15_6_TO_15_7, (15.53, 15.6), (15.7, 15.75), (15.75, 15.81))
    above_r4 = IN_15_75_TO_16_2[size] - around_r3[2].records
    below_r4 = IN_0_TO_16_16[size] - IN_2_TO_7 - IN_15_53_TO_15_81 - above_r4
    bands = (
        Band(records - IN_0_TO_16_72[size], -2.0, 0.0),
        starting[0],
        Band(IN_2_5_TO_3, 2.5, 3.0),
        starting[1],
        Band(below_r4, 15.0, 15.53),
        around_r3[0],
        Band(IN_15_6_TO_15_7, 15.6, 15.7),
        *around_r3[1:],
        Band(above_r4, 15.81, 16.16),
    )
    return Piece(size, records, bands)


def _second_piece(size: str, before: str, records: int) -> Piece:
    """Nearly all of it lies from 15.81 to 16.72."""
    to_16_16 = IN_0_TO_16_16[size] - IN_0_TO_16_16[before]
    to_16_2 = IN_15_75_TO_16_2[size] - IN_15_75_TO_16_2[before]
    to_16_72 = IN_0_TO_16_72[size] - IN_0_TO_16_72[before]
    bands = (
        Band(to_16_16, 15.81, 16.16),
        Band(to_16_2 - to_16_16, 16.16, 16.2),
        Band(to_16_72 - to_16_2, 16.2, 16.72),
        Band(records - to_16_72, 16.72, 17.0),
    )
    return Piece(size, records, bands)


def _third_piece(size: str, before: str, records: int) -> Piece:
    """A part lies from 16.2 to 16.72, the rest above."""
    to_16_72 = IN_0_TO_16_72[size] - IN_0_TO_16_72[before]
    return Piece(size, records, (Band(to_16_72, 16.2, 16.72), Band(records - to_16_72, 16.72, 18.0)))


def _fourth_piece(size: str, records: int) -> Piece:
    """All of it lies above 16.72."""
    return Piece(size, records, (Band(records, 17.5, 19.0),))


PIECES = (
    _first_piece("1GB", 19_530_000),
    _second_piece("2GB", "1GB", 37_800_000 - 19_530_000),
    _third_piece("4GB", "2GB", 74_550_000 - 37_800_000),
    _fourth_piece("6GB", 111_180_000 - 74_550_000),
)
# The dataset of each size of the study. The largest is the log itself.
DATASETS = {piece.size: NAME if piece is PIECES[-1] else f"{NAME}-{piece.size.lower()}" for piece in PIECES}


def pieces_of(size: str) -> tuple[Piece, ...]:
    """The pieces that a size consists of."""
    return PIECES[: list(DATASETS).index(size) + 1]


def records_of(size: str) -> int:
    """How many records a size has."""
    return sum(piece.records for piece in pieces_of(size))


def generate(size: str, out: Path, seed: int, scale: float, write: WriteFiles) -> Dataset:
    """Generates a size with the first `scale` of the sensors. Equal seeds give equal rows."""
    sensors = round(SENSORS * scale)
    if sensors < 1:
        raise UsageError(f"--scale {scale:g} leaves none of the {SENSORS:,} sensors; expected at least {1 / SENSORS:.1g}")
    writer = DatasetWriter(out)
    writer.add_generated(LOG_READINGS, LOG_SCHEMA, partial(generate_machine_log, json.dumps(_plan(size, sensors)), seed), write)
    description = Description(
        name=DATASETS[size],
        title=f"A generated log of machines with the record and the drift of the persistent-log study, its {size}",
        generated=True,
        source=f"generated by sensorbench (generator version {GENERATOR_VERSION}, seed {seed}); sizes and ranges of values after the study, whose log was not published",
        license="Apache-2.0, like sensorbench",
        how_made=(
            f"Each of the first {sensors:,} of {SENSORS:,} sensors, {SENSORS_A_MACHINE} a machine, is read every ten minutes, one after the other; records are in the "
            "order of their begin. The level of the values drifts upward from piece to piece and within each. Values are not measurements of any machine."
        ),
        seed=seed,
        scale=scale,
        notes=[
            "A smaller size is the beginning of a larger one; a smaller scale has the first sensors of a larger one, over the same span.",
            "The numbers of records in the study's seven ranges of values are its own. How values are spread within and between them, machines, times and "
            "durations are made up. That 19% of the first piece is outside all ranges is known. That it is below zero is not.",
        ],
    )
    return writer.finish(description)


def _plan(size: str, sensors: int) -> dict[str, object]:
    """What the generator needs to know."""
    tick_us = round(TICK.total_seconds() * 1e6)
    return {
        "start_us": round(START.timestamp() * 1e6),
        "tick_us": tick_us,
        "turn_us": tick_us // SENSORS,
        "reading_ms": READING_MS,
        "sensors_a_machine": SENSORS_A_MACHINE,
        "sensors": sensors,
        "pieces": [
            {"ticks": piece.records // SENSORS, "bands": [asdict(band) for band in piece.bands]} for piece in pieces_of(size)
        ],
    }
