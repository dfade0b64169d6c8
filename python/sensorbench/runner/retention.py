"""Retention in accelerated time: readings of many days are written in minutes, and old ones expire meanwhile. What is done when."""

import math
from dataclasses import dataclass

from pydantic import Field, model_validator

from sensorbench import toml_file
from sensorbench.runner.delivery import Delivery, DuplicateKeys, GapKeys
from sensorbench.runner.lengths import Length, seconds

# More actions than these are a mistake.
_MAX_ACTIONS = 10_000
# The times of readings are whole milliseconds, which every database keeps.
_MILLISECOND_US = 1_000
# 1 January 2200, which no reading is later than.
_NEVER_US = 7_258_118_400_000_000


def microseconds(length: str) -> int:
    """A length of time in µs."""
    return round(seconds(length) * 1e6)


class RollupKeys(toml_file.FileModel):
    """A rollup: count, min, max and sum of each series in time buckets, which stay when the readings expire."""

    interval: Length = Field(description='Length of a time bucket, `"1h"`.')
    lookback: Length | None = Field(
        default=None,
        description="How far back before the last action the rollup is computed again: readings that are later than that are not in it. As long as `keep` if not given.",
    )


class Retention(toml_file.FileModel):
    """Readings expire and are rolled up while a run writes others, in accelerated time: the times of the readings are `span` long, the run is not.
    The schema says by which statements.
    """

    span: Length = Field(description='How long the times of the readings that a run writes are, `"30d"`.')
    keep: Length = Field(description='How long readings stay, `"7d"`, in their own time.')
    every: Length = Field(
        default="1d", description="Time between two actions, in the time of the readings. An action rolls up, and then expires."
    )
    rollup: RollupKeys | None = Field(default=None, description="What stays of readings that expire.")
    sample: Length = Field(default="1s", description="How often the size on disk is measured, in the time of the clock.")

    @model_validator(mode="after")
    def _fits(self) -> "Retention":
        span, keep, every = (microseconds(length) for length in (self.span, self.keep, self.every))
        if span // every > _MAX_ACTIONS:
            raise ValueError(
                f"every: {self.every} makes {span // every:,} actions in {self.span}; expected at most {_MAX_ACTIONS:,}"
            )
        if span <= keep:
            raise ValueError(
                f"span: nothing that is written expires within {self.span} when {self.keep} are kept; expected more than keep"
            )
        if self.rollup is not None:
            interval = microseconds(self.rollup.interval)
            if interval > microseconds("1d") or microseconds("1d") % interval:
                raise ValueError(f"rollup.interval: a day is not a multiple of {self.rollup.interval}; expected one such as 1h")
            for name, length in (("keep", keep), ("every", every), ("rollup.lookback", self.lookback_us)):
                if length % interval:
                    raise ValueError(f"{name}: expected a multiple of rollup.interval, {self.rollup.interval}")
            if self.lookback_us > keep:
                raise ValueError(
                    f"rollup.lookback: of readings older than keep, {self.keep}, nothing is there any more; expected at most that"
                )
        return self

    @property
    def lookback_us(self) -> int:
        """How far back a rollup is computed again, in µs."""
        lookback = self.rollup.lookback if self.rollup else None
        return microseconds(lookback or self.keep)


@dataclass(frozen=True)
class RetentionAction:
    """What is done at one time of the readings. All times in µs since 1970.

    Attributes:
        time_us: what time it is.
        from_us: the first time that is rolled up.
        to_us: the end of what is rolled up; not included.
        before_us: readings that are older expire.

    """

    time_us: int
    from_us: int
    to_us: int
    before_us: int


class AcceleratedTime:
    """The time of the readings, and the actions that it brings.

    Args:
        retention: what is wanted.
        start_us: the time of the first reading.
        step_us: from one reading to the next.
        pace: new readings per operation: fewer where some are sent again, more where some are missing.

    """

    def __init__(self, retention: Retention, start_us: int, step_us: int, pace: float) -> None:
        self._every_us, self._keep_us = microseconds(retention.every), microseconds(retention.keep)
        self._lookback_us = retention.lookback_us
        interval_us = microseconds(retention.rollup.interval) if retention.rollup else 1
        self.origin_us = start_us // interval_us * interval_us
        self.width_us = interval_us
        self._start_us, self._step_us, self._pace = start_us, step_us, pace
        self._done_us = self._floor(start_us)
        self._rolled_up_to_us = self.origin_us

    def _floor(self, time_us: int) -> int:
        return time_us // self._every_us * self._every_us

    def now_us(self, operations: int) -> int:
        """The time when this many operations have started."""
        return self._start_us + math.floor(self._step_us * self._pace * operations)

    def next_action(self, operations: int) -> RetentionAction | None:
        """The action that has to be done when this many operations have started; None if there is none. Of several that came during another one,
        the last one does what all of them would.
        """
        time_us = self._floor(self.now_us(operations))
        if time_us <= self._done_us:
            return None
        self._done_us = time_us
        return self._action(time_us, time_us)

    def whole(self) -> RetentionAction:
        """Everything from the first time on: for statements that read it."""
        return RetentionAction(self.origin_us, self.origin_us, _NEVER_US, self.origin_us)

    def last_action(self, operations: int) -> RetentionAction:
        """The action after this many operations, when everything has arrived: it rolls up all that was written, and expires what was to be."""
        time_us = self._floor(self.now_us(operations))
        return self._action(time_us, _NEVER_US)

    def note_rolled_up(self, action: RetentionAction) -> None:
        """An action has rolled up what it should: the next one begins where it ended, or further back."""
        self._rolled_up_to_us = action.time_us

    def _action(self, time_us: int, to_us: int) -> RetentionAction:
        # What arrives after an action may be older than its time, by as much as is looked back.
        from_us = max(self.origin_us, self._rolled_up_to_us - self._lookback_us)
        return RetentionAction(time_us, from_us, to_us, time_us - self._keep_us)


def time_to_live_s(retention: Retention, duration_s: float) -> int:
    """How long a reading stays after its write where that is what it expires by, in whole s: the same share of a run as `keep` is of `span`.

    Args:
        retention: what is wanted.
        duration_s: how long the run takes, in s.

    """
    return math.ceil(duration_s * microseconds(retention.keep) / microseconds(retention.span))


def pace_of(delivery: Delivery | None) -> float:
    """New readings per operation."""
    again = delivery.duplicates.share if delivery and isinstance(delivery.duplicates, DuplicateKeys) else 0.0
    missing = delivery.gaps.share if delivery and isinstance(delivery.gaps, GapKeys) else 0.0
    return (1.0 - again) / (1.0 - missing)


def step_us(retention: Retention, operations: int, pace: float) -> int:
    """The time from one reading to the next, by which this many operations have readings of the span; at least a millisecond.

    Args:
        retention: what is wanted.
        operations: how many a run has.
        pace: new readings per operation.

    """
    step = microseconds(retention.span) / max(1.0, operations * pace)
    return max(_MILLISECOND_US, math.floor(step) // _MILLISECOND_US * _MILLISECOND_US)
