"""`sensorbench elasticity`: what it costs when a loaded cluster changes, and when it is stable again."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sensorbench.analysis.elasticity import MIN_SETS, Elasticity, Sets, Stability, elasticity, stability
from sensorbench.app import elasticity as clusters
from sensorbench.app import reports
from sensorbench.app.elasticity import run_cluster, run_works, works_in_order
from sensorbench.app.watch import live_page
from sensorbench.benchmarks.elasticity import (
    ElasticityOptions,
    ElasticitySpec,
    ElasticityStudyOptions,
    estimate_elasticity,
    spec_of,
)
from sensorbench.cli.dry_run import length, show_dry_run
from sensorbench.cli.model_options import takes
from sensorbench.cli.options import DropAfter, DryRun, Json, Live, LivePort, NoOpen, Out, Replace, Resume, live_port
from sensorbench.cli.output import print_claims, printer, published_claims_as_json
from sensorbench.cli.printing import new_table, open_page, print_json
from sensorbench.cli.published import planned_tables, show_published_and_claims
from sensorbench.dataset import open_dataset
from sensorbench.errors import UsageError
from sensorbench.paths import check_is_free, is_summary_of, new_results_folder
from sensorbench.progress import ProgressReporter, console, error_console, print_labelled
from sensorbench.report import formatting
from sensorbench.results.elasticity import COMPARISON, works_of
from sensorbench.results.request_sets import read_sets
from sensorbench.results.summary.elasticity import ElasticityComparisonSummary, ElasticitySummary, Transition
from sensorbench.studies.elasticity import (
    ELASTICITY,
    ChosenBudget,
    Deadline,
    ElasticityStudy,
    choose,
    expected,
    parts_of,
)
from sensorbench.wording import counted

app = typer.Typer(help="Measure what a change costs a loaded cluster, and when it is stable again.", no_args_is_help=True)

DEFINITIONS = {
    "above_ramp": "what is below the ramp counts as nothing",
    "excess_deviation": "only deviation beyond that of before counts",
    "above_level": "area A above the level before the bootstrap",
    "trapezoid": "straight lines between the sets, no splines",
    "minutes": "time in minutes, set times in seconds",
}


@app.callback()
def _group() -> None:
    pass


@app.command("analyse")
def analyse(
    file: Annotated[Path, typer.Argument(help="Request sets as CSV: time_s, duration_s, sd_s.")],
    bootstrap_at: Annotated[float, typer.Option("--bootstrap-at", help="Time of the change, in s.")],
    requests_per_thread: Annotated[
        float, typer.Option("--requests-per-thread", help="Sequential requests per thread in each set.")
    ],
    stable_at: Annotated[
        float | None,
        typer.Option(
            "--stable-at", help="Time at which it was stable again, in s; found by the rule if not given.", show_default=False
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compute the elasticity of a series that was recorded. The definitions are in docs/explanation/elasticity-scores.md."""
    if not requests_per_thread > 0.0:
        raise UsageError(f"--requests-per-thread {requests_per_thread:g}: expected a number above 0")
    sets = Sets(*read_sets(file))
    try:
        found = stability(sets, bootstrap_at)
        stable_at_s = _stable_at(found, stable_at, file)
        if stable_at_s <= bootstrap_at:
            raise UsageError(f"--stable-at {stable_at_s:g}: expected a time after the bootstrap at {bootstrap_at:g} s")
        score = elasticity(sets, bootstrap_at, stable_at_s, requests_per_thread)
    except ValueError as error:
        raise UsageError(f"{file}: {error}") from error
    warnings = _warnings(score)
    if json:
        stable = {
            "stable_by_rule_at_s": found.at_s,
            "stable_in_band_at_s": found.in_band_at_s,
            "stable_by_band_at_s": found.by_band_at_s,
            "median_difference_s": found.median_difference_s,
        }
        print_json({**asdict(score), **stable, "warnings": warnings})
        return
    console().print(_table(sets, score, found))
    for warning in warnings:
        error_console().print(f"note: {warning}", highlight=False)


@app.command("run")
@takes(ElasticityOptions)
def run(
    options: ElasticityOptions,
    out: Out = None,
    replace: Replace = False,
    drop_after: DropAfter = False,
    live: Live = False,
    port: LivePort = None,
    dry_run: DryRun = False,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Change a cluster under load: how long until it is stable again, what it cost, and whether anything was lost."""
    folder, reporter = out or new_results_folder("elasticity"), ProgressReporter()
    articles = open_dataset(options.dataset, scale=options.scale, reporter=reporter)

    def spec(text: str, number: int) -> ElasticitySpec:
        return spec_of(options, text, number, articles, replace=replace, drop_after=drop_after)

    if dry_run:
        turns = [[spec(text, number) for text in options.targets] for number in range(options.repetitions)]
        show_dry_run(estimate_elasticity("Changes of a cluster under load", {"": turns}, options.scale, folder), as_json=json)
        return
    if len(options.targets) == 1 and options.repetitions == 1:
        with live_page(folder, live_port(live, port), reporter):
            _, page = run_cluster(spec(options.targets[0], 0), folder, reporter, printer(print_elasticity, as_json=json))
        open_page(page, no_open=no_open)
        return
    works = works_in_order(options.targets, options.repetitions, spec)
    check_is_free(folder)
    with live_page(folder, live_port(live, port), reporter):
        run_works(works, folder, reporter)
    show_elasticity_comparison(works_of(folder), folder, no_open=no_open, as_json=json)


def show_elasticity_study(study: ElasticityStudy, *, as_json: bool) -> None:
    """What a study does to which clusters, and its claims."""
    if as_json:
        claims = published_claims_as_json(study.claims)
        print_json(
            {"name": study.name, **study.file.model_dump(mode="json"), "claims": claims, "published": planned_tables(study.name)}
        )
        return
    screen, file = console(), study.file
    screen.print(file.title, style="bold")
    screen.print(file.question)
    screen.print(f"source: {file.source}", highlight=False)
    screen.print(
        f"{', '.join(file.systems)}; {file.nodes} nodes at the start with {file.server_memory} of memory, {file.repetitions} times each:",
        highlight=False,
    )
    for name, scenario in file.scenarios.items():
        screen.print(f"  {name}: {scenario.title} ({', then '.join(scenario.changes)})", highlight=False, markup=False)
    screen.print()
    show_published_and_claims(study.name, study.claims)


@takes(ElasticityStudyOptions)
def run_study(
    options: ElasticityStudyOptions,
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
    """Let clusters grow under load, compare what that cost, judge the claims, write a report."""
    file, reporter = ELASTICITY.file, ProgressReporter()
    folder = out or new_results_folder(ELASTICITY.name)
    budget_s, deadline = options.budget, None
    if resume:
        options = clusters.as_planned(options, folder)
        deadline = Deadline(budget_s, expected(file, options, parts_of(file, options))) if budget_s is not None else None
    elif budget_s is not None:
        chosen = choose(file, options, budget_s)
        options, deadline = chosen.options, Deadline(budget_s, chosen.expected_s)
        reporter.say(_described_budget(chosen, budget_s))
    if dry_run:
        _show_plan_of_study(options, folder, reporter, as_json=json)
        return
    with live_page(folder, live_port(live, port), reporter):
        clusters.run_study(
            file, options, folder, reporter, deadline=deadline, resume=resume, replace=replace, drop_after=drop_after
        )
    show_elasticity_comparison(works_of(folder), folder, no_open=no_open, as_json=json)


def _described_budget(chosen: ChosenBudget, budget_s: float) -> str:
    """What a budget was turned into, and what it is not enough for."""
    options, total_s = chosen.options, chosen.total_s
    text = (
        f"budget {length(budget_s)}: scale {options.used_scale:g}, sets of {options.operations} requests of a thread, {options.executions} of them a "
        f"measurement; {counted(len(chosen.parts), 'part')}, about {length(total_s)} in all, by arithmetic"
    )
    return (
        text
        if total_s <= budget_s
        else f"{text}. Those that do not fit are left: --resume continues with them, each time for as long"
    )


def _show_plan_of_study(options: ElasticityStudyOptions, folder: Path, reporter: ProgressReporter, *, as_json: bool) -> None:
    """Prints what the study would do, each scenario by itself."""
    parts = parts_of(ELASTICITY.file, options)
    articles = open_dataset(parts[0].options.dataset, scale=options.used_scale, reporter=reporter)
    turns: dict[str, list[list[ElasticitySpec]]] = {}
    for part in parts:
        of_scenario = turns.setdefault(part.scenario, [])
        if len(of_scenario) < part.repetition:
            of_scenario.append([])
        of_scenario[-1].append(part.spec(articles))
    # All but the first turn are as they are carried out: the estimate itself turns every other one around.
    in_order = {name: [turn if number % 2 == 0 else turn[::-1] for number, turn in enumerate(of)] for name, of in turns.items()}
    expected_s = expected(ELASTICITY.file, options, parts)
    of_scenarios = {name: sum(expected_s[part.name] for part in parts if part.scenario == name) for name in turns}
    estimate = estimate_elasticity(ELASTICITY.file.title, in_order, options.used_scale, folder, of_scenarios)
    show_dry_run(estimate, as_json=as_json)


@app.command("compare")
def compare(
    folders: Annotated[list[Path], typer.Argument(help="Results of `elasticity run`; several of one database are repetitions.")],
    out: Out = None,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Set results side by side with the paper on elastic databases, and judge its claims."""
    folder = out or new_results_folder("elasticity-comparison")
    if not is_summary_of(folder, COMPARISON):
        check_is_free(folder)
    show_elasticity_comparison(folders, folder, no_open=no_open, as_json=json)


def show_elasticity_comparison(folders: Sequence[Path], out: Path, *, no_open: bool, as_json: bool) -> None:
    """Writes summary and report of several results on disk into `out`, and prints the claims."""
    summary, page = reports.write_elasticity_comparison(folders, out)
    printer(print_clusters, as_json=as_json)(summary, page)
    open_page(page, no_open=no_open)


def print_clusters(summary: ElasticityComparisonSummary, page: Path) -> None:
    """Prints each claim with its verdict."""
    print_claims(summary.claims)
    console().print(f"report: {page}", highlight=False)


_COLUMNS = (
    "change",
    "nodes",
    "changed in",
    "stable after",
    "elasticity",
    "a set before",
    "after",
    "as before after",
    "failed",
    "lost",
    "stale",
)


def print_elasticity(summary: ElasticitySummary, page: Path) -> None:
    """Prints a line for each transition."""
    screen, result = console(), summary.result
    table = new_table(*_COLUMNS, texts={"change"}, wide=True)
    for transition in result.transitions:
        table.add_row(*_cells(transition))
    screen.print(table)
    for scaled in result.scalability:
        text = f"from {scaled.from_nodes} to {scaled.to_nodes} nodes sets take {scaled.scalability:+.1%}"
        screen.print(text, highlight=False)
    for caveat in summary.warnings:
        print_labelled(screen, "warning", f"{caveat.text} {caveat.action}")
    screen.print(f"report: {page}", highlight=False)


def _cells(transition: Transition) -> list[str]:
    """What is said of a transition, in the order of the columns."""
    stable, counts, checked = (
        transition.stability.by_band if transition.stability else None,
        transition.counts,
        transition.guarantees,
    )
    seen = [f"{checked.seen[name].count:,}" if checked else "–" for name in ("lost_writes", "stale_reads")]
    after = stable.after if stable else None
    return [
        transition.change.title,
        f"{transition.nodes}",
        formatting.duration(transition.transfer_s),
        formatting.duration(stable.total_s if stable else None),
        formatting.significant(stable.score.elasticity)
        if stable and stable.score
        else "no data moved"
        if transition.moved_nothing
        else "–",
        formatting.duration(transition.before.mean_s if transition.before else None),
        formatting.duration(after.mean_s if after else None),
        formatting.duration(transition.dip.recovered_s if transition.dip else None),
        f"{counts.error + counts.timeout + counts.dropped:,}" if counts else "–",
        *seen,
    ]


def _stable_at(found: Stability, given: float | None, file: Path) -> float:
    if given is not None:
        return given
    if found.at_s is None:
        raise UsageError(
            f"{file}: no five sets in a row after the bootstrap differ by less than {found.median_difference_s:g} s, the median "
            "difference before it; say with --stable-at when it was stable"
        )
    return found.at_s


def _warnings(score: Elasticity) -> list[str]:
    few = (
        f"{score.sets_between} sets began between bootstrap and stability: below {MIN_SETS} a spline may overshoot; see trapezoid"
    )
    return [few] if score.sets_between < MIN_SETS else []


def _table(sets: Sets, score: Elasticity, found: Stability) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    by_rule, in_band, by_band = (
        "never" if at_s is None else f"{at_s:g} s" for at_s in (found.at_s, found.in_band_at_s, found.by_band_at_s)
    )
    table.add_row("elasticity", f"{score.elasticity:.4g}", "lower is better, 0 is perfect")
    for name, said in DEFINITIONS.items():
        table.add_row(f"  {name}", f"{score.definitions[name]:.4g}", said)
    table.add_row(
        "stable again", f"{score.stable_at_s:g} s", f"{score.stable_at_s - score.bootstrap_at_s:g} s after the bootstrap"
    )
    table.add_row("  by the rule", by_rule, f"five sets in a row that differ by less than {found.median_difference_s:.3g} s")
    table.add_row("  in the band", in_band, "and are near the level at the end")
    table.add_row("  by the band", by_band, "from then on the median of five is near that level")
    table.add_row("set time before", f"{score.av1_s:.4g} s", f"{score.rt1_s:.4g} s per request")
    table.add_row("set time after", f"{score.av2_s:.4g} s", f"{score.rt2_s:.4g} s per request")
    table.add_row("area A, B", f"{score.area_a:.4g}, {score.area_b:.4g}", "s²")
    table.add_row("sets", f"{len(sets)}", f"{score.sets_between} between bootstrap and stability")
    return table
