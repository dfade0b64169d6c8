"""Distributions in the words of cassandra-stress (variants/OptionDistribution.java and generate/ of Cassandra 5.0).

A distribution is used by its quantile function, so that the value of anything is a function of a number that belongs to it.
"""

import math
import re
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sensorbench.compat.cassandra_stress.streams import Floats, Ints, Streams, units
from sensorbench.wording import counted

Kind = Literal["exp", "extreme", "qextreme", "gaussian", "uniform", "fixed", "seq"]

FORMS: dict[Kind, str] = {
    "exp": "EXP(min..max)",
    "extreme": "EXTREME(min..max,shape)",
    "qextreme": "QEXTREME(min..max,shape,quantas)",
    "gaussian": "GAUSSIAN(min..max[,stdvrng]) or GAUSSIAN(min..max,mean,stdev)",
    "uniform": "UNIFORM(min..max)",
    "fixed": "FIXED(value)",
    "seq": "SEQ(min..max)",
}
_ALIASES: dict[str, Kind] = {
    "extr": "extreme",
    "weibull": "extreme",
    "qextr": "qextreme",
    "gauss": "gaussian",
    "normal": "gaussian",
    "norm": "gaussian",
}
_FORM = re.compile(r"(?P<inverted>~?)\s*(?P<name>[A-Za-z]+)\s*\((?P<arguments>[^()]+)\)")
_RATIO = re.compile(r"(?P<distribution>.+)/\s*(?P<divisor>[0-9]+[KMBkmb]?)")
_MULTIPLES = {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000}
# Of a Gaussian that does not say it, the edges are this many standard deviations from the mean.
_DEFAULT_DEVIATIONS = 3.0


@dataclass(frozen=True)
class Distribution:
    """A distribution over `min`..`max`. `shape` is that of a Weibull distribution, `mean` and `deviation` those of a
    Gaussian.
    """

    kind: Kind
    min: int
    max: int
    shape: float = 1.0
    quantas: int = 1
    mean: float = 0.0
    deviation: float = 0.0
    inverted: bool = False

    def whole(self, streams: Streams, numbers: Ints) -> Ints:
        """A whole number for each stream. Those of a sequence follow from the numbers, which count what they are for."""
        if self.kind == "seq":
            found = self.min + numbers % (self.max - self.min + 1)
            return self._turned(found)
        if self.kind == "uniform":
            # 2^53 values are enough for as many as columns have by default, 100 billion.
            steps = (units(streams) * float(self.max - self.min + 1)).astype(np.int64)
            return self._turned(self.min + np.minimum(steps, self.max - self.min))
        return self._turned(self._quantile(units(streams)))

    def real(self, streams: Streams, numbers: Ints) -> Floats:
        """A number for each stream, as columns of floating-point numbers have it."""
        if self.kind in ("seq", "fixed", "qextreme"):
            return self.whole(streams, numbers).astype(np.float64)
        found = self._real_quantile(units(streams))
        return self.max - (found - self.min) if self.inverted else found

    def average(self) -> float:
        """The mean of the whole numbers, to a ten-thousandth of the width."""
        shares = (np.arange(10_000) + 0.5) / 10_000
        if self.kind in ("seq", "uniform"):
            return (self.min + self.max) / 2
        return float(self._turned(self._quantile(shares)).mean())

    def _turned(self, found: Ints) -> Ints:
        turned: Ints = self.max - (found - self.min) if self.inverted else found
        return turned

    def _quantile(self, shares: Floats) -> Ints:
        """The whole number with that share of all below it."""
        if self.kind == "fixed" or self.min == self.max:
            return np.full(len(shares), self.min, np.int64)
        if self.kind == "qextreme":
            return self._quantised(shares)
        whole: Ints = np.trunc(self._real_quantile(shares)).astype(np.int64)
        return whole

    def _real_quantile(self, shares: Floats) -> Floats:
        width = float(self.max - self.min)
        if self.kind == "fixed" or width == 0.0:
            return np.full(len(shares), float(self.min))
        if self.kind == "uniform":
            found = self.min + shares * (width + 1.0)
        elif self.kind == "gaussian":
            from scipy.special import ndtri

            found = self.mean + self.deviation * ndtri(shares)
        else:
            # The most is reached with the probability 1/√width, so that all values are, and rare ones not too rarely.
            of_one = (-np.log1p(-shares)) ** (1.0 / self.shape)
            max_of_one = (0.5 * math.log(width)) ** (1.0 / self.shape) if width > 1.0 else 1.0
            found = self.min + of_one * width / max_of_one
        return np.clip(found, float(self.min), float(self.max))

    def _quantised(self, shares: Floats) -> Ints:
        """Stretches that are equally likely, and within each all values alike."""
        of_all = Distribution("extreme", self.min, self.max, self.shape)
        between = of_all._quantile(np.arange(1, self.quantas) / self.quantas)
        bounds = np.concatenate([[self.min], between, [self.max + 1]])
        places = shares * self.quantas
        part = np.minimum(places.astype(np.int64), self.quantas - 1)
        within = (places - part) * (bounds[part + 1] - bounds[part])
        found: Ints = np.minimum(bounds[part] + within.astype(np.int64), self.max)
        return found


@dataclass(frozen=True)
class Ratio:
    """A distribution of shares: whole numbers by a divisor."""

    distribution: Distribution
    divisor: int

    def shares(self, streams: Streams) -> Floats:
        """A share for each stream."""
        return self.distribution.whole(streams, np.zeros(len(streams), np.int64)) / self.divisor

    @property
    def is_all(self) -> bool:
        """Whether it is always the whole."""
        return self.distribution.min >= self.divisor


def parse_distribution(text: str) -> Distribution:
    """A distribution as profiles and options have it. Raises ValueError for what is none."""
    found = _FORM.fullmatch(text.strip())
    kind = _kind(found["name"].lower()) if found else None
    if found is None or kind is None:
        raise ValueError(f"{text!r} is not a distribution; expected one of {', '.join(FORMS.values())}, inverted by ~ before it")
    arguments = [argument.strip() for argument in found["arguments"].split(",")]
    try:
        made = _made(kind, arguments)
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError(f"{text!r}: expected {FORMS[kind]} ({error})") from None
    return replace(made, inverted=found["inverted"] == "~")


def parse_ratio(text: str) -> Ratio:
    """A ratio as profiles have it: a distribution, a stroke, a divisor. Raises ValueError for what is none."""
    found = _RATIO.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a ratio; expected a distribution by a number, for example fixed(1)/10")
    ratio = Ratio(parse_distribution(found["distribution"]), parse_number(found["divisor"]))
    if ratio.divisor == 0 or not 0 <= ratio.distribution.min <= ratio.distribution.max <= ratio.divisor:
        raise ValueError(f"{text!r}: expected a share, from 0 to 1")
    return ratio


def parse_number(text: str) -> int:
    """A whole number, perhaps with K, M or B (a thousand, a million, a billion). Raises ValueError for what is none."""
    found = re.fullmatch(r"\s*(?P<digits>-?\d+)(?P<multiple>[KMBkmb]?)\s*", text)
    if found is None:
        raise ValueError(f"{text.strip()!r} is not a whole number")
    return int(found["digits"]) * _MULTIPLES.get(found["multiple"].lower(), 1)


def parse_bounds(text: str) -> tuple[int, int]:
    """Bounds such as 1..10. Raises ValueError for what is none, or the wrong way round."""
    low, dots, high = re.sub(r"\.\.+", "..", text).partition("..")
    if not dots:
        raise ValueError(f"{text.strip()!r} has no bounds such as 1..10")
    bounds = parse_number(low), parse_number(high)
    if bounds[0] > bounds[1]:
        raise ValueError(f"{low.strip()} is above {high.strip()}")
    return bounds


def _kind(name: str) -> Kind | None:
    return next((kind for kind in FORMS if kind == name), _ALIASES.get(name))


def _made(kind: Kind, arguments: list[str]) -> Distribution:
    counts = {"extreme": (2,), "qextreme": (3,), "gaussian": (1, 2, 3)}
    if len(arguments) not in counts.get(kind, (1,)):
        raise ValueError(counted(len(arguments), "argument"))
    if kind == "fixed":
        value = parse_number(arguments[0])
        return Distribution(kind, value, value)
    low, high = parse_bounds(arguments[0])
    numbers = [float(argument) for argument in arguments[1:]]
    if kind == "gaussian":
        half = (high - low) / 2
        mean, deviation = (low + half, half / (numbers or [_DEFAULT_DEVIATIONS])[0]) if len(numbers) < 2 else numbers
        if low < high and not deviation > 0.0:
            raise ValueError("the standard deviation must be above 0")
        return Distribution(kind, low, high, mean=mean, deviation=deviation)
    if numbers and not numbers[0] > 0.0:
        raise ValueError("the shape must be above 0")
    if kind == "qextreme" and not (numbers[1] >= 1.0 and numbers[1].is_integer()):
        raise ValueError("quantas are a whole number above 0")
    shape, quantas = (*numbers, 1.0, 1.0)[:2]
    return Distribution(kind, low, high, shape=shape, quantas=int(quantas))
