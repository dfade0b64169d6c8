"""`sensorbench study`: list, show and run studies."""

from typing import Annotated, Any

import typer
from rich.table import Table

from sensorbench.cli.options import Json, NoOpen, Out, Replace, Resume
from sensorbench.cli.output import conduct_and_report, new_folder, print_json
from sensorbench.dataset import DEFAULT_SEED
from sensorbench.errors import UsageError
from sensorbench.progress import Teller, console
from sensorbench.study import STUDIES, Study, StudyOptions, plan_study, require_study

app = typer.Typer(help="Reproduce published studies.", no_args_is_help=True)


@app.command("list")
def list_studies(json: Json = False) -> None:
    """List the studies."""
    if json:
        print_json(
            [
                {"name": study.name, "title": study.file.title, "claims": len(study.claims), "targets": list(study.file.schemas)}
                for study in STUDIES.values()
            ]
        )
        return
    table = Table(box=None)
    for column in ("study", "what", "databases", "claims"):
        table.add_column(column)
    for study in STUDIES.values():
        table.add_row(study.name, study.file.title, ", ".join(study.file.schemas), str(len(study.claims)))
    console().print(table)


@app.command("show")
def show(name: Annotated[str, typer.Argument(help="Name of the study.")], json: Json = False) -> None:
    """Show what a study asks, its grid and its claims."""
    study = require_study(name)
    if json:
        print_json(_described(study))
        return
    screen = console()
    screen.print(study.file.title, style="bold")
    screen.print(study.file.question)
    screen.print(f"source: {study.file.source}\ndataset: {study.file.dataset}; metric: {study.file.metric}\n", highlight=False)
    for database, schemas in study.file.schemas.items():
        screen.print(f"  {database}: {', '.join(schemas)}", highlight=False)
    screen.print()
    table = Table(box=None)
    for column in ("claim", "finding", "form", "published"):
        table.add_column(column)
    for claim in study.claims:
        table.add_row(claim.id, claim.text, claim.form, claim.published)
    screen.print(table)


def _described(study: Study) -> dict[str, Any]:
    claims = [
        {"id": claim.id, "text": claim.text, "form": claim.form, "published": claim.published, "lacks": claim.lacks}
        for claim in study.claims
    ]
    return {"name": study.name, **study.file.model_dump(mode="json"), "claims": claims}


@app.command("run")
def run(
    name: Annotated[str, typer.Argument(help="Name of the study.")],
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            help="A database's name, or its URL (sqlite:PATH, fjall:PATH). May be given several times.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        list[str] | None,
        typer.Option("--schema", help="Only schemas of this name. May be given several times.", show_default=False),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", help="A dataset's name, the folder of an imported one, or a mapping file.", show_default=False),
    ] = None,
    scale: Annotated[float, typer.Option("--scale", help="Share of the dataset's span that is used.")] = 1.0,
    seed: Annotated[int, typer.Option("--seed", help="Seed of a generated dataset.")] = DEFAULT_SEED,
    operations: Annotated[
        int | None,
        typer.Option(
            "--operations",
            help="Requests of a run; those of the study if not given, fewer at scales below 0.1.",
            min=1,
            show_default=False,
        ),
    ] = None,
    warm_up: Annotated[
        int | None, typer.Option("--warm-up", help="Requests before each run that are not measured.", min=0, show_default=False)
    ] = None,
    repeat: Annotated[int | None, typer.Option("--repeat", help="Runs of each setting.", min=1, show_default=False)] = None,
    in_flight: Annotated[int | None, typer.Option("--in-flight", help="Requests in flight.", min=1, show_default=False)] = None,
    out: Out = None,
    resume: Resume = False,
    replace: Replace = False,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Run a study: load, ask, check the answers, judge the claims, write a report."""
    study = require_study(name)
    if resume and out is None:
        raise UsageError("--resume: name the folder of the work to go on with by --out")
    out = out or new_folder(name)
    teller = Teller()
    options = StudyOptions(tuple(target or ()), tuple(schema or ()), dataset, scale, seed, operations, warm_up, repeat, in_flight)
    comparison = plan_study(study, options, out, teller)
    described = comparison.dataset.describe()
    teller.say(
        f"{study.file.title}: {described.readings:,} readings, {described.first_time} to {described.last_time}; settings: {len(comparison.settings)}, results go to {out}"
    )
    conduct_and_report(comparison, out, teller, resume=resume, replace=replace, open_browser=not no_open, as_json=json)
