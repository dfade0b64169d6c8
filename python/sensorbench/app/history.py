"""Histories: adding folders of results, and the page of series with their changes."""

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from pydantic import ValidationError

from sensorbench import report
from sensorbench.benchmarks.doctor import Diagnosis
from sensorbench.errors import UsageError, problem_text
from sensorbench.history import Added, HistoryStore, Selection, collect, series_of
from sensorbench.paths import REPORT_FILE, check_page_is_free
from sensorbench.results.history_entries import DoctorFigures, HistorySeries, Machines


def add_to_history(folders: Sequence[Path], store: Path, *, label: str = "", doctor: Path | None = None) -> list[Added]:
    """Adds folders of results to a history, all of them or none.

    Args:
        folders: of comparisons, and of series of them.
        store: the file of the history; it is made if it is not there.
        label: what the version is called that was measured.
        doctor: what `sensorbench doctor --json` printed on the day of the results. Its figures stand in the place of those that the results
            have themselves.

    Returns:
        Each result, and whether it is new there.

    Raises:
        UsageError: for folders that cannot go into a history, and files that are none of ours.
        DamagedResultsError: if a file of results is damaged.
        FailedError: if another process has the history open.

    """
    # Everything is read before anything is written.
    figures = DoctorFigures() if doctor is None else read_doctor_figures(doctor)
    found = [result for folder in folders for result in collect(folder, label)]
    results = [result.model_copy(update={"doctor": result.doctor.with_known(figures)}) for result in found]
    with HistoryStore.open(store, "write") as history:
        return history.add(results)


def read_doctor_figures(path: Path) -> DoctorFigures:
    """What a history keeps of a diagnosis. Raises UsageError for a file that is none."""
    expected = "expected what `sensorbench doctor --json` printed"
    try:
        diagnosis = Diagnosis.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"--doctor {path}: {error.strerror or error}; {expected}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"{part}: " for part in first["loc"])
        raise UsageError(f"--doctor {path}: {place}{problem_text(first)}; {expected}") from None
    null_ops_per_s = diagnosis.ceilings.get("null_ops_per_s")
    pairs = diagnosis.noise.operations if diagnosis.noise else []
    # Both sides of a pair vary; each has half of the variance of their difference.
    squares = [math.log(pair.b_s / pair.a_s) ** 2 / 2.0 for pair in pairs]
    return DoctorFigures(
        timer_lag_s=diagnosis.timer_lag_s,
        null_ops_per_s=None if isinstance(null_ops_per_s, dict) else null_ops_per_s,
        aa_variation=math.expm1(math.sqrt(fmean(squares))) if squares else None,
    )


def history_series(
    store: Path, selection: Selection = Selection(), *, machines: Machines = "split", seed: int = 0
) -> list[HistorySeries]:
    """The series of a history with their changes; see `series_of`."""
    with HistoryStore.open(store) as history:
        return series_of(history, selection, machines=machines, seed=seed)


def check_export(path: Path) -> None:
    """Raises UsageError for a file that a history cannot be written into."""
    if path.suffix not in {".csv", ".parquet"}:
        raise UsageError(f"--out {path}: expected a name that ends with .csv or .parquet")
    if path.exists() or not path.parent.is_dir():
        raise UsageError(f"--out {path}: expected a new file in an existing folder")


def check_page_folder(folder: Path) -> None:
    """Raises UsageError for a folder into which the page of a history cannot be written."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out {folder}: expected a folder")
    check_page_is_free(folder / REPORT_FILE)


def write_history_page(series: Sequence[HistorySeries], store: Path, folder: Path) -> Path:
    """Writes the page of some series into a folder. Returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    return report.write_page(report.history_page(series, store), folder)
