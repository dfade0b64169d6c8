"""What the report of the building-sensor study has to itself: the paper's charts of whole runs, the plan that judges the locations with a sensor, the
growth of a partition, and the order of answers.
"""

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sensorbench.claims import Evidence, NotMeasuredError
from sensorbench.results import VariantManifest
from sensorbench.results.latencies import of_kind
from sensorbench.results.manifest import MEASURE
from sensorbench.results.summary.comparison import ComparisonSummary, QueryPlan
from sensorbench.studies.iot.claims import Q1, QUERIES, YEAR_READINGS, YEARS, largest_partition
from sensorbench.studies.pictures import Requests
from sensorbench.studies.study import Column, Section

Q4 = QUERIES[-1]
# The paper's two systems, and the one with MySQL's plan, which differs at one question alone.
NOSQL, SQL, PLANNED = "nosql", "sql", "sql_planned"
LIMIT_BYTES = 100_000_000
YEAR_S = 365 * 86_400
# What plans of MySQL and MariaDB name a table by, and how both say that a table is left at its first fitting row.
_TABLE = re.compile(r'"table_name": "(\w+)"')
_LEFT_AT_FIRST = '"distinct": true'


def sections(evidence: Evidence, summary: ComparisonSummary) -> list[Section]:
    """The sections of the report; those that have something to show."""
    found = [_runs(evidence, summary), _plans(evidence, summary), _partition(evidence), _orders(evidence)]
    return [section for section in found if section is not None]


def _played(evidence: Evidence, roles: Sequence[str]) -> list[str]:
    """The variants that play some roles, each once."""
    return list(dict.fromkeys(evidence.roles[role] for role in roles if role in evidence.roles))


def _runs(evidence: Evidence, summary: ComparisonSummary) -> Section | None:
    """Each request of each run at the systems of the paper."""
    if not _played(evidence, [NOSQL, SQL]):
        return None
    text = (
        "The paper's Figures 8 to 79 draw the requests of each question at each system: all of them, the first ones, and without the first 25 or 75, "
        "which may be a cold start. Here are all runs of the systems that play the paper's parts; all other variants are below, in “Latency over the run”."
    )
    drawn = [
        Requests(name, operation.title, _played(evidence, [NOSQL, SQL, *([PLANNED] if name == Q4 else [])]))
        for name, operation in summary.result.operations.items()
        if name in QUERIES
    ]
    return Section("Whole runs, as the paper draws them", text, [], [], requests=drawn, use=_played(evidence, [NOSQL, SQL]))


def _plans(evidence: Evidence, summary: ComparisonSummary) -> Section | None:
    """How each database with plans goes about the locations with a sensor."""
    plans = {variant: plan for variant, of_variant in evidence.result.plans.items() if (plan := of_variant.get(Q4)) is not None}
    rows = [row for variant, plan in plans.items() if (row := _planned(evidence, summary, variant, plan))]
    if not rows:
        return None
    text = (
        "The question can be answered without reading all facts: take the sensor, then each location, and leave both at the first fact that they share. "
        "MySQL 8 may do that, as DISTINCT needs no more. MariaDB reads the facts first in the plain star schema, so that its latency says nothing of "
        "MySQL's. Claims about this question are judged by the variant whose plan is fixed to that order; a MySQL of yours is judged by its own plan. In "
        "plans, s are the sensors, l the locations, m the facts."
    )
    columns = [
        Column("variant", "variant"),
        Column("tables in order"),
        Column("at the first fact"),
        Column("latency", "duration_s"),
        Column("judges claims"),
    ]
    return Section("The plan for the locations with a sensor", text, columns, rows)


def _planned(evidence: Evidence, summary: ComparisonSummary, variant: str, plan: QueryPlan) -> list[Any] | None:
    """A row for a plan that names its tables."""
    tables = _TABLE.findall(plan.text)
    if not tables:
        return None
    figure = next((figure for figure in summary.result.figures if (figure.variant, figure.operation) == (variant, Q4)), None)
    latency = figure.latency_s.get(summary.result.metric) if figure else None
    judges = "yes" if variant == evidence.roles.get(PLANNED) else "no"
    return [
        variant,
        " → ".join(tables),
        "left" if _LEFT_AT_FIRST in plan.text else "read on",
        latency.value if latency else None,
        judges,
    ]


def _partition(evidence: Evidence) -> Section | None:
    """How large a partition of one sensor becomes."""
    if NOSQL not in evidence.roles:
        return None
    try:
        largest = largest_partition(evidence, NOSQL)
    except NotMeasuredError:
        return None
    year_bytes = largest.bytes_with(YEAR_READINGS)
    text = (
        f"The paper keeps one partition per sensor and bounds it by a time to live of {YEARS} years ({YEARS * YEAR_S:,} s), so that it stays below 100 MB. One "
        "year has roughly 17.5 MB there. Here the largest partition is what the server reports, and years are extrapolated from its bytes per reading, one "
        f"reading per minute. The other half of the limit that the paper names, 100,000 rows, is passed after {100_000 / (24 * 60):,.0f} days."
    )
    columns = [
        Column("variant", "variant"),
        Column("largest partition", "bytes"),
        Column("readings", "count"),
        Column("bytes per reading", "bytes"),
        Column("one year", "bytes"),
        Column(f"{YEARS} years", "bytes"),
        Column("years until 100 MB"),
    ]
    row = [
        evidence.roles[NOSQL],
        largest.measured_bytes,
        largest.readings,
        largest.bytes_with(1),
        year_bytes,
        largest.bytes_with(YEARS * YEAR_READINGS),
        f"{LIMIT_BYTES / year_bytes:.1f}",
    ]
    return Section("How large a partition becomes", text, columns, [row])


def _orders(evidence: Evidence) -> Section | None:
    """In which order readings come."""
    rows = [row for variant in evidence.result.manifest.variants if (row := _ordered(evidence, variant))]
    if not any(row[2] for row in rows):
        return None
    text = (
        "Cassandra returns readings newest first, as it stores them; MySQL's queries had no ORDER BY. Neither sorts, so the question is the same for both. An order that "
        "a schema promises is checked in every answer; an answer in another order counts as a wrong one."
    )
    columns = [
        Column("variant", "variant"),
        Column("order of its readings"),
        Column("answers checked", "count"),
        Column("in that order", "count"),
    ]
    return Section("The order of answers", text, columns, rows)


def _ordered(evidence: Evidence, variant: VariantManifest) -> list[Any] | None:
    """The declared order of a variant's readings, and how many answers had it."""
    if variant.only_loads or Q1 not in variant.statements:
        return None
    declared = ", ".join(f"{order['column']} {order['direction']}" for order in variant.statements[Q1].get("order", []))
    checked = in_order = 0
    for run in evidence.result.usable_runs(variant.id):
        answers = run.table("answers")
        if answers is None or Q1 not in run.manifest.operations or MEASURE not in run.manifest.phases:
            continue
        of_query: pa.Table = of_kind(answers, run.manifest.phases.index(MEASURE), run.manifest.operations.index(Q1))
        checked += len(of_query) - of_query["in_order"].null_count
        in_order += pc.sum(of_query["in_order"]).as_py() or 0
    return [variant.id, declared or "none promised", checked or None, in_order if checked else None]
