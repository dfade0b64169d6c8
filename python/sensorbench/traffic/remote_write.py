"""Samples that clients sent by Prometheus' remote write (version 1): each is a statement, and those of one request have the time of its arrival.

The body is a message of protocol buffers (prompb/remote.proto, prompb/types.proto) of which four fields are needed, which are read here.
"""

import math
import struct
from collections.abc import Iterator
from pathlib import Path

from sensorbench.errors import UsageError
from sensorbench.traffic.entries import Entry, Form, Skipped, Value
from sensorbench.traffic.http_requests import Request, read_requests, read_varint

_NAME = "__name__"
# Where the wire has a number, eight bytes, bytes with their length before them, or four bytes.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SERIES, _LABELS, _SAMPLES, _EXEMPLARS, _HISTOGRAMS = 1, 1, 2, 3, 4
_LABEL_NAME, _LABEL_VALUE, _SAMPLE_VALUE, _SAMPLE_TIME = 1, 2, 1, 2
# The value with which Prometheus says that a series has ended, a NaN of its own (model/value).
_STALE = 0x7FF0000000000002
_PATHS = ("/api/v1/write", "/api/v1/push", "/api/prom/push", "/api/v1/prom/write", "/receive", "/api/v1/receive")


def is_remote_write(path: str) -> bool:
    """Whether requests to a path are of remote write."""
    return path.partition("?")[0] in _PATHS


def read_remote_write(path: Path, skipped: Skipped) -> Iterator[Entry]:
    """The samples of captured requests; exemplars, native histograms and metadata are left out, and counted. Raises UsageError that names the line."""
    for request in read_requests(path, skipped):
        try:
            for number, series in _fields(request.body):
                if number == _SERIES and isinstance(series, bytes):
                    yield from _samples(request, series, skipped)
                else:
                    skipped.entries += 1
        except (ValueError, struct.error) as error:
            raise UsageError(
                f"{request.where}: the body is not a remote write of version 1: {error}; expected a WriteRequest, and encoding: snappy where it "
                "is compressed as clients send it"
            ) from None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: each with its number, and its value as it is on the wire."""
    place = 0
    while place < len(data):
        tag, place = read_varint(data, place)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, place = read_varint(data, place)
            yield number, value
            continue
        if wire == _BYTES:
            length, place = read_varint(data, place)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"a field has the wire type {wire}")
        if place + length > len(data):
            raise ValueError("it ends within a field")
        yield number, data[place : place + length]
        place += length


def _samples(request: Request, series: bytes, skipped: Skipped) -> Iterator[Entry]:
    labels: list[tuple[str, str]] = []
    samples: list[bytes] = []
    for number, value in _fields(series):
        if number == _LABELS and isinstance(value, bytes):
            labels.append(_label(value))
        elif number == _SAMPLES and isinstance(value, bytes):
            samples.append(value)
        else:
            skipped.entries += 1
    metric = dict(labels).get(_NAME, "")
    of_series = [(name, value) for name, value in labels if name != _NAME]
    named = ",".join(f"{name}=${place}" for place, (name, _) in enumerate(of_series, start=1))
    statement = f"{metric}{{{named}}} ${len(of_series) + 1} ${len(of_series) + 2}"
    form = Form("write", (metric,) if metric else ())
    values = tuple(value for _, value in of_series)
    for sample in samples:
        yield Entry(
            request.at_us,
            request.session,
            statement,
            (*values, *_sample(sample)),
            request.duration_s,
            error=request.error,
            form=form,
        )


def _label(data: bytes) -> tuple[str, str]:
    texts = {number: value.decode("utf-8") for number, value in _fields(data) if isinstance(value, bytes)}
    return texts.get(_LABEL_NAME, ""), texts.get(_LABEL_VALUE, "")


def _sample(data: bytes) -> tuple[Value, Value]:
    """A value and its time (ms since 1970). Fields that are zero are left out on the wire."""
    number: float = 0.0
    bits = 0
    time_ms = 0
    for field, value in _fields(data):
        if field == _SAMPLE_VALUE and isinstance(value, bytes):
            (number,) = struct.unpack("<d", value)
            (bits,) = struct.unpack("<Q", value)
        elif field == _SAMPLE_TIME and isinstance(value, int):
            time_ms = value if value < 1 << 63 else value - (1 << 64)
    return _number(number, bits), time_ms


def _number(number: float, bits: int) -> Value:
    """What JSON cannot hold as a number is a text, as Prometheus writes it."""
    if math.isnan(number):
        return "StaleNaN" if bits == _STALE else "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    return number
