"""A trace in two halves, by time: the first is what an experiment is fitted to, the second what it is compared with.

DuckDB reads the trace; of each operation, no more than `MAX_EXECUTIONS` executions are looked at one by one.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sensorbench.errors import UsageError
from sensorbench.results.traffic import Quantiles
from sensorbench.results.traffic_fit import NotFitted
from sensorbench.traffic.trace import Trace, read_trace, statements_file
from sensorbench.traffic.workbench import workbench_on_disk

_MEMORY = "768MB"
MAX_EXECUTIONS = 200_000
Counts = NDArray[np.float64]


class Halves:
    """The statements of a trace in a DuckDB connection, as the view `s`."""

    def __init__(self, workbench: duckdb.DuckDBPyConnection, folder: Path, trace: Trace) -> None:
        self.workbench, self.trace = workbench, trace
        file = str(statements_file(folder)).replace("'", "''")
        workbench.execute("SET TimeZone = 'UTC'")
        columns = 'epoch_us("at") AS us, session, sequence, "transaction", template, parameters, duration, error'
        workbench.execute(f"CREATE VIEW s AS SELECT {columns} FROM read_parquet('{file}')")
        found = workbench.execute("SELECT count(*), min(us), max(us) FROM s").fetchall()[0]
        self.statements = int(found[0])
        if not self.statements or found[1] == found[2]:
            raise UsageError(f"{folder}: the trace has no length; expected statements over some seconds at least")
        self.start_us, self.end_us = int(found[1]), int(found[2])
        self.middle_us = (self.start_us + self.end_us) // 2
        self._count()

    def _count(self) -> None:
        rows = self.workbench.execute(
            "SELECT template, count(*) FILTER (us < $1), count(*) FILTER (us >= $1), "
            "count(error) FILTER (us < $1) FROM s GROUP BY template ORDER BY template",
            [self.middle_us],
        ).fetchall()
        self.first = {int(template): int(count) for template, count, *_ in rows}
        self.second = {int(template): int(count) for template, _, count, _ in rows}
        self.failed = {int(template): int(count) for template, *_, count in rows}
        known = {template.number for template in self.trace.templates}
        if unknown := sorted(self.first.keys() - known):
            raise UsageError(f"trace.json: templates: number {unknown[0]} is missing, which statements have")
        for name, counts in (("first", self.first), ("second", self.second)):
            if not sum(counts.values()):
                raise UsageError(f"the {name} half of the trace has no statement; expected a longer trace")

    @property
    def half_s(self) -> float:
        """How long each half is."""
        return (self.end_us - self.middle_us) / 1e6

    @property
    def open_sessions(self) -> int:
        """How many sessions were between their first and their last statement at the same time, at most, in the first half."""
        found = self.workbench.execute(
            "SELECT max(open_now) FROM (SELECT sum(change) OVER (ORDER BY us, change DESC) AS open_now FROM "
            "(SELECT min(us) AS us, 1 AS change FROM s WHERE us < $1 GROUP BY session UNION ALL "
            "SELECT max(us), -1 FROM s WHERE us < $1 GROUP BY session))",
            [self.middle_us],
        ).fetchall()[0][0]
        return max(1, int(found))

    def not_fitted(self) -> NotFitted:
        """What the sessions of the first half had that no experiment has."""
        sessions, transactions, within = self.workbench.execute(
            'SELECT count(DISTINCT session), count(DISTINCT (session, "transaction")) FILTER ("transaction" IS NOT NULL), '
            'count("transaction") / count(*) FROM s WHERE us < $1',
            [self.middle_us],
        ).fetchall()[0]
        median, p99, longest = self.workbench.execute(
            "SELECT approx_quantile(gap, 0.5), approx_quantile(gap, 0.99), max(gap) FROM (SELECT greatest(0, (us - lag(us) OVER w) / 1e6 "
            "- coalesce(lag(duration) OVER w, 0)) AS gap, lag(us) OVER w AS before FROM s WHERE us < $1 "
            "WINDOW w AS (PARTITION BY session ORDER BY sequence)) WHERE before IS NOT NULL",
            [self.middle_us],
        ).fetchall()[0]
        think_time_s = None if longest is None else Quantiles(median=median, p99=min(p99, longest), maximum=longest)
        return NotFitted(sessions=sessions, transactions=transactions, in_transactions=within, think_time_s=think_time_s)

    def arrivals(self, templates: Sequence[int], window_s: float, *, second: bool) -> Counts:
        """How many statements of some templates arrived in each whole window of a half, shape (windows,)."""
        start_us = self.middle_us if second else self.start_us
        width_us = round(window_s * 1e6)
        windows = max(1, (self.end_us - self.middle_us) // width_us)
        rows = self.workbench.execute(
            "SELECT (us - $1) // $2 AS number, count(*) AS n FROM s WHERE list_contains($3, template) AND us >= $1 AND us < $4 "
            "GROUP BY number",
            [start_us, width_us, list(templates), start_us + width_us * windows],
        ).fetchnumpy()
        counts = np.zeros(windows)
        counts[np.asarray(rows["number"], dtype=np.int64)] = rows["n"]
        return counts

    def executions(self, template: int, table: str) -> None:
        """Puts executions of a template into a table: whether they are of the second half, when they came, and their values as texts."""
        every = max(1, -(-(self.first[template] + self.second[template]) // MAX_EXECUTIONS))
        given = """from_json(parameters, '["VARCHAR"]')"""
        self.workbench.execute(
            f'CREATE TEMP TABLE "{table}" AS SELECT us >= {self.middle_us} AS is_second, us, {given} AS given '
            f"FROM s WHERE template = {template} AND hash(session, sequence) % {every} = 0"
        )

    def register(self, name: str, table: pa.Table) -> None:
        """Makes rows a table of the workbench."""
        self.workbench.register("given_rows", table)
        self.workbench.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS SELECT * FROM given_rows')
        self.workbench.unregister("given_rows")


@contextmanager
def halves_of(folder: Path) -> Iterator[Halves]:
    """The halves of a trace; what does not fit into DuckDB's memory lies on disk meanwhile.

    Raises:
        UsageError: if there is no trace, or one that cannot be read.

    """
    trace = read_trace(folder)
    with workbench_on_disk(_MEMORY) as workbench:
        try:
            yield Halves(workbench, folder, trace)
        except duckdb.Error as error:
            raise UsageError(f"{statements_file(folder)}: {error}") from None
