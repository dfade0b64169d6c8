"""Datasets that several numbers of threads write."""

from pathlib import Path

from sensorbench.dataset import Description
from sensorbench.dataset.generated import in_this_process
from sensorbench.dataset.registry import generate
from sensorbench.progress import ProgressReporter


def written_alike(name: str, folder: Path, scale: float) -> Description:
    """Generates a dataset by one thread and by three, checks that both wrote the same bytes, and returns what it is."""
    one, three = (
        generate(
            name, folder / str(threads), scale=scale, seed=7, write=in_this_process(ProgressReporter(quiet=True), threads)
        ).describe()
        for threads in (1, 3)
    )
    assert one.fingerprint == three.fingerprint
    return one
