"""The folders that pilots work in: each is removed with what is in it, unless the process is killed before."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from sensorbench.paths import cache_folder
from sensorbench.results.files import write_text
from sensorbench.results.manifest import Process

_FOLDERS, _PREFIX = "pilots", "pilot-"
# Beside each folder: the process that works there.
_OWNER_SUFFIX = ".json"
# As `tempfile` names what is made for a prefix.
_NAME = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}({re.escape(_OWNER_SUFFIX)})?")


@contextmanager
def pilot_folder() -> Iterator[Path]:
    """A folder for one pilot, in the cache; it is removed at the end."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=cache_folder(_FOLDERS)) as name:
        folder = Path(name)
        owner = folder.with_suffix(_OWNER_SUFFIX)
        try:
            write_text(owner, Process.this().model_dump_json())
            yield folder
        finally:
            owner.unlink(missing_ok=True)


def abandoned_pilots() -> dict[Path, int]:
    """What pilots left whose process was killed, with its bytes: folders, and the files that name their processes."""
    entries = [
        entry for entry in sorted(cache_folder(_FOLDERS).iterdir()) if _NAME.fullmatch(entry.name) and not entry.is_symlink()
    ]
    abandoned = [entry for entry in entries if not _is_in_use(entry)]
    return {entry: _bytes_of(entry) for entry in abandoned}


def _is_in_use(entry: Path) -> bool:
    """Whether a process works there. Earlier versions wrote none down: their folders are abandoned."""
    try:
        return Process.model_validate_json(entry.with_suffix(_OWNER_SUFFIX).read_bytes()).is_alive()
    except (FileNotFoundError, ValidationError):
        return False


def _bytes_of(entry: Path) -> int:
    files = entry.rglob("*") if entry.is_dir() else [entry]
    return sum(file.lstat().st_size for file in files if not file.is_dir())
