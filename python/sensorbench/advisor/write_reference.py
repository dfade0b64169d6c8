"""Writes the reference results: `python -m sensorbench.advisor.write_reference DIR`, where DIR has results of the
sensor-schema study.
"""

import sys
from pathlib import Path

from sensorbench.advisor.reference import REFERENCE_FILE, written
from sensorbench.benchmarks.comparison import gather
from sensorbench.results.files import write_text


def write_reference(folder: Path) -> None:
    """Writes the candidates of a folder of results as those that are shipped."""
    write_text(REFERENCE_FILE, written(gather(folder)))


if __name__ == "__main__":
    write_reference(Path(sys.argv[1]))
