"""Studies of factors at the command line: shown, run, reported."""

from pathlib import Path

from rich.table import Table

from sensorbench.app.reports import write_factors_report
from sensorbench.app.run import run_and_report
from sensorbench.benchmarks.factors import FactorOptions, FactorsBenchmark, FactorsPlan, check
from sensorbench.cli.options import length_s
from sensorbench.cli.output import (
    new_folder,
    published_claims,
    published_claims_as_json,
    show_written,
)
from sensorbench.cli.printing import print_json
from sensorbench.errors import UsageError
from sensorbench.progress import Teller, console, print_labelled
from sensorbench.results.summary.factors import FactorsSummary
from sensorbench.studies.factors import FactorStudy


def show_factor_study(study: FactorStudy, *, as_json: bool) -> None:
    """What a study varies, how its parameters are called today, and its claims."""
    if as_json:
        claims = published_claims_as_json(study.claims, with_parts=True)
        print_json({"name": study.name, **study.file.model_dump(mode="json"), "claims": claims})
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
    screen.print(published_claims(study.claims, with_parts=True))


def _parameters(study: FactorStudy) -> Table:
    table = Table(box=None)
    for column in ("parameter of the paper", "setting here", "default", "what became of it"):
        table.add_column(column)
    for one in study.file.parameters:
        table.add_row(one.source, one.setting, one.default, one.became or "as it was")
    return table


def run_factor_study(
    study: FactorStudy,
    out: Path | None,
    *,
    target: str | None,
    parts: tuple[str, ...],
    scale: float,
    seed: int,
    duration: str | None,
    repeat: int | None,
    in_flight: int | None,
    rate: float | None,
    resume: bool,
    no_open: bool,
    as_json: bool,
) -> None:
    """Runs a study of factors and reports it, however it ended."""
    options = FactorOptions(
        scale=scale,
        step_s=length_s("--duration", duration or study.file.step),
        rounds=repeat or study.file.rounds,
        seed=seed,
        in_flight=in_flight or study.file.in_flight,
        parts=parts,
        options=_options(study, target),
        top_per_s=_rate(rate),
    )
    plan = FactorsPlan(study.name, study.file, options)
    check(plan)
    folder, teller = out or new_folder(study.name), Teller()
    cells = len(plan.cells())
    teller.say(
        f"{study.file.title}: {plan.bench.records:,} records, {cells} configurations under their loads, {options.rounds} rounds, "
        f"each on fresh servers; results go to {folder}"
    )
    written = run_and_report(FactorsBenchmark(), plan, folder, teller, write_factors_report, resume=resume)
    show_written(written, _print, no_open=no_open, as_json=as_json)


def _options(study: FactorStudy, target: str | None) -> str:
    """The options of a URL that a user's target adds. Raises UsageError for another database, and for servers that are there already."""
    name, _, options = (target or study.file.database).partition("?")
    if name != study.file.database:
        raise UsageError(
            f"--target {target}: study {study.name} starts servers with the settings that it tries; expected {study.file.database}, "
            "with options behind ? if you like"
        )
    return options


def _rate(rate: float | None) -> float | None:
    if rate is not None and not rate > 0.0:
        raise UsageError(f"--rate {rate:g}: expected a number of operations a second, above 0")
    return rate


def show_factors(folder: Path, *, no_open: bool, as_json: bool) -> None:
    """Writes summary and report of a study of factors on disk, and prints what they say."""
    show_written(write_factors_report(folder), _print, no_open=no_open, as_json=as_json)


def _print(summary: FactorsSummary, page: Path) -> None:
    """Prints what came out, and what to mind."""
    screen = console()
    # The chart library takes its time to be imported.
    from sensorbench.report.factors import headline

    screen.print(headline(summary), style="bold", highlight=False)
    for caveat in summary.warnings:
        print_labelled(screen, "note", f"{caveat.text} {caveat.action}")
    screen.print(f"report: {page}", highlight=False)
