"""`sensorbench study show`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sensorbench.cli.elasticity import show_elasticity_study
from sensorbench.cli.factors import show_factor_study
from sensorbench.cli.mapreduce import show_mapreduce_study
from sensorbench.cli.options import Json
from sensorbench.cli.output import published_claims_as_json
from sensorbench.cli.printing import print_json
from sensorbench.cli.published import cells, planned_tables, show_published_and_claims, tables_at
from sensorbench.progress import console
from sensorbench.studies import FACTOR_STUDIES, OTHER_STUDIES, Study, require_study
from sensorbench.studies.elasticity import ELASTICITY
from sensorbench.studies.mapreduce import MAPREDUCE
from sensorbench.studies.study import Grid, Layout


def show(
    name: Annotated[str, typer.Argument(help="Name of the study.")],
    folder: Annotated[
        Path | None,
        typer.Argument(help="Results of the study, to show next to each value that its paper printed.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Show a study's question, grid and claims, and what its paper printed."""
    if folder is not None:
        _require(name)
        tables = tables_at(folder, name)
        if json:
            print_json({"name": name, "published": tables})
        else:
            console().print(cells(tables))
    elif name in FACTOR_STUDIES:
        show_factor_study(FACTOR_STUDIES[name], as_json=json)
    elif name == ELASTICITY.name:
        show_elasticity_study(ELASTICITY, as_json=json)
    elif name == MAPREDUCE.name:
        show_mapreduce_study(MAPREDUCE, as_json=json)
    else:
        _show_comparison(require_study(name), as_json=json)


def _require(name: str) -> None:
    """Raises UsageError for a study that there is not."""
    if name not in FACTOR_STUDIES and name not in OTHER_STUDIES:
        require_study(name)


def _show_comparison(study: Study, *, as_json: bool) -> None:
    if as_json:
        print_json(_described(study))
        return
    screen = console()
    screen.print(study.file.title, style="bold")
    screen.print(study.file.question)
    screen.print(
        f"source: {study.file.source}\ndatasets: {', '.join(study.file.datasets)}; metric: {study.file.metric}\n", highlight=False
    )
    for name, system in study.file.systems.items():
        code = f" ({system.code} in the paper)" if system.code else ""
        screen.print(f"  {name}{code}: {system.summary}", highlight=False)
    for name, part in study.file.parts.items():
        screen.print(f"  part {name}: {part.title} ({part.datasets[0]})", highlight=False)
        for database, names in _schemas(part).items():
            screen.print(f"    {database}: {', '.join(names)}", highlight=False)
    if not study.file.parts:
        for database, names in _schemas(study.file).items():
            screen.print(f"  {database}: {', '.join(names)}", highlight=False)
    screen.print()
    show_published_and_claims(study.name, study.claims, with_parts=bool(study.file.parts))


def _schemas(grid: Grid) -> dict[str, list[str]]:
    """The schemas of layouts by dialect, each with what distinguishes it from others."""
    return {dialect: _names(layouts) for dialect, layouts in grid.schemas.items()}


def _names(layouts: list[Layout]) -> list[str]:
    return [" ".join(filter(None, [layout.schema_, choice.label])) for layout in layouts for choice in layout.choices()]


def _described(study: Study) -> dict[str, Any]:
    claims = published_claims_as_json(study.claims, with_parts=True)
    parts = {name: {**part.model_dump(mode="json"), "schemas": _schemas(part)} for name, part in study.file.parts.items()}
    file = {**study.file.model_dump(mode="json"), "schemas": _schemas(study.file), "parts": parts}
    return {"name": study.name, **file, "claims": claims, "published": planned_tables(study.name)}
