"""Our own helpers in Java, compiled against a server's jars."""

import hashlib
import tempfile
from pathlib import Path

from sensorbench.lab.jvm import Java
from sensorbench.lab.locks import locked
from sensorbench.lab.software import make_readable, run_tool
from sensorbench.lab.state_dirs import software_folder

# The oldest version that any of the servers runs on, so that what one Java compiled another one reads.
_RELEASE = "11"


def compiled(sources: Path, software: Path, java: Java, *others: Path) -> Path:
    """The folder with the classes of all sources of a folder; they are compiled when they, or other helpers that they need, have changed. Raises
    FailedError.
    """
    files = sorted(sources.glob("*.java"))
    folder = software / f"helpers-{_hash(files, others)}"
    if folder.exists():
        return folder
    with locked(software_folder() / f"lock-{folder.name}"):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=software, prefix="helpers-") as draft:
                classes = Path(draft) / "classes"
                options = ["--release", _RELEASE, "-proc:none", "-nowarn", "-cp", class_path(software, *others)]
                run_tool([java.javac, *options, "-d", classes, *files])
                make_readable(classes)
                classes.rename(folder)
    return folder


def class_path(software: Path, *others: Path) -> str:
    """The jars of a server's software, and other places of classes before them."""
    return ":".join(map(str, (*others, software / "lib" / "*")))


def _hash(files: list[Path], others: tuple[Path, ...]) -> str:
    lines = [f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files]
    named = "\n".join([*lines, *(other.name for other in others)])
    return hashlib.sha256(named.encode()).hexdigest()[:12]
