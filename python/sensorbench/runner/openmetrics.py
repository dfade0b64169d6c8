"""What the running load does, for Prometheus: an HTTP endpoint in OpenMetrics form. docs/how-to/grafana.md lists names and units."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sensorbench.errors import UsageError
from sensorbench.interrupts import held_back
from sensorbench.results.engine_report import EngineRun, OperationReport, PhaseReport, Snapshot, in_flight
from sensorbench.results.manifest import OUTCOMES
from sensorbench.runner.run import Observer

QUANTILES: dict[str, Literal["p50", "p95", "p99", "p999"]] = {"0.5": "p50", "0.95": "p95", "0.99": "p99", "0.999": "p999"}
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
    """What is to be called with the current run: the endpoint that is asked for, or nothing. Raises UsageError."""
    if where is None:
        yield []
        return
    with endpoint(where) as metrics:
        yield [metrics.on_snapshot]


class LoadMetrics(Collector):
    """The last snapshot of the current run. Counters continue from one run to the next."""

    def __init__(self) -> None:
        self.port = 0
        # The run and its last snapshot; and those of runs that are over. In one, because others look at any time.
        self._last: tuple[EngineRun, Snapshot, list[Snapshot]] | None = None

    def on_snapshot(self, run: EngineRun, snapshot: Snapshot) -> None:
        """Takes a snapshot."""
        before: list[Snapshot] = []
        if self._last is not None:
            last_run, last, before = self._last
            before = before if last_run is run else [*before, last]
        self._last = run, snapshot, before

    def collect(self) -> Iterator[Metric]:
        """The metrics; none before the first snapshot."""
        if self._last is None:
            return
        _, snapshot, before = self._last
        phases = [phase for each in (*before, snapshot) for phase in each["phases"]]
        operations = _by_name(phases)
        ended = CounterMetricFamily(
            "sensorbench_operations", "Operations that ended, by how they did.", labels=["operation", "outcome"]
        )
        late = CounterMetricFamily(
            "sensorbench_operations_late", "Operations that started more than 1 ms after they were due.", labels=["operation"]
        )
        for name, reports in operations.items():
            for outcome in OUTCOMES:
                ended.add_metric([name, outcome], sum(report["counts"][outcome] for report in reports))
            late.add_metric([name], sum(report["late"] for report in reports))
        yield ended
        yield late
        started, dropped = (sum(phase[key] for phase in phases) for key in _ARRIVALS)
        yield CounterMetricFamily("sensorbench_operations_started", "Operations that were started.", value=started)
        yield CounterMetricFamily("sensorbench_operations_dropped", "Operations that were due and never started.", value=dropped)
        yield GaugeMetricFamily("sensorbench_operations_in_flight", "Operations in flight.", value=in_flight(snapshot))
        yield GaugeMetricFamily("sensorbench_phase", "Number of the current phase, from 0.", value=snapshot["current_phase"])
        yield GaugeMetricFamily(
            "sensorbench_run_time_seconds", "Time on the clock of the run.", value=snapshot["now_ns"] / 1e9, unit="seconds"
        )
        yield CounterMetricFamily(
            "sensorbench_client_processor_seconds", "CPU time of the client's process.", value=time.process_time()
        )
        for kind in _SINCE:
            yield _latencies(kind, snapshot, operations)


_ARRIVALS: tuple[Literal["started"], Literal["dropped"]] = ("started", "dropped")
_Kind = Literal["response_ns", "service_ns"]
_SINCE: dict[_Kind, str] = {"response_ns": "from when it was due", "service_ns": "from its start"}


def _latencies(kind: _Kind, snapshot: Snapshot, operations: Mapping[str, Sequence[OperationReport]]) -> Metric:
    """Quantiles over the current phase; sum and count over all of the run."""
    metric = Metric(
        f"sensorbench_{kind.removesuffix('_ns')}_seconds",
        f"Time of an operation {_SINCE[kind]}; quantiles are of the current phase.",
        "summary",
        "seconds",
    )
    phases = snapshot["phases"]
    current = phases[min(snapshot["current_phase"], len(phases) - 1)]["operations"]
    for name, reports in operations.items():
        latencies = current[name][kind] if name in current else None
        for quantile, key in QUANTILES.items():
            if latencies:
                metric.add_sample(metric.name, {"operation": name, "quantile": quantile}, latencies[key] / 1e9)
        known = [found for report in reports if (found := report[kind])]
        metric.add_sample(f"{metric.name}_count", {"operation": name}, sum(found["count"] for found in known))
        sum_s = sum(found["count"] * found["mean"] for found in known) / 1e9
        metric.add_sample(f"{metric.name}_sum", {"operation": name}, sum_s)
    return metric


def _by_name(phases: Sequence[PhaseReport]) -> dict[str, list[OperationReport]]:
    """The operations of some phases, by their names."""
    found: dict[str, list[OperationReport]] = {}
    for phase in phases:
        for name, report in phase["operations"].items():
            found.setdefault(name, []).append(report)
    return found
