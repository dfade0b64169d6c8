"""Values of types that have no canonical one, in CQL's binary form (Cassandra's native protocol, version 5, section 6)."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from sensorbench.compat.cassandra_stress.streams import Ints, Streams, scrambled, split

# From the beginning of the Gregorian calendar, which UUIDs count from in 100 ns, to 1970.
_TICKS_BEFORE_1970 = 0x01B21DD213814000
_TICKS_OF_A_MS = 10_000
_NS_OF_A_DAY = 24 * 3600 * 10**9
# Day 0 lies in the middle of what an unsigned number holds.
_DAY_0 = 2**31


def binary_values(cql_type: str, numbers: np.ndarray) -> pa.Array:
    """The values that whole numbers, or of floats real ones, stand for."""
    if cql_type in _OF_WIDTH:
        width, form = _OF_WIDTH[cql_type]
        return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(numbers), [None, pa.py_buffer(form(numbers))]).cast(
            pa.binary()
        )
    scale = b"\0\0\0\0" if cql_type == "decimal" else b""
    return pa.array([scale + _shortest(number) for number in numbers.tolist()], pa.binary())


def _uuid(numbers: Ints) -> bytes:
    """Random UUIDs, each of its number."""
    words = split(scrambled(numbers.view(np.uint64))[:, None], np.arange(2, dtype=np.uint64))
    return _of_words(words, version=4)


def _timeuuid(numbers: Ints) -> bytes:
    """UUIDs of times in ms since 1970."""
    ticks = (numbers * _TICKS_OF_A_MS + _TICKS_BEFORE_1970).view(np.uint64)
    low, middle, high = ticks & np.uint64(0xFFFFFFFF), (ticks >> np.uint64(32)) & np.uint64(0xFFFF), ticks >> np.uint64(48)
    times = (low << np.uint64(32)) | (middle << np.uint64(16)) | high
    return _of_words(np.stack([times, scrambled(numbers.view(np.uint64))], axis=1), version=1)


def _of_words(words: Streams, version: int) -> bytes:
    """Two words of each, with version and variant where they stand."""
    words[:, 0] = (words[:, 0] & np.uint64(0xFFFFFFFFFFFF0FFF)) | np.uint64(version << 12)
    words[:, 1] = (words[:, 1] & np.uint64(2**62 - 1)) | np.uint64(2**63)
    return words.astype(">u8").tobytes()


def _shortest(number: int) -> bytes:
    """A whole number in as few bytes as hold it, the highest first."""
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


_OF_WIDTH: dict[str, tuple[int, Callable[[np.ndarray], bytes]]] = {
    "date": (4, lambda numbers: (numbers + _DAY_0).astype(">u4").tobytes()),
    "float": (4, lambda numbers: numbers.astype(">f4").tobytes()),
    "inet": (4, lambda numbers: numbers.astype(">u4").tobytes()),
    "time": (8, lambda numbers: (numbers % _NS_OF_A_DAY).astype(">i8").tobytes()),
    "timeuuid": (16, _timeuuid),
    "uuid": (16, _uuid),
}
