"""The MapReduce study at the command line: shown, carried out, reported."""

from collections.abc import Sequence
from dataclasses import replace as with_fields
from pathlib import Path

from sensorbench.app import reports
from sensorbench.app.run import run_and_report
from sensorbench.app.watch import live_page
from sensorbench.benchmarks.mapreduce import (
    NATIVE,
    MapReduceBenchmark,
    MapReduceOptions,
    MapReduceSpec,
    estimate_mapreduce,
    planned,
    word_of,
)
from sensorbench.cli.dry_run import length, show_dry_run
from sensorbench.cli.model_options import takes
from sensorbench.cli.options import DropAfter, DryRun, Json, Live, LivePort, NoOpen, Out, Replace, Resume, live_port
from sensorbench.cli.output import printer, published_claims_as_json
from sensorbench.cli.printing import new_table, open_page, print_json
from sensorbench.cli.published import planned_tables, show_published_and_claims
from sensorbench.dataset import open_dataset
from sensorbench.errors import FailedError, UsageError
from sensorbench.hosts.pool import HostPool
from sensorbench.lab import chosen_hosts
from sensorbench.lifecycle import Deadline, check_folder
from sensorbench.options import parse_settings
from sensorbench.paths import new_results_folder
from sensorbench.progress import ProgressReporter, console
from sensorbench.report import formatting
from sensorbench.results.mapreduce import read_mapreduce
from sensorbench.results.summary.mapreduce import JobFigures, MapReduceSummary
from sensorbench.runner import TargetSpec, parse_target, placed_on, require_on
from sensorbench.spark.connector import FILES
from sensorbench.spark.session import require_pyspark
from sensorbench.studies.mapreduce import MAPREDUCE, MapReduceStudy, choose
from sensorbench.wording import counted


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
        f"dataset: {study.file.dataset}; systems: {', '.join(study.file.targets)}; nodes: {', '.join(map(str, study.file.nodes))}; "
        f"executions: {study.file.executions}\n",
        highlight=False,
    )
    show_published_and_claims(study.name, study.claims)


@takes(MapReduceOptions)
def run_study(
    options: MapReduceOptions,
    out: Out = None,
    resume: Resume = False,
    replace: Replace = False,
    drop_after: DropAfter = False,
    live: Live = False,
    port: LivePort = None,
    dry_run: DryRun = False,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Run one job on Spark over articles in several databases, which grow with it, judge the claims, write a report."""
    if not dry_run:
        require_pyspark()
    study = MAPREDUCE
    folder, reporter = out or new_results_folder(study.name), ProgressReporter()
    deadline = Deadline(options.budget) if options.budget is not None else None
    if resume:
        check_folder(folder, resume=True)
        options = _as_begun(options, folder)
    elif options.budget is not None:
        options = _within(study, options, options.budget, reporter)
    spec = with_fields(_spec(study, options, reporter), resume=resume, deadline=deadline, replace=replace, drop_after=drop_after)
    if dry_run:
        show_dry_run(estimate_mapreduce(study.file.title, spec, options.scale or 1.0, folder), as_json=json)
        return
    sizes = f"{', '.join(map(str, spec.workers))} {'nodes' if spec.grows else 'workers'}"
    reporter.say(
        f"{study.file.title}: {spec.dataset.describe().readings:,} articles in {', '.join(_names(spec))}; {spec.executions} executions with "
        f"{sizes}; results go to {folder}"
    )
    check_folder(folder, resume=resume)
    plan = planned(spec, folder)
    with live_page(folder, live_port(live, port), reporter):
        show = printer(print_mapreduce, as_json=json)
        summary, page = run_and_report(MapReduceBenchmark(), plan, folder, reporter, reports.MAPREDUCE.write, show, resume=resume)
    open_page(page, no_open=no_open)
    _fail_if_wrong(summary)


def _within(study: MapReduceStudy, options: MapReduceOptions, budget_s: float, reporter: ProgressReporter) -> MapReduceOptions:
    """The options that fit a budget, which is said. Raises UsageError."""
    chosen = choose(study.file, options, budget_s)
    text = (
        f"budget {length(budget_s)}: scale {chosen.options.scale:g}, {chosen.options.repetitions} executions; all of it takes about "
        f"{length(chosen.total_s)}, by arithmetic"
    )
    more = "" if chosen.total_s <= budget_s else ". What does not fit is left: --resume continues with it, each time for as long"
    reporter.say(f"{text}{more}")
    return chosen.options


def _as_begun(options: MapReduceOptions, folder: Path) -> MapReduceOptions:
    """The options of a resumed study: scale, executions and sizes as it began, where nothing else is said."""
    plan = read_mapreduce(folder).manifest.plan
    begun: dict[str, object] = {
        "scale": plan.dataset.scale if options.scale is None else options.scale,
        "repetitions": options.repetitions or plan.executions,
    }
    if not options.nodes and not options.workers:
        begun["nodes" if plan.workload.grows else "workers"] = tuple(plan.workers)
    return options.model_copy(update=begun)


def _spec(study: MapReduceStudy, options: MapReduceOptions, reporter: ProgressReporter) -> MapReduceSpec:
    """What options ask for, the rest as the study has it. Raises UsageError."""
    if options.nodes and options.workers:
        raise UsageError("--workers: --nodes sets the number of Spark workers, too; give one of them")
    texts = options.targets or tuple(study.file.targets)
    looked_for = [word_of(text) for text in options.words]
    targets = _on_hosts([_with_settings(study, parse_target(text)) for text in texts if text != FILES], options.hosts)
    dataset = open_dataset(
        options.dataset or study.file.dataset, scale=options.scale or 1.0, seed=options.seed, reporter=reporter
    )
    if "articles" not in dataset.describe().relations:
        raise UsageError(f"--dataset {dataset.name}: it has no articles; expected for example wikipedia or wikipedia-generated")
    return MapReduceSpec(
        targets=targets,
        with_files=FILES in texts,
        dataset=dataset,
        words=looked_for,
        workers=options.workers or options.nodes or tuple(study.file.nodes),
        executions=options.repetitions or study.file.executions,
        cores=study.file.cores,
        memory=study.file.memory,
        spark=options.spark,
        grows=not options.workers,
        hosts=None if options.hosts is None else HostPool(chosen_hosts(options.hosts), reporter),
    )


def _on_hosts(targets: list[TargetSpec], hosts: str | None) -> list[TargetSpec]:
    """The targets, of which those that can be there have their nodes on hosts. Raises UsageError if none can."""
    placed = [placed_on(target, hosts) for target in targets]
    if hosts is not None and placed == targets:
        if not targets:
            raise UsageError("--hosts: files are on this machine; name a database by --target, too")
        # It says what is wrong with the first.
        require_on(targets[0], hosts)
    return placed


def _with_settings(study: MapReduceStudy, target: TargetSpec) -> TargetSpec:
    """A target with the settings that the study has for servers of its kind, where the lab starts it."""
    settings = study.file.server_settings.get(target.database.name, [])
    return with_fields(target, server_settings=tuple(parse_settings(settings).items())) if target.place == "started" else target


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
    names = [word.word for word in summary.result.words]
    times = [f"T({name})" for name in names]
    table = new_table(
        "system", "by", *times, "of it set-up", "map tasks", "at their node", "read", "re-read", "equal", texts={"system", "by"}
    )
    for job in summary.result.cells:
        table.add_row(*_cells(job, names))
    screen.print(table)
    for placement in summary.result.placements:
        held = ", ".join("?" if share.bytes is None else formatting.size(share.bytes) for share in placement.shares.values())
        screen.print(f"{placement.system}, {counted(placement.nodes, 'node')}: {held}", highlight=False)
    for gap in summary.result.gaps:
        screen.print("not available:", style="yellow", end=" ")
        screen.print(f"{gap.system}, {gap.what}: {gap.why}", highlight=False, markup=False)
    if summary.status != "complete":
        screen.print(f"{summary.status}: {summary.reason}", style="yellow", highlight=False)
    equal = {True: "all results equal DuckDB's", False: "RESULTS DIFFER", None: "nothing was compared"}[summary.answers_equal]
    screen.print(f"{equal}; report: {page}", highlight=False)


def _cells(figures: JobFigures, names: Sequence[str]) -> list[str]:
    """What is said of a system with a number of workers, in the order of the columns: T of each word, and what was read for the first."""
    jobs = figures.words[0].jobs
    read = [
        "–" if job.read_rows is None or job.read_bytes is None else f"{job.read_rows:,} rows, {formatting.size(job.read_bytes)}"
        for job in jobs
    ]
    totals = {word.word: word.total.value for word in figures.words if word.total}
    return [
        figures.system,
        NATIVE if figures.workers is None else _size(figures.workers, figures.nodes),
        *("–" if name not in totals else formatting.duration(totals[name]) for name in names),
        "–" if figures.setup_share is None else formatting.percent(figures.setup_share),
        *("–" if number is None else str(number) for number in (jobs[0].map_tasks, jobs[0].local_tasks)),
        *read,
        "yes" if figures.equal else "NO",
    ]


def _size(workers: int, nodes: int | None) -> str:
    spark = f"Spark, {counted(workers, 'worker')}"
    return spark if nodes is None else f"{spark}, {counted(nodes, 'node')}"
