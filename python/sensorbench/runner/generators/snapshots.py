"""How far a run is that load generators share: one snapshot of all of theirs."""

from collections.abc import Mapping, Sequence

from sensorbench.results.engine_report import OperationReport, PhaseReport, Snapshot

# Latencies of a phase's operations, by phase and operation.
Figures = Mapping[str, Mapping[str, OperationReport]]


def merged_snapshot(snapshots: Sequence[Snapshot], figures: Figures, now_ns: int) -> Snapshot:
    """The sum of snapshots. Counts are those of now; latencies, which cannot be added up from quantiles, those of what was handed over."""
    return {
        "now_ns": now_ns,
        "current_phase": min((snapshot["current_phase"] for snapshot in snapshots), default=0),
        "phases": merged_phases([snapshot["phases"] for snapshot in snapshots], figures),
    }


def merged_phases(of_each: Sequence[Sequence[PhaseReport]], figures: Figures) -> list[PhaseReport]:
    """The phases of all load generators: each begins with the first of them, and is over with the last."""
    return [_merged_phase(phases, figures[phases[0]["name"]]) for phases in zip(*of_each, strict=True)]


def _merged_phase(phases: Sequence[PhaseReport], figures: Mapping[str, OperationReport]) -> PhaseReport:
    ends = [phase["end_ns"] for phase in phases]
    return {
        "name": phases[0]["name"],
        "start_ns": min((start_ns for phase in phases if (start_ns := phase["start_ns"]) is not None), default=None),
        "end_ns": None if None in ends else max(end_ns for end_ns in ends if end_ns is not None),
        "started": sum(phase["started"] for phase in phases),
        "dropped": sum(phase["dropped"] for phase in phases),
        "operations": {
            name: _merged_operation([phase["operations"][name] for phase in phases], figures[name])
            for name in phases[0]["operations"]
        },
    }


def _merged_operation(reports: Sequence[OperationReport], figures: OperationReport) -> OperationReport:
    return {
        **figures,
        "counts": {outcome: sum(report["counts"][outcome] for report in reports) for outcome in reports[0]["counts"]},
        "late": sum(report["late"] for report in reports),
        "rows": sum(report["rows"] for report in reports),
    }
