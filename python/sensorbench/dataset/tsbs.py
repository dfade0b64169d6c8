"""The data of TSBS (Time Series Benchmark Suite), generated: metrics of servers, as its use case `cpu-only` has them.

Tags, fields, distributions and the order of rows are those of TSBS at commit 37fced7. Its random numbers are not: they come from
the generator of its language. Rows here are functions of the seed and their number, so that any number of threads, processes or
Spark's partitions write the same bytes.
"""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa

from sensorbench._engine import generate_hosts, generate_walks
from sensorbench.dataset.dataset import CPU_READINGS, Dataset, DatasetWriter, Description, Readings
from sensorbench.dataset.generated import WriteFiles
from sensorbench.errors import UsageError

CPU_ONLY = "tsbs-cpu-only"
GENERATOR_VERSION = 1
START = datetime(2016, 1, 1, tzinfo=UTC)

CPU_FIELDS = (
    "usage_user",
    "usage_system",
    "usage_idle",
    "usage_nice",
    "usage_iowait",
    "usage_irq",
    "usage_softirq",
    "usage_steal",
    "usage_guest",
    "usage_guest_nice",
)
HOST_TAGS = (
    "name",
    "region",
    "datacenter",
    "rack",
    "os",
    "arch",
    "team",
    "service",
    "service_version",
    "service_environment",
)
# A host's site is the number of its region, from 1 on.
REGIONS = (
    "us-east-1",
    "us-west-1",
    "us-west-2",
    "eu-west-1",
    "eu-central-1",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-northeast-1",
    "sa-east-1",
)
HOSTS = "hosts"
MEASUREMENTS_VIEW = "measurements"

_KEY = (pa.field("site", pa.int32(), nullable=False), pa.field("zone", pa.int32(), nullable=False))
CPU_SCHEMA = pa.schema(
    [
        *_KEY,
        pa.field("time", pa.timestamp("us"), nullable=False),
        *(pa.field(field, pa.float64(), nullable=False) for field in CPU_FIELDS),
    ]
)
HOST_SCHEMA = pa.schema([*_KEY, *(pa.field(tag, pa.string(), nullable=False) for tag in HOST_TAGS)])

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(?P<number>\d+)(?P<unit>[smhd])")
_EXPECTED = (
    "expected hosts=NUMBER, start=TIME, duration=LENGTH and interval=LENGTH, separated by commas; a TIME is 2016-01-01T00:00:00Z, a LENGTH 10s, "
    "30m, 12h or 3d"
)
# Zones are 32-bit integers.
_MAX_HOSTS = 2**31 - 1


@dataclass(frozen=True)
class TsbsParameters:
    """How much TSBS's generator makes: TSBS calls `hosts` the scale, `interval` the log interval."""

    hosts: int = 100
    start: datetime = START
    duration: timedelta = timedelta(days=3)
    interval: timedelta = timedelta(seconds=10)

    @property
    def epochs(self) -> int:
        """How many rows each host has."""
        return self.duration // self.interval

    def name_of(self, use_case: str) -> str:
        """The name of the dataset: that of the use case, and what differs from its defaults."""
        standard = TsbsParameters()
        changed = [
            text
            for text, differs in (
                (f"hosts={self.hosts}", self.hosts != standard.hosts),
                (f"start={self.start:%Y-%m-%dT%H:%M:%SZ}", self.start != standard.start),
                (f"duration={_length(self.duration)}", self.duration != standard.duration),
                (f"interval={_length(self.interval)}", self.interval != standard.interval),
            )
            if differs
        ]
        return f"{use_case}:{','.join(changed)}" if changed else use_case


def parse_parameters(name: str) -> TsbsParameters:
    """What the name of a dataset says after its colon: `tsbs-cpu-only:hosts=10,duration=1h`.

    Args:
        name: the name of the dataset, with or without parameters.

    Raises:
        UsageError: for a parameter that there is not, or a value that makes no sense.

    """
    _, colon, text = name.partition(":")
    values: dict[str, int | datetime | timedelta] = {}
    for entry in text.split(",") if colon else ():
        key, _, value = entry.partition("=")
        if key in values:
            raise UsageError(f"dataset {name}: {key} is given twice; {_EXPECTED}")
        if key == "hosts" and value.isascii() and value.isdigit() and 1 <= int(value) <= _MAX_HOSTS:
            values[key] = int(value)
        elif key == "start" and (start := parse_time(value)) is not None:
            values[key] = start
        elif key in ("duration", "interval") and (match := _DURATION.fullmatch(value)) and int(match["number"]) > 0:
            values[key] = timedelta(seconds=int(match["number"]) * _SECONDS[match["unit"]])
        else:
            raise UsageError(f"dataset {name}: {entry!r} is no parameter; {_EXPECTED}")
    parameters = TsbsParameters(**values)  # type: ignore[arg-type]  # Each key has the type that its branch gave it.
    if parameters.epochs == 0:
        raise UsageError(f"dataset {name}: the duration is shorter than the interval; expected at least one interval")
    return parameters


def parse_time(text: str) -> datetime | None:
    """A time as TSBS writes it, `2016-01-01T00:00:00Z`, at a whole second; None for any other text."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def generate(parameters: TsbsParameters, out: Path, seed: int, scale: float, write: WriteFiles) -> Dataset:
    """Generates the use case cpu-only. Equal seeds give equal bytes; a smaller scale gives the beginning of a larger one's span, and
    fewer hosts are the first of more.

    Args:
        parameters: hosts, start, duration and interval.
        out: the folder.
        seed: from which all rows follow.
        scale: the share of the duration, above 0 and at most 1.
        write: writes the files, here or elsewhere.

    Raises:
        UsageError: for a scale that leaves no row.

    """
    epochs = round(parameters.epochs * scale)
    if epochs == 0:
        raise UsageError(
            f"--scale {scale:g} leaves none of {parameters.epochs:,} rows per host; expected at least {1 / parameters.epochs:.2g}"
        )
    plan = {
        "start_us": round(parameters.start.timestamp() * 1e6),
        "interval_us": parameters.interval // timedelta(microseconds=1),
        "epochs": epochs,
        "hosts": parameters.hosts,
        "fields": [
            {"name": field, "start": (0.0, 100.0), "mean": 0.0, "deviation": 1.0, "bounds": (0.0, 100.0)} for field in CPU_FIELDS
        ],
    }
    writer = DatasetWriter(out)
    writer.add_generated(CPU_READINGS, CPU_SCHEMA, partial(generate_walks, json.dumps(plan), seed), write)
    hosts = Readings(HOSTS, ("site", "zone"), None)
    writer.add_generated(hosts, HOST_SCHEMA, partial(generate_hosts, parameters.hosts, seed), write)
    writer.add_view(MEASUREMENTS_VIEW, narrow_view(CPU_READINGS.relation, CPU_FIELDS))
    return writer.finish(_description(parameters, seed, scale))


def narrow_view(relation: str, fields: tuple[str, ...]) -> str:
    """SQL of the readings of a relation, one a field: site, zone, sensor (`relation.field`), time and value. A field that is null has
    none.
    """
    return (
        f"SELECT site, zone, '{relation}.' || field AS sensor, time, value "
        f"FROM {relation} UNPIVOT (value FOR field IN ({', '.join(fields)}))"
    )


def _description(parameters: TsbsParameters, seed: int, scale: float) -> Description:
    length = _length(parameters.duration)
    return Description(
        name=parameters.name_of(CPU_ONLY),
        title=f"TSBS cpu-only: ten CPU metrics of {parameters.hosts:,} hosts every {_length(parameters.interval)} for {length}",
        generated=True,
        source=f"generated by sensorbench (generator version {GENERATOR_VERSION}, seed {seed}); tags, fields and distributions after TSBS 37fced7",
        license="Apache-2.0, like sensorbench",
        how_made=(
            "Each metric of each host starts anywhere from 0 to 100 and walks in steps of a standard normal distribution, held within 0 and 100 and cut "
            "to a whole number. Tags are evenly distributed. Values are not measurements of anything."
        ),
        site_is="the number of the host's region, 1 to 9, in TSBS's order",
        zone_is="the number of the host, from 0 on",
        seed=seed,
        scale=scale,
        notes=[
            "Rows are in the order in which TSBS writes them: interval by interval, and in each host by host.",
            "TSBS's own random numbers cannot be drawn outside its language, so that distributions are equal and rows are not.",
        ],
    )


def _length(duration: timedelta) -> str:
    seconds = round(duration.total_seconds())
    unit = next(unit for unit in ("d", "h", "m", "s") if seconds % _SECONDS[unit] == 0)
    return f"{seconds // _SECONDS[unit]}{unit}"
