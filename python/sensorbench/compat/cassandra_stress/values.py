"""Values of columns from the numbers that stand for them: whole numbers as a column's population has them, or, of columns of
doubles, real ones. Equal numbers give equal values, always.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sensorbench.compat.cassandra_stress.binary import binary_values
from sensorbench.compat.cassandra_stress.profile import ColumnSpec
from sensorbench.compat.cassandra_stress.streams import Ints, Streams, salt_of, scrambled, split
from sensorbench.compat.cassandra_stress.table import Column
from sensorbench.schemas.arrow_types import ARROW_TYPES

Numbers = NDArray[np.int64] | NDArray[np.float64]
Bytes = NDArray[np.uint8]

# Characters that need no quotation marks anywhere.
_CHARACTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)
# How many characters or bytes one number of a stream gives.
_OF_A_NUMBER = {"text": 10, "bytes": 8}
_BITS = {"text": 6, "bytes": 8}
# Texts are made for so many characters at a time.
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
