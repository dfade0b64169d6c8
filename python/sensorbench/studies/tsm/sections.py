"""What the report of TSM-Bench's study has to itself: latency over the rate of ingestion, its mirror, and bytes per value by features of values."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sensorbench.analysis.intervals import Interval, spread_over_runs
from sensorbench.claims import Evidence, Figure, variant_name
from sensorbench.results import VariantManifest
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.studies.pictures import CurvePoint, Curves
from sensorbench.studies.study import Column, Section

WRITE = "append_rows"
VALUES_PER_ROW = 100
RELATION = "stations"
QUERIES = tuple(f"q{number}" for number in range(1, 8))
# The parts: rows are written at this many values per second; or at one rate, with this many queries per second; or values have a feature.
_ONLINE = re.compile(r"online_(?P<values>\d+)")
_QUERIED = re.compile(r"asked_(?P<queries>\d+)")
_FEATURE = re.compile(r"(?P<kind>outliers|repeats|scarcity|delta)_(?P<level>\d+)")
# The part with evenly spread values, which is level 0 of all features but delta; and the part where the mirror begins.
BASE, FIRST_QUERIED = "base", "online_10000"
_FEATURES: Mapping[str, str] = {
    "outliers": "outliers, % of values",
    "repeats": "repeated values, %",
    "scarcity": "missing values, %",
    "delta": "largest step between values",
}


def series_sections(parts: dict[str, Evidence], summaries: dict[str, ComparisonSummary]) -> list[Section]:
    """The sections of the page of all parts."""
    del summaries
    online = {name: _by_variants(evidence) for name, evidence in parts.items() if _ONLINE.fullmatch(name)}
    queried = {name: _by_variants(evidence) for name, evidence in parts.items() if _QUERIED.fullmatch(name)}
    features = {name: _by_variants(evidence) for name, evidence in parts.items() if name == BASE or _FEATURE.fullmatch(name)}
    sections = [_latency_over_ingestion(online)] if online else []
    if queried:
        first = {FIRST_QUERIED: online[FIRST_QUERIED]} if FIRST_QUERIED in online else {}
        sections.append(_writing_over_queries({**first, **queried}))
    if features:
        sections.append(_storage(features))
    return sections


def _by_variants(evidence: Evidence) -> Evidence:
    """The evidence with each variant in a role of its own."""
    return Evidence(evidence.result, {variant.id: variant.id for variant in evidence.result.manifest.variants}, evidence.metric)


@dataclass(frozen=True)
class Reached:
    """How much of an operation came per second: as much as was wanted, or less."""

    wanted: float
    reached: Interval

    @property
    def share(self) -> float:
        """What was reached as a share of what was wanted."""
        return self.reached.value / self.wanted


def _reached(evidence: Evidence, variant: VariantManifest, operations: Sequence[str], factor: float) -> Reached | None:
    """The rate of some operations, which each count this many times; None if none was in the mix."""
    workload = evidence.result.manifest.plan.workload
    mix: Mapping[str, float] = workload["mix"]
    known = {
        name: values for name in operations if name in mix and (values := evidence.values(Figure("rate", (variant.id, name))))
    }
    if not known:
        return None
    runs = next(iter(known.values())).by_run
    of_runs = np.array([sum(values.by_run[run] for values in known.values()) for run in runs])
    rate = workload["schedule"]["rate"]
    if rate is None or of_runs.min() <= 0.0:
        return None
    # What a variant cannot answer is left out, and all others come as often as they do elsewhere.
    share = sum(mix[name] for name in known) / sum(mix.values())
    return Reached(rate * share * factor, spread_over_runs(of_runs * factor))


def _written(evidence: Evidence, variant: VariantManifest) -> Reached | None:
    """The rate of values that are written."""
    return _reached(evidence, variant, [WRITE], VALUES_PER_ROW * variant.schema_parameters.get("batch", 1))


def _latency(evidence: Evidence, variant: VariantManifest, operation: str) -> Interval | None:
    values = evidence.values(Figure("latency", (variant.id, operation)))
    return spread_over_runs(np.array(list(values.by_run.values()))) if values else None


def _value(interval: Interval | None) -> float | None:
    return interval.value if interval else None


def _point(line: str, figure: str, order: float, label: str, x: float, y: Interval) -> CurvePoint:
    return CurvePoint(line, figure, order, label, x, y.value, y.low, y.high)


def _latency_over_ingestion(parts: Mapping[str, Evidence]) -> Section:
    """How long queries take while rows are written, by how many values come in."""
    rows: list[list[Any]] = []
    points: dict[str, list[CurvePoint]] = {query: [] for query in QUERIES}
    for evidence in parts.values():
        for variant in evidence.result.manifest.variants:
            written = _written(evidence, variant)
            of_queries = {query: _latency(evidence, variant, query) for query in QUERIES}
            rows.append(
                [
                    variant.id,
                    written.wanted if written else 0.0,
                    _value(written.reached) if written else None,
                    written.share if written else None,
                    _value(_latency(evidence, variant, WRITE)),
                    *map(_value, of_queries.values()),
                ]
            )
            for query, latency in of_queries.items():
                if written and latency:
                    label = f"{written.wanted:,.0f} values/s wanted"
                    title = variant_name(variant)
                    points[query].append(_point(title, query, written.wanted, label, written.reached.value, latency))
    return Section(
        "Query latency over the rate of ingestion",
        "Rows of a hundred values are written at a held rate, in an open loop, while each query comes about once per second: three sensors of one station over a day, "
        "as in TSM-Bench. Ten times per second an operation writes the next rows of a station, as many as make the rate. Response times count from the intended start. The rate that was reached is next to the one that was wanted. Where it "
        "is less, the target could not keep up, and the latencies of its queries say little.",
        [
            Column("variant", "variant"),
            Column("values/s wanted", "count"),
            Column("values/s reached", "count"),
            Column("of the wanted", "share"),
            Column("writing rows", "duration_s"),
            *(Column(query, "duration_s") for query in QUERIES),
        ],
        rows,
        curves=[
            Curves(
                f"{query} while rows are written", "values written per second", "count", "mean latency", "duration_s", of_query
            )
            for query, of_query in points.items()
            if of_query
        ],
    )


def _writing_over_queries(parts: Mapping[str, Evidence]) -> Section:
    """The mirror: how long writing takes by how many queries come."""
    rows: list[list[Any]] = []
    points: list[CurvePoint] = []
    for evidence in parts.values():
        for variant in evidence.result.manifest.variants:
            queries = _reached(evidence, variant, QUERIES, 1.0)
            written = _written(evidence, variant)
            latency = _latency(evidence, variant, WRITE)
            rows.append(
                [
                    variant.id,
                    queries.wanted if queries else 0.0,
                    _value(queries.reached) if queries else None,
                    _value(written.reached) if written else None,
                    written.share if written else None,
                    _value(latency),
                ]
            )
            if queries and latency:
                label = f"{queries.wanted:,.0f} queries/s wanted"
                points.append(_point(variant_name(variant), WRITE, queries.wanted, label, queries.reached.value, latency))
    return Section(
        "Writing over the rate of queries",
        "The mirror: rows come at one held rate, and more and more queries with them, all of the seven questions alike.",
        [
            Column("variant", "variant"),
            Column("queries/s wanted", "count"),
            Column("queries/s reached", "count"),
            Column("values/s reached", "count"),
            Column("of the wanted", "share"),
            Column("writing rows", "duration_s"),
        ],
        rows,
        curves=[Curves("Writing rows while queries come", "queries per second", "count", "mean latency", "duration_s", points)]
        if points
        else None,
    )


def _bytes_per_value(evidence: Evidence, variant: VariantManifest, missing: float) -> float | None:
    """Bytes on disk after settling over the values that are not missing, as far as their share is known."""
    size = evidence.size_bytes(variant.id)
    values = evidence.result.manifest.plan.dataset["relations"][RELATION]["rows"] * VALUES_PER_ROW * (1.0 - missing)
    return size / values if size is not None and values else None


def _encoded(evidence: Evidence) -> dict[str, float]:
    """Bytes of a reading by encoding; nothing in results of earlier versions."""
    costs = evidence.result.manifest.plan.encodings
    return {f"{cost['encoding']}, batches of {cost['readings_a_batch']}": cost["bytes_a_reading"] for cost in costs}


def _storage(parts: Mapping[str, Evidence]) -> Section:
    """What a value takes by what is special about values."""
    base = parts.get(BASE)
    plain = {variant.id: _bytes_per_value(base, variant, 0.0) for variant in base.result.manifest.variants} if base else {}
    plain_encoded = _encoded(base) if base else {}
    rows: list[list[Any]] = [
        [what, "none", None, bytes_per_value, None] for what, bytes_per_value in (*plain.items(), *plain_encoded.items())
    ]
    points: dict[str, list[CurvePoint]] = {kind: [] for kind in _FEATURES}
    for name, evidence in parts.items():
        found = _FEATURE.fullmatch(name)
        if found is None:
            continue
        kind, level = found["kind"], float(found["level"])
        for variant in evidence.result.manifest.variants:
            taken = _bytes_per_value(evidence, variant, level / 100.0 if kind == "scarcity" else 0.0)
            if taken is None:
                continue
            of_plain = plain.get(variant.id)
            rows.append([variant.id, _FEATURES[kind], level, taken, taken / of_plain if of_plain else None])
            points[kind].append(
                CurvePoint(variant_name(variant), kind, level, f"{_FEATURES[kind]}: {level:g}", level, taken, None, None)
            )
        for encoding, taken in _encoded(evidence).items():
            of_plain = plain_encoded.get(encoding)
            rows.append([encoding, _FEATURES[kind], level, taken, taken / of_plain if of_plain else None])
            points[kind].append(CurvePoint(encoding, kind, level, f"{_FEATURES[kind]}: {level:g}", level, taken, None, None))
    return Section(
        "Bytes per value by features of values",
        "One station's hundred sensors. Bytes on disk after loading and settling, with each system's compression on, over the values that are not missing "
        "(by their expected share). Without a feature, values are evenly spread over 0 to 1 and nothing compresses them. What a system allocates at "
        "once counts in full, so that small data look large. They are compared with the encodings of the sensor-schema study: the readings of one sensor, each "
        "with its time, in batches and nothing around them.",
        [
            Column("variant or encoding", "variant"),
            Column("feature"),
            Column("level", "number"),
            Column("bytes per value", "number"),
            Column("over no feature", "ratio"),
        ],
        rows,
        curves=[
            Curves(f"Bytes per value by {kind}", _FEATURES[kind], "count", "bytes per value", "count", of_kind)
            for kind, of_kind in points.items()
            if of_kind
        ],
    )
