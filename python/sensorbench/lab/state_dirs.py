"""Where the lab keeps servers' software and instances, and as which user servers run.

Servers that refuse root run as `nobody` when the lab is root's, so both places must be reachable for everybody: they are not
in root's home.
"""

import os
import pwd
import shutil
from dataclasses import dataclass
from pathlib import Path

UNPRIVILEGED_USER = "nobody"


@dataclass(frozen=True)
class ServerUser:
    """The user that servers run as."""

    name: str
    uid: int
    gid: int

    def owns(self, path: Path) -> None:
        """Gives a path to this user."""
        if os.geteuid() == 0:
            os.chown(path, self.uid, self.gid)


def server_user() -> ServerUser:
    """`nobody` for root, else whoever calls."""
    return _user(pwd.getpwnam(UNPRIVILEGED_USER)) if os.geteuid() == 0 else calling_user()


def calling_user() -> ServerUser:
    """Whoever calls."""
    return _user(pwd.getpwuid(os.geteuid()))


def _user(entry: pwd.struct_passwd) -> ServerUser:
    return ServerUser(entry.pw_name, entry.pw_uid, entry.pw_gid)


def instances_folder() -> Path:
    """Instances: below SENSORBENCH_LAB, else /var/lib/sensorbench-lab for root, else the user's state folder. It is made."""
    return _made(_root("/var/lib/sensorbench-lab", "XDG_STATE_HOME", ".local/state") / "instances")


def software_folder() -> Path:
    """Unpacked servers: below SENSORBENCH_LAB_SOFTWARE, else /var/cache/sensorbench-lab for root, else the user's cache. It is made."""
    named = os.environ.get("SENSORBENCH_LAB_SOFTWARE")
    return _made(Path(named) if named else _cache())


def _cache() -> Path:
    if os.geteuid() == 0:
        return Path("/var/cache/sensorbench-lab")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sensorbench" / "lab"


def _root(of_root: str, variable: str, below_home: str) -> Path:
    if named := os.environ.get("SENSORBENCH_LAB"):
        return Path(named)
    if os.geteuid() == 0:
        return Path(of_root)
    return Path(os.environ.get(variable) or Path.home() / below_home) / "sensorbench-lab"


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    return folder.resolve()


def is_on_path(program: str) -> bool:
    """Whether a program can be called."""
    return shutil.which(program) is not None
