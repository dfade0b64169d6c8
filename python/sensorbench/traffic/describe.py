"""Figures of a trace. DuckDB computes them over the file; what does not fit into its memory lies on disk meanwhile."""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from sensorbench.errors import UsageError
from sensorbench.results.traffic import (
    Dispersion,
    ParameterSkew,
    Quantiles,
    RateBucket,
    SessionFigures,
    SkewPoint,
    TableUse,
    TemplateFigures,
    TrafficDescription,
    TransactionFigures,
)
from sensorbench.traffic.trace import Trace, read_trace, statements_file
from sensorbench.traffic.workbench import workbench_on_disk

_MEMORY = "256MB"
# Windows of the index of dispersion (s), and how many a trace must have of a length for it to say something.
_WINDOWS_S = (0.01, 0.1, 1.0, 10.0, 60.0, 600.0)
_MIN_WINDOWS = 10
_MAX_WINDOWS = 10_000_000
_BUCKETS_S = (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 600.0, 3600.0, 21_600.0, 86_400.0)
_MAX_BUCKETS = 150
_DAY_S = 86_400.0
# Numbers of most frequent values, whose share of the executions is told.
_RANKS = tuple(10**power for power in range(7))


def describe_trace(folder: Path) -> TrafficDescription:
    """The figures of a trace.

    Args:
        folder: of the trace.

    Returns:
        Its figures; of the literals, how often values occur, and none of them.

    Raises:
        UsageError: if there is no trace, or it cannot be read.

    """
    trace = read_trace(folder)
    with workbench_on_disk(_MEMORY, ordered=False) as workbench:
        try:
            return _Describer(workbench, trace, statements_file(folder)).describe()
        except duckdb.Error as error:
            raise UsageError(f"{statements_file(folder)}: {error}") from None


class _Describer:
    def __init__(self, workbench: duckdb.DuckDBPyConnection, trace: Trace, statements: Path) -> None:
        self._workbench, self._trace = workbench, trace
        file = str(statements).replace("'", "''")
        workbench.execute("SET TimeZone = 'UTC'")
        workbench.execute(f"""CREATE VIEW s AS SELECT epoch_us("at") AS us, * FROM read_parquet('{file}')""")
        kinds = pa.table(
            {
                "number": pa.array([template.number for template in trace.templates], pa.int32()),
                "kind": [template.kind for template in trace.templates],
            }
        )
        workbench.register("kinds", kinds)

    def describe(self) -> TrafficDescription:
        """All figures."""
        found = self._rows("SELECT count(*), count(error), min(us), max(us) FROM s")[0]
        statements, errors, start_us, end_us = (int(value or 0) for value in found)
        if not statements:
            raise UsageError("the trace has no statements")
        length_s = (end_us - start_us) / 1e6
        bucket_s = next((width for width in _BUCKETS_S if length_s / width <= _MAX_BUCKETS), _BUCKETS_S[-1])
        templates = self._templates(statements)
        return TrafficDescription(
            database=self._trace.database,
            version=self._trace.version,
            statements=statements,
            errors=errors,
            length_s=length_s,
            templates=templates,
            bucket_s=bucket_s,
            rate=self._rate(start_us, length_s, bucket_s),
            hours=self._hours() if length_s >= _DAY_S else [],
            dispersion=self._dispersion(start_us, length_s),
            sessions=self._sessions(),
            transactions=self._transactions(),
            parameters=self._parameters(),
            tables=_tables(templates),
        )

    def _rows(self, query: str, parameters: list[object] | None = None) -> list[tuple[float, ...]]:
        return self._workbench.execute(query, parameters or []).fetchall()

    def _templates(self, statements: int) -> list[TemplateFigures]:
        found = self._rows(
            "SELECT template, count(*), count(error), "
            "approx_quantile(duration, 0.5), approx_quantile(duration, 0.99), max(duration), "
            'approx_quantile("rows", 0.5), approx_quantile("rows", 0.99), max("rows") '
            "FROM s GROUP BY template ORDER BY count(*) DESC, template"
        )
        known = {template.number: template for template in self._trace.templates}
        if unknown := [int(row[0]) for row in found if int(row[0]) not in known]:
            raise UsageError(f"trace.json: templates: number {min(unknown)} is missing, which statements have")
        return [
            TemplateFigures(
                number=int(number),
                statement=known[int(number)].statement,
                consistency=known[int(number)].consistency,
                kind=known[int(number)].kind,
                tables=known[int(number)].tables,
                statements=int(count),
                share=count / statements,
                errors=int(errors),
                duration_s=_quantiles(rest[:3]),
                rows=_quantiles(rest[3:]),
            )
            for number, count, errors, *rest in found
        ]

    def _rate(self, start_us: int, length_s: float, bucket_s: float) -> list[RateBucket]:
        found = self._rows(
            "SELECT (us - ?) // ? AS bucket, count(*) FILTER (kind = 'read'), count(*) FILTER (kind = 'write'), count(*) "
            "FROM s JOIN kinds ON template = number GROUP BY bucket",
            [start_us, round(bucket_s * 1e6)],
        )
        counted = {int(bucket): (reads, writes, whole) for bucket, reads, writes, whole in found}
        buckets = []
        for number in range(int(length_s / bucket_s) + 1):
            reads, writes, whole = counted.get(number, (0, 0, 0))
            # The last one ends with the trace.
            width = min(bucket_s, length_s - number * bucket_s) if number and length_s > number * bucket_s else bucket_s
            buckets.append(
                RateBucket(
                    start_s=number * bucket_s, reads=reads / width, writes=writes / width, others=(whole - reads - writes) / width
                )
            )
        return buckets[:-1] if len(buckets) > 1 and length_s - buckets[-1].start_s < bucket_s / 2 else buckets

    def _hours(self) -> list[int]:
        counted = {int(hour): int(count) for hour, count in self._rows('SELECT hour("at"), count(*) FROM s GROUP BY ALL')}
        return [counted.get(hour, 0) for hour in range(24)]

    def _dispersion(self, start_us: int, length_s: float) -> list[Dispersion]:
        """Windows that the trace ends in are left out, since they are shorter."""
        found = []
        for window_s in _WINDOWS_S:
            windows = int(length_s / window_s)
            if not _MIN_WINDOWS <= windows <= _MAX_WINDOWS:
                continue
            counted = self._workbench.execute(
                "SELECT count(*) AS n FROM s GROUP BY (us - ?) // ? HAVING (min(us) - ?) // ? < ?",
                [start_us, width_us := round(window_s * 1e6), start_us, width_us, windows],
            ).fetchnumpy()["n"]
            counts = np.zeros(windows)
            counts[: len(counted)] = counted
            found.append(Dispersion(window_s=window_s, windows=windows, index=float(counts.var(ddof=1) / counts.mean())))
        return found

    def _sessions(self) -> SessionFigures:
        self._workbench.execute(
            "CREATE TABLE sessions AS SELECT count(*) AS n, min(us) AS first_us, max(us) AS last_us FROM s GROUP BY session"
        )
        row = self._rows(
            "SELECT count(*), median(n), quantile_cont(n, 0.99), max(n), median((last_us - first_us) / 1e6), "
            "quantile_cont((last_us - first_us) / 1e6, 0.99), max((last_us - first_us) / 1e6) FROM sessions"
        )[0]
        open_at_most = self._rows(
            "SELECT max(open_now) FROM (SELECT sum(change) OVER (ORDER BY us, change DESC) AS open_now FROM "
            "(SELECT first_us AS us, 1 AS change FROM sessions UNION ALL SELECT last_us, -1 FROM sessions))"
        )[0][0]
        think = self._rows(
            "SELECT approx_quantile(gap, 0.5), approx_quantile(gap, 0.99), max(gap) FROM (SELECT greatest(0, "
            "(us - lag(us) OVER w) / 1e6 - lag(duration) OVER w) AS gap FROM s WINDOW w AS (PARTITION BY session ORDER BY sequence)) "
            "WHERE gap IS NOT NULL"
        )[0]
        has_durations = self._rows("SELECT count(duration) FROM s")[0][0] > 0
        statements, length_s = _quantiles(row[1:4]), _quantiles(row[4:7])
        if statements is None or length_s is None:
            raise UsageError("the trace has no sessions")
        return SessionFigures(
            sessions=int(row[0]),
            open_at_most=int(open_at_most),
            statements=statements,
            length_s=length_s,
            think_time_s=_quantiles(think) if has_durations else None,
        )

    def _transactions(self) -> TransactionFigures | None:
        self._workbench.execute(
            "CREATE TABLE transactions AS SELECT count(*) AS n, bool_or(kind = 'commit') AS committed, "
            "bool_or(kind = 'rollback') AS rolled_back, (max(us + coalesce(duration, 0) * 1e6) - min(us)) / 1e6 AS length_s "
            'FROM s JOIN kinds ON template = number WHERE "transaction" IS NOT NULL GROUP BY session, "transaction"'
        )
        row = self._rows(
            "SELECT count(*), count(*) FILTER (committed), count(*) FILTER (rolled_back), median(n), quantile_cont(n, 0.99), max(n), "
            "median(length_s), quantile_cont(length_s, 0.99), max(length_s) FROM transactions"
        )[0]
        statements, length_s = _quantiles(row[3:6]), _quantiles(row[6:9])
        if statements is None or length_s is None:
            return None
        return TransactionFigures(
            transactions=int(row[0]), committed=int(row[1]), rolled_back=int(row[2]), statements=statements, length_s=length_s
        )

    def _parameters(self) -> list[ParameterSkew]:
        """Values are counted by their hashes, so that long ones take no memory."""
        shares = ", ".join(f"sum(n) FILTER (number <= {rank}) / sum(n)" for rank in _RANKS)
        found = self._rows(
            "WITH given AS (SELECT template, from_json(parameters, '[\"VARCHAR\"]') AS given FROM s WHERE parameters <> '[]'), "
            'each AS (SELECT template, unnest(given) AS "value", generate_subscripts(given, 1) AS place FROM given), '
            'counted AS (SELECT template, place, hash("value"), count(*) AS n FROM each GROUP BY ALL), '
            "ranked AS (SELECT *, row_number() OVER (PARTITION BY template, place ORDER BY n DESC) AS number, "
            "count(*) OVER (PARTITION BY template, place) AS known FROM counted) "
            "SELECT template, place, max(known), max(n) / sum(n), sum(n) FILTER (number <= greatest(1, known // 100)) / sum(n), "
            f"{shares} FROM ranked GROUP BY template, place ORDER BY sum(n) DESC, template, place"
        )
        types = {template.number: template.parameters for template in self._trace.templates}
        return [
            ParameterSkew(
                template=int(template),
                position=int(place),
                type=types[int(template)][int(place) - 1] if int(place) <= len(types[int(template)]) else "text",
                values=int(values),
                top_share=float(top),
                top_percent_share=float(top_percent),
                curve=[
                    *(
                        SkewPoint(values=rank, share=float(share))
                        for rank, share in zip(_RANKS, of_ranks, strict=True)
                        if rank < values
                    ),
                    SkewPoint(values=int(values), share=1.0),
                ],
            )
            for template, place, values, top, top_percent, *of_ranks in found
        ]


def _quantiles(values: "tuple[float | None, ...] | list[float]") -> Quantiles | None:
    median, p99, maximum = values
    if median is None or p99 is None or maximum is None:
        return None
    return Quantiles(median=float(median), p99=min(float(p99), float(maximum)), maximum=float(maximum))


def _tables(templates: list[TemplateFigures]) -> list[TableUse]:
    """A statement that writes reads its other tables, too; which of them it writes is the first that it names after its verb."""
    reads: dict[str, int] = {}
    writes: dict[str, int] = {}
    for template in templates:
        if template.kind not in {"read", "write"}:
            continue
        for place, table in enumerate(template.tables):
            name = table.strip('"`').lower()
            counts = writes if template.kind == "write" and place == 0 else reads
            counts[name] = counts.get(name, 0) + template.statements
    names = sorted({*reads, *writes}, key=lambda name: -(reads.get(name, 0) + writes.get(name, 0)))
    return [TableUse(table=name, reads=reads.get(name, 0), writes=writes.get(name, 0)) for name in names]
