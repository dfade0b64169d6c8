"""`checksums.txt`: the SHA-256 of each file of results in the folder that it lies in, so that damage anywhere in a file is noticed.

Each time a file is written, a line is added; a file is sound when its content has any of the checksums of its name. The line of a
file that replaces an earlier one is added before it comes to its place, that of a new file afterwards. So whatever ends the
process, no file lies there whose lines contradict it. Files without a line, as earlier versions left them, are not checked.
"""

import hashlib
import os
import re
from functools import lru_cache
from pathlib import Path

CHECKSUMS_FILE = "checksums.txt"
# In the place of a checksum: the file was removed.
_REMOVED = "removed"
_LINE = re.compile(rf"(?P<checksum>[0-9a-f]{{64}}|{_REMOVED})  (?P<name>.+)")


def checksum_of(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal. It is computed once for as long as the file is not changed."""
    state = path.stat()
    return _checksum(path, state.st_ino, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=65536)
def _checksum(path: Path, _inode: int, _size: int, _mtime_ns: int) -> str:
    return new_checksum_of(path)


def new_checksum_of(path: Path) -> str:
    """The same of a file that was written just now: its time may be that of another content, because clocks of file systems are coarse."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def add_checksum(path: Path, checksum: str, *, replaces: bool) -> None:
    """Says which checksum a file has from now on, too. Where it `replaces` another one, this is on the disk before that is gone."""
    _add_line(path, checksum, at_once=replaces)


def add_removal(path: Path) -> None:
    """Says that a file is not there any more."""
    _add_line(path, _REMOVED, at_once=True)


def _add_line(path: Path, word: str, *, at_once: bool) -> None:
    with path.with_name(CHECKSUMS_FILE).open("a+b") as file:
        # A full disk may have cut the last line short.
        is_cut = file.tell() > 0 and (file.seek(-1, 2), file.read(1))[1] != b"\n"
        file.write(b"\n" * is_cut + f"{word}  {path.name}\n".encode())
        if at_once:
            file.flush()
            os.fsync(file.fileno())


def checksums_in(folder: Path) -> dict[str, frozenset[str]]:
    """The checksums that each file in a folder may have, by its name. Files that were removed are absent."""
    path = folder / CHECKSUMS_FILE
    if not path.is_file():
        return {}
    state = path.stat()
    return _listed(path, state.st_ino, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=4096)
def _listed(path: Path, _inode: int, _size: int, _mtime_ns: int) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if match := _LINE.fullmatch(line):
            name, checksum = match["name"], match["checksum"]
            if checksum == _REMOVED:
                found.pop(name, None)
            else:
                found[name] = found.get(name, frozenset()) | {checksum}
    return found
