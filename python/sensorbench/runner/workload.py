"""Workloads: which operations in which mix, when, for how long."""

from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from sensorbench import toml_file
from sensorbench.options import DEFAULT_SEED
from sensorbench.results.engine_plan import Pace, PlannedPhase, PlannedSegment
from sensorbench.results.manifest import MEASURE
from sensorbench.runner.delivery import Delivery, check_bursts, with_bursts
from sensorbench.runner.freshness import Freshness
from sensorbench.runner.lengths import Length, LengthOrNone, seconds, seconds_or_none
from sensorbench.runner.retention import Retention
from sensorbench.schemas.operations import AnyChoice

# The name of the phase in files of results.
WARMUP = "warm_up"

# In an open loop this many operations may be in flight if nothing else is said: more than any server here serves at once; with
# embedded databases, whose operations have a thread each, more than any machine here has processors for.
MAX_CONCURRENCY = 1000
MAX_CONCURRENCY_EMBEDDED = 32
# Runs of at most this many operations keep a record of each of them; longer ones of every LOG_EVERY-th. Of answers, the first this many
# and then every LOG_EVERY-th are kept, however long the run is: so a long run takes no more memory than a short one.
LOGGED_WHOLE = 1_000_000
LOG_EVERY = 1000


class Segment(toml_file.FileModel):
    """A stretch of a schedule in which the rate changes evenly."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    from_: float = Field(alias="from", ge=0, description="Rate at the beginning, per second.")
    to: float | None = Field(default=None, ge=0, description="Rate at the end, per second; as at the beginning if not given.")
    length: Length | None = Field(
        default=None, description='How long the segment takes, `"30s"`; the last one may go on to the end of the run.'
    )


class Schedule(toml_file.FileModel):
    """When operations come: this many in flight (closed loop), or at a rate (open loop)."""

    concurrency: int | None = Field(
        default=None,
        ge=1,
        description="Requests in flight of a closed loop; the concurrency limit of an open loop: 1000 if not given, 32 for an embedded database.",
    )
    rate: float | None = Field(default=None, gt=0, description="Arrivals per second of an open loop.")
    segments: list[Segment] = Field(
        default=[], description="Steps and ramps of the rate, one after the other, instead of `rate`."
    )
    arrival: Literal["constant", "poisson"] = Field(
        default="constant",
        description="How the arrivals of an open loop are spaced: evenly, or as those of many independent clients.",
    )

    @model_validator(mode="after")
    def _one_rate(self) -> "Schedule":
        if self.rate is not None and self.segments:
            raise ValueError("give either rate or segments")
        if self.rate is None and not self.segments and self.concurrency is None:
            raise ValueError("expected concurrency (closed loop), or rate or segments (open loop)")
        return self

    @property
    def is_open_loop(self) -> bool:
        """Whether operations come at a rate."""
        return self.rate is not None or bool(self.segments)

    @property
    def max_concurrency(self) -> int:
        """Operations in flight: always in a closed loop, at most in an open one."""
        if self.concurrency is None:
            raise AssertionError("a workload gets its concurrency before it is planned")
        return self.concurrency

    def with_share(self, share: float) -> "Schedule":
        """The same with a share of the arrivals; a closed loop is as it was."""
        segments = [
            segment.model_copy(update={"from_": segment.from_ * share, "to": None if segment.to is None else segment.to * share})
            for segment in self.segments
        ]
        return self.model_copy(update={"rate": None if self.rate is None else self.rate * share, "segments": segments})

    def pace(self) -> Pace | None:
        """The rates for the engine; None in a closed loop."""
        if not self.is_open_loop:
            return None
        if self.rate is not None:
            return {"arrival": self.arrival, "segments": [{"from_per_s": self.rate}]}
        segments: list[PlannedSegment] = [
            {"from_per_s": segment.from_, "to_per_s": segment.to, "length_s": seconds(segment.length) if segment.length else None}
            for segment in self.segments
        ]
        return {"arrival": self.arrival, "segments": segments}


class Workload(toml_file.FileModel):
    """A workload."""

    mix: dict[str, float] = Field(min_length=1, description="Weights of operations, by name.")
    order: Literal["random", "in turn"] = Field(
        default="random",
        description="`random`: the kind of each operation is drawn by the weights. `in turn`: operations come in rounds, each as many times as its weight.",
    )
    schedule: Schedule = Field(default=Schedule(concurrency=1), description="When operations arrive.")
    warmup: LengthOrNone = Field(
        default="0", description='How long operations are carried out before anything counts, `"10s"`; `"0"` for no warm-up.'
    )
    duration: Length | None = Field(
        default=None,
        description='Length of a run, `"30s"`. This or `operations` must be given; a run ends with the first of both.',
    )
    operations: int | None = Field(default=None, ge=1, description="Number of operations of a run.")
    repetitions: int = Field(default=3, ge=1, description="Repetitions of each variant, interleaved. Verdicts need three.")
    timeout: Length = Field(default="60s", description="Time limit of an operation; one that takes longer counts with this time.")
    seed: int = Field(default=DEFAULT_SEED, ge=0, description="Seed of kinds, parameters and arrivals.")
    choice: dict[str, AnyChoice] = Field(
        default={},
        description='How parameter sources choose, by name: `"uniform"`, `"sequential"`, `{ zipfian = 0.99 }`, `{ latest = 0.99 }`. The operation set counts for the others.',
    )
    spin: bool = Field(default=False, description="Whether the client's timer spins, for exact starts at the cost of a CPU.")
    pin: bool = Field(default=True, description="Whether client and started servers run on different CPUs.")
    threads: int = Field(default=1, ge=1, description="Threads of the client.")
    log: Literal["auto", "all", "none"] = Field(
        default="auto",
        description="Which operations are recorded one by one: all, none, or all up to a million and else every thousandth.",
    )
    answers: Literal["all", "none"] = Field(
        default="all", description="`all`: answers are hashed and compared. `none`: only their rows are counted."
    )

    delivery: Delivery | None = Field(
        default=None,
        description="How writes deliver their readings: late, twice, never. With it, every acknowledged reading is accounted for.",
    )
    freshness: Freshness | None = Field(
        default=None, description="Markers during the load: how long after its acknowledgement a reading is visible."
    )

    retention: Retention | None = Field(
        default=None,
        description="Readings expire and are rolled up while others are written, in accelerated time. What is there afterwards is compared with what must be.",
    )

    @model_validator(mode="after")
    def _ends(self) -> "Workload":
        if self.duration is None and self.operations is None:
            raise ValueError("expected duration, or operations (a count)")
        if any(weight < 0 for weight in self.mix.values()) or sum(self.mix.values()) <= 0:
            raise ValueError("the weights of a mix must be at least zero, one of them above zero")
        if self.order == "in turn" and not all(weight.is_integer() for weight in self.mix.values()):
            raise ValueError(
                "in turn, the weights of a mix must be whole numbers: how many times each operation comes in a round"
            )
        if self.delivery and self.delivery.burst:
            duration_s = seconds(self.duration) if self.duration else None
            check_bursts(self.delivery.burst, has_rate=self.schedule.rate is not None, duration_s=duration_s)
        if self.delivery and self.log == "none":
            raise ValueError(
                "log: readings that are delivered are accounted for by the record of each operation; leave it at auto, or all"
            )
        if self.retention:
            self._check_retention()
        return self

    def _check_retention(self) -> None:
        if self.log == "none":
            raise ValueError("log: what expires is known by the record of each operation; leave it at auto, or all")
        if self.repetitions != 1:
            raise ValueError(
                "repetitions: expected 1 with retention, since what a run writes and expires is there in the next; repeat the experiment instead"
            )
        if self.has_warmup:
            raise ValueError('warmup: expected "0" with retention, whose time begins with the run')
        if self.operations is None and self.schedule.rate is None:
            raise ValueError(
                "retention: expected operations, or schedule.rate and duration, by which it is known how many readings have the times of its span"
            )

    @property
    def planned_count(self) -> int:
        """How many operations a run has, where that is known before."""
        expected = self._expected_operations()
        if expected is None:
            raise AssertionError("a workload of unknown length has no retention")
        return max(1, round(expected))

    @property
    def log_every(self) -> int | None:
        """Of which operations a record is kept: of every n-th, or none."""
        if self.log == "none":
            return None
        if self.delivery is not None or self.retention is not None:
            return 1
        expected = self._expected_operations()
        is_short = expected is not None and expected <= LOGGED_WHOLE
        return 1 if self.log == "all" or is_short else LOG_EVERY

    def _expected_operations(self) -> float | None:
        """How many operations a run will have at the most; None when that depends on the database's speed."""
        if self.operations is not None:
            return self.operations
        if not self.schedule.is_open_loop or self.duration is None:
            return None
        rates = [self.schedule.rate or 0.0, *(max(segment.from_, segment.to or 0.0) for segment in self.schedule.segments)]
        return max(rates) * seconds(self.duration)

    def with_concurrency(self, *, embedded: bool) -> "Workload":
        """The same with a number of operations that may be in flight, if there is none."""
        if self.schedule.concurrency is not None:
            return self
        limit = MAX_CONCURRENCY_EMBEDDED if embedded else MAX_CONCURRENCY
        return self.model_copy(update={"schedule": self.schedule.model_copy(update={"concurrency": limit})})

    @property
    def has_warmup(self) -> bool:
        """Whether there is a warm-up."""
        return seconds_or_none(self.warmup) > 0.0

    def phases(self, run: int, runs: int) -> list[PlannedPhase]:
        """The phases of the run with this number (from 0), out of this many: its writes meet those of no other. Where it is known how many
        operations each has, they continue where the phase before ended.
        """
        pace = self.schedule.pace()
        phases: list[PlannedPhase] = []
        if self.has_warmup:
            phases.append({"name": WARMUP, "pace": _first_rate(pace), "duration_s": seconds(self.warmup)})
        duration_s = seconds(self.duration) if self.duration else None
        burst = self.delivery.burst if self.delivery else None
        phases.append(
            {
                "name": MEASURE,
                "operations": self.operations,
                "duration_s": duration_s,
                "pace": with_bursts(pace, burst, duration_s),
            }
        )
        operations = [count for phase in phases if (count := phase.get("operations")) is not None]
        for number, phase in enumerate(phases):
            if len(operations) < len(phases) or self.duration is not None:
                phase["numbering"] = {"offset": run * len(phases) + number, "stride": runs * len(phases)}
            else:
                phase["numbering"] = {"offset": 0, "stride": 1, "before": [*operations * run, *operations[:number]]}
        return phases


def _first_rate(pace: Pace | None) -> Pace | None:
    """Warming up happens at the rate with which measuring begins."""
    if pace is None:
        return None
    return {**pace, "segments": [{"from_per_s": pace["segments"][0]["from_per_s"]}]}
