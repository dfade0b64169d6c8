"""What the report of the study of cardinality has to itself: figures by the number of series, and where databases broke."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sensorbench.claims import Evidence, variant_name
from sensorbench.dataset.tsbs import parse_parameters
from sensorbench.results import VariantManifest
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.comparison import ComparisonSummary, LoadFigures
from sensorbench.studies.levels import breaks_of
from sensorbench.studies.pictures import CurvePoint, Curves
from sensorbench.studies.study import Column, Section

HOSTS = "hosts"
OF_ONE, OF_ALL = "single-groupby-1-1-1", "groupby-orderby-limit"
_LEVEL = re.compile(r"(?P<family>total|churn|each)_\d+")
_SERIES = "series at a time"


@dataclass(frozen=True)
class Family:
    """Levels that follow one another: what is the same at all of them."""

    title: str
    text: str


FAMILIES: Mapping[str, Family] = {
    "total": Family(
        "As many readings in all",
        "Every level has the same number of readings, so that only the number of series grows.",
    ),
    "churn": Family(
        "As many readings in all, with churn",
        "As many series have readings at any time. In each hundredth of the whole span, which is that of scale 1, a tenth of them is replaced by new ones. The "
        "number of readings is that of the levels without churn.",
    ),
    "each": Family(
        "As many readings of each series",
        "Every series has the same number of readings, so that data grow with the number of series.",
    ),
}


@dataclass(frozen=True)
class Point:
    """A variant at a level: how many series have readings at a time and in all, and what was measured."""

    variant: VariantManifest
    series: int
    seen: int
    load: LoadFigures
    of_one: MeasuredFigure | None
    of_all: MeasuredFigure | None

    @property
    def size_bytes(self) -> int | None:
        """What is on disk after settling."""
        return self.load.size.total_bytes

    @property
    def peak_bytes(self) -> int | None:
        """Memory at its peak while it was loaded and settled."""
        return self.load.memory["peak_bytes"] if self.load.memory else None

    @property
    def end_bytes(self) -> int | None:
        """Memory when everything was loaded and settled."""
        return self.load.memory["end_bytes"] if self.load.memory else None


@dataclass(frozen=True)
class Level:
    """A level that was measured: its points, and what failed at it."""

    series: int
    evidence: Evidence
    summary: ComparisonSummary

    def points(self) -> list[Point]:
        """The variants that were loaded."""
        plan, loads = self.evidence.result.manifest.plan, self.evidence.result.loads
        seen = plan.dataset["relations"][HOSTS]["rows"]
        variants = (variant for variant in self.evidence.result.manifest.variants if variant.id in loads)
        return [
            Point(
                variant,
                self.series,
                seen,
                loads[variant.id],
                self._latency(variant.id, OF_ONE),
                self._latency(variant.id, OF_ALL),
            )
            for variant in variants
        ]

    def _latency(self, variant: str, operation: str) -> MeasuredFigure | None:
        result = self.summary.result
        figures = (figure for figure in result.figures if (figure.variant, figure.operation) == (variant, operation))
        return next((figure.latency_s.get(result.metric) for figure in figures), None)


def series_sections(parts: dict[str, Evidence], summaries: dict[str, ComparisonSummary]) -> list[Section]:
    """The sections of the page of all levels: where databases broke, and figures of each family of levels."""
    levels: dict[str, list[Level]] = {}
    for name, evidence in parts.items():
        if (found := _LEVEL.fullmatch(name)) is not None:
            series = parse_parameters(evidence.result.manifest.plan.dataset["name"]).devices
            levels.setdefault(found["family"], []).append(Level(series, evidence, summaries[name]))
    sections = [_where_it_broke(levels)] if levels else []
    return [*sections, *(_figures(FAMILIES[family], of_family) for family, of_family in levels.items())]


def _where_it_broke(levels: Mapping[str, Sequence[Level]]) -> Section:
    """Each variant's last level that was well and, where it failed at one, that level and what was said."""
    rows: list[list[Any]] = []
    for family, of_family in levels.items():
        held: dict[str, int] = {}
        broke: dict[str, list[Any]] = {}
        for level in of_family:
            found = breaks_of(level.summary)
            for variant in level.evidence.result.manifest.variants:
                if variant.id in found:
                    failed = found[variant.id]
                    broke[variant.id] = [f"broke at {level.series:,} series", failed.step, failed.message]
                elif variant.id in level.evidence.result.loads:
                    held[variant.id] = level.series
        for variant_id in dict.fromkeys([*held, *broke]):
            rows.append(
                [variant_id, FAMILIES[family].title, held.get(variant_id), *broke.get(variant_id, ["did not break", None, None])]
            )
    return Section(
        "Where databases broke",
        "The largest number of series at which a variant loaded everything and answered, and the first one at which it did not. The message is "
        "the database's own, that of its server's log where the server ended, or the limit of time, memory or disk that was reached. What broke is not measured at "
        "larger numbers.",
        [
            Column("variant", "variant"),
            Column("levels"),
            Column("held at", "whole"),
            Column("then"),
            Column("while"),
            Column("message"),
        ],
        rows,
    )


def _figures(family: Family, levels: Sequence[Level]) -> Section:
    points = [point for level in levels for point in level.points()]
    rows: list[list[Any]] = [
        [
            point.variant.id,
            point.series,
            point.seen,
            point.load.readings,
            point.load.readings_per_s,
            point.load.settled_readings_per_s,
            point.peak_bytes,
            point.end_bytes,
            point.size_bytes,
            point.size_bytes / point.load.readings if point.size_bytes is not None and point.load.readings else None,
            point.of_one.value if point.of_one else None,
            point.of_all.value if point.of_all else None,
        ]
        for point in points
    ]
    return Section(
        family.title,
        f"{family.text} Memory is that of the server with all its processes, as the system counts it. Of a database that is a library, it is that of the process which "
        "loads, with its client. Its peak is until everything was settled. A server whose memory is a fixed heap shows that heap. The question of one series is "
        f"{OF_ONE}, that of all {OF_ALL}: its answer has five rows, and most databases read all readings for it.",
        [
            Column("variant", "variant"),
            Column(_SERIES, "whole"),
            Column("series in all", "whole"),
            Column("readings", "count"),
            Column("readings/s loading", "count"),
            Column("readings/s until settled", "count"),
            Column("memory, peak", "bytes"),
            Column("memory, loaded", "bytes"),
            Column("on disk", "bytes"),
            Column("bytes per reading", "number"),
            Column("of one series", "duration_s"),
            Column("of all series", "duration_s"),
        ],
        rows,
        curves=[curves for curves in _curves(family, points) if curves.points] or None,
    )


def _curves(family: Family, points: Sequence[Point]) -> list[Curves]:
    """Memory, rate of loading and latency over the number of series, a line for each variant."""
    title = family.title.lower()
    bytes_of: dict[str, Callable[[Point], float | None]] = {
        "at its peak": lambda point: point.peak_bytes,
        "when loaded": lambda point: point.end_bytes,
    }
    rates_of: dict[str, Callable[[Point], float | None]] = {
        "until settled": lambda point: point.load.settled_readings_per_s,
        "loading": lambda point: point.load.readings_per_s,
    }
    return [
        Curves(f"Memory, {title}", _SERIES, "count", "memory, bytes", "count", _exact(points, bytes_of)),
        Curves(f"Loading, {title}", _SERIES, "count", "readings per second", "count", _exact(points, rates_of)),
        Curves(f"Latency, {title}", _SERIES, "count", "latency", "duration_s", _latencies(points)),
    ]


def _exact(points: Sequence[Point], figures: Mapping[str, Callable[[Point], float | None]]) -> list[CurvePoint]:
    return [
        CurvePoint(variant_name(point.variant), figure, point.series, _label(point), point.series, value, None, None)
        for point in points
        for figure, value_of in figures.items()
        if (value := value_of(point))
    ]


def _latencies(points: Sequence[Point]) -> list[CurvePoint]:
    return [
        CurvePoint(
            variant_name(point.variant), name, point.series, _label(point), point.series, found.value, found.low, found.high
        )
        for point in points
        for name, found in (("of one series", point.of_one), ("of all series", point.of_all))
        if found is not None and found.value
    ]


def _label(point: Point) -> str:
    return f"{point.series:,} series"
