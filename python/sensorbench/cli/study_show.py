"""`sensorbench study show`."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from sensorbench.cli.elasticity import show_elasticity_study
from sensorbench.cli.factors import show_factor_study
from sensorbench.cli.mapreduce import show_mapreduce_study
from sensorbench.cli.options import Json
from sensorbench.cli.output import (
    published_claims,
    published_claims_as_json,
)
from sensorbench.cli.printing import print_json
from sensorbench.errors import UsageError
from sensorbench.progress import console
from sensorbench.results import read_comparison
from sensorbench.results.series import is_series, parts_with_results
from sensorbench.studies import FACTOR_STUDIES, OTHER_STUDIES, Study, require_study
from sensorbench.studies.elasticity import ELASTICITY
from sensorbench.studies.mapreduce import MAPREDUCE
from sensorbench.studies.study import Grid, Layout, PublishedFigure, grouped


def show(
    name: Annotated[str, typer.Argument(help="Name of the study.")],
    folder: Annotated[
        Path | None,
        typer.Argument(help="Results of the study: say of each cell of its paper what they have.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Show what a study asks, its grid, which figures of its source it has, and its claims."""
    if name in FACTOR_STUDIES:
        if folder is not None:
            raise UsageError(f"{folder}: study {name} does not say which cells its source has")
        show_factor_study(FACTOR_STUDIES[name], as_json=json)
        return
    if name in OTHER_STUDIES:
        if folder is not None:
            raise UsageError(f"{folder}: study {name} does not say which cells its source has")
        if name == ELASTICITY.name:
            show_elasticity_study(ELASTICITY, as_json=json)
        else:
            show_mapreduce_study(MAPREDUCE, as_json=json)
        return
    study = require_study(name)
    figures = _figures(study, folder)
    if json:
        print_json(_described(study, figures))
        return
    screen = console()
    screen.print(study.file.title, style="bold")
    screen.print(study.file.question)
    screen.print(
        f"source: {study.file.source}\ndatasets: {', '.join(study.file.datasets)}; metric: {study.file.metric}\n", highlight=False
    )
    for name, system in study.file.systems.items():
        code = f" ({system.code} in the source)" if system.code else ""
        screen.print(f"  {name}{code}: {system.summary}", highlight=False)
    for name, part in study.file.parts.items():
        screen.print(f"  part {name}: {part.title} ({part.datasets[0]})", highlight=False)
        for database, names in _schemas(part).items():
            screen.print(f"    {database}: {', '.join(names)}", highlight=False)
    if not study.file.parts:
        for database, names in _schemas(study.file).items():
            screen.print(f"  {database}: {', '.join(names)}", highlight=False)
    screen.print()
    if figures:
        screen.print(_table_of_figures(figures))
        screen.print()
    screen.print(published_claims(study.claims, with_parts=bool(study.file.parts)))


def _figures(study: Study, folder: Path | None) -> list[PublishedFigure]:
    """The cells of a study, as it means to measure them or as results have them. Raises UsageError."""
    if study.published is None:
        if folder is not None:
            raise UsageError(f"{folder}: study {study.name} does not say which cells its source has")
        return []
    if folder is None:
        return study.published(None)
    folders = parts_with_results(folder).values() if is_series(folder) else [folder]
    found = [read_comparison(each) for each in folders]
    other = next(
        (
            comparison
            for comparison in found
            if (comparison.manifest.plan.source, comparison.manifest.plan.name) != ("study", study.name)
        ),
        None,
    )
    if other is not None:
        raise UsageError(
            f"{folder}: these are results of the {other.manifest.plan.source} {other.manifest.plan.name}; expected the study {study.name}"
        )
    return [figure for comparison in found for figure in study.published(comparison)]


def _table_of_figures(figures: list[PublishedFigure]) -> Table:
    counts = Counter(figure.state for figure in figures)
    title = f"{len(figures):,} figures of the source: {', '.join(f'{count:,} {state}' for state, count in counts.items())}"
    table = Table(box=None, title=title, title_justify="left")
    for column in ("system", "indexes", "sizes", "operations", "here", "why"):
        table.add_column(column)
    for group in grouped(figures):
        table.add_row(*group)
    return table


def _schemas(grid: Grid) -> dict[str, list[str]]:
    """The schemas of layouts by dialect, each with what tells it from others."""
    return {dialect: _names(layouts) for dialect, layouts in grid.schemas.items()}


def _names(layouts: list[Layout]) -> list[str]:
    return [" ".join(filter(None, [layout.schema_, choice.label])) for layout in layouts for choice in layout.choices()]


def _described(study: Study, figures: list[PublishedFigure]) -> dict[str, Any]:
    claims = published_claims_as_json(study.claims, with_parts=True)
    parts = {name: {**part.model_dump(mode="json"), "schemas": _schemas(part)} for name, part in study.file.parts.items()}
    file = {**study.file.model_dump(mode="json"), "schemas": _schemas(study.file), "parts": parts}
    described = {"name": study.name, **file, "claims": claims}
    return {**described, "cells": [asdict(figure) for figure in figures]} if study.published else described
