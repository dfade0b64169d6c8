"""Reading files as a stream of bytes: as they are, or compressed by bzip2, gzip or xz. A file that ends too early is distinguished from
a bad one.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from sensorbench.errors import UsageError

CHUNK_BYTES = 1 << 20
# The strongest preset of xz takes 65 MiB; a file that asks for much more is none that should be read.
MAX_MEMORY_BYTES = 256 << 20


class _Decompressor(Protocol):
    """What decompressors have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """The decompressor of gzip, with what the others have."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def needs_input(self) -> bool:
        return not self._stream.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._stream.decompress(self._stream.unconsumed_tail + data, max_length)


# By the bytes that a file begins with.
_DECOMPRESSORS: dict[bytes, Callable[[], _Decompressor]] = {
    b"BZh": bz2.BZ2Decompressor,
    b"\x1f\x8b": _Gzip,
    b"\xfd7zXZ\x00": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_MEMORY_BYTES),
}


class ByteStream:
    """The bytes of a file, decompressed. However much comes out of how little, a chunk at a time is in memory."""

    def __init__(self, file: Path) -> None:
        self._file = file
        # How much of the file was read, and whether it ended in the middle of a compressed stream.
        self.read_bytes = 0
        self.is_cut = False

    def __iter__(self) -> Iterator[bytes]:
        with self._file.open("rb") as raw:
            first = self._read(raw)
            new = next((new for magic, new in _DECOMPRESSORS.items() if first.startswith(magic)), None)
            if new is not None:
                yield from self._decompressed(raw, first, new)
                return
            while first:
                yield first
                first = self._read(raw)

    def _read(self, raw: "_Readable") -> bytes:
        data = raw.read(CHUNK_BYTES)
        self.read_bytes += len(data)
        return data

    def _decompressed(self, raw: "_Readable", data: bytes, new: Callable[[], _Decompressor]) -> Iterator[bytes]:
        """All streams of a file, one after the other: multistream dumps have one for each hundred pages."""
        stream = new()
        while True:
            try:
                out = stream.decompress(data, CHUNK_BYTES)
            except (OSError, lzma.LZMAError, zlib.error) as error:
                raise UsageError(
                    f"{self._file}: the compressed data are damaged within the first {self.read_bytes:,} bytes ({error}); fetch the file again"
                ) from None
            if out:
                yield out
            if stream.eof:
                # Between the streams of a file there may be zeros.
                data = stream.unused_data.lstrip(b"\0") or self._read(raw).lstrip(b"\0")
                if not data:
                    return
                stream = new()
            elif stream.needs_input:
                data = self._read(raw)
                if not data:
                    self.is_cut = True
                    return
            else:
                data = b""


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def first_bytes(file: Path) -> bytes:
    """How a file begins, decompressed; nothing if there is no file, or a damaged one."""
    if not file.is_file():
        return b""
    try:
        return next(iter(ByteStream(file)), b"")
    except UsageError:
        return b""
