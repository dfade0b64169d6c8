"""How the writes of a workload deliver their readings: late, twice, never, by series that come and go, and in bursts."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from sensorbench import toml_file
from sensorbench.errors import UsageError
from sensorbench.results.engine_plan import (
    DeliveryModel,
    Pace,
    PlannedChurn,
    PlannedDelivery,
    PlannedDisorder,
    PlannedNumber,
    PlannedSegment,
)
from sensorbench.runner.lengths import Length, seconds
from sensorbench.schemas import Operation

if TYPE_CHECKING:
    import pyarrow as pa

# The longest delay that the engine sorts by, in readings.
MAX_DELAY = 262_144
# From this mean on delays are those of iot-benchmark, whose longest is this many times the mean.
_TWO_PARTS_FROM, _LONGEST_OVER_MEAN = 500.0, 170_000 / 2_200
# More steps of a schedule than this are a mistake.
_MAX_BURSTS = 10_000


class DisorderKeys(toml_file.FileModel):
    """Readings that come out of order. Delays count readings of the whole stream; each reading comes once, and none before its time."""

    model: Literal["poisson", "batch", "ratio"] = Field(
        description="`poisson`: some are late by 1 + a Poisson number, from a mean of 500 on by iot-benchmark's long delays. "
        "`ratio`: some are late by 1 to `max`. `batch`: of each batch, the last part comes first.",
    )
    ratio: float = Field(
        default=0.5, gt=0, le=1, description="Share of the readings that are late; of a batch, the share that comes first."
    )
    mean: float | None = Field(default=None, gt=0, description="`poisson`: mean delay, in readings.")
    max: int | None = Field(
        default=None,
        ge=1,
        le=MAX_DELAY,
        description="`poisson` and `ratio`: the longest delay, in readings; of `poisson`, it follows from the mean if not given.",
    )
    size: int | None = Field(default=None, ge=2, description="`batch`: readings of a batch.")

    @model_validator(mode="after")
    def _fit_the_model(self) -> "DisorderKeys":
        of_model = {"poisson": {"mean"}, "ratio": {"max"}, "batch": {"size"}}[self.model]
        may_have = of_model | {"max"} if self.model == "poisson" else of_model
        given = {name for name in ("mean", "max", "size") if getattr(self, name) is not None}
        if missing := sorted(of_model - given):
            raise ValueError(f"{self.model} needs {missing[0]}")
        if needless := sorted(given - may_have):
            raise ValueError(f"{self.model} has no {needless[0]}; expected {', '.join(sorted(may_have))}")
        if self.model == "poisson" and not (self.mean or 0.0) <= self.longest <= MAX_DELAY:
            raise ValueError(f"max: expected the mean ({self.mean:g}) to {MAX_DELAY}, not {self.longest}")
        if self.model == "batch" and not 1 <= int((self.size or 0) * self.ratio) < (self.size or 0):
            raise ValueError(f"ratio: of {self.size} readings, expected at least one to come first, and one to follow")
        return self

    @property
    def longest(self) -> int:
        """The longest delay, in readings."""
        if self.max is not None:
            return self.max
        mean = self.mean or 0.0
        if mean >= _TWO_PARTS_FROM:
            return min(MAX_DELAY, round(mean * _LONGEST_OVER_MEAN))
        # A Poisson number beyond it has a probability of 1e-12.
        return math.ceil(mean + 12.0 * math.sqrt(mean) + 20.0)

    def planned(self) -> PlannedDisorder:
        """The same for the engine."""
        if self.model == "batch":
            return {"batch": {"size": self.size or 0, "ratio": self.ratio}}
        if self.model == "ratio":
            return {"ratio": {"ratio": self.ratio, "max": self.longest}}
        return {"poisson": {"ratio": self.ratio, "mean": self.mean or 0.0, "max": self.longest}}


class DuplicateKeys(toml_file.FileModel):
    """Writes that send a reading again."""

    share: float = Field(ge=0.000001, le=0.5, description="Share of the writes that send again what was sent before.")
    values: Literal["equal", "other"] = Field(
        default="equal", description="Whether the reading has the value that it had, or another one of the dataset's."
    )
    window: int = Field(default=1000, ge=1, description="How many new readings ago it was first sent, at most.")


class GapKeys(toml_file.FileModel):
    """Readings that are never sent."""

    share: float = Field(ge=0.000001, le=0.9, description="Share of the readings that are missing.")
    length: int = Field(default=1, ge=1, description="How many readings in a row are missing.")


class ChurnKeys(toml_file.FileModel):
    """Series that end while others begin: an integer that identifies a series becomes a fresh one. As many are alive at any time."""

    share: float = Field(gt=0, le=1, description="Share of the series that is replaced in each period.")
    period: Length = Field(description="Length of a period, in the time of the readings.")
    parameter: str = Field(
        default="zone", description="The parameter of the write that becomes another one, an integer of its key."
    )


class BurstKeys(toml_file.FileModel):
    """Stretches of a run in which operations come faster, as after a line was down."""

    every: Length = Field(description="Time from the beginning of a burst to that of the next.")
    length: Length = Field(description="How long a burst is.")
    factor: float = Field(gt=1, description="By how much the rate is higher meanwhile.")

    @model_validator(mode="after")
    def _is_shorter(self) -> "BurstKeys":
        if seconds(self.length) >= seconds(self.every):
            raise ValueError(f"length: expected less than every, {self.every}")
        return self


class Delivery(toml_file.FileModel):
    """How the writes of a workload deliver their readings. Which reading a write has is a function of the seed and its number alone. With this
    table, every acknowledged reading is accounted for after the runs.
    """

    disorder: DisorderKeys | None = Field(default=None, description="Readings that come out of order.")
    duplicates: float | DuplicateKeys | None = Field(
        default=None,
        description="Writes that send a reading again: their share, or a table. Schemas must say which of them counts.",
    )
    gaps: float | GapKeys | None = Field(default=None, description="Readings that are never sent: their share, or a table.")
    churn: ChurnKeys | None = Field(default=None, description="Series that end while others begin.")
    burst: BurstKeys | None = Field(default=None, description="Stretches in which operations of an open loop come faster.")
    late_after: Length | None = Field(
        default=None, description="How much older than the newest of its series a reading is that the report counts as late."
    )

    @model_validator(mode="before")
    @classmethod
    def _shares_are_tables(cls, keys: object) -> object:
        """A number is the share of a table."""
        if not isinstance(keys, Mapping):
            return keys
        return {
            name: {"share": value} if name in {"duplicates", "gaps"} and isinstance(value, int | float) else value
            for name, value in keys.items()
        }

    @property
    def sends_again(self) -> bool:
        """Whether readings are sent more than once."""
        return self.duplicates is not None

    def model_for(self) -> DeliveryModel:
        """Which reading a write has, for the engine."""
        model: DeliveryModel = {}
        if self.disorder is not None:
            model["disorder"] = self.disorder.planned()
        if isinstance(self.duplicates, DuplicateKeys):
            model["duplicates"] = {"share": self.duplicates.share, "window": self.duplicates.window}
        if isinstance(self.gaps, GapKeys):
            model["gaps"] = {"share": self.gaps.share, "length": self.gaps.length}
        return model


def planned_delivery(
    delivery: Delivery,
    name: str,
    operation: Operation,
    candidates: "Mapping[str, pa.ChunkedArray]",
    times: Mapping[str, PlannedNumber],
) -> PlannedDelivery | None:
    """How the writes of one operation deliver their readings; None if they come as they are.

    Args:
        delivery: what is wanted.
        name: of the operation.
        operation: one that has a key.
        candidates: the values of its parameters that come from rows, by name.
        times: its parameters that are numbers, by name.

    Raises:
        UsageError: for churn of a parameter that identifies no series.

    """
    if not operation.key:
        return None
    model, churn = delivery.model_for(), _churn(delivery.churn, name, operation, candidates, times)
    if not model and churn is None:
        return None
    has_other_values = isinstance(delivery.duplicates, DuplicateKeys) and delivery.duplicates.values == "other"
    renewed = [number for number, parameter in enumerate(operation.parameters) if parameter not in operation.key]
    return {"model": model, "renewed": renewed if has_other_values else [], "churn": churn}


def _churn(
    churn: ChurnKeys | None,
    name: str,
    operation: Operation,
    candidates: "Mapping[str, pa.ChunkedArray]",
    times: Mapping[str, PlannedNumber],
) -> PlannedChurn | None:
    if churn is None:
        return None
    integers = [
        parameter for parameter in operation.series if operation.parameters[parameter] == "integer" and parameter in candidates
    ]
    if churn.parameter not in integers:
        raise UsageError(
            f"workload.delivery.churn.parameter: {churn.parameter!r} is not an integer that identifies a series of {name}; "
            f"expected {' or '.join(integers) or 'an operation that has one'}"
        )
    if operation.time not in times:
        raise UsageError(
            f"workload.delivery.churn: the times of {name} are not numbers that are used once each, so that they have no periods"
        )
    import pyarrow.compute as pc

    found = pc.min_max(candidates[churn.parameter]).as_py()
    return {
        "parameter": list(operation.parameters).index(churn.parameter),
        "time": list(operation.parameters).index(operation.time),
        "start_us": times[operation.time]["start"],
        "period_us": round(seconds(churn.period) * 1e6),
        "share": churn.share,
        "step": found["max"] - found["min"] + 1,
    }


def with_bursts(pace: Pace | None, burst: BurstKeys | None, duration_s: float | None) -> Pace | None:
    """A constant rate with bursts, as steps of a schedule.

    Args:
        pace: one rate; None in a closed loop.
        burst: what bursts there are, if any.
        duration_s: how long the run is.

    """
    if burst is None or pace is None or duration_s is None:
        return pace
    rate = pace["segments"][0]["from_per_s"]
    every_s, length_s = seconds(burst.every), seconds(burst.length)
    segments: list[PlannedSegment] = []
    for _ in range(math.ceil(duration_s / every_s)):
        segments += [
            {"from_per_s": rate, "length_s": every_s - length_s},
            {"from_per_s": rate * burst.factor, "length_s": length_s},
        ]
    return {**pace, "segments": [*segments, {"from_per_s": rate}]}


def check_bursts(burst: BurstKeys, *, has_rate: bool, duration_s: float | None) -> None:
    """Raises ValueError if bursts cannot be: they multiply a constant rate, for a time."""
    if not has_rate or duration_s is None:
        raise ValueError(
            "delivery.burst: expected schedule.rate (one rate of an open loop) and duration, which bursts are made of"
        )
    if duration_s / seconds(burst.every) > _MAX_BURSTS:
        raise ValueError(
            f"delivery.burst.every: {burst.every} makes more than {_MAX_BURSTS:,} bursts in a run; expected a longer time"
        )
