"""The sections that a study has to itself: a text, pictures, a table."""

from collections.abc import Sequence
from typing import cast

from sensorbench.report import fronts
from sensorbench.report.curves import curves
from sensorbench.report.effects import effects
from sensorbench.report.requests import request_blocks, use_blocks
from sensorbench.results import ComparisonResult
from sensorbench.results.page import Block, Chart, Details, Grid, Section, Table, Text, ValueKind
from sensorbench.results.summary.comparison import StudySection

# Longer tables are shown when they are clicked at.
_MAX_ROWS = 40


def own_sections(sections: Sequence[StudySection], result: ComparisonResult | None = None) -> list[Section]:
    """The sections of a study, in their order. `result` is what single requests are drawn from; a series has none."""
    return [Section("", section.title, _blocks(section, number, result)) for number, section in enumerate(sections, 1)]


def _blocks(section: StudySection, number: int, result: ComparisonResult | None) -> list[Block]:
    blocks: list[Block] = [Text(section.text)]
    points = fronts.on_axes(section.front["points"]) if section.front else []
    if section.front and points:
        drawn = fronts.front({**section.front, "points": points})
        blocks += [Chart(f"front-{number}", drawn, is_wide=True, file_width=fronts.WIDTH)]
    if section.effects:
        drawn = effects(section.effects)
        blocks += [Chart(f"effects-{number}", drawn, is_wide=True, file_width=fronts.WIDTH)]
    if section.curves:
        blocks.append(
            Grid([Chart(f"curves-{number}-{place}", curves(of), of["title"]) for place, of in enumerate(section.curves, 1)])
        )
    if section.rows:
        table = Table([(column.title, cast("ValueKind", column.kind)) for column in section.columns], section.rows)
        blocks.append(Details(f"{len(section.rows)} rows", [table]) if len(section.rows) > _MAX_ROWS else table)
    if result is not None:
        blocks += [*request_blocks(section.requests or [], result), *use_blocks(section.use or [], result)]
    return blocks
