"""The MapReduce study at the command line: shown, carried out, reported."""

from dataclasses import replace as with_fields
from pathlib import Path

from sensorbench.app import reports
from sensorbench.app.run import run_and_report
from sensorbench.benchmarks.mapreduce import (
    NATIVE,
    MapReduceBenchmark,
    MapReduceOptions,
    MapReduceSpec,
    estimate_mapreduce,
    planned,
    word_of,
)
from sensorbench.cli.dry_run import show_dry_run
from sensorbench.cli.model_options import takes
from sensorbench.cli.options import DropAfter, DryRun, Json, NoOpen, Out, Replace
from sensorbench.cli.output import published_claims_as_json, show_written
from sensorbench.cli.printing import new_table, print_json
from sensorbench.cli.published import planned_tables, show_published_and_claims
from sensorbench.dataset import open_dataset
from sensorbench.errors import FailedError, UsageError
from sensorbench.paths import check_is_free, new_results_folder
from sensorbench.progress import ProgressReporter, console
from sensorbench.report import formatting
from sensorbench.results.summary.mapreduce import JobFigures, MapReduceSummary
from sensorbench.runner import parse_target
from sensorbench.spark.connector import FILES
from sensorbench.spark.session import require_pyspark
from sensorbench.studies.mapreduce import MAPREDUCE, MapReduceStudy


def show_mapreduce_study(study: MapReduceStudy, *, as_json: bool) -> None:
    """What the study asks, and its claims."""
    if as_json:
        claims = published_claims_as_json(study.claims)
        printed = {name: gain.model_dump() for name, gain in study.printed.items()}
        print_json(
            {
                "name": study.name,
                **study.file.model_dump(mode="json"),
                "printed": printed,
                "claims": claims,
                "published": planned_tables(study.name),
            }
        )
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
    show_published_and_claims(study.name, study.claims)


@takes(MapReduceOptions)
def run_study(
    options: MapReduceOptions,
    out: Out = None,
    replace: Replace = False,
    drop_after: DropAfter = False,
    dry_run: DryRun = False,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Run one job on Spark over articles in several databases, judge the claims, write a report."""
    if not dry_run:
        require_pyspark()
    study = MAPREDUCE
    folder, reporter = out or new_results_folder(study.name), ProgressReporter()
    spec = with_fields(_spec(study, options, reporter), replace=replace, drop_after=drop_after)
    if dry_run:
        show_dry_run(estimate_mapreduce(study.file.title, spec, options.scale, folder), as_json=json)
        return
    reporter.say(
        f"{study.file.title}: {spec.dataset.describe().readings:,} articles in {', '.join(_names(spec))}; {spec.executions} executions with "
        f"{', '.join(map(str, spec.workers))} workers; results go to {folder}"
    )
    check_is_free(folder)
    written = run_and_report(MapReduceBenchmark(), planned(spec, folder), folder, reporter, reports.MAPREDUCE.write)
    show_written(written, print_mapreduce, no_open=no_open, as_json=json)
    _fail_if_wrong(written[0])


def _spec(study: MapReduceStudy, options: MapReduceOptions, reporter: ProgressReporter) -> MapReduceSpec:
    """What options ask for, the rest as the study has it. Raises UsageError."""
    texts = options.targets or tuple(study.file.targets)
    looked_for = [word_of(text) for text in options.words]
    targets = [parse_target(text) for text in texts if text != FILES]
    dataset = open_dataset(options.dataset or study.file.dataset, scale=options.scale, seed=options.seed, reporter=reporter)
    if "articles" not in dataset.describe().relations:
        raise UsageError(f"--dataset {dataset.name}: it has no articles; expected for example wikipedia or wikipedia-generated")
    return MapReduceSpec(
        targets=targets,
        with_files=FILES in texts,
        dataset=dataset,
        words=looked_for,
        workers=options.workers or tuple(study.file.workers),
        executions=options.repetitions or study.file.executions,
        cores=study.file.cores,
        memory=study.file.memory,
        spark=options.spark,
    )


def _names(spec: MapReduceSpec) -> list[str]:
    return [*(target.label for target in spec.targets), *([FILES] if spec.with_files else [])]


def _fail_if_wrong(summary: MapReduceSummary) -> None:
    if summary.answers_equal is False:
        raise FailedError("the results of some systems differ from those of DuckDB; see the report")
    # What a database itself says it cannot do is a result; what failed on Spark is not.
    failed = [
        execution for execution in summary.result.executions if execution.failed is not None and execution.workers is not None
    ]
    if failed:
        raise FailedError(f"{failed[0].system} failed on Spark with {failed[0].workers} workers: {failed[0].failed}")


def print_mapreduce(summary: MapReduceSummary, page: Path) -> None:
    """Prints how long each job took, what is missing, and whether the results are equal."""
    screen = console()
    table = new_table("system", "by", "time", "of it set-up", "map tasks", "read", "re-read", "equal", texts={"system", "by"})
    for job in summary.result.cells:
        table.add_row(*_cells(job))
    screen.print(table)
    for gap in summary.result.gaps:
        screen.print("not available:", style="yellow", end=" ")
        screen.print(f"{gap.system}, {gap.what}: {gap.why}", highlight=False)
    equal = {True: "all results equal DuckDB's", False: "RESULTS DIFFER", None: "nothing was compared"}[summary.answers_equal]
    screen.print(f"{equal}; report: {page}", highlight=False)


def _cells(figures: JobFigures) -> list[str]:
    """What is said of a system with a number of workers, in the order of the columns."""
    jobs = figures.words[0].jobs
    counted = [
        "–" if job.read_rows is None or job.read_bytes is None else f"{job.read_rows:,} rows, {formatting.size(job.read_bytes)}"
        for job in jobs
    ]
    return [
        figures.system,
        NATIVE if figures.workers is None else f"Spark, {figures.workers} worker{'s' if figures.workers > 1 else ''}",
        formatting.duration(figures.total.value),
        "–" if figures.setup_share is None else formatting.percent(figures.setup_share),
        "–" if jobs[0].map_tasks is None else str(jobs[0].map_tasks),
        *counted,
        "yes" if figures.equal else "NO",
    ]
