"""Results over time, and their change points."""

from collections.abc import Sequence
from pathlib import Path

from sensorbench.api.errors import own_errors
from sensorbench.app.history import add_to_history as add_folders
from sensorbench.app.history import history_series
from sensorbench.history import DEFAULT_STORE, Selection
from sensorbench.results.history_entries import HistorySeries

# Only the name, which is the same on every system.
STORE = DEFAULT_STORE.name


def add_to_history(
    folders: str | Path | Sequence[str | Path],
    *,
    label: str = "",
    store: str | Path = STORE,
    doctor: str | Path | None = None,
) -> dict[str, bool]:
    """Adds results to a history: all of the folders, or none if one is refused.

    Args:
        folders: a results folder, or several.
        label: the measured version: a commit, a release.
        store: the history file, a DuckDB database; created if it does not exist.
        doctor: the output of `sensorbench doctor --json` from the day of the results; if None, the figures stored with the results are used.

    Returns:
        For each folder, whether its results are new. Results are identified by content, not by path.

    Raises:
        UsageError: if results are incomplete, their kind has no history, or the file is not a history of sensorbench.
        DamagedResultsError: if a file is damaged.
        FailedError: if another process has the history open.

    Examples:
        >>> import sensorbench as sb
        >>> list(sb.add_to_history("results/iot", label="v1.0", store="history.duckdb").values())
        [True]
        >>> list(sb.add_to_history("results/iot", store="history.duckdb").values())
        [False]

    """
    paths = [Path(folder) for folder in ([folders] if isinstance(folders, str | Path) else folders)]
    with own_errors():
        added = add_folders(paths, Path(store), label=label, doctor=None if doctor is None else Path(doctor))
    return {each.result.folder: each.is_new for each in added}


def read_history(
    store: str | Path = STORE,
    *,
    experiment: str | None = None,
    variant: str | None = None,
    operation: str | None = None,
    metric: str | None = None,
    machine: str | None = None,
    normalised: bool = False,
    seed: int = 0,
) -> list[HistorySeries]:
    """Returns the series of a history with their change points: the first affected result, the size of the change, and what else changed.

    Args:
        store: the history file.
        experiment: only this experiment: its name, or a prefix of its digest.
        variant: only variants whose name contains these words.
        operation: only this operation.
        metric: only this metric; the ranking metric of the results if None.
        machine: only machines whose fingerprint starts with this.
        normalised: one series over all machines, with figures relative to the client's speed on the day of the measurement.
        seed: seed of the permutation test.

    Returns:
        A series for each operation, variant, experiment and type of machine.

    Raises:
        UsageError: if there is no history, or the file is not a history of sensorbench.
        FailedError: if another process writes to the history.

    Examples:
        >>> import sensorbench as sb
        >>> _ = sb.add_to_history("results/iot", store="series.duckdb")
        >>> series = sb.read_history("series.duckdb", operation="get_sensor_data")
        >>> [(len(each.points), each.changes) for each in series[:1]]
        [(1, [])]

    """
    selection = Selection(experiment=experiment, variant=variant, operation=operation, metric=metric, machine=machine)
    with own_errors():
        return history_series(Path(store), selection, machines="normalised" if normalised else "split", seed=seed)
