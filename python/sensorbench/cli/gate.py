"""`sensorbench gate`: is head slower than base, measured interleaved on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from sensorbench.analysis.gate import LOOKS
from sensorbench.analysis.verdicts import EQUIVALENCE_MARGIN
from sensorbench.app.gate import Gate, Side, run_gate
from sensorbench.app.gate_files import check_gate_file, write_gate_files
from sensorbench.cli.options import Json, NoOpen, Out, Replace, length_s
from sensorbench.cli.printing import new_table, open_page, print_json
from sensorbench.errors import FailedError, UndecidedError, UsageError
from sensorbench.paths import new_results_folder
from sensorbench.progress import ProgressReporter, console
from sensorbench.report import formatting
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.gate import GateResult


def gate(
    experiment: Annotated[Path, typer.Argument(help="Experiment file with one target, or with two: base and head.")],
    base: Annotated[
        list[str] | None,
        typer.Option(
            "--base",
            help="Baseline: a schema file, a target, or key=value of the experiment file; the file as it is if not given.",
            show_default=False,
        ),
    ] = None,
    head: Annotated[
        list[str] | None,
        typer.Option(
            "--head", help="Changed side, in the same form. May be given several times, like --base.", show_default=False
        ),
    ] = None,
    base_server_setting: Annotated[
        list[str] | None,
        typer.Option(
            "--base-server-setting", help="Setting of base's server, key=value, if the lab starts it.", show_default=False
        ),
    ] = None,
    head_server_setting: Annotated[
        list[str] | None,
        typer.Option(
            "--head-server-setting", help="Setting of head's server, key=value, if the lab starts it.", show_default=False
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Change a key of the experiment file for both sides: workload.duration=5s.", show_default=False
        ),
    ] = None,
    margin: Annotated[float, typer.Option("--margin", help="How much slower head may be.", min=0.001)] = EQUIVALENCE_MARGIN,
    repetitions: Annotated[int, typer.Option("--repetitions", help="Maximum number of repetitions of each side.")] = LOOKS[-1],
    budget: Annotated[str, typer.Option("--budget", help="Maximum duration, including loading: 10m.")] = "10m",
    out: Out = None,
    replace: Replace = False,
    junit: Annotated[Path | None, typer.Option("--junit", help="Also write the result as JUnit XML.", show_default=False)] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Also write the result as Markdown.", show_default=False)
    ] = None,
    badge: Annotated[
        Path | None, typer.Option("--badge", help="Also write a badge: .svg, or .json for shields.io.", show_default=False)
    ] = None,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Measure head and base interleaved on this machine, and report whether head is slower. Exit code 1 if it is, 3 if that is undecided."""
    for option, path in (("--junit", junit), ("--markdown", markdown), ("--badge", badge)):
        check_gate_file(option, path)
    wanted = Gate(
        experiment,
        Side(tuple(base or ()), _settings("--base-server-setting", base_server_setting)),
        Side(tuple(head or ()), _settings("--head-server-setting", head_server_setting)),
        margin=margin,
        repetitions=repetitions,
        budget_s=length_s("--budget", budget),
        changes=tuple(changes or ()),
    )
    folder = out or new_results_folder(f"gate-{experiment.stem}")
    reporter = ProgressReporter()
    result, page = run_gate(wanted, folder, reporter, replace_data=replace)
    write_gate_files(result, junit=junit, markdown=markdown, badge=badge)
    if json:
        print_json(result)
    else:
        _print(result, page)
        open_page(page, no_open=no_open)
    if result.verdict == "slower":
        raise FailedError(f"slower: {result.reason}")
    if result.verdict == "undecided":
        raise UndecidedError(result.reason)


def _settings(option: str, texts: list[str] | None) -> tuple[tuple[str, str], ...]:
    pairs = [text.partition("=") for text in texts or ()]
    for key, equals, value in pairs:
        if not (key and equals):
            raise UsageError(f"{option} {key}{equals}{value}: expected key=value")
    return tuple((key, value) for key, _, value in pairs)


def _print(result: GateResult, page: Path) -> None:
    table = new_table("operation", "base", "head", "head / base", "interval", "base / itself", "detectable", "verdict")
    for each in result.operations:
        table.add_row(
            each.operation,
            formatting.duration(each.base_s),
            formatting.duration(each.head_s),
            "–" if each.ratio.value is None else formatting.significant(each.ratio.value),
            _interval(each.ratio),
            _interval(each.control),
            "–" if each.detectable is None else formatting.percent(each.detectable),
            each.verdict,
        )
    screen = console()
    screen.print(table)
    for difference in result.differences:
        screen.print(f"differs: {difference}", highlight=False, soft_wrap=True)
    screen.print(
        f"head is {result.verdict} (margin {formatting.percent(result.margin)}): {result.reason}. {result.repetitions} of at most "
        f"{result.max_repetitions} repetitions, {formatting.duration(result.took_s)}",
        highlight=False,
        soft_wrap=True,
    )
    screen.print(f"report: {page}", highlight=False, soft_wrap=True)


def _interval(figure: MeasuredFigure) -> str:
    if figure.low is None or figure.high is None:
        return "–"
    return f"{formatting.significant(figure.low)} – {formatting.significant(figure.high)}"
