"""What can be chosen of a phase of a core workload, beside its properties."""

from pathlib import Path

from sensorbench.options import DEFAULT_SEED, option
from sensorbench.runner import FILE_URL, SERVER_URL, GeneratorOptions


class YcsbOptions(GeneratorOptions):
    """A workload and a target."""

    target: str = option(..., f"lab:NAME or a URL: {SERVER_URL}, {FILE_URL}.")
    files: tuple[Path, ...] = option((), "A properties file. May be given several times; the later one counts.", "-P")
    properties: tuple[str, ...] = option(
        (), "A property, key=value; it counts before those of files. May be given several times.", "-p"
    )
    seed: int = option(DEFAULT_SEED, "From which all operations follow.")


class YcsbRunOptions(YcsbOptions):
    """The same, and how transactions choose their records."""

    ycsb_zipfian: bool = option(False, "Choose zipfian records as YCSB's own generator does; else by the exact distribution.")
