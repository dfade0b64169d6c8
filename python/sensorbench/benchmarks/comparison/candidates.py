"""The layouts that results have measured, as candidates for a recommendation, with what was measured of each.

Of several comparisons of a study that had an operation, the one counts that had nothing else to do (that wrote alone, or read
alone), and of those the one with most variants: so layouts are compared by runs that took turns. What only another one
measured, on the same data and under the same load, is taken from there. Runs count that were completed, and operations whose
answers were equal, of variants that kept up with the rate of arrivals.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sensorbench.analysis.candidate import Candidate, Measured
from sensorbench.benchmarks.comparison.measured_rates import MeasuredComparison, MeasuredVariant, Origin
from sensorbench.benchmarks.comparison.summary import summarise
from sensorbench.errors import UsageError
from sensorbench.results import ComparisonResult, read_comparison
from sensorbench.results.planned import PlannedSeries
from sensorbench.results.series import is_series, parts_with_results, read_series
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.runner import databases

# This many of the variants that are left out for a reason are named.
MAX_NAMED = 3


@dataclass(frozen=True)
class Gathered:
    """Candidates, the comparisons that they are from by name, why other variants are left out, and what else to know."""

    origins: dict[str, Origin]
    candidates: tuple[Candidate, ...]
    left_out: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]

    def described_left_out(self) -> list[str]:
        """Why variants are left out, each reason once."""
        return [f"{_some(names)}: {why}" for why, names in by_reason(self.left_out).items()]


def by_reason(left_out: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """The names that go with each reason."""
    names: dict[str, list[str]] = {}
    for name, why in left_out:
        names.setdefault(why, []).append(name)
    return names


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{', '.join(names[:MAX_NAMED])}{more}"


def has_several_datasets(folder: Path) -> bool:
    """Whether a folder has results of several datasets, which cannot be gathered together."""
    return is_series(folder) and _is_of_several_datasets(read_series(folder).plan)


def _is_of_several_datasets(series: PlannedSeries) -> bool:
    return series.of == "datasets" and len(series.parts) > 1


def gather(folder: Path) -> Gathered:
    """The candidates of a folder of results: of an experiment, of a study, or of all parts of one. Raises UsageError when
    nothing was measured there.
    """
    results, missing = _read(folder)
    summaries = {name: result.summary or summarise(result) for name, result in results.items()}
    gathered = candidates_of(results, summaries)
    damaged = [f"a file of the results is damaged: {text}" for result in results.values() for _, text in result.damage]
    gathered = replace(gathered, notes=(*missing, *damaged, *gathered.notes))
    if not gathered.candidates:
        reasons = "; ".join([*gathered.notes, *gathered.described_left_out()])
        raise UsageError(
            f"{folder}: nothing was measured there that could be recommended ({reasons or 'no variant was measured'})"
        )
    return gathered


def _read(folder: Path) -> tuple[dict[str, ComparisonResult], list[str]]:
    """The comparisons of a folder, by the names of their parts; and which are missing."""
    if not is_series(folder):
        return {"": read_comparison(folder)}, []
    series, begun = read_series(folder).plan, parts_with_results(folder)
    if _is_of_several_datasets(series):
        places = ", ".join(str(folder / part) for part in series.parts.values())
        raise UsageError(f"{folder}: results of several datasets, which are not compared; name one of {places}")
    if not begun:
        raise UsageError(f"{folder}: none of its parts ({', '.join(series.parts)}) has results yet")
    missing = [f"part {name} has no results yet" for name in series.parts if name not in begun]
    return {name: read_comparison(part) for name, part in begun.items()}, missing


def candidates_of(results: Mapping[str, ComparisonResult], summaries: Mapping[str, ComparisonSummary]) -> Gathered:
    """The candidates of comparisons that belong together, by name, with the summary of each."""
    with_answers = [MeasuredComparison(name, result, summaries[name]) for name, result in results.items()]
    had = _comparisons_of(with_answers)
    used = list(dict.fromkeys(comparison for of_operation in had.values() for comparison in of_operation))
    found, left_out = [], []
    for layout in _layouts(used):
        measured, reasons = _measured(layout, had)
        if measured:
            found.append(_candidate(layout, measured))
        else:
            left_out.append((layout[0].variant.id, "; ".join(reasons) or "it was measured under another load than the others"))
    states = [answer.described_state for answer in with_answers if answer.result.state != "complete"]
    return Gathered({comparison.name: comparison.origin for comparison in used}, tuple(found), tuple(left_out), tuple(states))


def _comparisons_of(measured: Sequence[MeasuredComparison]) -> dict[str, list[MeasuredComparison]]:
    """For each operation, the comparison by which layouts are compared, followed by those with equal conditions."""
    found: dict[str, list[MeasuredComparison]] = {}
    for operation in dict.fromkeys(name for comparison in measured for name in comparison.operations):
        had = [comparison for comparison in measured if operation in comparison.operations]
        ordered = sorted(had, key=lambda comparison: (comparison.is_mixed, -len(comparison.variants)))
        found[operation] = [comparison for comparison in ordered if comparison.conditions == ordered[0].conditions]
    return found


def _layouts(comparisons: Sequence[MeasuredComparison]) -> list[list[MeasuredVariant]]:
    """The variants of each layout, of all comparisons. Those that differ in something else within a comparison (an option of
    the target, requests in flight) are distinguished by their names.
    """
    counts = [Counter(variant.layout for variant in comparison.variants) for comparison in comparisons]
    ambiguous = {layout for of_one in counts for layout, count in of_one.items() if count > 1}
    found: dict[str, list[MeasuredVariant]] = {}
    for comparison in comparisons:
        for measured_variant in comparison.variants:
            found.setdefault(
                measured_variant.variant.id if measured_variant.layout in ambiguous else measured_variant.layout, []
            ).append(measured_variant)
    return list(found.values())


def _measured(
    layout: Sequence[MeasuredVariant], had: Mapping[str, Sequence[MeasuredComparison]]
) -> tuple[list[tuple[bool, Measured]], list[str]]:
    """What counts of a layout, and whether it writes; and why the rest does not."""
    found, reasons = [], []
    for operation, comparisons in had.items():
        variant = _first(layout, comparisons)
        if variant is None:
            continue
        problem = variant.problem(operation)
        if problem is None:
            found.append((variant.comparison.operations[operation].writes, variant.measured(operation)))
        elif problem not in reasons:
            reasons.append(problem)
    return found, reasons


def _first(layout: Sequence[MeasuredVariant], comparisons: Sequence[MeasuredComparison]) -> MeasuredVariant | None:
    """The variant of a layout that counts for an operation: the first, in the order of the comparisons. One with a number of
    requests in flight of its own is compared only beside others.
    """
    own = {variant.comparison.name: variant for variant in layout}
    places = [own[comparison.name] for comparison in comparisons if comparison.name in own]
    return next((place for place in places if place.comparison is comparisons[0] or place.variant.concurrency is None), None)


def _candidate(layout: Sequence[MeasuredVariant], measured: Sequence[tuple[bool, Measured]]) -> Candidate:
    first = layout[0]
    variant, described = first.variant, first.description
    return Candidate(
        name=variant.id,
        target=variant.target,
        database=variant.database,
        version=f"{described.database} {described.version}".strip() if described else "",
        schema=variant.schema_name,
        label=variant.label,
        parameters=dict(variant.schema_parameters),
        embedded=variant.embedded,
        in_memory=databases()[variant.database].in_memory,
        nodes=first.nodes,
        copies=int(described.settings.get("replication", 1)) if described else 1,
        writes=tuple(measurement for writes, measurement in measured if writes),
        reads=tuple(measurement for writes, measurement in measured if not writes),
        bytes_a_reading=next((variant.bytes_a_reading for variant in layout if variant.bytes_a_reading), None),
        memory_bytes=max((variant.memory_bytes or 0.0 for variant in layout), default=0.0) or None,
    )
