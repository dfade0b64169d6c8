"""The MapReduce study at the command line: shown, carried out, reported."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from sensorbench.cli.output import (
    new_folder,
    published_claims,
    published_claims_as_json,
    show_written,
    write_mapreduce_summary_and_report,
)
from sensorbench.cli.printing import print_json
from sensorbench.dataset import open_dataset
from sensorbench.errors import FailedError, InterruptedRunError, UsageError
from sensorbench.experiment import parse_target
from sensorbench.mapreduce.run import run_mapreduce
from sensorbench.mapreduce.wish import Wish, parse_workers
from sensorbench.mapreduce.words import word_of
from sensorbench.progress import Teller, console
from sensorbench.report import words
from sensorbench.results import has_results
from sensorbench.spark.connector import FILES
from sensorbench.spark.session import require_pyspark
from sensorbench.study.mapreduce import MapReduceStudy


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
        print_json({"name": study.name, **study.file.model_dump(mode="json"), "printed": study.printed, "claims": claims})
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
    try:
        run_mapreduce(wish, folder, teller)
    except (InterruptedRunError, FailedError):
        if has_results(folder):
            _, page = write_mapreduce_summary_and_report(folder)
            teller.say(f"what was done until then: {page}")
        raise
    summary = show_mapreduce(folder, no_open=no_open, as_json=as_json)
    _fail_if_wrong(summary)


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


def _fail_if_wrong(summary: dict[str, Any]) -> None:
    if summary["answers_equal"] is False:
        raise FailedError("the results of some systems differ from those of DuckDB; see the report")
    # What a database itself says it cannot do is a result; what failed on Spark is not.
    failed = [one for one in summary["executions"] if one["failed"] and one["workers"] is not None]
    if failed:
        raise FailedError(f"{failed[0]['system']} failed on Spark with {failed[0]['workers']} workers: {failed[0]['failed']}")


def show_mapreduce(folder: Path, *, no_open: bool, as_json: bool) -> dict[str, Any]:
    """Writes summary and report of results on disk, and prints what they say."""
    written = write_mapreduce_summary_and_report(folder)
    show_written(written, _print, no_open=no_open, as_json=as_json)
    return written[0]


def _print(summary: dict[str, Any], page: Path) -> None:
    screen = console()
    table = Table(box=None)
    for column in ("system", "means", "time", "of it set-up", "map tasks", "read", "re-read", "equal"):
        table.add_column(column, justify="left" if column in {"system", "means"} else "right")
    for cell in summary["cells"]:
        first, second = cell["words"][0]["jobs"]
        means = (
            cell["means"]
            if cell["workers"] is None
            else f"{cell['means']}, {cell['workers']} worker{'s' if cell['workers'] > 1 else ''}"
        )
        share = "–" if cell["setup_share"] is None else words.percent(cell["setup_share"])
        counted = [
            "–" if "read_bytes" not in job else f"{job['read_rows']:,} rows, {words.size(job['read_bytes'])}"
            for job in (first, second)
        ]
        table.add_row(
            cell["system"],
            means,
            words.duration(cell["total"]["value"]),
            share,
            str(first.get("map_tasks", "–")),
            *counted,
            "yes" if cell["equal"] else "NO",
        )
    screen.print(table)
    for gap in summary["gaps"]:
        screen.print("not available:", style="yellow", end=" ")
        screen.print(f"{gap['system']}, {gap['what']}: {gap['why']}", highlight=False)
    equal = {True: "all results equal DuckDB's", False: "RESULTS DIFFER", None: "nothing was compared"}[summary["answers_equal"]]
    screen.print(f"{equal}; report: {page}", highlight=False)
