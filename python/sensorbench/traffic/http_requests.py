"""Captured requests of HTTP, a JSON object per line: what clients wrote by line protocol or by remote write, with the times of arrival."""

import base64
import binascii
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from sensorbench.errors import UsageError
from sensorbench.traffic.entries import Skipped
from sensorbench.traffic.json_lines import read_lines

_GZIP = 16 + zlib.MAX_WBITS
# A body that says of itself that it is larger than this is none.
_MAX_BYTES = 1 << 30


class RequestLine(BaseModel):
    """A line."""

    model_config = ConfigDict(extra="forbid")

    at: datetime = Field(description="When the request arrived: ISO 8601, UTC unless it has an offset.")
    path: str = Field(description="Path and query, as in /write?db=power&precision=ms.")
    session: str | int = Field(default="", description="Its client: requests of one follow one another.")
    encoding: Literal["identity", "gzip", "snappy"] = Field(default="identity", description="Its Content-Encoding.")
    body: str | None = Field(default=None, description="The body, where it is text.")
    body_base64: str | None = Field(default=None, description="The body, where it is bytes.")
    status: int | None = Field(default=None, description="How it was answered; 400 and above are errors.")
    duration: float | None = Field(default=None, ge=0, description="s")


@dataclass(frozen=True)
class Request:
    """A request.

    Args:
        where: file and line, for messages.
        at_us: when it arrived (µs since 1970).
        session: its client.
        options: of its query, the last of each.
        body: decoded.
        duration_s: how long the server took.
        error: how it was answered where that was an error.

    """

    where: str
    at_us: int
    session: str | int
    options: dict[str, str]
    body: bytes
    duration_s: float | None
    error: str | None


def is_request(keys: object) -> bool:
    """Whether what a line has are the keys of a captured request."""
    return isinstance(keys, dict) and "path" in keys and ("body" in keys or "body_base64" in keys)


def read_requests(path: Path, skipped: Skipped) -> Iterator[Request]:
    """The requests of a file. Raises UsageError that names line and key."""
    for number, line in read_lines(path, RequestLine, skipped):
        yield _request(f"{path}:{number}", line)


def _request(where: str, line: RequestLine) -> Request:
    at = line.at if line.at.tzinfo else line.at.replace(tzinfo=UTC)
    return Request(
        where,
        round(at.timestamp() * 1e6),
        line.session,
        {name: values[-1] for name, values in parse_qs(urlsplit(line.path).query).items()},
        _decoded(where, line.encoding, _body(where, line)),
        line.duration,
        f"HTTP {line.status}" if line.status is not None and line.status >= 400 else None,
    )


def _body(where: str, line: RequestLine) -> bytes:
    if (line.body is None) == (line.body_base64 is None):
        raise UsageError(f"{where}: expected either body, which is text, or body_base64")
    if line.body is not None:
        return line.body.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(line.body_base64 or "", validate=True)
    except binascii.Error as error:
        raise UsageError(f"{where}: body_base64: {error}; expected bytes in Base64") from None


def _decoded(where: str, encoding: str, body: bytes) -> bytes:
    try:
        if encoding == "gzip":
            return zlib.decompress(body, _GZIP)
        if encoding == "snappy":
            return _without_snappy(body)
    except (zlib.error, pa.ArrowException, OSError, ValueError) as error:
        raise UsageError(f"{where}: encoding: the body is not compressed by {encoding}: {error}") from None
    return body


def _without_snappy(body: bytes) -> bytes:
    """A block of Snappy, which begins with its length (format_description.txt of Snappy)."""
    size, _ = read_varint(body, 0)
    if size > _MAX_BYTES:
        raise ValueError(f"its length would be {size} bytes")
    if not size:
        return b""
    decompressed: bytes = pa.Codec("snappy").decompress(body, decompressed_size=size, asbytes=True)
    return decompressed


def read_varint(data: bytes, place: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and the place after it. Raises ValueError if it is not whole."""
    number = 0
    for shift in range(0, 64, 7):
        if place >= len(data):
            raise ValueError("it ends within a number")
        number |= (data[place] & 0x7F) << shift
        place += 1
        if data[place - 1] < 0x80:
            return number, place
    raise ValueError("a number has more than 64 bits")
