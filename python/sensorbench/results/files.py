"""Writing files so that whatever ends the process leaves whole ones."""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sensorbench.errors import DiskFullError
from sensorbench.interrupts import held_back
from sensorbench.results.checksums import add_checksum, add_removal, new_checksum_of

RESERVE_FILE = ".reserve"
# Enough for a manifest and a summary, so that a full disk can still be reported.
RESERVE_BYTES = 512 * 1024


def write_text(path: Path, text: str) -> None:
    """Writes a file, all of it or nothing."""
    write_lines(path, [text])


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Writes a file of lines, each with its end, all of it or nothing."""
    with whole_file(path) as unfinished:
        _write_lines(unfinished, lines)


def write_result(path: Path, text: str) -> None:
    """Writes a file of results that is read again, all of it or nothing, and its checksum."""
    write_result_lines(path, [text])


def write_result_lines(path: Path, lines: Iterable[str]) -> None:
    """Writes a file of results that has lines, each with its end, all of it or nothing, and its checksum."""
    with whole_file(path, is_result=True) as unfinished:
        _write_lines(unfinished, lines)


def remove_result(path: Path) -> None:
    """Removes a file of results, if it is there."""
    if path.exists():
        add_removal(path)
        path.unlink()


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file, all of it or nothing."""
    with whole_file(path) as unfinished:
        unfinished.write_bytes(content)


@contextmanager
def whole_file(path: Path, *, is_result: bool = False) -> Iterator[Path]:
    """Where to write a file that comes to its place when all of it was written, or not at all; one of results with its checksum."""
    # Nobody else has a file of this name, also where a user says where to write.
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    with held_back():
        try:
            yield unfinished
            checksum = new_checksum_of(unfinished) if is_result else None
            is_new = not path.exists()
            # The order is what checksums.py promises of a process that is killed here.
            if checksum and not is_new:
                add_checksum(path, checksum, replaces=True)
            unfinished.rename(path)
            if checksum and is_new:
                add_checksum(path, checksum, replaces=False)
        except BaseException as error:
            unfinished.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise_if_full(error, path)
            raise


def raise_if_full(error: OSError, path: Path) -> None:
    """Raises DiskFullError when that is what the error says."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        raise DiskFullError(
            f"{path.parent}: no space is left on the disk; what was written before stays and is marked incomplete"
        ) from None


def reserve(folder: Path) -> None:
    """Keeps some space for what must be written when the disk is full."""
    write_text(folder / RESERVE_FILE, "x" * RESERVE_BYTES)


def release_reserve(folder: Path) -> None:
    """Gives the space back."""
    (folder / RESERVE_FILE).unlink(missing_ok=True)
