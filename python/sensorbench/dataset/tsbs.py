"""The data of TSBS (Time Series Benchmark Suite), generated: CPU metrics of servers, as its use cases `cpu-only` and `cpu-single` have them.

Tags, fields, distributions and the order of rows are those of TSBS at commit 37fced7. Its random numbers are not: they come from
the generator of its language. Rows here are functions of the seed and their number, so that any number of threads, processes or
Spark's partitions write the same bytes.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NotRequired, TypedDict

import pyarrow as pa

from sensorbench._engine import generate_hosts, generate_walks
from sensorbench.dataset.dataset import CPU_READINGS, Dataset, DatasetWriter, Description, Readings
from sensorbench.dataset.generated import RowsInParts, WriteFiles
from sensorbench.dataset.host_churn import Renewal, RenewedReadings, SeenHosts
from sensorbench.errors import UsageError

CPU_ONLY = "tsbs-cpu-only"
CPU_SINGLE = "tsbs-cpu-single"
DEVOPS = "tsbs-devops"
IOT = "tsbs-iot"
# What each dataset has as many of as TSBS's scale says.
DEVICES = {CPU_ONLY: "hosts", CPU_SINGLE: "hosts", DEVOPS: "hosts", IOT: "trucks"}
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
NOT_TSBS_NUMBERS = (
    "TSBS's own random numbers cannot be drawn outside its language, so that distributions are equal and rows are not."
)
Bounds = tuple[float, float]


class Walk(TypedDict):
    """How a field evolves from interval to interval, for the engine."""

    name: str
    start: Bounds
    bounds: NotRequired[Bounds]
    change: dict[str, dict[str, float]]
    decimals: NotRequired[int]
    refilled: NotRequired[bool]


_KEY = (pa.field("site", pa.int32(), nullable=False), pa.field("zone", pa.int32(), nullable=False))
HOST_SCHEMA = pa.schema([*_KEY, *(pa.field(tag, pa.string(), nullable=False) for tag in HOST_TAGS)])
_HOW_RENEWED = " A host that takes another one's place has a number and tags of its own, and continues with its values."
SITE_IS = "the number of the host's region, 1 to 9, in TSBS's order"

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(?P<number>\d+)(?P<unit>[smhd])")
_EXPECTED = (
    "expected {devices}=NUMBER, start=TIME, duration=LENGTH and interval=LENGTH{churn}, separated by commas; a TIME is 2016-01-01T00:00:00Z, a LENGTH "
    "10s, 30m, 12h or 3d"
)
# Datasets whose hosts may be replaced: those that have no measurement besides CPU.
_WITH_CHURN = (CPU_ONLY, CPU_SINGLE)
_EXPECTED_CHURN = ", and churn=SHARE (above 0, at most 1) with period=LENGTH"
_SHARE = re.compile(r"0?\.\d{1,6}|1(\.0*)?")
# Zones are 32-bit integers.
_MAX_DEVICES = 2**31 - 1


@dataclass(frozen=True)
class TsbsParameters:
    """How much TSBS's generator makes: TSBS calls `devices`, hosts or trucks, the scale, and `interval` the log interval. Of hosts, the share `churn`
    is replaced by new ones in each `period`, which TSBS's never are.
    """

    devices: int = 100
    start: datetime = START
    duration: timedelta = timedelta(days=3)
    interval: timedelta = timedelta(seconds=10)
    churn: float = 0.0
    period: timedelta = timedelta(hours=1)

    @property
    def epochs(self) -> int:
        """How many rows each device has of each measurement."""
        return self.duration // self.interval

    def name_of(self, dataset: str) -> str:
        """The name of a dataset of a use case, with what differs from its defaults."""
        standard = TsbsParameters()
        changed = [
            text
            for text, differs in (
                (f"{DEVICES[dataset]}={self.devices}", self.devices != standard.devices),
                (f"start={self.start:%Y-%m-%dT%H:%M:%SZ}", self.start != standard.start),
                (f"duration={shown_length(self.duration)}", self.duration != standard.duration),
                (f"interval={shown_length(self.interval)}", self.interval != standard.interval),
                (f"churn={self.churn:g}", self.churn != standard.churn),
                (f"period={shown_length(self.period)}", self.period != standard.period),
            )
            if differs
        ]
        return f"{dataset}:{','.join(changed)}" if changed else dataset

    def span_of(self, devices: str) -> str:
        """How much there is, in words: 100 hosts every 10s for 3d."""
        span = f"{self.devices:,} {devices} every {shown_length(self.interval)} for {shown_length(self.duration)}"
        return f"{span}, {self.churn * 100:g}% of them replaced in each {shown_length(self.period)}" if self.churn else span

    def epochs_at(self, scale: float) -> int:
        """How many of the epochs there are at a scale. Raises UsageError if none is left."""
        epochs = round(self.epochs * scale)
        if epochs == 0:
            raise UsageError(
                f"--scale {scale:g} leaves none of {self.epochs:,} intervals; expected at least {1 / self.epochs:.2g}"
            )
        return epochs

    def plan(self, epochs: int) -> dict[str, int]:
        """When rows are, for the engine."""
        return {
            "start_us": round(self.start.timestamp() * 1e6),
            "interval_us": self.interval // timedelta(microseconds=1),
            "epochs": epochs,
        }


def parse_parameters(name: str) -> TsbsParameters:
    """What the name of a dataset says after its colon: `tsbs-cpu-only:hosts=10,duration=1h`.

    Args:
        name: the name of a dataset of TSBS, with or without parameters.

    Raises:
        UsageError: for a parameter that there is not, or a value that makes no sense.

    """
    dataset, colon, text = name.partition(":")
    devices = DEVICES[dataset]
    has_churn = dataset in _WITH_CHURN
    expected = _EXPECTED.format(devices=devices, churn=_EXPECTED_CHURN if has_churn else "")
    values: dict[str, int | float | datetime | timedelta] = {}
    for entry in text.split(",") if colon else ():
        key, _, value = entry.partition("=")
        field = "devices" if key == devices else key
        if field in values:
            raise UsageError(f"dataset {name}: {key} is given twice; {expected}")
        if key == devices and value.isascii() and value.isdigit() and 1 <= int(value) <= _MAX_DEVICES:
            values[field] = int(value)
        elif key == "start" and (start := parse_time(value)) is not None:
            values[field] = start
        elif key in ("duration", "interval") and (length := parse_length(value)) is not None:
            values[field] = length
        elif has_churn and key == "churn" and _SHARE.fullmatch(value) and float(value) > 0.0:
            values[field] = float(value)
        elif has_churn and key == "period" and (period := parse_length(value)) is not None:
            values[field] = period
        else:
            raise UsageError(f"dataset {name}: {entry!r} is not a parameter; {expected}")
    if "period" in values and "churn" not in values:
        raise UsageError(f"dataset {name}: period says when hosts are replaced, and no share is: give churn, too; {expected}")
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


def parse_length(text: str) -> timedelta | None:
    """A length as parameters have it, 10s, 30m, 12h or 3d, above zero; None for any other text."""
    match = _DURATION.fullmatch(text)
    return timedelta(seconds=int(match["number"]) * _SECONDS[match["unit"]]) if match and int(match["number"]) > 0 else None


def measurement_schema(fields: Iterable[str], *, nullable: bool = False) -> pa.Schema:
    """The columns of a measurement of hosts: site, zone, time and its fields."""
    times = pa.field("time", pa.timestamp("us"), nullable=False)
    return pa.schema([*_KEY, times, *(pa.field(field, pa.float64(), nullable=nullable) for field in fields)])


def cpu_fields(dataset: str) -> tuple[str, ...]:
    """The CPU metrics of a dataset of servers: all ten, or the first where it has one."""
    return CPU_FIELDS[:1] if dataset == CPU_SINGLE else CPU_FIELDS


def cpu_walks(fields: Iterable[str]) -> list[Walk]:
    """How CPU metrics walk."""
    steps = {"normal": {"mean": 0.0, "deviation": 1.0}}
    return [{"name": field, "start": (0.0, 100.0), "bounds": (0.0, 100.0), "change": steps} for field in fields]


def generate(dataset: str, parameters: TsbsParameters, out: Path, seed: int, scale: float, write: WriteFiles) -> Dataset:
    """Generates the use case cpu-only, or cpu-single. Equal seeds give equal bytes; a smaller scale gives the beginning of a larger one's
    span, fewer hosts are the first of more, and the metric of cpu-single is the first one of cpu-only.

    Args:
        dataset: CPU_ONLY or CPU_SINGLE.
        parameters: hosts, start, duration and interval.
        out: the folder.
        seed: from which all rows follow.
        scale: the share of the duration, above 0 and at most 1.
        write: writes the files, here or elsewhere.

    Raises:
        UsageError: for a scale that leaves no row.

    """
    fields = cpu_fields(dataset)
    epochs = parameters.epochs_at(scale)
    plan = json.dumps({**parameters.plan(epochs), "hosts": parameters.devices, "fields": cpu_walks(fields)})
    readings, hosts = _generators(parameters, plan, epochs, seed)
    writer = DatasetWriter(out)
    writer.add_generated(CPU_READINGS, measurement_schema(fields), readings, write)
    writer.add_generated(Readings(HOSTS, ("site", "zone"), None), HOST_SCHEMA, hosts, write)
    writer.add_view(MEASUREMENTS_VIEW, narrow_view(CPU_READINGS.relation, fields))
    return writer.finish(_description(dataset, parameters, seed, scale))


def _generators(
    parameters: TsbsParameters, plan: str, epochs: int, seed: int
) -> tuple[Callable[[], RowsInParts], Callable[[], RowsInParts]]:
    """What makes readings and hosts. Raises UsageError if hosts that take the place of others have numbers that are too large."""
    if not parameters.churn:
        hosts = partial(generate_hosts, parameters.devices, seed, of_measurements=False)
        return partial(generate_walks, plan, seed), hosts
    times = parameters.plan(epochs)
    last_us = times["start_us"] + (epochs - 1) * times["interval_us"]
    period_us = parameters.period // timedelta(microseconds=1)
    renewal = Renewal(parameters.devices, parameters.churn, period_us, times["start_us"])
    if (numbers := renewal.numbers_until(last_us)) > _MAX_DEVICES:
        raise UsageError(
            f"churn={parameters.churn:g}: {numbers:,} hosts would be seen, and {_MAX_DEVICES:,} are possible; give a longer period, or fewer hosts"
        )
    return partial(RenewedReadings, plan, seed, renewal, last_us), partial(SeenHosts, renewal, seed, last_us)


def narrow_view(relation: str, fields: tuple[str, ...], *others: str) -> str:
    """SQL of the readings of a relation, one a field: site, zone, sensor (`relation.field`), time and value, and `others` of its columns. A
    field that is null has none.
    """
    return (
        f"SELECT site, zone, '{relation}.' || field AS sensor, {', '.join(('time', 'value', *others))} "
        f"FROM {relation} UNPIVOT (value FOR field IN ({', '.join(fields)}))"
    )


def _description(dataset: str, parameters: TsbsParameters, seed: int, scale: float) -> Description:
    metrics = {1: "one CPU metric", 10: "ten CPU metrics"}[len(cpu_fields(dataset))]
    return Description(
        name=parameters.name_of(dataset),
        title=f"TSBS {use_case_of(dataset)}: {metrics} of {parameters.span_of('hosts')}",
        generated=True,
        source=source_of(seed, "tags, fields and distributions"),
        license="Apache-2.0, like sensorbench",
        how_made=(
            "Each metric of each host starts anywhere from 0 to 100 and walks in steps of a standard normal distribution, held within 0 and 100 and cut "
            "to a whole number. Tags are evenly distributed. Values are not measurements of anything."
            + (_HOW_RENEWED if parameters.churn else "")
        ),
        site_is=SITE_IS,
        zone_is="the number of the host, from 0 on",
        seed=seed,
        scale=scale,
        notes=[
            "Rows are in the order in which TSBS writes them: interval by interval, and in each host by host.",
            NOT_TSBS_NUMBERS,
        ],
    )


def use_case_of(dataset: str) -> str:
    """What TSBS calls the use case of a dataset."""
    return dataset.removeprefix("tsbs-")


def source_of(seed: int, what: str) -> str:
    """Where generated data come from."""
    return f"generated by sensorbench (generator version {GENERATOR_VERSION}, seed {seed}); {what} after TSBS 37fced7"


def shown_length(duration: timedelta) -> str:
    """A length as parameters have it: 10s, 30m, 12h, 3d."""
    seconds = round(duration.total_seconds())
    unit = next(unit for unit in ("d", "h", "m", "s") if seconds % _SECONDS[unit] == 0)
    return f"{seconds // _SECONDS[unit]}{unit}"
