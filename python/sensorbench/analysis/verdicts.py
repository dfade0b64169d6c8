"""What may be said of two variants: faster, slower, equivalent, no significant difference, inconclusive."""

from dataclasses import dataclass
from typing import Literal

from sensorbench.analysis.intervals import CONFIDENCE, MIN_RUNS, Interval, ratio_interval
from sensorbench.analysis.sample import Sample

Word = Literal["faster", "slower", "equivalent", "no significant difference", "inconclusive"]

# Differences below this share do not matter to anybody, unless somebody says so.
EQUIVALENCE_MARGIN = 0.05
# An interval whose ends are further apart than this factor leaves open too much.
TOO_WIDE = 4.0


@dataclass(frozen=True)
class Verdict:
    """What may be said of a compared with b, and why. The ratio is latency(a) / latency(b): below 1, a is faster."""

    word: Word
    ratio: Interval
    reason: str


def compare(
    a: Sample,
    b: Sample,
    metric: str,
    *,
    paired: bool = True,
    margin: float = EQUIVALENCE_MARGIN,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Verdict:
    """Compares two variants by a figure of their latencies. `paired`: their runs took turns."""
    return judge(ratio_interval(a, b, metric, paired=paired, confidence=confidence, seed=seed), margin=margin)


def judge(ratio: Interval, *, margin: float = EQUIVALENCE_MARGIN) -> Verdict:
    """The verdict that a ratio and its interval allow.

    - fewer than three runs, or no interval at all: inconclusive, whatever the figures look like;
    - the interval lies inside the margin around 1: equivalent, even if it does not include 1;
    - the interval does not include 1: faster, or slower;
    - the interval is so wide that a factor of two to either side would not show: inconclusive;
    - else: no significant difference, which is not the same as none being there.
    """
    if ratio.runs < MIN_RUNS:
        return Verdict("inconclusive", ratio, f"{ratio.runs} runs; at least {MIN_RUNS} are needed (--repetitions {MIN_RUNS})")
    if ratio.low is None or ratio.high is None:
        return Verdict("inconclusive", ratio, "too few operations for an interval")
    if 1.0 / (1.0 + margin) <= ratio.low and ratio.high <= 1.0 + margin:
        return Verdict("equivalent", ratio, f"the interval lies within {margin:.0%} of equal")
    if ratio.high < 1.0:
        return Verdict("faster", ratio, f"the {ratio.confidence:.0%} interval lies below 1")
    if ratio.low > 1.0:
        return Verdict("slower", ratio, f"the {ratio.confidence:.0%} interval lies above 1")
    if ratio.high / ratio.low > TOO_WIDE:
        return Verdict("inconclusive", ratio, "the interval is too wide; more operations or repeats would narrow it")
    return Verdict("no significant difference", ratio, f"the {ratio.confidence:.0%} interval includes 1")
