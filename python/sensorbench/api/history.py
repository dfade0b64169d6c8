"""Results over time, and when they changed."""

from collections.abc import Sequence
from pathlib import Path

from sensorbench.api.errors import own_errors
from sensorbench.app.history import add_to_history as add_folders
from sensorbench.app.history import history_series
from sensorbench.history import DEFAULT_STORE, Selection
from sensorbench.results.history_entries import HistorySeries

# The name of the file, as it is the same on every system.
STORE = DEFAULT_STORE.name


def add_to_history(
    folders: str | Path | Sequence[str | Path],
    *,
    label: str = "",
    store: str | Path = STORE,
    doctor: str | Path | None = None,
) -> dict[str, bool]:
    """Adds folders of results to a history, all of them or none.

    Args:
        folders: a folder of results, or several.
        label: what the version is called that was measured: a commit, a release.
        store: the file of the history, a DuckDB database; it is made if it is not there.
        doctor: what `sensorbench doctor --json` printed on the day of the results; the figures that they have themselves if None.

    Returns:
        For each result, by its folder, whether it is new there. One is known by its content, wherever it lies.

    Raises:
        UsageError: for results that are not complete or whose kind has no history, and for a file that is none of ours.
        DamagedResultsError: where a file of results is damaged.
        FailedError: where another process has the history open.

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
    """The series of a history with their changes: the first result that is affected, how large the change is, and what else changed there.

    Args:
        store: the file of the history.
        experiment: only this one: its name, or the beginning of its digest.
        variant: only variants whose name has these words.
        operation: only this operation.
        metric: only this metric; that by which results are ranked if None.
        machine: only machines whose fingerprint begins with this.
        normalised: whether there is one series over all machines, of figures as multiples of what the client could do on that day.
        seed: of the permutations.

    Returns:
        A series for each operation of each variant of each experiment on each type of machine.

    Raises:
        UsageError: where there is no history, or the file is none of ours.
        FailedError: where another process writes into it.

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
