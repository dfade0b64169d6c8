"""What the engine makes of a seed, computed again: which kind the k-th operation is, and when it is due.

The stream of random numbers is SplitMix64 with random access (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014), as `crates/sensorbench-workload` has it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sensorbench.results.engine_plan import Pace

Numbers = NDArray[np.uint64]

_GOLDEN_GAMMA = np.uint64(0x9E37_79B9_7F4A_7C15)
_MAX = 2**64 - 1


def kinds(weights: Sequence[float], order: str, seed: int, phase: int, numbers: Numbers) -> NDArray[np.int64]:
    """The kinds of some operations of a phase.

    Args:
        weights: of each kind.
        order: `random` or `in turn`.
        seed: of the workload.
        phase: the number of the phase.
        numbers: the numbers k of the operations, shape (n,).

    Returns:
        The number of the kind of each, shape (n,).

    """
    last = max(number for number, weight in enumerate(weights) if weight > 0.0)
    sums = np.cumsum(weights[: last + 1])
    total = float(np.sum(weights))
    if order == "in turn":
        ends = np.array([int(end) for end in sums[:-1]], dtype=np.uint64)
        chosen = numbers % np.uint64(int(total))
    else:
        ends = np.array([min(_MAX, int(end / total * float(_MAX))) for end in sums[:-1]], dtype=np.uint64)
        chosen = _number(_split(_stream(_seed_of(seed, phase)), 0), numbers)
    return np.searchsorted(ends, chosen, side="right").astype(np.int64)


def arrivals(pace: Pace, seed: int, phase: int, numbers: Numbers) -> NDArray[np.float64]:
    """When some operations of a phase are due, in ns after its start.

    Args:
        pace: of one segment.
        seed: of the workload.
        phase: the number of the phase.
        numbers: the numbers k of the operations in ascending order, shape (n,).

    """
    rate = pace["segments"][0]["from_per_s"]
    if pace.get("arrival", "constant") == "constant":
        return numbers.astype(np.float64) / rate * 1e9
    every = np.arange(int(numbers[-1]) + 1 if len(numbers) else 0, dtype=np.uint64)
    units = (_number(_stream(_seed_of(seed, phase)), every) >> np.uint64(11)).astype(np.float64) / 2.0**53
    return np.cumsum(-np.log(1.0 - units))[numbers.astype(np.int64)] / rate * 1e9


def _seed_of(seed: int, phase: int) -> int:
    return int(_number(_split(_stream(seed), phase), np.zeros(1, dtype=np.uint64))[0])


def _stream(seed: int) -> np.uint64:
    stream: np.uint64 = _scrambled(np.array([seed], dtype=np.uint64))[0]
    return stream


def _split(stream: np.uint64, purpose: int) -> np.uint64:
    with np.errstate(over="ignore"):
        step = np.array([purpose + 1], dtype=np.uint64) * _GOLDEN_GAMMA
    split: np.uint64 = _scrambled(np.array([stream]) ^ _scrambled(step))[0]
    return split


def _number(stream: np.uint64, numbers: Numbers) -> Numbers:
    with np.errstate(over="ignore"):
        return _scrambled(stream + (numbers + np.uint64(1)) * _GOLDEN_GAMMA)


def _scrambled(z: Numbers) -> Numbers:
    """SplitMix64's finaliser."""
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
        return z ^ (z >> np.uint64(31))
