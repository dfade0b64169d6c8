"""The project's own history: what `make bench` measured on machines of this type, compared with the last time and looked through for changes."""

import hashlib
import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from rich.table import Table

from sensorbench import __version__
from sensorbench.benchmarks.doctor.ceilings import Figure
from sensorbench.history import HistoryStore, Selection, series_of
from sensorbench.history.entry import history_result
from sensorbench.report.history import change_words, version_words
from sensorbench.results.described import Environment
from sensorbench.results.environment import environment
from sensorbench.results.history_entries import HistoryFigure, HistoryResult, HistorySeries, HistoryVariant, Unit
from sensorbench.runner import client_figures

ROOT = Path(__file__).parent.parent
# It stays with a checkout, beside its other results.
STORE = ROOT / "results" / "own-history.duckdb"
CLIENT, METRIC = "client", "value"
# By the end of a figure's name: its unit, what it is multiplied by to be that, and whether more of it is better.
_UNITS: dict[str, tuple[Unit, float, bool]] = {
    "_per_s": ("per s", 1.0, True),
    "_ceiling": ("per s", 1.0, True),
    "_us": ("s", 1e-6, False),
    "_operation_s": ("s", 1.0, False),
    "_error": ("share", 1.0, False),
    "_bytes": ("bytes", 1.0, False),
}


def own_figures(measured: Mapping[str, Figure | None]) -> list[HistoryFigure]:
    """What goes into the history: figures above zero whose unit is known by their name."""
    return list(_figures(measured))


def _figures(measured: Mapping[str, Figure | None]) -> Iterator[HistoryFigure]:
    for name, value in measured.items():
        known = next((of_end for end, of_end in _UNITS.items() if name.endswith(end)), None)
        if known is None:
            continue
        unit, factor, higher_is_better = known
        for key, each in value.items() if isinstance(value, dict) else [("", value)]:
            if each is None or not each > 0.0:
                continue
            yield HistoryFigure(
                variant=CLIENT,
                operation=f"{name} {key}".strip(),
                metric=METRIC,
                unit=unit,
                higher_is_better=higher_is_better,
                value=each * factor,
                low=None,
                high=None,
                runs=1,
                is_main=True,
            )


def own_result(measured: Mapping[str, Figure | None], *, quick: bool, commit: str) -> HistoryResult:
    """A result of `make bench` on this machine, at a commit. Quick ones are an experiment of their own."""
    now = datetime.now(UTC)
    described: Environment = {**environment(ROOT), "client": client_figures()}
    name = "make bench --quick" if quick else "make bench"
    figures = own_figures(measured)
    content = json.dumps([now.isoformat(), name, [figure.model_dump() for figure in figures]])
    variant = HistoryVariant(
        id=CLIENT,
        target=CLIENT,
        database="",
        database_version="",
        schema_name="",
        schema_digest="",
        parameters={},
        distinct="",
        server_settings={},
        no_op_per_s=None,
    )
    return history_result(
        described,
        __version__,
        identity=hashlib.sha256(content.encode()).hexdigest(),
        folder=ROOT,
        kind="bench",
        title=name,
        experiment=hashlib.sha256(name.encode()).hexdigest(),
        name=name,
        measured=now,
        label=commit,
        variants=[variant],
        figures=figures,
    )


def keep_and_compare(result: HistoryResult, store: Path = STORE) -> Table:
    """Adds a result to the history, and sets it beside the last one of the same type of machine."""
    store.parent.mkdir(parents=True, exist_ok=True)
    with HistoryStore.open(store, "write") as history:
        history.add([result])
        series = series_of(history, Selection(experiment=result.experiment, machine=result.machine))
    # What was not measured this time has a last entry of another time.
    return _table(each for each in series if each.points[-1].result == result.id)


def _table(found: Iterable[HistorySeries]) -> Table:
    table = Table(box=None)
    for column in ("what", "now", "last time", "now / last", "at", "varies by", "last change"):
        table.add_column(column)
    for series in found:
        now, before = series.points[-1], series.points[-2] if len(series.points) > 1 else None
        change = series.changes[-1] if series.changes else None
        table.add_row(
            series.operation,
            f"{now.value:.4g} {series.unit}",
            "–" if before is None else f"{before.value:.4g}",
            "–" if before is None else f"{now.value / before.value:.3f}",
            "first entry" if before is None else f"{before.versions['label']}, {before.measured:%Y-%m-%d}",
            "–" if series.variation is None else f"{series.variation:.1%}",
            "none" if change is None else f"{change_words(change)} ({version_words(change)})",
        )
    return table


def commit_of(root: Path = ROOT) -> str:
    """The commit that is checked out, with + where files are changed; empty if there is no repository."""
    ended = subprocess.run(["git", "describe", "--always", "--dirty=+"], cwd=root, capture_output=True, text=True, check=False)
    return ended.stdout.strip() if ended.returncode == 0 else ""
