"""The data of TSM-Bench, generated: stations with a hundred sensors each, read every ten seconds, as its datasets D-LONG and D-MULTI have them, and its grid of
features of values (outliers, repeats, scarcity, delta), by which storage differs.

Stations, sensors, spans and features are those of TSM-Bench at commit 58f7f6a. Its values of D-LONG and D-MULTI are made of a hydrometric seed by a
neural network and are not published as a whole; here each sensor walks between 0 and 1. Rows are functions of the seed and their number.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa

from sensorbench._engine import generate_stations
from sensorbench.dataset.dataset import MEASUREMENTS, STATION_READINGS, Dataset, DatasetWriter, Description
from sensorbench.dataset.generated import WriteFiles
from sensorbench.dataset.tsbs import parse_length, parse_time, shown_length
from sensorbench.errors import UsageError

GENERATOR_VERSION = 1
SENSORS = tuple(f"s{number}" for number in range(100))
D_LONG, D_MULTI, FEATURES = "tsm-d-long", "tsm-d-multi", "tsm-features"

STATION_SCHEMA = pa.schema(
    [
        pa.field("site", pa.int32(), nullable=False),
        pa.field("time", pa.timestamp("us"), nullable=False),
        *(pa.field(sensor, pa.float64()) for sensor in SENSORS),
    ]
)

# Sites are 32-bit integers.
_MAX_STATIONS = 2**31 - 1
# Bounds that no walk of the grid of features comes to.
_UNBOUNDED = (-1e12, 1e12)
# Values between 0 and 1 are cut to this many decimals: D-LONG and D-MULTI to three, as gauges show them; those of the grid lose nothing.
_GAUGE_DECIMALS, _ALL_DECIMALS = 3, 17
_OUTLIER_DEVIATION = 15.0


@dataclass(frozen=True)
class Feature:
    """What is special about the values of the grid: `outliers`, `repeats` and `scarcity` by a share of the values in percent, `delta` by the largest
    step from one value to the next.
    """

    kind: str
    level: float


@dataclass(frozen=True)
class TsmParameters:
    """How much there is, and of which values: `feature` is of the grid; without one they are those of D-LONG and D-MULTI. `preset` has what is not in
    a dataset's name.
    """

    preset: str
    stations: int
    start: datetime
    duration: timedelta
    interval: timedelta = timedelta(seconds=10)
    feature: Feature | None = None

    @property
    def epochs(self) -> int:
        """How many rows each station has."""
        return self.duration // self.interval

    @property
    def name(self) -> str:
        """The name of the dataset, with what differs from the preset."""
        preset = PRESETS[self.preset]
        changed = [
            f"{key}={shown}"
            for key, shown, differs in (
                ("stations", str(self.stations), self.stations != preset.stations),
                ("start", f"{self.start:%Y-%m-%dT%H:%M:%SZ}", self.start != preset.start),
                ("duration", shown_length(self.duration), self.duration != preset.duration),
                ("interval", shown_length(self.interval), self.interval != preset.interval),
            )
            if differs
        ]
        if self.feature is not None and self.feature != preset.feature:
            changed.append(f"{self.feature.kind}={self.feature.level:g}")
        return f"{self.preset}:{','.join(changed)}" if changed else self.preset


def _presets(*presets: TsmParameters) -> dict[str, TsmParameters]:
    return {preset.preset: preset for preset in presets}


# A hundredth of D-LONG and D-MULTI is for tests and first tries. Values of the grid are evenly spread where no feature is named.
PRESETS = _presets(
    TsmParameters(D_LONG, 10, datetime(2019, 3, 1, tzinfo=UTC), timedelta(days=60)),
    TsmParameters(f"{D_LONG}-small", 10, datetime(2019, 3, 1, tzinfo=UTC), timedelta(minutes=864)),
    TsmParameters(D_MULTI, 2000, datetime(2019, 2, 1, tzinfo=UTC), timedelta(days=10)),
    TsmParameters(f"{D_MULTI}-small", 20, datetime(2019, 2, 1, tzinfo=UTC), timedelta(days=10)),
    TsmParameters(FEATURES, 1, datetime(2019, 4, 30, tzinfo=UTC), timedelta(seconds=100_000), feature=Feature("outliers", 0.0)),
)

_SHARES = ("outliers", "repeats", "scarcity")


def parse_parameters(name: str) -> TsmParameters:
    """What the name of a dataset says after its colon: `tsm-d-long:stations=3,duration=2d`, `tsm-features:repeats=90`.

    Args:
        name: the name of a dataset of TSM-Bench, with or without parameters.

    Raises:
        UsageError: for a parameter that there is not, or a value that makes no sense.

    """
    dataset, colon, text = name.partition(":")
    parameters = PRESETS[dataset]
    has_features = parameters.feature is not None
    expected = "expected stations=NUMBER, start=TIME, duration=LENGTH and interval=LENGTH" + (
        ", and one of outliers=PERCENT, repeats=PERCENT, scarcity=PERCENT and delta=STEP" if has_features else ""
    )
    expected += ", separated by commas; a TIME is 2019-03-01T00:00:00Z, a LENGTH 10s, 30m, 12h or 3d"
    given: set[str] = set()
    for entry in text.split(",") if colon else ():
        key, _, value = entry.partition("=")
        kind = "feature" if has_features and key in (*_SHARES, "delta") else key
        if kind in given:
            raise UsageError(f"dataset {name}: {kind} is given twice; {expected}")
        given.add(kind)
        if key == "stations" and value.isascii() and value.isdigit() and 1 <= int(value) <= _MAX_STATIONS:
            parameters = replace(parameters, stations=int(value))
        elif key == "start" and (start := parse_time(value)) is not None:
            parameters = replace(parameters, start=start)
        elif key == "duration" and (duration := parse_length(value)) is not None:
            parameters = replace(parameters, duration=duration)
        elif key == "interval" and (interval := parse_length(value)) is not None:
            parameters = replace(parameters, interval=interval)
        elif kind == "feature" and (level := _level(key, value)) is not None:
            parameters = replace(parameters, feature=Feature(key, level))
        else:
            raise UsageError(f"dataset {name}: {entry!r} is not a parameter; {expected}")
    if parameters.epochs == 0:
        raise UsageError(f"dataset {name}: the duration is shorter than the interval; expected at least one interval")
    return parameters


def _level(kind: str, text: str) -> float | None:
    """The level of a feature: a share in percent, or a largest step above 0."""
    if not text.isascii() or not text.replace(".", "", 1).isdigit():
        return None
    level = float(text)
    is_one = level <= 100.0 if kind in _SHARES else 0.0 < level <= 1000.0
    return level if is_one else None


def generate(parameters: TsmParameters, out: Path, seed: int, scale: float, write: WriteFiles) -> Dataset:
    """Generates the rows of the stations. Equal seeds give equal bytes; a smaller scale gives the beginning of a larger one's span.

    Args:
        parameters: stations, start, duration, interval and feature.
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
            f"--scale {scale:g} leaves none of {parameters.epochs:,} intervals; expected at least {1 / parameters.epochs:.2g}"
        )
    values = _values_of(parameters.feature)
    plan = {
        "start_us": round(parameters.start.timestamp() * 1e6),
        "interval_us": parameters.interval // timedelta(microseconds=1),
        "epochs": epochs,
        "stations": parameters.stations,
        "fields": [{"name": sensor, **values.field} for sensor in SENSORS],
        "outliers": values.outliers,
        "missing": values.missing,
    }
    writer = DatasetWriter(out)
    writer.add_generated(STATION_READINGS, STATION_SCHEMA, partial(generate_stations, json.dumps(plan), seed), write)
    writer.add_view(MEASUREMENTS, NARROW_FORM)
    return writer.finish(_description(parameters, seed, scale))


NARROW_FORM = f"SELECT site, 0 AS zone, sensor, time, value FROM {STATION_READINGS.relation} UNPIVOT (value FOR sensor IN ({', '.join(SENSORS)}))"
"""SQL of the readings, one a sensor; a value that is missing has none."""


@dataclass(frozen=True)
class _Change:
    """How a value evolves, in the words of the engine's plan: exactly one of these."""

    normal: dict[str, float] | None = None
    uniform: dict[str, float] | None = None
    drawn: dict[str, float] | None = None


@dataclass(frozen=True)
class _Values:
    """What the engine makes of sensors: how values evolve, and what is shown of them."""

    change: _Change
    bounds: tuple[float, float] = (0.0, 1.0)
    decimals: int = _ALL_DECIMALS
    outliers: dict[str, float] | None = None
    missing: float = 0.0

    @property
    def field(self) -> dict[str, object]:
        """What each sensor's plan has besides its name."""
        change = {kind: value for kind, value in asdict(self.change).items() if value is not None}
        return {"start": (0.0, 1.0), "bounds": self.bounds, "decimals": self.decimals, "change": change}


def _drawn(probability: float) -> _Change:
    return _Change(drawn={"probability": probability, "low": 0.0, "high": 1.0})


def _outliers(share: float) -> _Values:
    return _Values(_drawn(1.0), outliers={"probability": share, "mean": 0.0, "deviation": _OUTLIER_DEVIATION})


_OF_FEATURE: dict[str, Callable[[float], _Values]] = {
    "outliers": lambda level: _outliers(level / 100.0),
    "repeats": lambda level: _Values(_drawn(1.0 - level / 100.0)),
    "scarcity": lambda level: _Values(_drawn(1.0), missing=level / 100.0),
    "delta": lambda level: _Values(_Change(uniform={"low": -level, "high": level}), bounds=_UNBOUNDED),
}


def _values_of(feature: Feature | None) -> _Values:
    if feature is None:
        return _Values(_Change(normal={"mean": 0.0, "deviation": 0.01}), decimals=_GAUGE_DECIMALS)
    return _OF_FEATURE[feature.kind](feature.level)


def _description(parameters: TsmParameters, seed: int, scale: float) -> Description:
    stations = "one station" if parameters.stations == 1 else f"{parameters.stations:,} stations"
    return Description(
        name=parameters.name,
        title=(
            f"TSM-Bench {_TITLES[parameters.preset]}: a hundred sensors of {stations} every {shown_length(parameters.interval)} for "
            f"{shown_length(parameters.duration)}"
        ),
        generated=True,
        source=f"generated by sensorbench (generator version {GENERATOR_VERSION}, seed {seed}); stations, sensors, spans and features after TSM-Bench 58f7f6a",
        license="Apache-2.0, like sensorbench",
        how_made=_HOW_MADE[parameters.feature.kind if parameters.feature else ""],
        site_is="the number of the station, from 0 on",
        zone_is="always 0",
        seed=seed,
        scale=scale,
        notes=[
            "TSM-Bench augments a hydrometric seed by a neural network. The seed is not used here: sensors are independent of each other, and values are "
            "not measurements of anything."
        ],
    )


_TITLES = {
    D_LONG: "D-LONG",
    f"{D_LONG}-small": "D-LONG, a hundredth",
    D_MULTI: "D-MULTI",
    f"{D_MULTI}-small": "D-MULTI, a hundredth",
    FEATURES: "features of values",
}
_HOW_MADE = {
    "": "Each sensor starts anywhere from 0 to 1 and walks in steps of a normal distribution (deviation 0.01), held within 0 and 1 and cut to three decimals.",
    "outliers": "Values are evenly spread over 0 to 1. A share of them is replaced by normally distributed ones (deviation 15).",
    "repeats": "Values are evenly spread over 0 to 1. A share of them repeats the value before.",
    "scarcity": "Values are evenly spread over 0 to 1. A share of them is missing.",
    "delta": "Each sensor starts anywhere from 0 to 1 and walks in evenly distributed steps of at most this much.",
}
