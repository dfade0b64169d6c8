"""The commands of `sensorbench study run`: one for each kind of study. The study is the command's own name."""

from pathlib import Path
from typing import Annotated

import typer

from sensorbench.app.study import run_study
from sensorbench.cli.elasticity import run_elasticity_study
from sensorbench.cli.factors import run_factor_study
from sensorbench.cli.mapreduce import Asked, run_mapreduce_study
from sensorbench.cli.options import DropAfter, Json, NoOpen, Out, Replace, Resume, Sweep, require_out
from sensorbench.cli.output import new_folder, print_outcome, show_written
from sensorbench.cli.printing import print_json
from sensorbench.dataset import DEFAULT_SEED
from sensorbench.progress import Teller
from sensorbench.results.summary.comparison import ComparisonSummary, SeriesSummary
from sensorbench.runner import FILE_URL, SERVER_URL, parse_sweeps
from sensorbench.studies import FACTOR_STUDIES, StudyOptions, require_study
from sensorbench.studies.elasticity import ELASTICITY
from sensorbench.studies.mapreduce import MAPREDUCE

Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        help=f"A system of the study, a database's name, or a URL ({FILE_URL}, {SERVER_URL}). May be given several times.",
        show_default=False,
    ),
]
OneTarget = Annotated[
    str | None, typer.Option("--target", help="The study's database with options behind ?, as in URLs.", show_default=False)
]
Schemas = Annotated[
    list[str] | None,
    typer.Option("--schema", help="Only schemas of this name. May be given several times.", show_default=False),
]
Datasets = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset",
        help="A dataset's name, the folder of an imported one, or a mapping file. May be given several times; each is compared by itself.",
        show_default=False,
    ),
]
OneDataset = Annotated[
    str | None, typer.Option("--dataset", help="A dataset's name, or the folder of an imported one.", show_default=False)
]
Parts = Annotated[
    list[str] | None,
    typer.Option("--part", help="Only this part, of a study with parts. May be given several times.", show_default=False),
]
Scale = Annotated[float, typer.Option("--scale", help="Share of the dataset that is used.")]
FactorScale = Annotated[float, typer.Option("--scale", help="Share of the study's records, and of the settings that are sizes.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of generated data and of operations.")]
Operations = Annotated[
    int | None,
    typer.Option(
        "--operations",
        help="Requests of a run; those of the study if not given, fewer at scales below 0.1.",
        min=1,
        show_default=False,
    ),
]
RequestsOfASet = Annotated[
    int | None, typer.Option("--operations", help="Requests of a set that each thread issues.", min=1, show_default=False)
]
Duration = Annotated[
    str | None,
    typer.Option("--duration", help="Length of a run instead of a number of requests: 30s, 5m, 8h.", show_default=False),
]
StepLength = Annotated[str | None, typer.Option("--duration", help="How long each rate is held: 30s, 5m.", show_default=False)]
WarmUp = Annotated[
    int | None, typer.Option("--warm-up", help="Requests before each run that are not measured.", min=0, show_default=False)
]
Repeat = Annotated[int | None, typer.Option("--repeat", help="Repetitions: runs of each variant.", min=1, show_default=False)]
InFlight = Annotated[
    int | None, typer.Option("--in-flight", help="Requests in flight; with --rate, at most.", min=1, show_default=False)
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--rate", help="Requests per second that come whether or not others are answered (an open loop).", show_default=False
    ),
]
Arrival = Annotated[
    str | None, typer.Option("--arrival", help="How requests come at a rate: constant or poisson.", show_default=False)
]
Registers = Annotated[
    int | None,
    typer.Option(
        "--registers",
        help="Write and read registers beside the study's questions, each with this weight, and check what the databases promise of them.",
        min=1,
        show_default=False,
    ),
]
Spark = Annotated[
    str | None,
    typer.Option(
        "--spark",
        help="Spark's master, spark://HOST:PORT, lab:NAME or local[N]; without it the lab starts one.",
        show_default=False,
    ),
]
Workers = Annotated[
    str | None, typer.Option("--workers", help="Numbers of Spark's workers, for example 1,2.", show_default=False)
]
Words = Annotated[
    list[str] | None,
    typer.Option(
        "--word",
        help="A word that is looked for. May be given several times; chosen by frequency if not given.",
        show_default=False,
    ),
]


def comparison(
    study: typer.Context,
    target: Targets = None,
    schema: Schemas = None,
    dataset: Datasets = None,
    part: Parts = None,
    scale: Scale = 1.0,
    seed: Seed = DEFAULT_SEED,
    operations: Operations = None,
    duration: Duration = None,
    warm_up: WarmUp = None,
    repeat: Repeat = None,
    in_flight: InFlight = None,
    rate: Rate = None,
    arrival: Arrival = None,
    sweep: Sweep = None,
    registers: Registers = None,
    out: Out = None,
    resume: Resume = False,
    replace: Replace = False,
    drop_after: DropAfter = False,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Load, ask, check the answers, judge the claims, write a report."""
    name = _name(study)
    require_out(resume, out)
    options = StudyOptions(
        targets=tuple(target or ()),
        schemas=tuple(schema or ()),
        datasets=tuple(dataset or ()),
        parts=tuple(part or ()),
        scale=scale,
        seed=seed,
        operations=operations,
        duration=duration,
        warm_up=warm_up,
        repeat=repeat,
        in_flight=in_flight,
        rate=rate,
        arrival=arrival,
        sweeps=parse_sweeps(list(sweep or ())),
        registers=registers,
    )

    def show(summary: ComparisonSummary | SeriesSummary, page: Path) -> None:
        if isinstance(summary, ComparisonSummary):
            show_written((summary, page), print_outcome, no_open=no_open, as_json=json)
        elif json:
            print_json(summary)

    def show_part(summary: ComparisonSummary | SeriesSummary, page: Path) -> None:
        if not json and isinstance(summary, ComparisonSummary):
            print_outcome(summary, page)

    folder = out or new_folder(name)
    run_study(
        require_study(name), options, folder, Teller(), show, show_part, resume=resume, replace=replace, drop_after=drop_after
    )


def factors(
    study: typer.Context,
    target: OneTarget = None,
    part: Parts = None,
    scale: FactorScale = 1.0,
    seed: Seed = DEFAULT_SEED,
    duration: StepLength = None,
    repeat: Repeat = None,
    in_flight: InFlight = None,
    rate: Rate = None,
    out: Out = None,
    resume: Resume = False,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Measure levels of server settings on fresh servers, judge the claims, write a report."""
    require_out(resume, out)
    run_factor_study(
        FACTOR_STUDIES[_name(study)],
        out,
        target=target,
        parts=tuple(part or ()),
        scale=scale,
        seed=seed,
        duration=duration,
        repeat=repeat,
        in_flight=in_flight,
        rate=rate,
        resume=resume,
        no_open=no_open,
        as_json=json,
    )


def elasticity(
    target: Targets = None,
    dataset: OneDataset = None,
    scale: Scale = 1.0,
    seed: Seed = DEFAULT_SEED,
    operations: RequestsOfASet = None,
    repeat: Repeat = None,
    rate: Rate = None,
    out: Out = None,
    replace: Replace = False,
    drop_after: DropAfter = False,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Let clusters grow under load, compare what that cost, judge the claims, write a report."""
    run_elasticity_study(
        ELASTICITY,
        out,
        targets=target or (),
        dataset=dataset,
        scale=scale,
        seed=seed,
        requests=operations,
        rate=rate,
        repeat=repeat,
        replace=replace,
        drop_after=drop_after,
        no_open=no_open,
        as_json=json,
    )


def mapreduce(
    target: Targets = None,
    dataset: OneDataset = None,
    scale: Scale = 1.0,
    seed: Seed = DEFAULT_SEED,
    repeat: Repeat = None,
    spark: Spark = None,
    workers: Workers = None,
    word: Words = None,
    out: Out = None,
    replace: Replace = False,
    drop_after: DropAfter = False,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Run one job on Spark over articles in several databases, judge the claims, write a report."""
    asked = Asked(
        targets=tuple(target or ()),
        dataset=dataset,
        scale=scale,
        seed=seed,
        repeat=repeat,
        spark=spark,
        workers=workers,
        words=tuple(word or ()),
        replace=replace,
        drop_after=drop_after,
    )
    run_mapreduce_study(MAPREDUCE, out, asked, no_open=no_open, as_json=json)


def _name(study: typer.Context) -> str:
    """The study: the name of the command."""
    return study.info_name or ""
