"""Where things that can be made again are kept."""

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """A folder for things of one kind: below SENSORBENCH_CACHE, else below the user's cache folder. It is made."""
    root = os.environ.get("SENSORBENCH_CACHE")
    user_cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = (Path(root) if root else Path(user_cache) / "sensorbench") / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder
