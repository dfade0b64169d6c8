"""What `sensorbench recommend --json` prints."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TypedDict

from sensorbench.advisor import Basis, Entry, Recommendation, Source, basis_of
from sensorbench.advisor.caveats import caveats_of_recommendation, caveats_of_use_cases
from sensorbench.advisor.relational import capacity_of
from sensorbench.analysis.advice import Kind
from sensorbench.analysis.candidate import Candidate, Measured
from sensorbench.analysis.intervals import Interval
from sensorbench.analysis.sizing import described_assumptions
from sensorbench.analysis.use_cases import Outcome
from sensorbench.benchmarks.comparison import Gathered


class JsonInterval(TypedDict):
    """A figure, and between which values it lies."""

    value: float
    low: float | None
    high: float | None


class JsonBasis(TypedDict):
    """What the answer stands on."""

    is_reference: bool
    scales: list[float]
    readings: list[int]
    nodes: dict[str, list[int]]
    machines: list[str]
    dates: list[str]
    versions: list[str]


class JsonDistance(TypedDict):
    """How far a figure of the need lies outside of what was measured."""

    what: str
    needed: float
    measured: float
    factor: float


class JsonCheck(TypedDict):
    """The leave-one-bundle-out check; `held` of `judged` bundles that were left out had the recommended layout within 25% of the best."""

    bundles: int
    judged: int
    held: int
    text: str


class JsonAnswerSource(TypedDict):
    """Which results the answer is from, and what to mind. `kind` is results, evidence or reference."""

    kind: str
    source: str
    is_reference: bool
    comparisons: dict[str, dict[str, object]]
    notes: list[str]


class JsonSource(JsonAnswerSource):
    """The same, with what the answer stands on."""

    basis: JsonBasis


class JsonLeftOut(TypedDict):
    """A variant that has no place, and why."""

    variant: str
    why: str


class JsonLayout(TypedDict):
    """A schema with its parameters at a target."""

    schema: str
    label: str
    parameters: dict[str, str | int | float | bool]
    target: str
    version: str
    variant: str


class JsonRun(TypedDict):
    """One run behind a figure."""

    id: str
    date: str
    operations_per_s: float


class JsonMeasured(TypedDict):
    """The runs of one kind of operation."""

    operation: str
    comparison: str
    machine: str
    readings_per_operation: int
    rows_per_operation: float | None
    mixed: bool
    runs: list[JsonRun]


class JsonEntry(JsonLayout):
    """A place in the ranking."""

    rank: int
    score: float
    shares: dict[Kind, float]
    readings_written_per_s: JsonInterval | None
    reads_per_s: JsonInterval | None
    latency_s: dict[str, dict[str, JsonInterval | None]]
    bytes_per_reading: float | None
    relative_cost: float
    cost: float | None
    sizing: dict[str, object] | None
    over_next: JsonInterval | None
    paired_with_next: bool
    level_with_first: bool
    confidence: str
    runs: list[JsonMeasured]


class JsonRecommendation(JsonSource):
    """A ranking for needs."""

    ranked: list[JsonEntry]
    extrapolated: list[JsonDistance]
    leave_one_out: JsonCheck | None
    needs: dict[str, object]
    counts: list[str]
    questions: list[str]
    relational: dict[str, object]
    load: dict[str, object] | None
    assumptions: list[str]
    left_out: list[JsonLeftOut]


class JsonBest(TypedDict):
    """The best layout of a use case, and where that of the paper stands beside it."""

    best: JsonLayout | None
    confidence: str | None
    source_place: int | None
    best_over_source: JsonInterval | None
    layouts: int


class JsonOutcome(JsonBest):
    """A use case of the paper."""

    id: str
    writes: str
    reads: str
    fresh: bool
    source_advice: str
    at_source_target: JsonBest | None


class JsonUseCases(JsonSource):
    """The use cases with the paper's advice and ours."""

    use_cases: list[JsonOutcome]


def as_json(recommendation: Recommendation) -> JsonRecommendation:
    """All of it."""
    options, ranking = recommendation.options, recommendation.ranking
    best = recommendation.entries[0]
    return {
        "basis": _basis_as_json(recommendation.basis),
        "ranked": [_entry_as_json(number, entry, recommendation) for number, entry in enumerate(recommendation.entries, 1)],
        "extrapolated": [
            {"what": distance.what, "needed": distance.needed, "measured": distance.measured, "factor": distance.factor}
            for distance in recommendation.distances
        ],
        "leave_one_out": _check_as_json(recommendation),
        "needs": asdict(options.needs),
        "counts": list(options.needs.counts),
        "questions": list(ranking.questions),
        "relational": asdict(recommendation.relational),
        "load": asdict(options.load) if options.load else None,
        "assumptions": described_assumptions(options.assumed, capacity_of(best.place.candidate, ranking.questions))
        if best.sizing
        else [],
        "left_out": [{"variant": name, "why": why} for name, why in (*ranking.left_out, *recommendation.gathered.left_out)],
        **_source_as_json(recommendation.source, caveats_of_recommendation(recommendation)),
    }


def _check_as_json(recommendation: Recommendation) -> JsonCheck | None:
    check = recommendation.check
    return {"bundles": check.bundles, "judged": check.judged, "held": check.held, "text": check.text} if check else None


def use_cases_as_json(source: Source, outcomes: Sequence[Outcome]) -> JsonUseCases:
    """The use cases with the source's advice and ours."""
    return {
        "basis": _basis_as_json(basis_of(source)),
        "use_cases": [_outcome_as_json(outcome) for outcome in outcomes],
        **_source_as_json(source, caveats_of_use_cases(source, outcomes)),
    }


def _basis_as_json(basis: Basis) -> JsonBasis:
    """In the first lines, where it is seen."""
    return {
        "is_reference": basis.is_reference,
        "scales": list(basis.scales),
        "readings": list(basis.readings),
        "nodes": {target: list(counts) for target, counts in basis.nodes.items()},
        "machines": list(basis.machines),
        "dates": list(basis.dates),
        "versions": list(basis.versions),
    }


def _source_as_json(source: Source, notes: list[str]) -> JsonAnswerSource:
    return {
        "kind": source.kind,
        "source": source.name,
        "is_reference": source.kind == "reference",
        "comparisons": {name: asdict(origin) for name, origin in source.gathered.origins.items()},
        "notes": notes,
    }


def _outcome_as_json(outcome: Outcome) -> JsonOutcome:
    needs = outcome.use_case.needs
    return {
        "id": outcome.use_case.id,
        "writes": needs.writes,
        "reads": needs.reads,
        "fresh": needs.fresh,
        "source_advice": outcome.use_case.advice,
        **_best_as_json(outcome),
        "at_source_target": _best_as_json(outcome.at_target) if outcome.at_target else None,
    }


def _best_as_json(outcome: Outcome) -> JsonBest:
    """The best layout, and where the source's stands beside it."""
    return {
        "best": _named(outcome.best.candidate) if outcome.best else None,
        "confidence": outcome.best.confidence if outcome.best else None,
        "source_place": outcome.advised_place,
        "best_over_source": _interval_as_json(outcome.over_advised),
        "layouts": len(outcome.ranking.places),
    }


def _named(candidate: Candidate) -> JsonLayout:
    return {
        "schema": candidate.schema,
        "label": candidate.label,
        "parameters": candidate.parameters,
        "target": candidate.target,
        "version": candidate.version,
        "variant": candidate.name,
    }


def _entry_as_json(number: int, entry: Entry, recommendation: Recommendation) -> JsonEntry:
    place, candidate = entry.place, entry.place.candidate
    measured = (*candidate.writes, *candidate.measured(recommendation.ranking.questions))
    return {
        "rank": number,
        **_named(candidate),
        "score": place.score,
        "shares": place.shares,
        "readings_written_per_s": _interval_as_json(entry.written_per_s),
        "reads_per_s": _interval_as_json(entry.read_per_s),
        "latency_s": {
            measurement.operation: {name: _interval_as_json(interval) for name, interval in measurement.latency_s.items()}
            for measurement in measured
        },
        "bytes_per_reading": candidate.bytes_a_reading,
        "relative_cost": entry.cost,
        "cost": entry.money,
        "sizing": asdict(entry.sizing) if entry.sizing else None,
        "over_next": _interval_as_json(place.over_next),
        "paired_with_next": place.is_beside_next,
        "level_with_first": place.is_level,
        "confidence": place.confidence,
        "runs": [_run_as_json(measurement, recommendation.gathered) for measurement in measured],
    }


def _run_as_json(measurement: Measured, gathered: Gathered) -> JsonMeasured:
    """The runs behind a figure, with its interval."""
    return {
        "operation": measurement.operation,
        "comparison": measurement.comparison,
        "machine": gathered.origins[measurement.comparison].machine,
        "readings_per_operation": measurement.readings,
        "rows_per_operation": measurement.rows,
        "mixed": measurement.is_mixed,
        "runs": [{"id": run.id, "date": run.date, "operations_per_s": run.per_s} for run in measurement.runs],
    }


def _interval_as_json(of: Interval | None) -> JsonInterval | None:
    return {"value": of.value, "low": of.low, "high": of.high} if of is not None else None
