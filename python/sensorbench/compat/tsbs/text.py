"""What TSBS's programs print at the end (load/loader.go and pkg/query of timescale/tsbs at commit 37fced7), for scripts that read it."""

from collections.abc import Iterator
from itertools import pairwise

from sensorbench.results.summary.comparison import LoadFigures
from sensorbench.results.summary.tsbs import TsbsLatencies, TsbsQueries, TsbsSummary

_PERIODS = "time,per. metric/s,metric total,overall metric/s,per. row/s,row total,overall row/s"
_ALL = "all queries"


def as_text(summary: TsbsSummary) -> str:
    """Of each variant that was loaded what `tsbs_load` prints, of each kind of query at each variant what `tsbs_run_queries` prints. Where there
    are several variants, a line with its name is before each.
    """
    return "".join(f"{line}\n" for line in _lines(summary))


def _lines(summary: TsbsSummary) -> Iterator[str]:
    several = len(summary.variants) > 1
    for variant, load in summary.result.loads.items():
        if several:
            yield f"{variant}:"
        yield from _of_load(load, summary.result.plan.workers)
    for queries in summary.result.queries:
        if queries.response_s is None or queries.run_s is None:
            continue
        if several:
            yield f"{queries.variant}:"
        yield from _of_queries(queries, queries.response_s, queries.run_s, summary.result.plan.workers)


def _of_load(load: LoadFigures, workers: int) -> Iterator[str]:
    yield _PERIODS
    readings_per_row = load.readings / load.rows if load.rows else 0.0
    noted = [(0.0, 0.0, 0.0), *((of["time_s"], of["elapsed_s"], of["rows"] * readings_per_row) for of in load.progress)]
    for (_, before_s, before), (time_s, elapsed_s, rows) in pairwise(noted):
        rate, overall = (rows - before) / (elapsed_s - before_s), rows / elapsed_s
        values = load.values_per_reading
        yield (f"{time_s:.0f},{rate * values:.2f},{rows * values:E},{overall * values:.2f},{rate:.2f},{rows:E},{overall:.2f}")
    yield ""
    yield "Summary:"
    for count, what in ((load.values, "metrics"), (load.readings, "rows")):
        rate = count / load.load_s if load.load_s else 0.0
        yield f"loaded {count} {what} in {load.load_s:.3f}sec with {workers} workers (mean rate {rate:.2f} {what}/sec)"


def _of_queries(queries: TsbsQueries, response_s: TsbsLatencies, run_s: float, workers: int) -> Iterator[str]:
    rate = queries.ended / run_s if run_s else 0.0
    yield f"Run complete after {queries.ended} queries with {workers} workers (Overall query rate {rate:.2f} queries/sec):"
    width = max(len(queries.query), len(_ALL))
    for label in sorted((queries.query, _ALL)):
        yield f"{label:<{width}}:"
        yield _of_latencies(response_s, queries.ended)
    yield f"wall clock time: {run_s:.6f}sec"


def _of_latencies(response_s: TsbsLatencies, count: int) -> str:
    shown = {"min": response_s.min, "med": response_s.median, "mean": response_s.mean}
    first = ", ".join(f"{name}: {value * 1e3:8.2f}ms" for name, value in shown.items())
    return (
        f"{first}, max: {response_s.max * 1e3:7.2f}ms, stddev: {response_s.sd * 1e3:8.2f}ms, sum: {response_s.sum:5.1f}sec, "
        f"count: {count}"
    )
