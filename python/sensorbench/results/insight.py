"""What the servers of a run said of themselves while it was running, on the run's clock, in the same words for every database.

What a database does not have, or did not report, is absent, never zero.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sensorbench.results.quantities import QUANTITIES, Quantity
from sensorbench.results.reader import RunResult
from sensorbench.results.sources import CacheSource, Source, sources_of

Floats = NDArray[np.float64]

# Of a server of several nodes, names begin with the address of the node that told.
_OF_NODE = re.compile(r"(?P<node>\d+\.\d+\.\d+\.\d+|[\da-f]*:[\da-f:]+)\.(?P<name>.+)")


class Series(NamedTuple):
    """Moments (s on the run's clock) and the values reported then. A counter continues where it was when its server is restarted."""

    times_s: Floats
    values: Floats


class CacheSeries(NamedTuple):
    """Moments (s on the run's clock), and by then how many requests a cache had answered, and had had (both counters)."""

    times_s: Floats
    hits: Floats
    requests: Floats


@dataclass(frozen=True)
class Insight:
    """Series by the names of `QUANTITIES`, and those of each cache by the cache's name; the same of each node by its address,
    where several report one by one. Of all nodes together, a counter stands still while a node is away, and a gauge is of those
    that told.
    """

    series: dict[str, Series]
    caches: dict[str, CacheSeries]
    nodes: dict[str, "Insight"] = field(default_factory=dict)


@dataclass(frozen=True)
class Window:
    """What the servers said over a time bucket: the share of requests that each cache answered within it; how much counters
    grew in each second (in the quantity's unit); the mean and the greatest of what gauges showed.
    """

    from_s: float
    to_s: float
    hit_rates: dict[str, float]
    rates: dict[str, float]
    means: dict[str, float]
    maxima: dict[str, float]


def insight(run: RunResult, database: str) -> Insight:
    """What the servers of a run said; `database` is the kind of database, as the run's manifest names it."""
    reported, sources = _reported(run), sources_of(database)
    quantities = {
        name: source for name, several in sources.quantity.items() if (source := _first_reported(several, reported.values()))
    }
    parts = {node: _of_part(of_node, quantities, sources.cache) for node, of_node in reported.items()}
    series = {
        name: _together([part.series[name] for part in parts.values() if name in part.series], QUANTITIES[name])
        for name in quantities
    }
    caches = {
        name: _all_requests(found)
        for name in sources.cache
        if (found := [part.caches[name] for part in parts.values() if name in part.caches])
    }
    return Insight(series, caches, {node: part for node, part in parts.items() if node and (part.series or part.caches)})


def _names_in_use(database: str) -> set[str]:
    """The names of what servers report of which series and caches are made; those of one of several nodes begin with its address."""
    sources = sources_of(database)
    of_quantities = (name for several in sources.quantity.values() for source in several for name in source.names)
    return {*of_quantities, *(name for cache in sources.cache.values() for name in cache.names)}


def used_status(status: pa.Table, database: str) -> pa.Table:
    """The rows of a run's table `status` of which series and caches are made, by name and time."""
    used = _names_in_use(database)
    is_used = pa.array([_node_and_name(name)[1] in used for name in status["name"].to_pylist()])
    return status.filter(is_used).sort_by([("name", "ascending"), ("time_ns", "ascending")])


def said_now(status: Mapping[str, float], database: str) -> dict[str, dict[str, float]]:
    """What the nodes of a server say at one moment.

    Args:
        status: names and values, as the driver and the lab have them; those of one of several nodes begin with its address.
        database: the kind of database.

    Returns:
        Of each node, by its address, values by the names of `QUANTITIES`. A server that does not distinguish its nodes has an empty address.

    """
    reported: dict[str, dict[str, Series]] = {}
    for key, value in status.items():
        node, name = _node_and_name(key)
        reported.setdefault(node, {})[name] = Series(np.zeros(1), np.array([value], dtype=np.float64))
    sources = sources_of(database).quantity
    first = {name: source for name, several in sources.items() if (source := _first_reported(several, reported.values()))}
    parts = {node: _of_part(of_node, first, {}).series for node, of_node in reported.items()}
    return {node: {name: float(series.values[0]) for name, series in part.items()} for node, part in parts.items() if part}


def over(insight: Insight, from_s: float, to_s: float) -> Window:
    """What the servers said over a time bucket, or over that part of it in which they were asked. A counter is taken to
    grow evenly from one moment to the next. Absent are counters that were not reported around it, gauges that were not reported in it,
    and caches without requests.
    """
    rates, means, maxima = {}, {}, {}
    for name, (times_s, values) in insight.series.items():
        if QUANTITIES[name].kind == "counter":
            if (watched_s := _watched_s(times_s, from_s, to_s)) > 0:
                rates[name] = _growth(times_s, values, from_s, to_s) / watched_s
        elif len(shown := values[(times_s >= from_s) & (times_s <= to_s)]):
            means[name], maxima[name] = float(shown.mean()), float(shown.max())
    hit_rates = {}
    for name, (times_s, hits, requests) in insight.caches.items():
        if (requested := _growth(times_s, requests, from_s, to_s)) > 0:
            # Between two moments both are interpolated, which rounds: 1.000000000000004 is 1.
            hit_rates[name] = round(_growth(times_s, hits, from_s, to_s) / requested, 12)
    return Window(from_s, to_s, hit_rates, rates, means, maxima)


def _watched_s(times_s: Floats, from_s: float, to_s: float) -> float:
    return float(min(to_s, times_s[-1]) - max(from_s, times_s[0]))


def _growth(times_s: Floats, values: Floats, from_s: float, to_s: float) -> float:
    before, after = np.interp([from_s, to_s], times_s, values)
    return float(after - before)


def _reported(run: RunResult) -> dict[str, dict[str, Series]]:
    """What each node told, by the names that the database has for it; what all told at once, by an empty name of a node."""
    table = run.table("status")
    if table is None:
        return {}
    rows: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in table.sort_by("time_ns").to_pylist():
        if row["value"] is not None:
            node, name = _node_and_name(row["name"])
            rows.setdefault(node, {}).setdefault(name, []).append((row["time_ns"] / 1e9, row["value"]))
    return {
        node: {name: Series(*np.array(pairs, dtype=np.float64).T) for name, pairs in of_node.items()}
        for node, of_node in rows.items()
    }


def _node_and_name(key: str) -> tuple[str, str]:
    found = _OF_NODE.fullmatch(key)
    return (found["node"], found["name"]) if found else ("", key)


def _first_reported(sources: Sequence[Source], reported: Collection[dict[str, Series]]) -> Source | None:
    """The source that counts for a server, so that no two are added up."""
    return next((source for source in sources if any(of_node.keys() >= set(source.names) for of_node in reported)), None)


def _of_part(reported: dict[str, Series], quantities: Mapping[str, Source], caches: Mapping[str, CacheSource]) -> Insight:
    return Insight(
        {
            name: _quantity(reported, source, QUANTITIES[name])
            for name, source in quantities.items()
            if reported.keys() >= set(source.names)
        },
        {name: _requests(reported, source) for name, source in caches.items() if reported.keys() >= set(source.names)},
    )


def _quantity(reported: dict[str, Series], source: Source, quantity: Quantity) -> Series:
    series = [_grown(reported[name]) if quantity.kind == "counter" else reported[name] for name in source.names]
    times_s = _shared_moments(series)
    return Series(times_s, source.factor * _sum_at(times_s, series))


def _requests(reported: dict[str, Series], source: CacheSource) -> CacheSeries:
    grown = {name: _grown(reported[name]) for name in source.names}
    times_s = _shared_moments(list(grown.values()))
    added, taken, requests = (
        _sum_at(times_s, [grown[name] for name in names])
        for names in (source.added_to_hits, source.taken_from_hits, source.added_to_requests)
    )
    return CacheSeries(times_s, added - taken, requests)


def _grown(series: Series) -> Series:
    """A counter that continues where it was when its server was started again, which itself counts from zero then."""
    lost = np.where(np.diff(series.values) < 0, series.values[:-1], 0.0)
    return Series(series.times_s, series.values + np.concatenate([[0.0], np.cumsum(lost)]))


def _shared_moments(series: Sequence[Series]) -> Floats:
    return reduce(np.intersect1d, [part.times_s for part in series])


def _sum_at(times_s: Floats, series: Sequence[Series]) -> Floats:
    """The sum of series at moments that all of them have."""
    return sum((part.values[np.isin(part.times_s, times_s)] for part in series), np.zeros(len(times_s)))


def _together(series: Sequence[Series], quantity: Quantity) -> Series:
    """A quantity of all nodes."""
    times_s = _all_moments(series)
    at = _carried if quantity.kind == "counter" else _as_reported
    values = np.array([at(times_s, *part) for part in series])
    return Series(times_s, np.nansum(values, axis=0) if quantity.nodes == "sum" else np.nanmean(values, axis=0))


def _all_requests(caches: Sequence[CacheSeries]) -> CacheSeries:
    """The requests to the caches of all nodes."""
    times_s = _all_moments(caches)
    hits, requests = (
        np.sum([_carried(times_s, cache.times_s, values) for cache, values in counted], axis=0)
        for counted in ([(cache, cache.hits) for cache in caches], [(cache, cache.requests) for cache in caches])
    )
    return CacheSeries(times_s, hits, requests)


def _all_moments(series: Sequence[Series] | Sequence[CacheSeries]) -> Floats:
    return reduce(np.union1d, [part.times_s for part in series])


def _carried(wanted_s: Floats, times_s: Floats, values: Floats) -> Floats:
    """What a counter showed last at other moments; before the first, what it showed then: its growth begins there."""
    return values[np.maximum(np.searchsorted(times_s, wanted_s, side="right") - 1, 0)]


def _as_reported(wanted_s: Floats, times_s: Floats, values: Floats) -> Floats:
    """What a gauge showed at the wanted moments, NaN at those at which it was not reported."""
    reported = np.full(len(wanted_s), np.nan)
    reported[np.isin(wanted_s, times_s)] = values
    return reported
