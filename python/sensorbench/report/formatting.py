"""Numbers as people read them."""

import math
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from sensorbench.results.planned import StressObjective
from sensorbench.results.summary.comparison import StallFigures
from sensorbench.results.summary.stress import StressCapacity, StressStep

_TIMES = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
_BYTES = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")]


def significant(number: float, digits: int = 3) -> str:
    """A number with this many significant digits, and no exponent where a reader would not expect one."""
    if number == 0 or not math.isfinite(number):
        return "0" if number == 0 else "–"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(number))))
    return f"{number:,.{decimals}f}"


def duration(seconds: float | None) -> str:
    """A latency: 101 µs, 19.8 ms."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    for unit, name in _TIMES:
        if seconds >= unit * 0.9995:
            return f"{significant(seconds / unit)} {name}"
    return f"{significant(seconds / 1e-9)} ns" if seconds > 0 else "0 s"


def size(number: float | None) -> str:
    """A number of bytes: 75 MB."""
    if number is None:
        return "–"
    unit, name = next((unit for unit in _BYTES if number >= unit[0]), _BYTES[-1])
    return f"{significant(number / unit)} {name}"


def signed_duration(seconds: float | None) -> str:
    """A difference of times: 80.1 ms, −1.2 µs."""
    return duration(seconds) if seconds is None or seconds >= 0 else f"−{duration(-seconds)}"


def bounds(low_s: float, high_s: float | None) -> str:
    """Between which times another one lies: 1.2 ms to 6.8 ms; of one without an upper bound, over 30 s."""
    low = duration(low_s) if low_s > 0.0 else "0"
    return f"over {low}" if high_s is None else f"{low} to {duration(high_s)}"


def count(number: float | None) -> str:
    """A count, or a rate that is as large as one."""
    if number is None:
        return "–"
    return f"{number:,.0f}" if abs(number) >= 100 else significant(number)


def times(factor: float | None) -> str:
    """A factor: 5.1 ×."""
    return "–" if factor is None or not math.isfinite(factor) else f"{significant(factor, 2 if 2 <= factor < 100 else 3)} ×"


def factors(low: float, high: float) -> str:
    """Between which factors: 4.2–6.6×."""
    ends = [times(end).removesuffix(" ×") for end in (low, high)]
    return f"{'–'.join(dict.fromkeys(ends))}×"


# What figures of latencies are called in a sentence.
_METRICS = {"mean_to_p95": "mean (up to the 95th percentile)", "sd": "standard deviation of the"}


def metric(name: str) -> str:
    """A figure of latencies in a sentence."""
    return _METRICS.get(name, name)


def interval(low: float | None, high: float | None, confidence: float | None) -> str:
    """The confidence interval of a factor: 95% interval 4.9 to 5.3 ×."""
    if low is None or high is None or confidence is None:
        return "no interval"
    return f"{confidence:.0%} interval {times(low).removesuffix(' ×')} to {times(high)}"


def percent(share: float) -> str:
    """A share: 0.12%."""
    return f"{share * 100:.3g}%"


def of_kind(value: Any, kind: str) -> str:
    """A value of a table's column: its kind is one of `results.page.ValueKind`."""
    if value is None:
        return "–"
    shown: dict[str, Callable[[Any], str]] = {
        "duration_s": duration,
        "bytes": size,
        "ratio": times,
        "share": percent,
        "count": count,
        "rate": lambda per_s: f"{count(per_s)}/s",
        "whole": "{:,}".format,
        "number": significant,
        "variant": variant,
    }
    return shown.get(kind, str)(value)


# What can be the matter with a step of a stress run, by the keys of its figures.
STEP_NOTES = {
    "client_bound": "client-bound",
    "at_concurrency_limit": "at the concurrency limit",
    "steered": "manually",
    "cut_short": "cut short",
}


def capacity(found: StressCapacity, objective: StressObjective) -> str:
    """What a search for the highest rate found, in a sentence."""
    goal = f"{objective.percentile} within {duration(objective.limit_s)}"
    met, missed = found.met_per_s, found.missed_per_s
    unconfirmed = "" if found.is_confirmed else " (not confirmed)"
    if met is None:
        low = f"; even {count(missed)} operations/s miss it" if missed is not None else ""
        return f"No rate was found that keeps {goal}{low}{unconfirmed}."
    if missed is None:
        return f"At least {count(met)} operations/s keep {goal}; no rate was found that significantly misses it{unconfirmed}."
    whose = ", where the client is the limit" if found.client_bound else ""
    return f"{count(met)} operations/s keep {goal}, {count(missed)} do not{whose}{unconfirmed}."


# A rate is kept when at least so large a share of what it requested is completed.
KEPT = 0.99


def reached(steps: Sequence[StressStep]) -> str:
    """Which rates were kept, with the response time at the highest of them; nothing if nothing was requested."""
    by_rate = sorted((step for step in steps if step.counts.offered), key=lambda step: step.rate_per_s)
    kept = [step for step in by_rate if step.counts.ok >= KEPT * step.counts.offered and step.response_s]
    if not by_rate:
        return ""
    missed = next((step for step in by_rate if step not in kept), None)
    tail = ""
    if missed:
        whose = ", where the client is the limit" if missed.client_bound else ""
        share = percent(missed.counts.ok / missed.counts.offered)
        tail = f"at {count(missed.rate_per_s)} operations/s, {share} were completed{whose}"
    if not kept or kept[-1].response_s is None:
        return f"No rate was kept: {tail}"
    best, response = kept[-1], kept[-1].response_s
    return (
        f"{count(best.rate_per_s)} operations/s were kept with a median of {duration(response.median)} and a p99 of {duration(response.p99)}"
        + (f"; {tail}" if tail else "")
    )


def described_stall(figures: StallFigures) -> str:
    """What a closed and an open loop measured of one stall, in a sentence."""
    closed, opened = figures.loops["closed"], figures.loops["open"]
    stall = duration(max(closed.stall_s, opened.stall_s))
    return (
        f"Coordinated omission: of a stall of {stall}, the closed loop shows a p99 of {duration(closed.p99_s)}, "
        f"the open loop one of {duration(opened.p99_s)}"
    )


def command(arguments: Sequence[str]) -> str:
    """A command line as a shell takes it."""
    return shlex.join(arguments)


def variant(name: str) -> str:
    """A variant's id as a name: sqlite-star becomes sqlite · star."""
    return name.replace("-", " · ")
