"""What YCSB prints at the end (site.ycsb.measurements.exporter.TextMeasurementsExporter), for scripts that read it."""

from collections.abc import Iterator

from sensorbench.results.summary.tools import KindFigures, YcsbSummary

_LATENCIES = {
    "AverageLatency(us)": "mean",
    "MinLatency(us)": "min",
    "MaxLatency(us)": "max",
    "50thPercentileLatency(us)": "median",
    "95thPercentileLatency(us)": "p95",
    "99thPercentileLatency(us)": "p99",
}
_FAILED = {"error": "ERROR", "timeout": "TIMEOUT", "cancelled": "CANCELLED"}


def as_text(summary: YcsbSummary) -> str:
    """Run time, throughput, and of each kind of operation how many there were, their latencies in µs and how they ended."""
    return "".join(f"[{group}], {what}, {value}\n" for group, what, value in _lines(summary))


def _lines(summary: YcsbSummary) -> Iterator[tuple[str, str, str]]:
    found = summary.result
    if found.run_s is None:
        return
    yield "OVERALL", "RunTime(ms)", f"{found.run_s * 1e3:.0f}"
    yield "OVERALL", "Throughput(ops/sec)", f"{found.total.ok / found.run_s if found.run_s else 0.0}"
    for kind, figures in found.kinds.items():
        for what, value in _of_kind(figures):
            yield kind, what, value


def _of_kind(figures: KindFigures) -> Iterator[tuple[str, str]]:
    yield "Operations", str(figures.ok)
    if figures.response_s:
        for name, metric in _LATENCIES.items():
            value_us = getattr(figures.response_s, metric) * 1e6
            yield name, f"{value_us}" if metric == "mean" else f"{value_us:.0f}"
    yield "Return=OK", str(figures.ok)
    for outcome, name in _FAILED.items():
        if count := getattr(figures, outcome):
            yield f"Return={name}", str(count)
