"""What can be chosen of a phase of a core workload, beside its properties."""

from pathlib import Path

from sensorbench.options import DEFAULT_SEED, option
from sensorbench.runner import FILE_URL, SERVER_URL, GeneratorOptions


class YcsbOptions(GeneratorOptions):
    """A workload and a target."""

    target: str = option(..., f"lab:NAME or a URL: {SERVER_URL}, {FILE_URL}.")
    files: tuple[Path, ...] = option((), "Properties file. May be given several times; later files override earlier ones.", "-P")
    properties: tuple[str, ...] = option((), "Property, key=value; overrides the files. May be given several times.", "-p")
    seed: int = option(DEFAULT_SEED, "Seed of all operations.")


class YcsbRunOptions(YcsbOptions):
    """The same, and how transactions choose their records."""

    ycsb_zipfian: bool = option(False, "Draw zipfian keys with YCSB's own generator instead of the exact distribution.")
