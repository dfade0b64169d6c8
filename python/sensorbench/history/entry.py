"""A result as it goes into a history: what all kinds have in common follows from the environment and the version that measured."""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np

from sensorbench.history.machine import machine_of
from sensorbench.results.described import Environment
from sensorbench.results.history_entries import DoctorFigures, HistoryFigure, HistoryHistogram, HistoryResult, HistoryVariant


def between_repetitions(cells: Iterable[Sequence[float]]) -> float | None:
    """The coefficient of variation between repetitions of the same, pooled over cells.

    Args:
        cells: figures of the repetitions of each cell, above zero.

    Returns:
        None if nothing was repeated.

    """
    logs = [np.log(cell) for cell in cells if len(cell) > 1]
    degrees = sum(len(cell) - 1 for cell in logs)
    return math.expm1(math.sqrt(sum(float(cell.var()) * len(cell) for cell in logs) / degrees)) if degrees else None


def history_result(
    environment: Environment,
    version: str,
    *,
    identity: str,
    folder: Path,
    kind: str,
    title: str,
    experiment: str,
    name: str,
    measured: datetime,
    label: str,
    variants: Sequence[HistoryVariant],
    figures: Sequence[HistoryFigure],
    histograms: Sequence[HistoryHistogram] = (),
    aa_variation: float | None = None,
) -> HistoryResult:
    """A result that goes into a history.

    Args:
        environment: what the manifest says of the machine and the client.
        version: of sensorbench, which measured.
        identity: SHA-256 of the result's content.
        folder: where it lies.
        kind: of the benchmark.
        title: what the results call themselves.
        experiment: SHA-256 of what was measured.
        name: what the experiment calls itself.
        measured: when.
        label: what the user calls the version that was measured.
        variants: those that have figures.
        figures: of each operation at each variant.
        histograms: of each run.
        aa_variation: coefficient of variation between repetitions of one variant; None if nothing was repeated.

    """
    machine, words = machine_of(environment)
    client = environment.get("client")
    return HistoryResult(
        id=identity,
        folder=str(folder.resolve()),
        kind=kind,
        title=title,
        experiment=experiment,
        name=name,
        measured=measured,
        label=label,
        machine=machine,
        machine_words=words,
        sensorbench=version,
        kernel=str(environment.get("kernel", "")),
        doctor=DoctorFigures(
            timer_lag_s=client["timer_lag_s"] if client else None,
            null_ops_per_s=client["null_ops_per_s"] if client else None,
            aa_variation=aa_variation,
        ),
        variants=list(variants),
        figures=list(figures),
        histograms=list(histograms),
    )
