"""What the report of the persistent-log study has to itself: ratings in words, and the paper's five questions answered."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sensorbench.claims import Evidence, variant_name
from sensorbench.results import VariantManifest
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.studies.log_analytics.systems import (
    CASSANDRA,
    COUNT_RANGE,
    FETCH_RANGE,
    FILE,
    LEVELS,
    LOOK_UP,
    RANGES,
    ratings,
    size_of,
    variant_at,
    variants_for,
    with_schema,
)
from sensorbench.studies.study import Column, Section, range_text

# A rating is for times up to this many times the best of the column.
RATINGS = ((2.0, "very good"), (5.0, "good"), (20.0, "medium"), (100.0, "bad"))
WORST = "very bad"
FAILED = "failed"

# What is rated: the column's title, the operations, and the operation in the paper's own tables.
LOAD = "load"
RATED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("Load", (LOAD,), "bulk-load"),
    ("Q1", (LOOK_UP,), "Q1"),
    ("Q2 small", tuple(f"{FETCH_RANGE}.{range_}" for range_ in RANGES[:2]), "Q2"),
    ("Q2 large", tuple(f"{FETCH_RANGE}.{range_}" for range_ in RANGES[-2:]), "Q2"),
    ("Q3", tuple(f"{COUNT_RANGE}.{range_}" for range_ in RANGES), "Q3"),
)
# The paper's word for what is good at small selectivity and bad at large.
_BOTH = "good/bad*"
_LEVEL_OF = {"none": "none", "key": "key", "key_value": "key+value"}
_SAME_MACHINE = (
    "All processes are on one machine and share its CPUs, its memory and its disk, as in the paper. That shows what "
    "splitting into processes costs, not what distribution gains."
)
# Roles of variants that play a system's part but for how they were loaded.
_OTHER_LOADERS = ("by writes", "by COPY", "by pipe")


def rating(ratio: float) -> str:
    """The word for a time that is this many times the best."""
    return next((word for limit, word in RATINGS if ratio <= limit), WORST)


@dataclass(frozen=True)
class Measured:
    """What was measured, by the ids of variants."""

    evidence: Evidence
    summary: ComparisonSummary

    @cached_property
    def variants(self) -> list[VariantManifest]:
        """The variants that hold the whole log and were to be asked."""
        return [variant for variant in self.evidence.result.manifest.variants if variant.is_whole]

    @cached_property
    def _latencies(self) -> dict[tuple[str, str], float]:
        metric = self.summary.result.metric
        intervals = ((figure, figure.latency_s.get(metric)) for figure in self.summary.result.figures)
        return {
            (figure.variant, figure.operation): interval.value for figure, interval in intervals if interval and interval.value
        }

    def time_s(self, variant: str, operation: str) -> float | None:
        """The time until loaded and settled, or the latency of an operation."""
        if operation != LOAD:
            return self._latencies.get((variant, operation))
        return self.evidence.result.loaded_s(variant)

    def mean_s(self, variant: str, operations: Sequence[str]) -> float | None:
        """The geometric mean over some operations; None when one has no figure."""
        times = [self.time_s(variant, operation) for operation in operations]
        known = [time for time in times if time is not None]
        return math.exp(math.fsum(map(math.log, known)) / len(known)) if known and len(known) == len(times) else None

    def id_of(self, *names: str) -> str | None:
        """The first of some variants that was loaded, by the names that roles have for them."""
        variant = variant_at(list(names), self.evidence.result)
        return variant if variant in self.evidence.result.loads else None

    def ratio(self, above: str | None, below: str | None, operations: Sequence[str]) -> float | None:
        """How many times as long one variant takes as another."""
        if above is None or below is None:
            return None
        over, under = self.mean_s(above, operations), self.mean_s(below, operations)
        return over / under if over and under else None


def sections(evidence: Evidence, summary: ComparisonSummary) -> list[Section]:
    """The sections of the report."""
    measured = Measured(evidence, summary)
    found = [_questions(measured), _ratings(measured)]
    return [section for section in found if section.rows]


def _ratings(measured: Measured) -> Section:
    """Each system at each level of indexes, in words; what has no levels is rated in each, as in the source."""
    rules = ", ".join(f"{word} up to {limit:g} ×" for limit, word in RATINGS)
    text = (
        f"How each variant compares with the best at the same level of indexes: {rules}, else {WORST}. Load is the time until loaded "
        "and settled, each by its own bulk loader if it is not named otherwise. Q2 small is of r1 and r2, Q2 large of r6 and r7, Q3 of "
        "all ranges, each by the geometric mean. What has no levels of indexes is compared at each. The paper's own words, "
        "next to it, were given by eye."
    )
    columns = [
        Column("Indexes"),
        Column("Variant", "variant"),
        *(Column(name) for title, _, _ in RATED for name in (title, "source")),
    ]
    levels = [level for level in LEVELS if any(_level(variant) == level for variant in measured.variants)] or ["key"]
    return Section("Ratings in words", text, columns, [row for level in levels for row in _rated_level(measured, level)])


def _rated_level(measured: Measured, level: str) -> list[list[Any]]:
    rated = [variant for variant in measured.variants if _level(variant) in {level, None}]
    times = {(variant.id, title): measured.mean_s(variant.id, operations) for variant in rated for title, operations, _ in RATED}
    best = {title: min((times[variant.id, title] or math.inf for variant in rated), default=math.inf) for title, _, _ in RATED}
    return [
        [
            level,
            variant.id,
            *(
                word
                for title, operations, operation in RATED
                for word in (
                    _word(measured, variant, operations, times[variant.id, title], best[title]),
                    _own_word(measured, variant, level, title, operation),
                )
            ),
        ]
        for variant in rated
    ]


def _level(variant: VariantManifest) -> str | None:
    """The level of indexes that a variant's label begins with; None for one that has no levels."""
    return _LEVEL_OF.get(variant.label.partition("-")[0])


def _word(
    measured: Measured, variant: VariantManifest, operations: Sequence[str], time_s: float | None, best_s: float
) -> str | None:
    """The rating and what it is from; of what has no time, whether it failed."""
    if time_s is not None:
        return f"{rating(time_s / best_s)} ({_times(time_s / best_s)})"
    of_column = (
        figure for figure in measured.summary.result.figures if figure.variant == variant.id and figure.operation in operations
    )
    has_failed = any(operation.counts.error + operation.counts.timeout for operation in of_column)
    return FAILED if has_failed or variant.id in measured.evidence.result.failures else None


def _own_word(measured: Measured, variant: VariantManifest, level: str, title: str, operation: str) -> str | None:
    """The paper's word for its own system of this kind: of all sizes, or of the size at hand."""
    code = _codes().get(variant_name(variant))
    size = size_of(measured.evidence.result)
    own = ratings()
    words = (own.get((code, level, operation, name)) for name in ("all", size) if code and name)
    word = next((word for word in words if word), None)
    if word == _BOTH:
        return "good" if title.endswith("small") else "bad"
    return None if word == "not apply" else word


def _codes() -> dict[str, str]:
    """The paper's system that each variant plays the part of; not of those with a loader or a layout of their own."""
    return {
        name: role.rsplit(" ", 1)[0] if role.rsplit(" ", 1)[-1] in LEVELS else role
        for role, names in FILE.roles.published.items()
        if not role.endswith(_OTHER_LOADERS)
        for name in names
    }


def _questions(measured: Measured) -> Section:
    """The five questions that the source asks."""
    text = "The questions of the paper, answered by what was measured here. Figures are of this machine, this scale and these versions."
    answers: list[tuple[str, Callable[[Measured], str]]] = [
        ("How suitable are relational systems, Cassandra and Redis for bulk loading and querying a large log?", _suitable),
        ("What do a primary and a secondary index cost at load time, and gain at query time?", _indexes),
        ("Does the optimizer leave the index when a scan is cheaper?", _optimizers),
        ("What does relaxed consistency change?", _consistency),
        ("Does spreading the data over several server processes help loading or querying?", _processes),
    ]
    rows: list[list[Any]] = [[question, answer(measured)] for question, answer in answers]
    return Section("The paper's five questions", text, [Column("Question"), Column("Answer")], rows)


def _suitable(measured: Measured) -> str:
    wanted = [
        ("loading", [LOAD]),
        ("a look-up", [LOOK_UP]),
        ("fetching r1", [f"{FETCH_RANGE}.r1"]),
        ("fetching r7", [f"{FETCH_RANGE}.r7"]),
        ("counting", [f"{COUNT_RANGE}.{range_}" for range_ in RANGES]),
    ]
    best_of_each = [best for what, operations in wanted if (best := _best_and_worst(measured, what, operations))]
    lacking = _lacking(measured)
    return f"{_sentence(best_of_each)}{lacking}" if best_of_each else f"Nothing was measured.{lacking}"


def _best_and_worst(measured: Measured, what: str, operations: Sequence[str]) -> str | None:
    times = {variant.id: measured.mean_s(variant.id, operations) for variant in measured.variants}
    known = sorted((time, variant) for variant, time in times.items() if time is not None)
    if not known:
        return None
    best, worst = known[0], known[-1]
    spread = f", {_times(worst[0] / best[0])} as long with {worst[1]}" if worst[1] != best[1] else ""
    return f"{what} takes least time with {best[1]} ({_duration(best[0])}){spread}"


def _lacking(measured: Measured) -> str:
    """Which kinds of systems of the source were not measured."""
    kinds = {
        "a commercial database": ["DB-C"],
        "MariaDB or MySQL": ["DB-O"],
        "Cassandra": CASSANDRA,
        "Redis": ["Redis", "Redis-SH"],
    }
    codes = _codes()
    found = {
        codes[name]
        for variant in measured.variants
        if (name := variant_name(variant)) in codes and variant.id in measured.summary.result.load
    }
    absent = [kind for kind, systems in kinds.items() if not found & set(systems)]
    return f" Not measured: {', '.join(absent)}." if absent else ""


def _indexes(measured: Measured) -> str:
    """Load and questions of each family of variants that differ by their indexes alone."""
    steps = [
        ("loading with the key", "key", "none", [LOAD]),
        ("looking up with it", "key", "none", [LOOK_UP]),
        ("loading with the index on the value, too", "key+value", "key", [LOAD]),
        ("fetching r1 with it", "key+value", "key", [f"{FETCH_RANGE}.r1"]),
        ("fetching r7 with it", "key+value", "key", [f"{FETCH_RANGE}.r7"]),
        ("counting with it", "key+value", "key", [f"{COUNT_RANGE}.{range_}" for range_ in RANGES]),
    ]
    families = _families(measured)
    parts = []
    for what, level, before, operations in steps:
        ratios = {name: measured.ratio(levels.get(level), levels.get(before), operations) for name, levels in families.items()}
        known = [f"{_times(ratio)} ({name})" for name, ratio in ratios.items() if ratio is not None]
        if known:
            parts.append(f"{what}: {', '.join(known)}")
    if not parts:
        return "No two levels of indexes of the same system were measured."
    return f"As many times as long as without it: {'; '.join(parts)}."


def _families(measured: Measured) -> dict[str, dict[str, str]]:
    """Variants by system and then by level of indexes."""
    families: dict[str, dict[str, str]] = {}
    for variant in measured.variants:
        level = _level(variant)
        if level is not None and variant.label == variant.schema_parameters.get("index"):
            families.setdefault(variant.system or variant.database, {})[level] = variant.id
    return families


def _optimizers(measured: Measured) -> str:
    """Where each database plans to scan although there is an index on the value."""
    parts = []
    for name, levels in _families(measured).items():
        variant, result = levels.get("key+value", ""), measured.evidence.result
        access = {range_: result.access(variant, f"{FETCH_RANGE}.{range_}") or "" for range_ in RANGES}
        known = [range_ for range_ in RANGES if access[range_]]
        scans = [name for name in known if not access[name].startswith("index ")]
        if known:
            parts.append(
                f"{name} plans {f'a scan for fetching {range_text(scans, RANGES)}' if scans else 'the index for fetching every range'}"
            )
    silent = "Cassandra and Redis have no plans: a statement names the one way in which it is executed."
    return (
        f"With an index on the value, {'; '.join(parts)}. {silent}"
        if parts
        else f"No database that shows its plans was measured with an index on the value. {silent}"
    )


def _consistency(measured: Measured) -> str:
    replicas = _compared(measured, variants_for("CA-SH-R3-S", "key"), variants_for("CA-SH-R3-W", "key"))
    first = (
        f"With three replicas, waiting for all instead of one takes {replicas}; the weak configuration is not durable either, as in the source."
        if replicas
        else "Replicated Cassandra was not measured at both levels."
    )
    relaxed = [
        f"{compared} ({name})"
        for name, levels in _families(measured).items()
        if (compared := _compared(measured, [f"{name}/relational/key"], [f"{name}_relaxed/relational/key"]))
    ]
    second = (
        f" Relational databases that wait for the disk take {'; '.join(relaxed)} compared with relaxed ones." if relaxed else ""
    )
    return f"{first}{second}"


def _processes(measured: Measured) -> str:
    pairs = [
        ("four nodes of Cassandra instead of one", "CA-SH", "CA"),
        ("six masters of Redis instead of one server", "Redis-SH", "Redis"),
    ]
    parts = [
        f"{what} take {ratios}"
        for what, many, pair in pairs
        if (ratios := _compared(measured, variants_for(many, "key"), variants_for(pair, "key")))
    ]
    spread = _compared(measured, with_schema("Redis-SH", "spread"), with_schema("Redis-SH", "source"))
    if spread:
        parts.append(f"on those masters, sixteen sorted sets instead of one take {spread}")
    return f"{_sentence(parts)} {_SAME_MACHINE}" if parts else "No system was measured with one process and with several."


def _compared(measured: Measured, above: Sequence[str], below: Sequence[str]) -> str | None:
    """How many times as long one variant takes as another, for everything."""
    name, other = measured.id_of(*above), measured.id_of(*below)
    ratios = {title: measured.ratio(name, other, operations) for title, operations, _ in RATED}
    known = [f"{_times(ratio)} for {title}" for title, ratio in ratios.items() if ratio is not None]
    return ", ".join(known) if known else None


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} ×" if ratio >= 1000 else f"{ratio:.3g} ×"


def _duration(seconds: float) -> str:
    units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
    unit, name = next((unit for unit in units if seconds >= unit[0]), units[-1])
    return f"{seconds / unit:.3g} {name}"


def _sentence(parts: Sequence[str]) -> str:
    whole = "; ".join(parts)
    return f"{whole[:1].upper()}{whole[1:]}."
