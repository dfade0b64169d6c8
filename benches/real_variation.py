"""How much this project's own stored results vary: by how much repetitions of one variant differ, in the bundles of evidence."""

import hashlib
import math
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sensorbench.history.machine import machine_of
from sensorbench.results.bundle import RESULTS_PART, unpack
from sensorbench.results.manifest import MANIFEST_FILE
from sensorbench.results.reader import runs_anywhere_below
from sensorbench.results.stored import read_json

EVIDENCE = Path(__file__).parent.parent / "evidence"
Metric = Literal["median", "p99"]
METRICS: tuple[Metric, ...] = ("median", "p99")
# Two values say little of how far a third may be.
MIN_REPETITIONS = 3
_RUN = re.compile(r"run-\d+")

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True)
class RealNoise:
    """By how much repetitions differ in some results. A cell is an operation of a variant.

    Attributes:
        source: the bundle.
        sha256: of its file.
        metric: of the response time.
        machine: in words.
        cells: of each cell the logarithms of its repetitions over their geometric mean, made as wide as its variation; in the order of variations.
        variations: coefficient of variation of each cell, in ascending order; shape (cells,).

    """

    source: str
    sha256: str
    metric: Metric
    machine: str
    cells: list[Floats]
    variations: Floats

    def of_all(self) -> Noise:
        """Draws from all cells: most values are near the middle, and some far off."""
        return drawn_from(np.concatenate(self.cells))

    def near(self, variation: float) -> Noise:
        """Draws from the quarter of the cells whose variation is the nearest: a history is of one cell."""
        nearest = np.argsort(np.abs(np.log(np.maximum(self.variations, 1e-6) / variation)))[: math.ceil(len(self.cells) / 4)]
        return drawn_from(np.concatenate([self.cells[place] for place in nearest]))


def drawn_from(residuals: Floats) -> Noise:
    """Draws residuals independently, made to have a standard deviation of 1."""
    standard = residuals / np.sqrt(np.mean(residuals**2))
    return lambda generator, count: np.asarray(generator.choice(standard, count))


def real_noises(folder: Path = EVIDENCE) -> list[RealNoise]:
    """The noise of each bundle of a folder whose runs were repeated, by metric."""
    return [noise for bundle in sorted(folder.glob("*.sbz")) for noise in noises_of(bundle)]


def noises_of(bundle: Path) -> list[RealNoise]:
    """The noise of a bundle, by metric; none where its runs are not repetitions of one another."""
    with tempfile.TemporaryDirectory(prefix="sensorbench-variation-") as name:
        unpack(bundle, Path(name))
        return list(_noises(Path(name) / RESULTS_PART, bundle))


def _noises(results: Path, bundle: Path) -> Iterator[RealNoise]:
    cells: dict[tuple[Metric, Path, str], list[float]] = defaultdict(list)
    for run in runs_anywhere_below(results):
        # Other kinds have runs beside one another that are not repetitions.
        if not _RUN.fullmatch(run.folder.name):
            continue
        for phase in run.manifest.measured:
            for operation, totals in phase.operations.items():
                response = totals["response_ns"]
                if response is not None:
                    cells["median", run.folder.parent, operation].append(response["p50"])
                    cells["p99", run.folder.parent, operation].append(response["p99"])
    sha256 = hashlib.sha256(bundle.read_bytes()).hexdigest()
    machine = _machine(results)
    for metric in METRICS:
        logs = [
            np.log(values) for (of_cell, _, _), values in cells.items() if of_cell == metric and len(values) >= MIN_REPETITIONS
        ]
        if any(each.any() for each in map(_residuals, logs)):
            logs.sort(key=_deviation)
            variations = np.expm1([_deviation(each) for each in logs])
            yield RealNoise(bundle.name, sha256, metric, machine, [_residuals(each) for each in logs], variations)


def _deviation(logs: Floats) -> float:
    return float(logs.std(ddof=1))


def _residuals(logs: Floats) -> Floats:
    return np.asarray((logs - logs.mean()) * np.sqrt(len(logs) / (len(logs) - 1)))


def _machine(results: Path) -> str:
    """The machine of some results, in words: of the first manifest that says it."""
    described = (read_json(path).get("environment") for path in sorted(results.rglob(MANIFEST_FILE)))
    return next((machine_of(environment)[1] for environment in described if environment), "not known")
