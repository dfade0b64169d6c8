"""Nodes that start with the data of others: hard links of files that are never written again, copies of the rest."""

import errno
import os
import shutil
from pathlib import Path

from sensorbench.errors import FailedError, UsageError
from sensorbench.lab.database import KeptFiles, LabDatabase, Place
from sensorbench.lab.instance import Instance
from sensorbench.lab.state_dirs import ServerUser
from sensorbench.wording import counted

# Why a file cannot be linked: another file system, one without links, or too many of them.
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK)


def check_kept(kept: Instance, database: LabDatabase, version: str, count: int) -> None:
    """Raises UsageError unless nodes can start with the data of a kept instance."""
    wanted, has = (database.name, version, count), (kept.database, kept.version, len(kept.nodes))
    if kept.state != "kept":
        raise UsageError(f"{kept.name} is {kept.state}; nodes start with the data of an instance that was kept")
    if wanted != has:
        raise UsageError(
            f"{kept.name} has {counted(has[2], 'node')} of {has[0]} {has[1]}; expected {wanted[2]} of {wanted[0]} {wanted[1]}"
        )


def take_data(place: Place, kept: Instance, database: LabDatabase) -> None:
    """Gives a node the data of the kept node of its number. Raises FailedError if that has none."""
    if database.kept_files is None:
        raise FailedError(f"{database.name}: nodes cannot start with the data of others")
    source = next(kept.data_folder(node) for node in kept.nodes if node.number == place.node.number)
    for folder in database.kept_files.folders:
        if not (source / folder).is_dir():
            raise FailedError(f"{kept.name} has no data: {source / folder} is not there")
        _take(source / folder, place.data / folder, database.kept_files, place.user)


def _take(source: Path, into: Path, files: KeptFiles, user: ServerUser) -> None:
    """Makes a folder like another one."""
    into.mkdir(mode=0o700)
    user.owns(into)
    for entry in sorted(source.iterdir()):
        target = into / entry.name
        if entry.is_dir():
            _take(entry, target, files, user)
        elif not (entry.name.endswith(files.immutable) and _is_linked(entry, target)):
            shutil.copy2(entry, target)
            user.owns(target)


def _is_linked(source: Path, target: Path) -> bool:
    """Links a file; not where the file system has no links."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return False
    return True
