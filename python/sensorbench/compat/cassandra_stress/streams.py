"""Random numbers that are looked up, not drawn, for arrays: SplitMix64 as the engine has it
(crates/sensorbench-workload/src/random.rs).
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

Streams = NDArray[np.uint64]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def stream_of(seed: int) -> np.uint64:
    """The stream of a seed."""
    return np.uint64(scrambled(np.array([seed % 2**64], np.uint64))[0])


def salt_of(name: str) -> int:
    """The purpose that a name stands for."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def split(streams: Streams | np.uint64, purposes: Streams | int) -> Streams:
    """Independent streams, one for each purpose."""
    with np.errstate(over="ignore"):
        numbers = np.atleast_1d(np.asarray(purposes, np.uint64)) + np.uint64(1)
        return scrambled(streams ^ scrambled(numbers * _GOLDEN_GAMMA))


def units(streams: Streams) -> Floats:
    """One of the 2^53 equally spaced values of [0, 1) for each stream."""
    return (scrambled(streams) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def below(streams: Streams, limits: Ints) -> Ints:
    """A number from 0 to the limit − 1 for each stream; limits are far below 2^53."""
    return (units(streams) * limits).astype(np.int64)


def scrambled(numbers: Streams) -> Streams:
    """The finaliser of SplitMix64."""
    with np.errstate(over="ignore"):
        numbers = (numbers ^ (numbers >> np.uint64(30))) * _FACTORS[0]
        numbers = (numbers ^ (numbers >> np.uint64(27))) * _FACTORS[1]
    return numbers ^ (numbers >> np.uint64(31))
