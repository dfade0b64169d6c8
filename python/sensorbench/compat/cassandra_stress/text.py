"""What cassandra-stress prints at the end of a run (StressMetrics.java), for people and scripts that read it. Latencies are in
ms.

An operation's rows are those that it wrote or was answered; its partitions those that it wrote to, or one where it was answered
any row.
"""

from collections.abc import Callable

from sensorbench.results.summary.tools import CassandraStressSummary, KindFigures

_LATENCIES = {
    "mean": "mean",
    "median": "median",
    "95th percentile": "p95",
    "99th percentile": "p99",
    "99.9th percentile": "p999",
    "max": "max",
}


def as_text(summary: CassandraStressSummary) -> str:
    """Rates, latencies, totals and the time that all took; each for all operations, and for each kind."""
    found = summary.result
    if found.run_s is None:
        return ""
    run_s = found.run_s

    def line(name: str, form: str, unit: str, figure: Callable[[KindFigures], float]) -> str:
        each = ", ".join(f"{kind}: {figure(of_kind):{form}}{unit}" for kind, of_kind in found.kinds.items())
        return f"{name:<25} : {figure(found.total):{form}}{unit} [{each}]"

    def rate(count: Callable[[KindFigures], float]) -> Callable[[KindFigures], float]:
        return lambda figures: count(figures) / run_s if run_s else 0.0

    seconds = round(run_s)
    return "\n".join(
        [
            "Results:",
            line("Op rate", ",.0f", " op/s", rate(lambda figures: figures.ok)),
            line("Partition rate", ",.0f", " pk/s", rate(_partitions)),
            line("Row rate", ",.0f", " row/s", rate(lambda figures: figures.rows)),
            *(line(f"Latency {name}", ".1f", " ms", _latency_ms(metric)) for name, metric in _LATENCIES.items()),
            line("Total partitions", ",.0f", "", _partitions),
            line("Total errors", ",.0f", "", lambda figures: figures.error + figures.timeout + figures.cancelled),
            f"{'Total operation time':<25} : {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}",
            "",
        ]
    )


def _partitions(figures: KindFigures) -> float:
    return figures.partitions or 0.0


def _latency_ms(metric: str) -> Callable[[KindFigures], float]:
    """A figure of the latencies; 0 where there is none, as in cassandra-stress."""
    return lambda figures: getattr(figures.response_s, metric) * 1e3 if figures.response_s else 0.0
