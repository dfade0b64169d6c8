"""The data of TSBS (Time Series Benchmark Suite), generated: trucks, as its use case `iot` has them.

Each truck has a row of readings and one of diagnostics each interval. On the way rows are lost, come late, and lose a field or a tag,
as often as in TSBS at commit 37fced7. Random numbers are ours: see `tsbs`.
"""

import json
from functools import partial
from pathlib import Path

import pyarrow as pa

from sensorbench._engine import generate_telemetry, generate_trucks
from sensorbench.dataset.dataset import TRUCK_READINGS, Dataset, DatasetWriter, Description, Readings
from sensorbench.dataset.generated import WriteFiles
from sensorbench.dataset.tsbs import (
    IOT,
    MEASUREMENTS_VIEW,
    NOT_TSBS_NUMBERS,
    Bounds,
    TsbsParameters,
    Walk,
    narrow_view,
    source_of,
)

TRUCKS = "trucks"
# A truck's site is the number of its fleet, from 1 on.
FLEETS = ("East", "West", "North", "South")
TRUCK_TEXTS = ("name", "fleet", "driver", "model", "device_version")
TRUCK_NUMBERS = ("load_capacity", "fuel_capacity", "nominal_fuel_consumption")
ARRIVAL = "arrival"


def _walk(name: str, step: float, bounds: Bounds, start: Bounds, decimals: int = 0) -> Walk:
    """A field that walks in evenly distributed steps of at most this much."""
    return {
        "name": name,
        "start": start,
        "bounds": bounds,
        "change": {"uniform": {"low": -step, "high": step}},
        "decimals": decimals,
    }


# In the order of TSBS; a row of the first measurement comes before one of the second.
_MEASUREMENTS: dict[str, list[Walk]] = {
    "readings": [
        _walk("latitude", 0.005, (-90.0, 90.0), (0.0, 90.0), 5),
        _walk("longitude", 0.005, (-180.0, 180.0), (0.0, 180.0), 5),
        _walk("elevation", 10.0, (0.0, 5000.0), (0.0, 500.0)),
        _walk("velocity", 10.0, (0.0, 100.0), (0.0, 0.0)),
        _walk("heading", 5.0, (0.0, 360.0), (0.0, 360.0)),
        _walk("grade", 5.0, (0.0, 100.0), (0.0, 0.0)),
        _walk("fuel_consumption", 5.0, (0.0, 50.0), (25.0, 25.0), 1),
    ],
    "diagnostics": [
        {
            "name": "fuel_state",
            "start": (1.0, 1.0),
            "bounds": (0.0, 1.0),
            "change": {"uniform": {"low": -0.001, "high": 0.0}},
            "decimals": 1,
            "refilled": True,
        },
        {
            "name": "current_load",
            "start": (0.0, 0.0),
            "bounds": (0.0, 5000.0),
            "change": {"drawn": {"probability": 0.05, "low": 0.0, "high": 5000.0}},
        },
        {
            "name": "status",
            "start": (0.0, 0.0),
            "bounds": (0.0, 5.0),
            "change": {"normal": {"mean": 0.0, "deviation": 1.0}},
        },
    ],
}
FIELDS = {measurement: tuple(field["name"] for field in fields) for measurement, fields in _MEASUREMENTS.items()}

_KEY = (pa.field("site", pa.int32(), nullable=False), pa.field("zone", pa.int32(), nullable=False))
TRUCK_SCHEMA = pa.schema(
    [
        *_KEY,
        *(pa.field(tag, pa.string(), nullable=False) for tag in TRUCK_TEXTS),
        *(pa.field(tag, pa.float64(), nullable=False) for tag in TRUCK_NUMBERS),
    ]
)
SCHEMAS = {
    measurement: pa.schema(
        [
            *_KEY,
            pa.field("time", pa.timestamp("us"), nullable=False),
            pa.field(ARRIVAL, pa.int64(), nullable=False),
            *(pa.field(field, pa.float64()) for field in fields),
        ]
    )
    for measurement, fields in FIELDS.items()
}


def generate(parameters: TsbsParameters, out: Path, seed: int, scale: float, write: WriteFiles) -> Dataset:
    """Generates the use case iot. Equal seeds give equal bytes.

    Args:
        parameters: trucks, start, duration and interval.
        out: the folder.
        seed: from which all rows follow.
        scale: the share of the duration, above 0 and at most 1.
        write: writes the files, here or elsewhere.

    Raises:
        UsageError: for a scale that leaves no row.

    """
    times = parameters.plan(parameters.epochs_at(scale))
    writer = DatasetWriter(out)
    for number, (measurement, fields) in enumerate(_MEASUREMENTS.items()):
        plan = {
            **times,
            "trucks": parameters.devices,
            "measurements": len(_MEASUREMENTS),
            "measurement": number,
            "fields": fields,
        }
        relation = Readings(measurement, TRUCK_READINGS.series, TRUCK_READINGS.time)
        writer.add_generated(relation, SCHEMAS[measurement], partial(generate_telemetry, json.dumps(plan), seed), write)
    trucks = Readings(TRUCKS, TRUCK_READINGS.series, None)
    writer.add_generated(trucks, TRUCK_SCHEMA, partial(generate_trucks, parameters.devices, seed), write)
    writer.add_view(MEASUREMENTS_VIEW, narrow_form())
    return writer.finish(_description(parameters, seed, scale))


def narrow_form() -> str:
    """SQL of the readings of both measurements, one a field."""
    return " UNION ALL ".join(narrow_view(measurement, fields, ARRIVAL) for measurement, fields in FIELDS.items())


def _description(parameters: TsbsParameters, seed: int, scale: float) -> Description:
    return Description(
        name=parameters.name_of(IOT),
        title=f"TSBS iot: readings and diagnostics of {parameters.span_of('trucks')}",
        generated=True,
        source=source_of(seed, "tags, fields, distributions and delivery"),
        license="Apache-2.0, like sensorbench",
        how_made=(
            "Each field of each truck walks by itself, held within bounds: speed says nothing about the change of place. A tank that is empty is full "
            "again. About 10% of the rows are lost, 9% of the others lack a field, and 19% come behind a row that should follow them. Values are not "
            "measurements of anything."
        ),
        site_is="the number of the truck's fleet, 1 to 4, in TSBS's order",
        zone_is="the number of the truck, from 0 on",
        seed=seed,
        scale=scale,
        notes=[
            "Rows are in the order in which they arrive, and `arrival` numbers those of both relations. A row that lost its truck's name belongs to "
            "nobody and is left out; its number is missing.",
            NOT_TSBS_NUMBERS,
        ],
    )
