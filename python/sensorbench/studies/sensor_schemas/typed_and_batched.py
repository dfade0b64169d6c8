"""Typed values and batches one to one, as the paper's appendices A.1 and A.2 have them: the same rows for both, figure by figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sensorbench.analysis.intervals import Interval, contrast_interval, spread_over_runs
from sensorbench.claims import Evidence
from sensorbench.results import VariantManifest
from sensorbench.studies.sensor_schemas.claims import NEW_RANGE, READ, WRITE, rates
from sensorbench.studies.study import Column, Section

METRICS = {"mean": "mean", "median": "median", "sd": "standard deviation", "p75": "p75", "p95": "p95", "p99": "p99"}
# A scenario of the paper: the part with it, and its operation.
SCENARIOS = {
    "writing": ("write", WRITE),
    "reading": ("read", READ),
    "writing while reading": ("mixed", WRITE),
    "reading while writing": ("mixed", NEW_RANGE),
}
# Where a width is given, the paper's typed rows are listed in the same table, its batches in a table of their own.
_METADATA_OF_WIDTHS = {"typed": "same_table", "batched": "own_table"}
_WIDTH, _BATCH, _ENCODING = "100k", 150, "text"


@dataclass(frozen=True)
class _Pair:
    """What both have in common, and the variant of each."""

    system: str
    what: str
    typed: str
    batched: str


def one_to_one_sections(parts: Mapping[str, Evidence]) -> list[Section]:
    """A table for each scenario that was measured, by the evidence of each part, whose roles are its variants."""
    found = [_section(name, parts[part], operation) for name, (part, operation) in SCENARIOS.items() if part in parts]
    return [section for section in found if section.rows]


def _section(scenario: str, evidence: Evidence, operation: str) -> Section:
    rows = [row for pair in _pairs(evidence) for row in _rows(evidence, pair, operation)]
    return Section(
        f"Typed values against batches, one to one: {scenario}",
        "As in the paper's appendices A.1 and A.2: each row has a typed layout and the layout with batches of 150 readings that has the same metadata, "
        "or rows of the same width. The ratio is that of batches to typed values, with its 95% interval. A batch has 150 readings: throughput is in "
        "operations, and written readings have a row of their own.",
        [
            Column("layout"),
            Column("figure"),
            Column("typed"),
            Column("batched"),
            Column("batched over typed", "ratio"),
            Column("from", "ratio"),
            Column("to", "ratio"),
        ],
        rows,
    )


def _pairs(evidence: Evidence) -> list[_Pair]:
    """The layouts that both have, system by system."""
    typed = _by_layout([variant for variant in evidence.result.manifest.variants if variant.schema_name == "typed"])
    batched = _by_layout([variant for variant in evidence.result.manifest.variants if variant.schema_name == "batched"])
    return [
        _Pair(system, what, typed[system, what], batched[system, what]) for system, what in typed if (system, what) in batched
    ]


def _by_layout(variants: Sequence[VariantManifest]) -> dict[tuple[str, str], str]:
    """The variants whose batches are the paper's and that vary nothing but metadata, or nothing but the width, by system and by that."""
    found: dict[tuple[str, str], str] = {}
    for variant in variants:
        parameters, schema = variant.schema_parameters, variant.schema_name
        is_default = schema == "typed" or (parameters.get("batch") == _BATCH and parameters.get("encoding") == _ENCODING)
        if not is_default or (schema == "typed" and parameters.get("batch", 1) != 1):
            continue
        metadata, width = parameters.get("metadata"), parameters.get("width", _WIDTH)
        system = variant.system or variant.database
        if width == _WIDTH:
            found.setdefault((system, f"metadata: {str(metadata).replace('_', ' ')}"), variant.id)
        elif metadata in (None, _METADATA_OF_WIDTHS[schema]):
            found.setdefault((system, f"rows of {width}"), variant.id)
    return found


def _rows(evidence: Evidence, pair: _Pair, operation: str) -> list[list[Any]]:
    typed, batched = evidence.sample(pair.typed, operation), evidence.sample(pair.batched, operation)
    if typed is None or batched is None:
        return []
    layout = f"{pair.system}, {pair.what}"
    rows = [
        _rate_row(
            layout, "operations per second", rates(evidence, pair.typed, operation), rates(evidence, pair.batched, operation)
        )
    ]
    if operation == WRITE:
        by_reading = [rate * _BATCH for rate in rates(evidence, pair.batched, operation)]
        rows.append(_rate_row(layout, "readings per second", rates(evidence, pair.typed, operation), by_reading))
    for metric, title in METRICS.items():
        ratio = contrast_interval([(batched, 1.0), (typed, -1.0)], metric)
        rows.append([layout, title, _ms(typed.figure(metric)), _ms(batched.figure(metric)), *_shown(ratio)])
    return [row for row in rows if row]


def _rate_row(layout: str, title: str, typed: Sequence[float], batched: Sequence[float]) -> list[Any]:
    """A rate of both; nothing if one of them got nothing done."""
    runs = min(len(typed), len(batched))
    if not runs or min(*typed, *batched) <= 0.0:
        return []
    # Runs with equal numbers were neighbours in time.
    ratio = spread_over_runs(np.array(batched[:runs]) / np.array(typed[:runs]))
    return [layout, title, _count(typed), _count(batched), *_shown(ratio)]


def _shown(ratio: Interval) -> list[float | None]:
    return [ratio.value if np.isfinite(ratio.value) else None, ratio.low, ratio.high]


def _count(of_runs: Sequence[float]) -> str:
    return f"{float(np.mean(of_runs)):,.4g}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"
