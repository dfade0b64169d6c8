"""The MapReduce study at the command line: shown, carried out, reported."""

from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from sensorbench.app.reports import write_mapreduce_report
from sensorbench.app.run import run_and_report
from sensorbench.benchmarks.mapreduce import NATIVE, MapReduceBenchmark, Wish, parse_workers, planned, word_of
from sensorbench.cli.output import new_folder, published_claims, published_claims_as_json, show_written
from sensorbench.cli.printing import print_json
from sensorbench.dataset import open_dataset
from sensorbench.errors import FailedError, UsageError
from sensorbench.places import check_is_free
from sensorbench.progress import Teller, console
from sensorbench.report import words
from sensorbench.results.summary.mapreduce import JobCell, MapReduceSummary
from sensorbench.runner import parse_target
from sensorbench.spark.connector import FILES
from sensorbench.spark.session import require_pyspark
from sensorbench.studies.mapreduce import MapReduceStudy


@dataclass(frozen=True)
class Asked:
    """What the user said."""

    targets: tuple[str, ...]
    dataset: str | None
    scale: float
    seed: int
    repeat: int | None
    spark: str | None
    workers: str | None
    words: tuple[str, ...]
    replace: bool
    drop_after: bool


def show_mapreduce_study(study: MapReduceStudy, *, as_json: bool) -> None:
    """What the study asks, and its claims."""
    if as_json:
        claims = published_claims_as_json(study.claims)
        printed = {name: gain.model_dump() for name, gain in study.printed.items()}
        print_json({"name": study.name, **study.file.model_dump(mode="json"), "printed": printed, "claims": claims})
        return
    screen = console()
    screen.print(study.file.title, style="bold")
    screen.print(study.file.question)
    screen.print(f"source: {study.file.source}", highlight=False)
    screen.print(
        f"dataset: {study.file.dataset}; systems: {', '.join(study.file.targets)}; workers: {', '.join(map(str, study.file.workers))}; "
        f"executions: {study.file.executions}\n",
        highlight=False,
    )
    screen.print(published_claims(study.claims))


def run_mapreduce_study(study: MapReduceStudy, out: Path | None, asked: Asked, *, no_open: bool, as_json: bool) -> None:
    """Carries the study out and reports it, whatever ended it. Raises FailedError when results were not equal, or something failed."""
    require_pyspark()
    folder, teller = out or new_folder(study.name), Teller()
    wish = _wish(study, asked, teller)
    teller.say(
        f"{study.file.title}: {wish.dataset.describe().readings:,} articles in {', '.join(_names(wish))}; {wish.executions} executions with "
        f"{', '.join(map(str, wish.workers))} workers; results go to {folder}"
    )
    check_is_free(folder)
    written = run_and_report(MapReduceBenchmark(), planned(wish, folder), folder, teller, write_mapreduce_report)
    show_written(written, _print, no_open=no_open, as_json=as_json)
    _fail_if_wrong(written[0])


def _wish(study: MapReduceStudy, asked: Asked, teller: Teller) -> Wish:
    texts = asked.targets or tuple(study.file.targets)
    workers = parse_workers(asked.workers) if asked.workers else tuple(study.file.workers)
    looked_for = [word_of(text) for text in asked.words]
    if asked.repeat is not None and asked.repeat < 1:
        raise UsageError(f"--repeat {asked.repeat}: expected a number above 0")
    targets = [parse_target(text) for text in texts if text != FILES]
    dataset = open_dataset(asked.dataset or study.file.dataset, scale=asked.scale, seed=asked.seed, teller=teller)
    if "articles" not in dataset.describe().relations:
        raise UsageError(f"--dataset {dataset.name}: it has no articles; expected for example wikipedia or wikipedia-generated")
    return Wish(
        targets=targets,
        with_files=FILES in texts,
        dataset=dataset,
        words=looked_for,
        workers=workers,
        executions=asked.repeat or study.file.executions,
        cores=study.file.cores,
        memory=study.file.memory,
        spark=asked.spark,
        replace=asked.replace,
        drop_after=asked.drop_after,
    )


def _names(wish: Wish) -> list[str]:
    return [*(target.label for target in wish.targets), *([FILES] if wish.with_files else [])]


def _fail_if_wrong(summary: MapReduceSummary) -> None:
    if summary.answers_equal is False:
        raise FailedError("the results of some systems differ from those of DuckDB; see the report")
    # What a database itself says it cannot do is a result; what failed on Spark is not.
    failed = [one for one in summary.result.executions if one.failed is not None and one.workers is not None]
    if failed:
        raise FailedError(f"{failed[0].system} failed on Spark with {failed[0].workers} workers: {failed[0].failed}")


def show_mapreduce(folder: Path, *, no_open: bool, as_json: bool) -> None:
    """Writes summary and report of results on disk, and prints what they say."""
    show_written(write_mapreduce_report(folder), _print, no_open=no_open, as_json=as_json)


def _print(summary: MapReduceSummary, page: Path) -> None:
    screen = console()
    table = Table(box=None)
    for column in ("system", "by", "time", "of it set-up", "map tasks", "read", "re-read", "equal"):
        table.add_column(column, justify="left" if column in {"system", "by"} else "right")
    for cell in summary.result.cells:
        table.add_row(*_cells(cell))
    screen.print(table)
    for gap in summary.result.gaps:
        screen.print("not available:", style="yellow", end=" ")
        screen.print(f"{gap.system}, {gap.what}: {gap.why}", highlight=False)
    equal = {True: "all results equal DuckDB's", False: "RESULTS DIFFER", None: "nothing was compared"}[summary.answers_equal]
    screen.print(f"{equal}; report: {page}", highlight=False)


def _cells(cell: JobCell) -> list[str]:
    """What is said of a system with a number of workers, in the order of the columns."""
    jobs = cell.words[0].jobs
    counted = [
        "–" if job.read_rows is None or job.read_bytes is None else f"{job.read_rows:,} rows, {words.size(job.read_bytes)}"
        for job in jobs
    ]
    return [
        cell.system,
        NATIVE if cell.workers is None else f"Spark, {cell.workers} worker{'s' if cell.workers > 1 else ''}",
        words.duration(cell.total.value),
        "–" if cell.setup_share is None else words.percent(cell.setup_share),
        "–" if jobs[0].map_tasks is None else str(jobs[0].map_tasks),
        *counted,
        "yes" if cell.equal else "NO",
    ]
