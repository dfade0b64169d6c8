"""A generator fitted to a dataset: its intervals, gaps, values hour by hour, and how alike neighbouring values are."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from sensorbench._engine import generate_fitted
from sensorbench.dataset.article_model import KIND, ArticleModel
from sensorbench.dataset.dataset import (
    MEASUREMENT_READINGS,
    MEASUREMENT_SCHEMA,
    MEASUREMENTS,
    Dataset,
    DatasetWriter,
    Description,
)
from sensorbench.dataset.generated import WriteFiles
from sensorbench.dataset.staging import Location, write_locations
from sensorbench.errors import UsageError

FORMAT = 1
MODEL_SUFFIX = ".json"

DAY_US = 86_400_000_000
HOUR_US = DAY_US // 24
QUANTILES = 65
GAP_QUANTILES = 9
# An hour of the day with fewer readings than this has the distribution of the whole day.
MIN_READINGS_AN_HOUR = 30
# A series is regular when this many of its intervals are the same.
REGULAR_SHARE = 0.8
# In an irregular series, intervals this many times the median are gaps.
GAP_FACTOR = 10.0
MAX_DECIMALS = 6

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Series(BaseModel):
    """What was found out about one sensor; the engine takes the same words."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    site: int
    zone: int
    sensor: str
    interval_us: list[float]
    gap_share: float
    gap_us: list[float]
    values_by_hour: list[list[float]]
    persistence: float
    repeat_share: float
    decimals: int | None


class Closeness(BaseModel):
    """How close a generated sensor is to the one that it was fitted to, over the same span."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    site: int
    zone: int
    sensor: str
    readings: int
    readings_generated: int
    # Greatest difference of the two distributions of values (Kolmogorov and Smirnov's distance).
    values_ks: float
    # Root mean square difference of the mean values by hour, as a share of the values' standard deviation.
    daily_pattern_rms: float
    gap_share: float
    gap_share_generated: float
    persistence: float
    persistence_generated: float


class Model(BaseModel):
    """A fitted generator, as it is kept in a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = FORMAT
    name: str
    title: str
    source: str
    license: str
    site_is: str
    zone_is: str
    first_time: datetime
    last_time: datetime
    locations: list[tuple[int, int, str]]
    series: list[Series]
    closeness: list[Closeness] = []


def fit(dataset: Dataset, seed: int, report: Callable[[int, int], None]) -> Model:
    """Fits a generator to every sensor of a dataset, and measures how close it comes.

    Args:
        dataset: one of measurements.
        seed: of the readings that are generated for the comparison.
        report: called with how many sensors are done, and of how many.

    Returns:
        The model; `closeness` has a row for each sensor.

    Raises:
        UsageError: for a dataset without measurements.

    """
    description = dataset.describe()
    if description.first_time is None or description.last_time is None:
        raise UsageError(f"dataset {dataset.name} has no readings to fit a generator to")
    if MEASUREMENTS not in description.relations:
        raise UsageError(f"dataset {dataset.name} is a log; a generator is fitted to {MEASUREMENTS} or articles only")
    fitted, closeness = [], []
    with dataset.connect() as connection:
        names = connection.sql(f"SELECT DISTINCT site, zone, sensor FROM {MEASUREMENTS} ORDER BY ALL").fetchall()
        locations = connection.sql("SELECT site, zone, name FROM locations ORDER BY ALL").fetchall()
        for number, (site, zone, sensor) in enumerate(names, start=1):
            where = "site = $site AND zone = $zone AND sensor = $sensor"
            query = f"SELECT epoch_us(time) AS time, value FROM {MEASUREMENTS} WHERE {where} ORDER BY time"
            rows = connection.sql(query, params={"site": site, "zone": zone, "sensor": sensor}).to_arrow_table()
            times, values = rows["time"].to_numpy().astype(np.int64), rows["value"].to_numpy().astype(np.float64)
            series = _fitted(site, zone, sensor, times, values)
            fitted.append(series)
            closeness.append(_closeness(series, times, values, seed))
            report(number, len(names))
    return Model(
        name=f"{description.name}-fitted",
        title=f"Generated sensors like those of: {description.title}",
        source=description.source,
        license=description.license,
        site_is=description.site_is,
        zone_is=description.zone_is,
        first_time=description.first_time,
        last_time=description.last_time,
        locations=locations,
        series=fitted,
        closeness=closeness,
    )


def _fitted(site: int, zone: int, sensor: str, times: Integers, values: Floats) -> Series:
    interval_us, gap_share, gap_us = _intervals(times)
    shares = np.linspace(0.0, 1.0, QUANTILES)
    hours = times % DAY_US // HOUR_US
    of_day = np.quantile(values, shares).tolist()
    by_hour = [values[hours == hour] for hour in range(24)]
    return Series(
        site=site,
        zone=zone,
        sensor=sensor,
        interval_us=interval_us,
        gap_share=gap_share,
        gap_us=gap_us,
        values_by_hour=[
            np.quantile(of_hour, shares).tolist() if len(of_hour) >= MIN_READINGS_AN_HOUR else of_day for of_hour in by_hour
        ],
        persistence=_persistence(times, values),
        repeat_share=float(np.mean(values[1:] == values[:-1])) if _is_continuous(values) else 0.0,
        decimals=_decimals(values),
    )


def _intervals(times: Integers) -> tuple[list[float], float, list[float]]:
    """Quantiles of the intervals, share of the readings before a gap, and quantiles of the gaps."""
    intervals = np.diff(times)
    if len(intervals) == 0:
        return [float(DAY_US)], 0.0, []
    lengths, counts = np.unique(intervals, return_counts=True)
    typical = int(lengths[counts.argmax()])
    if counts.max() >= REGULAR_SHARE * len(intervals):
        gaps = intervals[intervals > typical]
        table = [float(typical)]
    else:
        is_gap = intervals > GAP_FACTOR * np.median(intervals)
        gaps = intervals[is_gap]
        table = np.quantile(intervals[~is_gap], np.linspace(0.0, 1.0, QUANTILES)).tolist()
    gap_table = np.quantile(gaps, np.linspace(0.0, 1.0, GAP_QUANTILES)).tolist() if len(gaps) else []
    return table, len(gaps) / len(times), gap_table


def _is_continuous(values: Floats) -> bool:
    """Whether neighbours that are equal repeat one another, rather than being equal because there are few different values."""
    return len(np.unique(values)) > 0.2 * len(values)


def _decimals(values: Floats) -> int | None:
    for decimals in range(MAX_DECIMALS + 1):
        scaled = values * 10.0**decimals
        if np.allclose(scaled, np.round(scaled), rtol=0.0, atol=1e-6):
            return decimals
    return None


def _persistence(times: Integers, values: Floats) -> float:
    """Correlation of neighbours' places in the distribution of their hour, on the normal scale."""
    if len(values) < 3:
        return 0.0
    hours = times % DAY_US // HOUR_US
    # By hour, then by value; equal values in random order, so that many of them do not make neighbours look alike.
    order = np.lexsort((np.random.default_rng(0).random(len(values)), values, hours))
    counts = np.bincount(hours.astype(np.int64), minlength=24)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    places = np.empty(len(values))
    places[order] = (np.arange(len(values)) - starts[hours[order]] + 0.5) / counts[hours[order]]
    from scipy.special import ndtri

    scores = ndtri(places)
    typical = np.median(np.diff(times))
    neighbours = np.diff(times) <= 1.5 * typical
    if neighbours.sum() < 3:
        return 0.0
    correlation = float(np.corrcoef(scores[:-1][neighbours], scores[1:][neighbours])[0, 1])
    return float(np.clip(correlation, 0.0, 0.9999)) if np.isfinite(correlation) else 0.0


def _closeness(series: Series, times: Integers, values: Floats, seed: int) -> Closeness:
    made = (
        generate_fitted(json.dumps([series.model_dump()]), seed, int(times[0]), int(times[-1]) + 1, 1).rows(threads=1).read_all()
    )
    made_times = made["time"].cast("int64").to_numpy()
    made_values = made["value"].to_numpy()
    return Closeness(
        site=series.site,
        zone=series.zone,
        sensor=series.sensor,
        readings=len(values),
        readings_generated=len(made_values),
        values_ks=_ks(values, made_values),
        daily_pattern_rms=_daily_pattern_rms(times, values, made_times, made_values),
        gap_share=series.gap_share,
        gap_share_generated=_intervals(made_times)[1],
        persistence=series.persistence,
        persistence_generated=_persistence(made_times, made_values),
    )


def _ks(a: Floats, b: Floats) -> float:
    a, b = np.sort(a), np.sort(b)
    both = np.unique(np.concatenate([a, b]))
    return float(np.max(np.abs(np.searchsorted(a, both, "right") / len(a) - np.searchsorted(b, both, "right") / len(b))))


def _daily_pattern_rms(times: Integers, values: Floats, made_times: Integers, made_values: Floats) -> float:
    spread = float(values.std())
    if spread == 0.0:
        return 0.0
    hours, made_hours = times % DAY_US // HOUR_US, made_times % DAY_US // HOUR_US
    both = [hour for hour in range(24) if (hours == hour).any() and (made_hours == hour).any()]
    differences = [values[hours == hour].mean() - made_values[made_hours == hour].mean() for hour in both]
    return float(np.sqrt(np.mean(np.square(differences))) / spread) if both else 0.0


def read_model(path: Path) -> Model | ArticleModel:
    """A model from its file, of sensors or of articles."""
    try:
        text = path.read_text(encoding="utf-8")
        model = json.loads(text)
        kind = ArticleModel if isinstance(model, dict) and model.get("kind") == KIND else Model
        return kind.model_validate_json(text)
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except ValueError as error:
        raise UsageError(f"{path}: not a fitted generator (`sensorbench data fit` writes one): {error}") from None


def generate_like(model: Model, out: Path, *, seed: int, copies: int, days: float | None, write: WriteFiles) -> Dataset:
    """Generates sensors like the fitted ones.

    Args:
        model: what was fitted.
        out: the folder; it is made if it is not there.
        seed: equal seeds give equal bytes.
        copies: how many of each location.
        days: length of the span; the fitted one if None.
        write: writes the files, here or elsewhere.

    """
    start = model.first_time.replace(tzinfo=UTC)
    span = timedelta(days=days) if days else model.last_time - model.first_time + timedelta(microseconds=1)
    series = json.dumps([part.model_dump() for part in model.series])
    start_us, end_us = int(start.timestamp() * 1e6), int((start + span).timestamp() * 1e6)
    writer = DatasetWriter(out)
    generator = partial(generate_fitted, series, seed, start_us, end_us, copies)
    writer.add_generated(MEASUREMENT_READINGS, MEASUREMENT_SCHEMA, generator, write)
    zone_step = max(1, *(part.zone for part in model.series))
    locations = [
        Location(site, zone + copy * zone_step, name if not copy else f"{name}, copy {copy + 1}", f"copy {copy + 1}")
        for copy in range(copies)
        for site, zone, name in model.locations
    ]
    write_locations(writer, locations)
    worst = max((closeness.values_ks for closeness in model.closeness), default=0.0)
    description = Description(
        name=model.name,
        title=model.title,
        generated=True,
        source=f"generated by sensorbench (seed {seed}) after: {model.source}",
        license=model.license,
        how_made=f"Fitted generator, {copies} copies of {len(model.series)} sensors. Values are not measurements.",
        site_is=model.site_is,
        zone_is=model.zone_is,
        seed=seed,
        notes=[
            f"Over the fitted span, the distributions of values differ by at most {worst:.3f} (Kolmogorov and Smirnov's distance, worst sensor)."
        ],
    )
    return writer.finish(description)
