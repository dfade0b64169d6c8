"""`sensorbench study run`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from sensorbench.app.study import run_study
from sensorbench.cli.elasticity import run_elasticity_study
from sensorbench.cli.factors import run_factor_study
from sensorbench.cli.mapreduce import Asked, run_mapreduce_study
from sensorbench.cli.options import DropAfter, Json, NoOpen, Out, Replace, Resume, Sweep
from sensorbench.cli.output import new_folder, print_outcome, show_written
from sensorbench.cli.printing import print_json
from sensorbench.dataset import DEFAULT_SEED
from sensorbench.errors import UsageError
from sensorbench.experiment import parse_sweeps
from sensorbench.experiment.settings import FILE_URL, SERVER_URL
from sensorbench.progress import Teller
from sensorbench.study import FACTOR_STUDIES, StudyOptions, require_study
from sensorbench.study.elasticity import ELASTICITY
from sensorbench.study.mapreduce import MAPREDUCE


def run(
    name: Annotated[str, typer.Argument(help="Name of the study.")],
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            help=f"A system of the study, a database's name, or a URL ({FILE_URL}, {SERVER_URL}). May be given several times.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        list[str] | None,
        typer.Option("--schema", help="Only schemas of this name. May be given several times.", show_default=False),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            "--dataset",
            help="A dataset's name, the folder of an imported one, or a mapping file. May be given several times; each is compared by itself.",
            show_default=False,
        ),
    ] = None,
    part: Annotated[
        list[str] | None,
        typer.Option("--part", help="Only this part, of a study with parts. May be given several times.", show_default=False),
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
    duration: Annotated[
        str | None,
        typer.Option("--duration", help="Length of a run instead of a number of requests: 30s, 5m, 8h.", show_default=False),
    ] = None,
    warm_up: Annotated[
        int | None, typer.Option("--warm-up", help="Requests before each run that are not measured.", min=0, show_default=False)
    ] = None,
    repeat: Annotated[int | None, typer.Option("--repeat", help="Runs of each setting.", min=1, show_default=False)] = None,
    in_flight: Annotated[
        int | None, typer.Option("--in-flight", help="Requests in flight; with --rate, at most.", min=1, show_default=False)
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", help="Requests a second that come whether or not others are answered (an open loop).", show_default=False
        ),
    ] = None,
    arrival: Annotated[
        str | None,
        typer.Option("--arrival", help="How requests come at a rate: constant or poisson.", show_default=False),
    ] = None,
    sweep: Sweep = None,
    registers: Annotated[
        int | None,
        typer.Option(
            "--registers",
            help="Write and read registers beside the study's questions, each with this weight, and check what the databases promise of them.",
            min=1,
            show_default=False,
        ),
    ] = None,
    spark: Annotated[
        str | None,
        typer.Option(
            "--spark",
            help="Of mapreduce: Spark's master, spark://HOST:PORT, lab:NAME or local[N]; without it the lab starts one.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        str | None,
        typer.Option("--workers", help="Of mapreduce: numbers of Spark's workers, for example 1,2.", show_default=False),
    ] = None,
    word: Annotated[
        list[str] | None,
        typer.Option(
            "--word",
            help="Of mapreduce: a word that is looked for. May be given several times; chosen by frequency if not given.",
            show_default=False,
        ),
    ] = None,
    out: Out = None,
    resume: Resume = False,
    replace: Replace = False,
    drop_after: DropAfter = False,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Run a study: load, ask, check the answers, judge the claims, write a report."""
    if resume and out is None:
        raise UsageError("--resume: name the folder of the work to go on with by --out")
    _refuse(
        name,
        {
            "--schema": schema,
            "--dataset": dataset,
            "--part": part,
            "--operations": operations,
            "--duration": duration,
            "--warm-up": warm_up,
            "--in-flight": in_flight,
            "--rate": rate,
            "--arrival": arrival,
            "--sweep": sweep,
            "--registers": registers,
            "--spark": spark,
            "--workers": workers,
            "--word": word,
            "--resume": resume,
            "--replace": replace,
            "--drop-after": drop_after,
            "a second --target": (target or [])[1:],
            "a second --dataset": (dataset or [])[1:],
        },
    )
    if name == MAPREDUCE.name:
        asked = Asked(
            targets=tuple(target or ()),
            dataset=dataset[0] if dataset else None,
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
        return
    if name == ELASTICITY.name:
        run_elasticity_study(
            ELASTICITY,
            out,
            targets=target or (),
            dataset=dataset[0] if dataset else None,
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
        return
    if name in FACTOR_STUDIES:
        run_factor_study(
            FACTOR_STUDIES[name],
            out,
            target=target[0] if target else None,
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
        return
    study = require_study(name)
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
    teller = Teller()

    def show(summary: dict[str, Any], page: Path) -> None:
        if summary["kind"] == "series":
            if json:
                print_json(summary)
        else:
            show_written((summary, page), print_outcome, no_open=no_open, as_json=json)

    def show_part(summary: dict[str, Any], page: Path) -> None:
        if not json:
            print_outcome(summary, page)

    folder = out or new_folder(name)
    run_study(study, options, folder, teller, show, show_part, resume=resume, replace=replace, drop_after=drop_after)


@dataclass(frozen=True)
class _Way:
    """What studies of a kind do, in a few words, and which options say nothing to them."""

    does: str
    useless: frozenset[str]


_OF_SPARK = frozenset({"--spark", "--workers", "--word"})
_OF_COMPARISONS = frozenset({"--schema", "--warm-up", "--arrival", "--sweep", "--registers"})
_COMPARES = _Way("does not run on Spark, as mapreduce does", _OF_SPARK)
_VARIES = _Way(
    "varies settings of servers on records of its own",
    _OF_SPARK | _OF_COMPARISONS | {"--dataset", "--operations", "--replace", "--drop-after", "a second --target"},
)
_GROWS = _Way(
    "lets clusters grow under a load of its own",
    _OF_SPARK | _OF_COMPARISONS | {"--part", "--duration", "--in-flight", "--resume", "a second --dataset"},
)
_COMPUTES = _Way(
    "carries out one job on Spark",
    _OF_COMPARISONS | {"--part", "--operations", "--duration", "--in-flight", "--rate", "--resume", "a second --dataset"},
)


def _refuse(name: str, options: Mapping[str, object]) -> None:
    """Raises UsageError for an option that says nothing to a study."""
    way = {ELASTICITY.name: _GROWS, MAPREDUCE.name: _COMPUTES}.get(name, _VARIES if name in FACTOR_STUDIES else _COMPARES)
    given = [option for option, value in options.items() if value and option in way.useless]
    if given:
        raise UsageError(f"{given[0]}: study {name} {way.does}, and has no use for it")
