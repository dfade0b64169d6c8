"""Studies of factors at the command line: shown, run, reported."""

from pathlib import Path

import typer
from rich.table import Table

from sensorbench.app import reports
from sensorbench.app.run import run_and_report
from sensorbench.app.watch import live_page
from sensorbench.benchmarks.factors import FactorOptions, FactorsBenchmark, FactorsPlan, estimate_factors
from sensorbench.cli.dry_run import length, show_dry_run
from sensorbench.cli.model_options import takes
from sensorbench.cli.options import DryRun, Json, Live, LivePort, NoOpen, Out, Resume, live_port, require_out
from sensorbench.cli.output import printer, published_claims_as_json
from sensorbench.cli.printing import new_table, open_page, print_json
from sensorbench.cli.published import planned_tables, show_published_and_claims
from sensorbench.paths import new_results_folder
from sensorbench.progress import ProgressReporter, console, print_labelled
from sensorbench.results.factors import FactorsResult, read_factors
from sensorbench.results.summary.factors import FactorsSummary
from sensorbench.studies import FACTOR_STUDIES
from sensorbench.studies.factors import FactorStudy
from sensorbench.studies.factors_budget import expected_s, expected_to_look_s, left_s, plan_factors
from sensorbench.wording import counted


def show_factor_study(study: FactorStudy, *, as_json: bool) -> None:
    """What a study varies, how its parameters are called today, and its claims."""
    if as_json:
        claims = published_claims_as_json(study.claims, with_parts=True)
        print_json(
            {"name": study.name, **study.file.model_dump(mode="json"), "claims": claims, "published": planned_tables(study.name)}
        )
        return
    screen = console()
    screen.print(study.file.title, style="bold")
    screen.print(study.file.question)
    screen.print(f"paper: {study.file.source}\n", highlight=False)
    screen.print(_parameters(study))
    screen.print()
    for name, part in study.file.parts.items():
        levels = ", ".join(f"{level.name}{' (not of the paper)' if level.successor else ''}" for level in part.levels)
        screen.print(f"  part {name}: {part.title}; {' and '.join(part.loads)}: {levels}", highlight=False)
    screen.print()
    show_published_and_claims(study.name, study.claims, with_parts=True)


def _parameters(study: FactorStudy) -> Table:
    table = new_table("parameter of the paper", "setting here", "default", "what became of it")
    for parameter in study.file.parameters:
        table.add_row(parameter.source, parameter.setting, parameter.default, parameter.became or "as it was")
    return table


@takes(FactorOptions)
def run_study(
    study: typer.Context,
    options: FactorOptions,
    out: Out = None,
    resume: Resume = False,
    live: Live = False,
    port: LivePort = None,
    dry_run: DryRun = False,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Measure levels of server settings on fresh servers, judge the claims, write a report."""
    require_out(resume, out)
    name = study.info_name or ""
    folder, reporter = out or new_results_folder(name), ProgressReporter()
    plan = plan_factors(FACTOR_STUDIES[name], options, folder, resume=resume)
    if options.budget is not None:
        _say_budget(plan, options.budget, reporter, read_factors(folder) if resume else None)
    if dry_run:
        show_dry_run(estimate_factors(plan, folder), as_json=json)
        return
    reporter.say(
        f"{plan.file.title}: {plan.bench.records:,} records, {len(plan.cells())} configurations under their loads, {counted(plan.first_rounds, 'round')}, "
        f"each on fresh servers; results go to {folder}"
    )
    with live_page(folder, live_port(live, port), reporter):
        show = printer(print_factors, as_json=json)
        _, page = run_and_report(FactorsBenchmark(), plan, folder, reporter, reports.FACTORS.write, show, resume=resume)
    open_page(page, no_open=no_open)


def _say_budget(plan: FactorsPlan, budget_s: float, reporter: ProgressReporter, before: FactorsResult | None) -> None:
    """Says what a budget was turned into; of a resumed study, what is left of it."""
    to_look_s, total_s = (left_s(plan, before),) * 2 if before else (expected_to_look_s(plan), expected_s(plan))
    rounds = counted(plan.first_rounds, "round")
    takes = f"{'What is left' if before else 'They'} {'take' if not before else 'takes'} about {length(to_look_s)}"
    if plan.looks:
        takes += " until the next look" if before else f", and at most {length(total_s)}"
        rounds += f", up to {plan.rounds} while claims are undecided"
    source = "by what was measured so far" if before and before.manifest.plan.took_s else "by arithmetic"
    left = f"; left out: {'; '.join(plan.left_out)}" if plan.left_out else ""
    more = "" if total_s <= budget_s else ". What does not fit is left: --resume continues with it, each time for as long"
    reporter.say(
        f"budget {length(budget_s)}: scale {plan.options.used_scale:g}, the {len(plan.cells())} configurations that claims need in "
        f"{rounds}{left}. {takes}, {source}{more}"
    )


def print_factors(summary: FactorsSummary, page: Path) -> None:
    """Prints what came out, and what to mind."""
    screen = console()
    # The chart library takes its time to be imported.
    from sensorbench.report.factors import headline

    if summary.status != "complete":
        screen.print(f"{summary.status}: {summary.reason}", style="yellow", highlight=False)
    screen.print(headline(summary), style="bold", highlight=False)
    for caveat in summary.warnings:
        print_labelled(screen, "note", f"{caveat.text} {caveat.action}")
    screen.print(f"report: {page}", highlight=False)
