"""Histories: adding folders of results, and the page of series with their changes."""

from collections.abc import Sequence
from pathlib import Path

from sensorbench import report
from sensorbench.errors import UsageError
from sensorbench.history import Added, HistoryStore, Selection, collect, series_of
from sensorbench.paths import check_page_is_free
from sensorbench.results.history_entries import HistorySeries, Machines


def add_to_history(folders: Sequence[Path], store: Path, *, label: str = "") -> list[Added]:
    """Adds folders of results to a history, all of them or none.

    Args:
        folders: of comparisons, and of series of them.
        store: the file of the history; it is made if it is not there.
        label: what the version is called that was measured.

    Returns:
        Each result, and whether it is new there.

    Raises:
        UsageError: for folders that cannot go into a history, and a file that is none of ours.
        DamagedResultsError: where a file of results is damaged.
        FailedError: where another process has the history open.

    """
    # Everything is read before anything is written.
    results = [result for folder in folders for result in collect(folder, label)]
    with HistoryStore.open(store, "write") as history:
        return history.add(results)


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
        raise UsageError(f"--out {path}: expected a file that is not there, in a folder that is there")


def check_page_folder(folder: Path) -> None:
    """Raises UsageError for a folder into which the page of a history cannot be written."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out {folder}: expected a folder")
    check_page_is_free(folder / "report.html")


def write_history_page(series: Sequence[HistorySeries], store: Path, folder: Path) -> Path:
    """Writes the page of some series into a folder. Returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    return report.write_page(report.history_page(series, store), folder)
