"""What the comparisons of a study measured of the figures that its paper printed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sensorbench.analysis.intervals import Interval
from sensorbench.claims import Evidence, Expression, Figure, variant_name
from sensorbench.results import ComparisonResult
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.results.summary.published import PublishedTable
from sensorbench.studies.published import Found, found_in, interval_in, measured_by, published_of
from sensorbench.studies.study import Study

# Figures that the report has of an operation over all runs together.
LATENCY, ROWS = "latency", "rows_per_operation"


class _Comparisons:
    """Comparisons that are parts of a study, or one that is none; the name of that is empty."""

    def __init__(self, study: Study, results: Mapping[str, ComparisonResult], summaries: Mapping[str, ComparisonSummary]) -> None:
        self._study = study
        self._evidence: dict[str, Evidence] = {}
        self._substitutes: dict[str, set[str]] = {}
        for part, result in results.items():
            published, others = (_loaded(names, result) for names in (study.roles.published, study.roles.substitute))
            self._substitutes[part] = others.keys() - published.keys()
            begun = {**_begun(study.roles.substitute, result), **_begun(study.roles.published, result)}
            roles = {**begun, **others, **published}
            self._evidence[part] = Evidence(result, roles, study.metric, self._evidence, study.quantities)
        self._figures = {
            (part, figure.variant, figure.operation): (figure, summary.result.metric)
            for part, summary in summaries.items()
            for figure in summary.result.figures
        }

    def found(self, figure: Figure) -> Found:
        """What was measured of a figure: `quantity(role, …)` or `quantity(part: role, …)`."""
        part, role, others = self._place(figure)
        evidence = self._evidence.get(part)
        if evidence is None:
            return Found(None, "not run", f"part {part} was not run")
        if role not in evidence.roles:
            return Found(None, "not run", self._absent(role))
        found = self._value(figure, part, role, others)
        if found.value is None:
            return found if found.why else _why_not(evidence, role, others)
        is_substitute = role in self._substitutes[part]
        return replace(
            found, why=_failed_in_part(evidence, role, others), variant=evidence.roles[role], is_substitute=is_substitute
        )

    def interval(self, expression: Expression) -> Interval | None:
        """The interval of a formula over figures that were measured; the rows that an operation gives are not a measurement with one."""
        if any(figure.quantity == ROWS for figure in expression.figures):
            return None
        (first, *others) = expression.figures
        if not others and first.quantity == LATENCY and str(expression) == str(first):
            # The report has computed it.
            part, role, arguments = self._place(first)
            shown = self._latency(part, role, arguments[0])
            if shown is None or shown.value is None or shown.confidence is None:
                return None
            return Interval(
                shown.value, shown.low, shown.high, shown.confidence, shown.runs or 0, between_runs=bool(shown.between_runs)
            )
        return interval_in(next(iter(self._evidence.values())), expression)

    def _place(self, figure: Figure) -> tuple[str, str, list[str]]:
        """In which part a figure is, of which role, and its other arguments."""
        first, *others = figure.arguments
        part, colon, role = first.partition(":")
        return (part.strip(), role.strip(), others) if colon else (next(iter(self._evidence), ""), first, others)

    def _latency(self, part: str, role: str, operation: str) -> MeasuredFigure | None:
        """What the report shows of an operation: its figure that ranks."""
        known, metric = self._figures.get((part, self._evidence[part].roles[role], operation), (None, ""))
        return known.latency_s.get(metric) if known is not None else None

    def _absent(self, role: str) -> str:
        wanted = [*self._study.roles.published[role], *self._study.roles.substitute.get(role, [])]
        return f"not among the variants of these results: {', '.join(wanted)}"

    def _value(self, figure: Figure, part: str, role: str, others: Sequence[str]) -> Found:
        evidence = self._evidence[part]
        if figure.quantity not in {LATENCY, ROWS}:
            return found_in(evidence, figure)
        known, metric = self._figures.get((part, evidence.roles[role], others[0]), (None, ""))
        if known is None:
            return Found(None, "not run")
        interval = known.latency_s.get(metric)
        value = known.rows_per_operation if figure.quantity == ROWS else interval.value if interval else None
        return Found(value, "not run" if value is None else "measured")


def _loaded(roles: Mapping[str, Sequence[str]], result: ComparisonResult) -> dict[str, str]:
    """For each role, the first of its variants that was loaded."""
    return _first(
        {variant_name(variant): variant.id for variant in result.manifest.variants if variant.id in result.loads}, roles
    )


def _begun(roles: Mapping[str, Sequence[str]], result: ComparisonResult) -> dict[str, str]:
    """For each role, the first of its variants that there is."""
    return _first({variant_name(variant): variant.id for variant in result.manifest.variants}, roles)


def _first(ids: Mapping[str, str], roles: Mapping[str, Sequence[str]]) -> dict[str, str]:
    found = {role: next((ids[name] for name in names if name in ids), None) for role, names in roles.items()}
    return {role: variant for role, variant in found.items() if variant is not None}


def _why_not(evidence: Evidence, role: str, others: Sequence[str]) -> Found:
    """Why a variant that there is has no figure."""
    variant = evidence.roles[role]
    failure = evidence.result.failures.get(variant)
    if others and (cause := evidence.first_error(role, others[0])):
        return Found(None, "failed", cause, variant)
    if others and evidence.counts(role, others[0])["timeout"]:
        return Found(None, "failed", "it took longer than the time limit", variant)
    if failure is not None:
        return Found(None, "failed", failure.cause, variant)
    if variant not in evidence.result.loads:
        return Found(None, "not run", f"the benchmark ended before {variant} was loaded", variant)
    what = f"{others[0]} was not executed" if others else "it was not reported"
    return Found(None, "not run", f"{variant}: {what}", variant)


def _failed_in_part(evidence: Evidence, role: str, others: Sequence[str]) -> str:
    """That some of the requests failed, and why; empty if none did."""
    if not others or others[0] not in evidence.result.manifest.plan.operations:
        return ""
    counts = evidence.counts(role, others[0])
    failed = counts["error"] + counts["timeout"]
    if not failed:
        return ""
    cause = evidence.first_error(role, others[0]) or "it took longer than the time limit"
    return f"{failed} of {failed + counts['ok']} requests failed: {cause}"


def published_tables(
    study: Study, results: Mapping[str, ComparisonResult], summaries: Mapping[str, ComparisonSummary]
) -> list[PublishedTable]:
    """The tables of a study's paper with what some comparisons measured: its parts, or one that is none; nothing if it has no paper."""
    published = published_of(study.name)
    known = {part: result for part, result in results.items() if part in summaries}
    if published is None or not known:
        return []
    comparisons = _Comparisons(study, known, summaries)
    described = next(iter(known.values())).manifest.plan.dataset
    scale = float(described.get("scale", 1.0))
    return published.tables(
        measured_by(comparisons.found, comparisons.interval),
        datasets=[result.manifest.plan.dataset["name"] for result in known.values()],
        scale=scale,
        conditions=f"Measured on the data of {described['name']} at scale {scale:g}.",
    )


def tables_of_part(tables: Sequence[PublishedTable], part: str) -> list[PublishedTable]:
    """Of tables, the cells that a part of the study measures."""
    own = [table.model_copy(update={"cells": [cell for cell in table.cells if f"({part}:" in cell.figure]}) for table in tables]
    return [table for table in own if table.cells]


def tables_of_datasets(of_each: Sequence[Sequence[PublishedTable]]) -> list[PublishedTable]:
    """The tables of several datasets as one list, each cell once."""
    merged: dict[str, PublishedTable] = {}
    for table in (table for tables in of_each for table in tables):
        known = merged.get(table.title)
        cells = {
            (cell.row, cell.column, cell.printed, cell.note): cell for cell in (*table.cells, *(known.cells if known else ()))
        }
        columns = list(dict.fromkeys([*(known.columns if known else ()), *table.columns]))
        merged[table.title] = table.model_copy(update={"cells": list(cells.values()), "columns": columns})
    return list(merged.values())
