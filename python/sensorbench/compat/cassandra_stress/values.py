"""Values of columns from the numbers that stand for them: whole numbers as a column's population has them, or, of columns of
doubles, real ones. Equal numbers give equal values, always.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sensorbench.compat.cassandra_stress.profile import ColumnSpec
from sensorbench.compat.cassandra_stress.streams import Ints, Streams, salt_of, scrambled, split
from sensorbench.compat.cassandra_stress.table import Column
from sensorbench.schemas.arrow_types import ARROW_TYPES

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


Numbers = NDArray[np.int64] | NDArray[np.float64]
Bytes = NDArray[np.uint8]

# Characters that need no quotation marks anywhere.
_CHARACTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)
# How many characters or bytes one number of a stream gives.
_OF_A_NUMBER = {"text": 10, "bytes": 8}
_BITS = {"text": 6, "bytes": 8}
# Texts are made for this many characters at a time.
_CHUNK = 2**24
_WIDTHS = {"tinyint": np.int8, "smallint": np.int16, "int": np.int32, "inet": np.int32}


def numbers_of(column: Column, spec: ColumnSpec, streams: Streams, ordinals: Ints) -> Numbers:
    """The number of one value of the column for each stream; `ordinals` count what the values are for."""
    own = split(streams, salt_of(column.name))
    if column.is_real:
        real = spec.population.real(own, ordinals)
        # Those that are the same in half of the digits are equal.
        return real.astype(np.float32).astype(np.float64) if column.cql_type == "float" else real
    found = spec.population.whole(own, ordinals)
    if column.cql_type in _WIDTHS:
        # What does not fit is cut, as Java does it.
        return found.astype(_WIDTHS[column.cql_type]).astype(np.int64)
    return found & 1 if column.value_type == "boolean" else found


def fingerprints(column: Column, spec: ColumnSpec, numbers: Numbers) -> Streams:
    """Of each value a number that is the same where values are equal, and else another one."""
    if not column.has_size:
        return scrambled(numbers.view(np.uint64))
    sizes, streams = _sizes_and_streams(column, spec, numbers)
    return split(scrambled(_beginnings(column, sizes, streams)), sizes.view(np.uint64))


def values_of(column: Column, spec: ColumnSpec, numbers: Numbers) -> pa.Array:
    """The values, in their canonical Arrow type."""
    arrow_type = ARROW_TYPES[column.value_type]
    if column.value_type == "boolean":
        return pa.array(numbers.astype(bool), arrow_type)
    if column.value_type == "timestamp":
        return pa.array(numbers.astype(np.int64) * 1000, pa.int64()).cast(arrow_type)
    if not column.has_size:
        return binary_values(column.cql_type, numbers) if column.value_type == "bytes" else pa.array(numbers, arrow_type)
    sizes, streams = _sizes_and_streams(column, spec, numbers)
    rows = max(1, _CHUNK // max(1, int(sizes.max(initial=1))))
    starts = range(0, max(1, len(sizes)), rows)
    return pa.concat_arrays([_texts(column, sizes[start : start + rows], streams[start : start + rows]) for start in starts])


def _sizes_and_streams(column: Column, spec: ColumnSpec, numbers: Numbers) -> tuple[Ints, Streams]:
    """How long each text is, and the stream of its characters."""
    streams = scrambled(numbers.view(np.uint64) ^ np.uint64(salt_of(f"text of {column.name}")))
    sizes = spec.size.whole(split(streams, 0), np.zeros(len(streams), np.int64))
    return sizes, split(streams, 1)


def _beginnings(column: Column, sizes: Ints, streams: Streams) -> Streams:
    """The bits of each text's first characters, and no others."""
    kind = column.value_type
    bits = np.minimum(sizes, _OF_A_NUMBER[kind]) * _BITS[kind]
    first = split(streams, 0)
    mask = np.where(bits >= 64, np.uint64(2**64 - 1), (np.uint64(1) << np.minimum(bits, 63).astype(np.uint64)) - np.uint64(1))
    return first & mask


def _texts(column: Column, sizes: Ints, streams: Streams) -> pa.Array:
    kind = column.value_type
    of_a_number, bits = _OF_A_NUMBER[kind], _BITS[kind]
    longest = int(sizes.max(initial=0))
    characters = np.empty((len(sizes), longest), np.uint8)
    for word in range(-(-longest // of_a_number)):
        number = split(streams, word)
        for place in range(word * of_a_number, min(longest, (word + 1) * of_a_number)):
            characters[:, place] = number & np.uint64(2**bits - 1)
            number = number >> np.uint64(bits)
    kept: Bytes = characters[np.arange(longest) < sizes[:, None]]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    held = _CHARACTERS[kept] if kind == "text" else kept
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(held.tobytes())]
    return pa.Array.from_buffers(ARROW_TYPES[kind], len(sizes), buffers)
