"""What of results of one target goes into a history: stress runs, searches for capacity or settings, and other tools' workloads."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import BaseModel

from sensorbench.errors import UsageError
from sensorbench.history.entry import between_repetitions, history_result
from sensorbench.results.described import TargetDescription
from sensorbench.results.history_entries import HistoryFigure, HistoryResult, HistoryVariant, Unit
from sensorbench.results.manifest import VariantManifest
from sensorbench.results.reader import runs_anywhere_below, stored_summary
from sensorbench.results.summary.envelope import Summary
from sensorbench.results.summary.stress import Latencies, StressSummary
from sensorbench.results.summary.tools import CassandraStressSummary, YcsbSummary
from sensorbench.results.summary.tune import TuneSummary

# What figures of all operations together are called in the place of an operation.
ALL = "(all)"
_METRICS = ("mean", "median", "p95", "p99")
_MAIN = "p99"
_GOAL_UNITS: dict[str, Unit] = {"duration_s": "s", "bytes": "bytes", "count": "per s"}

_Read = StressSummary | YcsbSummary | CassandraStressSummary | TuneSummary
_SUMMARIES: dict[str, type[_Read]] = {
    "stress": StressSummary,
    "ycsb": YcsbSummary,
    "cassandra-stress": CassandraStressSummary,
    "tune": TuneSummary,
}
ONE_TARGET_KINDS = frozenset(_SUMMARIES)


def result_of_one_target(folder: Path, kind: str, label: str) -> HistoryResult:
    """What of a folder of results goes into a history.

    Args:
        folder: the results.
        kind: which of `ONE_TARGET_KINDS` they are of.
        label: what the user calls the version that was measured.

    Returns:
        Figures of each operation, of a stress run at each rate; the capacity where one was searched; of a search for settings the goal with the
        default settings and with the best, by its confirmation. They have no intervals, since each is of one run, and no histograms.

    Raises:
        UsageError: the results are not complete, or have no summary.

    """
    summary = stored_summary(folder, _SUMMARIES[kind])
    if summary is None:
        raise UsageError(f"{folder}: these results have no summary; `sensorbench report {folder}` writes it")
    if summary.status != "complete":
        raise UsageError(f"{folder}: these results are {summary.status}; a history takes whole results")
    variants = {variant.id: variant for variant in summary.variants}
    if len(variants) != 1:
        raise UsageError(f"{folder}: these results are of {len(variants)} variants; expected one")
    (variant,) = variants
    figures = list(_figures(summary, variant))
    if not figures:
        raise UsageError(
            f"{folder}: no operation of these results ended with a figure, or a search ended before its confirmation"
        )
    runs = runs_anywhere_below(folder)
    described = runs[0].manifest.description if runs else {}
    names = sorted({figure.variant for figure in figures})
    content = {"created": summary.created.isoformat(), "result": summary.result.model_dump(mode="json")}
    return history_result(
        summary.environment,
        summary.version,
        identity=_digest(content),
        folder=folder,
        kind=kind,
        title=summary.title,
        experiment=_digest(_work_of(summary)),
        name=kind,
        measured=summary.created,
        label=label,
        variants=[_variant(summary, variants[variant], name, described) for name in names],
        figures=figures,
        aa_variation=between_repetitions(_cells(summary)),
    )


def _cells(summary: _Read) -> Iterator[list[float]]:
    """Of a search for settings, the goal of each repetition of the default within it, and of default and best by its confirmation."""
    if isinstance(summary, TuneSummary):
        found = summary.result
        cells: list[list[float | None]] = [[*found.drift.values]] if found.drift else []
        cells += [[each.value for each in found.confirmation if each.role == role] for role in ("default", "best")]
        for values in cells:
            yield [value for value in values if value]


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _work_of(summary: _Read) -> dict[str, object]:
    """What was done, which is equal for results that may be set beside one another."""
    match summary:
        case StressSummary(result=figures):
            rates = [] if figures.search else [[step.rate_per_s, round(step.end_s - step.start_s)] for step in figures.steps]
            work: list[Any] = [figures.operations, figures.workload, _plain(figures.objective), _plain(figures.search), rates]
        case TuneSummary(result=found):
            work = [found.operations, found.workload, found.goal.text, _plain(found.space), found.start]
        case _:
            # A profile is known by what it says, wherever its file lies.
            work = [summary.result.plan.model_dump(mode="json", exclude={"profile"})]
    return {"kind": summary.kind, "work": work}


def _plain(model: BaseModel | None) -> object:
    return None if model is None else model.model_dump(mode="json")


def _variant(summary: Summary[Any], variant: VariantManifest, name: str, described: TargetDescription) -> HistoryVariant:
    """The variant under the name that its figures have; of a search for settings there are two."""
    return HistoryVariant(
        id=name,
        target=variant.target,
        database=variant.database,
        database_version=described.get("version", ""),
        schema_name=variant.schema_name,
        schema_digest=variant.schema_digest or _digest(variant.statements),
        parameters={key: str(value) for key, value in sorted(variant.schema_parameters.items())},
        distinct="" if name == variant.id else name,
        server_settings={key: str(value) for key, value in sorted(described.get("settings", {}).items())},
        no_op_per_s=summary.environment.get("driver_ceiling_per_s"),
    )


def _figures(summary: _Read, variant: str) -> Iterator[HistoryFigure]:
    match summary:
        case StressSummary(result=figures):
            if figures.capacity is not None:
                if figures.capacity.met_per_s:
                    yield _figure(variant, ALL, "capacity", "per s", figures.capacity.met_per_s, is_main=True)
                return
            for step in figures.steps:
                rate = f"at {step.rate_per_s:g} per s"
                yield from _latencies(variant, f"{ALL} {rate}", step.response_s)
                yield _figure(variant, f"{ALL} {rate}", "throughput", "per s", step.completed_per_s)
                for name, operation in step.operations.items():
                    yield from _latencies(variant, f"{name} {rate}", operation.response_s)
        case TuneSummary(result=found):
            for role in ("default", "best"):
                values = [each.value for each in found.confirmation if each.role == role and each.value is not None]
                if values:
                    goal = found.goal
                    unit = _GOAL_UNITS[goal.kind]
                    yield _figure(f"{variant} {role}", ALL, goal.text, unit, median(values), is_main=True, runs=len(values))
        case _:
            for name, kind in summary.result.kinds.items():
                yield from _latencies(variant, name, kind.response_s)
                if summary.result.run_s and kind.ok:
                    yield _figure(variant, name, "throughput", "per s", kind.ok / summary.result.run_s)


def _latencies(variant: str, operation: str, latencies: Latencies | None) -> Iterator[HistoryFigure]:
    for metric in _METRICS if latencies else ():
        value_s = getattr(latencies, metric)
        if value_s > 0.0:
            yield _figure(variant, operation, metric, "s", value_s, is_main=metric == _MAIN)


def _figure(
    variant: str, operation: str, metric: str, unit: Unit, value: float, *, is_main: bool = False, runs: int = 1
) -> HistoryFigure:
    """A figure without an interval."""
    return HistoryFigure(
        variant=variant,
        operation=operation,
        metric=metric,
        unit=unit,
        higher_is_better=unit == "per s",
        value=value,
        low=None,
        high=None,
        runs=runs,
        is_main=is_main,
    )
