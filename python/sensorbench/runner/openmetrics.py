"""What the running load does, for Prometheus: an HTTP endpoint in OpenMetrics form. docs/openmetrics.md lists names and units."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sensorbench._engine import Run
from sensorbench.errors import UsageError
from sensorbench.interrupts import held_back
from sensorbench.results.manifest import OUTCOMES
from sensorbench.runner.drive import Observer

QUANTILES = {"0.5": "p50", "0.95": "p95", "0.99": "p99", "0.999": "p999"}
LOOPBACK = "127.0.0.1"


@contextmanager
def endpoint(where: str) -> Iterator["LoadMetrics"]:
    """Serves metrics at PORT (of the loopback interface) or HOST:PORT until the context ends. Raises UsageError."""
    host, _, port = where.rpartition(":")
    if not port.isdecimal() or not int(port) < 65536:
        raise UsageError(f"--metrics {where}: expected a port, or an address and a port, for example 9095 or 127.0.0.1:9095")
    metrics, registry = LoadMetrics(), CollectorRegistry()
    registry.register(metrics)
    try:
        server, thread = start_http_server(int(port), host or LOOPBACK, registry)
    except OSError as error:
        raise UsageError(f"--metrics {where}: {error.strerror or error}") from None
    metrics.port = server.server_port
    try:
        yield metrics
    finally:
        with held_back():
            server.shutdown()
            server.server_close()
            thread.join()


@contextmanager
def observers(where: str | None) -> Iterator[list[Observer]]:
    """What is to be called with the run that goes on: the endpoint that is asked for, or nothing. Raises UsageError."""
    if where is None:
        yield []
        return
    with endpoint(where) as metrics:
        yield [metrics.on_snapshot]


class LoadMetrics(Collector):
    """The last snapshot of the run that goes on. Counters go on from one run to the next."""

    def __init__(self) -> None:
        self.port = 0
        # The run and its last snapshot; and of runs that are over, what they counted. In one, because others look at any time.
        self._last: tuple[Run, dict[str, Any], list[dict[str, Any]]] | None = None

    def on_snapshot(self, run: Run, snapshot: dict[str, Any]) -> None:
        """Takes a snapshot."""
        before: list[dict[str, Any]] = []
        if self._last is not None:
            last_run, last, before = self._last
            before = before if last_run is run else [*before, _totals(last)]
        self._last = run, snapshot, before

    def collect(self) -> Iterator[Metric]:
        """The metrics; none before the first snapshot."""
        if self._last is None:
            return
        _, snapshot, before = self._last
        totals = _sum_of([*before, _totals(snapshot)])
        ended = CounterMetricFamily(
            "sensorbench_operations", "Operations that ended, by how they did.", labels=["operation", "outcome"]
        )
        late = CounterMetricFamily(
            "sensorbench_operations_late", "Operations that started more than 1 ms after they were due.", labels=["operation"]
        )
        for name, of_name in totals["operations"].items():
            for outcome in OUTCOMES:
                ended.add_metric([name, outcome], of_name[outcome])
            late.add_metric([name], of_name["late"])
        yield ended
        yield late
        yield CounterMetricFamily("sensorbench_operations_started", "Operations that were started.", value=totals["started"])
        yield CounterMetricFamily(
            "sensorbench_operations_dropped", "Operations that were due and never started.", value=totals["dropped"]
        )
        running = _totals(snapshot)
        yield GaugeMetricFamily("sensorbench_operations_in_flight", "Operations in flight.", value=_concurrency(running))
        yield GaugeMetricFamily("sensorbench_phase", "Number of the phase that goes on, from 0.", value=snapshot["current_phase"])
        yield GaugeMetricFamily(
            "sensorbench_run_time_seconds", "Time on the clock of the run.", value=snapshot["now_ns"] / 1e9, unit="seconds"
        )
        yield CounterMetricFamily(
            "sensorbench_client_processor_seconds", "Processor time of the client's process.", value=time.process_time()
        )
        for kind in ("response", "service"):
            yield _latencies(kind, snapshot, totals)


def _latencies(kind: str, snapshot: dict[str, Any], totals: dict[str, Any]) -> Metric:
    """Quantiles over the phase that goes on; sum and count over all of the run."""
    since = {"response": "from when it was due", "service": "from its start"}[kind]
    metric = Metric(
        f"sensorbench_{kind}_seconds",
        f"Time of an operation {since}; quantiles are of the phase that goes on.",
        "summary",
        "seconds",
    )
    phases = snapshot["phases"]
    current = phases[min(snapshot["current_phase"], len(phases) - 1)]["operations"]
    for name, of_name in totals["operations"].items():
        latencies = (current.get(name) or {}).get(f"{kind}_ns") or {}
        for quantile, key in QUANTILES.items():
            if key in latencies:
                metric.add_sample(metric.name, {"operation": name, "quantile": quantile}, latencies[key] / 1e9)
        metric.add_sample(f"{metric.name}_count", {"operation": name}, of_name[f"{kind}_count"])
        metric.add_sample(f"{metric.name}_sum", {"operation": name}, of_name[f"{kind}_sum_s"])
    return metric


def _totals(snapshot: dict[str, Any]) -> dict[str, Any]:
    """What a snapshot counts, over all its phases."""
    phases = snapshot["phases"]
    return {
        "started": sum(phase["started"] for phase in phases),
        "dropped": sum(phase["dropped"] for phase in phases),
        "operations": {name: _of_operation([phase["operations"][name] for phase in phases]) for name in phases[0]["operations"]},
    }


def _of_operation(figures: Sequence[dict[str, Any]]) -> dict[str, float]:
    counted: dict[str, float] = {outcome: sum(figure["counts"][outcome] for figure in figures) for outcome in OUTCOMES}
    counted["late"] = sum(figure["late"] for figure in figures)
    for kind in ("response", "service"):
        known = [figure[f"{kind}_ns"] for figure in figures if figure[f"{kind}_ns"]]
        counted[f"{kind}_count"] = sum(entry["count"] for entry in known)
        counted[f"{kind}_sum_s"] = sum(entry["count"] * entry["mean"] for entry in known) / 1e9
    return counted


def _sum_of(totals: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Totals of several runs as those of one."""
    names = dict.fromkeys(name for total in totals for name in total["operations"])
    return {
        "started": sum(total["started"] for total in totals),
        "dropped": sum(total["dropped"] for total in totals),
        "operations": {
            name: _added([total["operations"][name] for total in totals if name in total["operations"]]) for name in names
        },
    }


def _added(figures: Sequence[dict[str, float]]) -> dict[str, float]:
    return {key: sum(figure[key] for figure in figures) for key in figures[0]}


def _concurrency(running: dict[str, Any]) -> int:
    ended = sum(of_name[outcome] for of_name in running["operations"].values() for outcome in OUTCOMES)
    return max(0, int(running["started"] - ended))
