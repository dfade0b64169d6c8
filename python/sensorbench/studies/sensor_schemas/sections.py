"""What the report of the sensor-schema study has to itself: which layouts are best at writing, reading or both, what a reading takes,
and what each choice changes, on all systems that were measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from sensorbench.analysis.intervals import Interval, scaled, spread_over_runs
from sensorbench.claims import Evidence, variant_name
from sensorbench.results import VariantManifest
from sensorbench.results.manifest import MEASURE
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.schemas.schema_file import ParameterValue
from sensorbench.studies.pictures import Effect, Front, Point, with_fronts
from sensorbench.studies.sensor_schemas.claims import NEW_RANGE, READ, WRITE, by_variants, rate, rates
from sensorbench.studies.sensor_schemas.clients import client_sections
from sensorbench.studies.sensor_schemas.row_cache import row_cache_section
from sensorbench.studies.sensor_schemas.typed_and_batched import one_to_one_sections
from sensorbench.studies.sensor_schemas.use_cases import use_case_sections
from sensorbench.studies.study import Column, Section

# The factors of a layout, in the order in which they are told, and their values without which nothing is said.
FACTORS = ("metadata", "width", "batch", "value", "encoding")
PARTS = {"write": WRITE, "read": READ}


@dataclass(frozen=True)
class Laid:
    """A variant of one part, with what its schema's parameters are."""

    id: str
    name: str
    system: str
    schema: str
    parameters: Mapping[str, ParameterValue]

    @property
    def readings(self) -> int:
        """How many readings one writing operation has."""
        return int(self.parameters.get("batch", 1))


def series_sections(parts: dict[str, Evidence], summaries: dict[str, ComparisonSummary]) -> list[Section]:
    """The sections of the page of all parts."""
    by_id = {part: by_variants(evidence) for part, evidence in parts.items()}
    sections = use_case_sections(parts, summaries)
    if {"write", "read"} <= by_id.keys():
        sections.append(_front(by_id["write"], by_id["read"]))
    if "mixed" in by_id:
        sections.append(_mixed_front(by_id["mixed"]))
    for part, operation in PARTS.items():
        if part in by_id:
            sections += _effects(by_id[part], part, operation)
    laid = by_id.get("write") or by_id.get("read")
    if laid is not None:
        sections.append(_sizes(laid))
    sections += one_to_one_sections(by_id)
    sections += [section for part, evidence in parts.items() for section in client_sections(evidence, summaries[part])]
    others = [row_cache_section(parts), _tuned(parts)]
    return [*sections, *(section for section in others if section.rows)]


def _laid(evidence: Evidence) -> list[Laid]:
    """The variants that were measured."""
    return [
        Laid(
            variant.id,
            variant_name(variant),
            variant.system or variant.database,
            variant.schema_name,
            dict(variant.schema_parameters),
        )
        for variant in evidence.result.manifest.variants
        if any(MEASURE in run.manifest.phases for run in evidence.runs(variant.id))
    ]


def _label(layout: Laid) -> str:
    return layout.name.partition("/")[2].replace("/", " ")


def _front(write: Evidence, read: Evidence) -> Section:
    """Written readings and read ranges a second of each layout."""
    reading = {layout.id for layout in _laid(read)}
    points = [
        point
        for layout in _laid(write)
        if layout.id in reading
        and (point := _point(layout, rates(write, layout.id, WRITE), rates(read, layout.id, READ), layout.readings)) is not None
    ]
    return Section(
        "Writing against reading",
        "Each layout by the readings that it writes and the ranges that it reads per second. Those on the line are better at one than all others "
        "of their system that are at least as good at the other. Which of them is right depends on the load alone. A batch is written when it is full: "
        "where the newest readings are needed at once, only typed layouts qualify.",
        [],
        [],
        front=Front("readings written per second", "ranges read per second", with_fronts(points)),
    )


def _mixed_front(mixed: Evidence) -> Section:
    points = [
        point
        for layout in _laid(mixed)
        if (point := _point(layout, rates(mixed, layout.id, WRITE), rates(mixed, layout.id, NEW_RANGE), layout.readings))
        is not None
    ]
    return Section(
        "Both at once",
        "The same while three writes come to each read, and reads end with what was written lately.",
        [],
        [],
        front=Front("readings written per second", "ranges read per second", with_fronts(points)),
    )


def _point(layout: Laid, writes: Sequence[float], reads: Sequence[float], readings: int) -> Point | None:
    x, y = _over_runs([rate * readings for rate in writes]), _over_runs(reads)
    if x is None or y is None:
        return None
    return Point(_label(layout), layout.system, x.value, x.low, x.high, y.value, y.low, y.high)


def _over_runs(of_runs: Sequence[float]) -> Interval | None:
    return spread_over_runs(np.array(of_runs)) if of_runs and min(of_runs) > 0.0 else None


def _effects(evidence: Evidence, part: str, operation: str) -> list[Section]:
    """For each system, what a change of one factor does to throughput."""
    laid = _laid(evidence)
    what = "readings written per second" if part == "write" else "ranges read per second"
    sections = []
    for system in dict.fromkeys(layout.system for layout in laid):
        effects = _effects_of(evidence, [layout for layout in laid if layout.system == system], operation)
        if effects:
            sections.append(
                Section(
                    f"What each choice does to {'writing' if part == 'write' else 'reading'}, {system}",
                    f"By how much a change of one factor multiplies the {what}, everything else as before (where several pairs of layouts differ "
                    "by it, their geometric mean). The bar is the interval; one that crosses 1 is no difference that was seen.",
                    [],
                    [],
                    effects=effects,
                )
            )
    return sections


def _effects_of(evidence: Evidence, laid: Sequence[Laid], operation: str) -> list[Effect]:
    pairs: dict[tuple[str, str], list[tuple[Laid, Laid]]] = {}
    for before in laid:
        for after in laid:
            change = _change(before, after)
            if change is not None:
                pairs.setdefault(change, []).append((before, after))
    found = [_effect(evidence, change, of_change, operation) for change, of_change in pairs.items()]
    return [effect for effect in found if effect is not None]


def _change(before: Laid, after: Laid) -> tuple[str, str] | None:
    """Factor and change, where two layouts differ by one factor alone and the first has the usual value."""
    if before.schema != after.schema:
        shared = before.parameters.keys() & after.parameters.keys() - {"batch"}
        is_alike = all(before.parameters[name] == after.parameters[name] for name in shared)
        is_plain = before.parameters.get("batch") == 1 and after.parameters.get("batch") == 150
        is_default = before.schema == "typed" and after.parameters.get("encoding") == _DEFAULT["batched", "encoding"]
        return ("layout", "typed → batched") if is_alike and is_plain and is_default else None
    differing = [name for name in before.parameters if before.parameters[name] != after.parameters.get(name)]
    if len(differing) != 1 or differing[0] not in FACTORS:
        return None
    name = differing[0]
    if before.parameters[name] != _DEFAULT[before.schema, name]:
        return None
    return f"{name}, {before.schema}", f"{before.parameters[name]} → {after.parameters[name]}"


# What others are compared with.
_DEFAULT = {
    ("typed", "metadata"): "same_table",
    ("typed", "width"): "100k",
    ("typed", "batch"): 1,
    ("typed", "value"): "double",
    ("batched", "metadata"): "same_table",
    ("batched", "width"): "100k",
    ("batched", "batch"): 150,
    ("batched", "encoding"): "text",
}


def _effect(evidence: Evidence, change: tuple[str, str], pairs: Sequence[tuple[Laid, Laid]], operation: str) -> Effect | None:
    """The geometric mean over the pairs of how many times as much the second layout of each does."""
    weight = 1.0 / len(pairs)
    terms = [(layout.id, operation, sign * weight) for pair in pairs for layout, sign in zip(pair, (1.0, -1.0), strict=True)]
    interval = evidence.contrast(terms)
    if interval is None:
        return None
    factor = fmean([after.readings / before.readings for before, after in pairs]) if operation == WRITE else 1.0
    ratio = scaled(interval, factor)
    return Effect(*change, operation, ratio.value, ratio.low, ratio.high, ratio.runs)


def _sizes(evidence: Evidence) -> Section:
    """What a reading takes, how wide rows are, and what encoding costs the client."""
    rows = []
    scale = float(evidence.result.manifest.plan.dataset.get("scale", 1.0))
    for variant in evidence.result.manifest.variants:
        load = evidence.result.loads.get(variant.id)
        if load is None:
            continue
        cost = load.encoding
        rows.append(
            [
                variant.id,
                evidence.result.bytes_a_reading(variant.id),
                cost["bytes_a_reading"] if cost else None,
                _meant_row(variant, scale),
                evidence.result.largest_partition_bytes(variant.id),
                cost["encode_ns"] / 1e9 if cost else None,
                cost["decode_ns"] / 1e9 if cost else None,
            ]
        )
    return Section(
        "What a reading takes",
        "Bytes on disk (in memory, for Redis) after loading and settling, for all that a layout keeps, divided by the readings. Then the bytes of the "
        "encoded batch alone. Rows are as wide as meant at this scale, and the largest as the server reports it (before compression). CPU time of "
        "the client is that of encoding and decoding a reading, which is part of every latency here.",
        [
            Column("layout", "variant"),
            Column("bytes per reading", "bytes"),
            Column("in the batch", "bytes"),
            Column("row meant"),
            Column("largest row", "bytes"),
            Column("encoding a reading", "duration_s"),
            Column("decoding a reading", "duration_s"),
        ],
        rows,
    )


def _meant_row(variant: VariantManifest, scale: float) -> str | None:
    """The width of a row at this scale, in the words of the schema."""
    width = str(variant.schema_parameters.get("width", ""))
    if width.endswith("MB"):
        return f"{float(width.removesuffix('MB')) * scale:.3g} MB"
    return f"{float(width.removesuffix('k')) * 1e3 * scale:,.0f} readings" if width else None


# What each of the tuned servers is, and when it has a write on disk.
_SERVERS = {
    "T1": ("by default", "within 10 s"),
    "T2": ("tuned as in the paper", "within 1,000 s"),
    "T2 durable": ("tuned, but for the commit log", "within 10 s"),
}


def _tuned(parts: dict[str, Evidence]) -> Section:
    """The paper's tuning gives up durability: what is left of its gain without that."""
    evidence = parts.get("tuned_write")
    rows: list[list[Any]] = []
    for role, (server, durable) in _SERVERS.items():
        measured = rate(evidence, role, WRITE) if evidence else None
        gain = evidence.contrast([("T1", WRITE, 1.0), (role, WRITE, -1.0)]) if evidence and "T1" in evidence.roles else None
        if measured is not None:
            rows.append([server, durable, measured, gain.value if gain and role != "T1" else None])
    return Section(
        "What tuning gains, and at which durability",
        "The paper syncs the commit log every 1,000 s, so that a server which loses power loses that much. Rates of different durability stand "
        "side by side, without a winner.",
        [
            Column("server"),
            Column("a write is on disk"),
            Column("writes per second", "count"),
            Column("over the default", "ratio"),
        ],
        rows,
    )
