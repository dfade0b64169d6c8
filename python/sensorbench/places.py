"""Where things are put: results into folders that are free, things that can be made again into a cache."""

import os
from pathlib import Path

from sensorbench.errors import UsageError


def cache_folder(name: str) -> Path:
    """A folder for things of one kind: below SENSORBENCH_CACHE, else below the user's cache folder. It is made."""
    root = os.environ.get("SENSORBENCH_CACHE")
    user_cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = (Path(root) if root else Path(user_cache) / "sensorbench") / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def check_is_free(folder: Path, otherwise: str = "") -> None:
    """Raises UsageError unless a folder that is named by --out is empty or not there; `otherwise` says what else can be done."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty; name another folder with --out{otherwise}")
