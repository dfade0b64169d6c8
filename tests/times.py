"""How long modules of tests take, by which the longest are begun first: what begins last would keep one worker busy while the others have nothing
left to do.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, Protocol

# The modules that take longest in CI, by phase, the longest first. `make test` ends each phase with the times of the longest.
LONGEST_FIRST = (
    # Without servers.
    *(
        "test_docs_blocks.py",
        "test_damage.py",
        "test_interrupts.py",
        "test_hosts_runs.py",
        "test_wheel.py",
        "test_gate_action.py",
    ),
    *("test_generators.py", "test_conventions.py", "test_notebook.py", "test_study_parts.py", "test_quickstart.py"),
    # With servers, but for the tests of large ones, which are begun before all others.
    *("test_drivers.py", "test_layouts.py", "test_tsm.py", "test_time_series.py", "test_tsbs.py", "test_ycsb.py"),
    *("test_documents.py", "test_odbc.py", "test_tune.py", "test_insight.py", "test_ownership.py", "test_user_cluster.py"),
)
_RANKS = {name: rank for rank, name in enumerate(LONGEST_FIRST)}
# Shorter runs are looked at by who made them.
_SHOWN_FROM_S = 120.0
_SHOWN = 25


class Timed(Protocol):
    """As much of a report of pytest as its times are: `start` and `stop` in s."""

    nodeid: str
    duration: float
    start: float
    stop: float


class Times(NamedTuple):
    """How long a run of tests took (s): of each module the sum of its tests', and of each worker when it began and when it ended."""

    modules: Counter[str]
    workers: dict[str, tuple[float, float]]

    def lines(self) -> list[str]:
        """The longest modules, and how long each worker had nothing to do at the end; nothing of a short run."""
        if not self.workers or sum(self.modules.values()) < _SHOWN_FROM_S:
            return []
        ended_s = max(end_s for _, end_s in self.workers.values())
        return [
            *(f"[module] {seconds:4.0f} s  {name}" for name, seconds in self.modules.most_common(_SHOWN)),
            *(
                f"[worker] {name}: {end_s - begin_s:.0f} s, then idle for {ended_s - end_s:.0f} s"
                for name, (begin_s, end_s) in sorted(self.workers.items())
            ),
        ]


def rank_of(module: str) -> int:
    """Where a module stands among the longest, from 0; all others behind these."""
    return _RANKS.get(module, len(_RANKS))


def is_long(module: str) -> bool:
    """Whether a module is among the longest."""
    return module in _RANKS


def times_of(reports: Iterable[Timed]) -> Times:
    """The times of what was reported: the setup, the call and the teardown of each test."""
    modules: Counter[str] = Counter()
    workers: dict[str, tuple[float, float]] = {}
    for report in reports:
        modules[report.nodeid.partition("::")[0]] += report.duration
        gateway = getattr(getattr(report, "node", None), "gateway", None)
        worker = "main" if gateway is None else str(gateway.id)
        begin_s, end_s = workers.get(worker, (report.start, report.stop))
        workers[worker] = min(begin_s, report.start), max(end_s, report.stop)
    return Times(modules, workers)
