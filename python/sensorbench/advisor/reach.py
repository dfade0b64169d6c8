"""How far a need lies outside of what was measured: by rates, sensors and retention."""

from collections.abc import Iterator
from dataclasses import dataclass

from sensorbench.analysis.advice import Ranking
from sensorbench.analysis.sizing import Load, number
from sensorbench.benchmarks.comparison import Gathered
from sensorbench.errors import UsageError

# Beyond this factor nothing is recommended unless somebody insists.
MAX_FACTOR = 10.0
# Within this factor a need counts as measured: numbers of sensors are estimates.
INSIDE = 1.05


@dataclass(frozen=True)
class Distance:
    """One figure of a need beside what was measured; `factor` is how many times it is beyond that, 1 where it is inside."""

    what: str
    option: str
    needed: float
    measured: float
    factor: float

    @property
    def text(self) -> str:
        """The distance in words."""
        way = "more" if self.needed > self.measured else "less"
        return f"extrapolated: {self.what}: {number(self.needed)} are needed, {number(self.measured)} were measured ({number(float(f'{self.factor:.3g}'))} × {way})"


def distances(gathered: Gathered, ranking: Ranking, load: Load | None, sensors: int | None) -> list[Distance]:
    """How far a load lies outside of what was measured.

    A rate up to that which the first place reached is inside. Sensors and retention are outside when they are more, and when they are fewer.

    Args:
        gathered: what was measured.
        ranking: the layouts by it; the first place counts.
        load: what is needed; nothing is outside where it is not known.
        sensors: how many sensors write.

    """
    return [distance for distance in _all(gathered, ranking, load, sensors) if distance.factor > INSIDE]


def _all(gathered: Gathered, ranking: Ranking, load: Load | None, sensors: int | None) -> Iterator[Distance]:
    if load is None:
        return
    best = ranking.places[0].candidate
    written, read = best.written_per_s, best.read_per_s(ranking.questions)
    if written:
        yield _upward("readings written per second", "--rate", load.readings_per_s, written.value)
    if read and load.reads_per_s:
        yield _upward("reads per second", "--read-rate", load.reads_per_s, read.value)
    origins = gathered.origins.values()
    counts = [origin.sensors for origin in origins if origin.sensors]
    if counts and sensors:
        yield _both_ways("sensors", "--sensors", sensors, max(counts))
    spans = [origin.span_s for origin in origins if origin.span_s]
    if spans and load.retention_s:
        yield _both_ways("days of readings", "--retention", load.retention_s / 86_400.0, max(spans) / 86_400.0)


def _upward(what: str, option: str, needed: float, measured: float) -> Distance:
    return Distance(what, option, needed, measured, max(1.0, needed / measured))


def _both_ways(what: str, option: str, needed: float, measured: float) -> Distance:
    return Distance(what, option, needed, measured, max(needed / measured, measured / needed))


def farthest(found: list[Distance]) -> float:
    """The greatest factor; 1 where all of a need is inside."""
    return max((distance.factor for distance in found), default=1.0)


def check_reach(found: list[Distance], source: str) -> None:
    """Raises UsageError for a need too far outside of what was measured."""
    worst = max(found, key=lambda distance: distance.factor, default=None)
    if worst is not None and worst.factor > MAX_FACTOR:
        raise UsageError(
            f"{worst.option}: {number(worst.needed)} {worst.what} are {number(float(f'{worst.factor:.3g}'))} times {'more' if worst.needed > worst.measured else 'fewer'} "
            f"than the {number(worst.measured)} that {source} measured; expected a need within a factor of {MAX_FACTOR:g}. "
            "Measure nearer to it and name the results, or take the extrapolation with --extrapolate"
        )
