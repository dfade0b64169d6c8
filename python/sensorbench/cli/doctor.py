"""`sensorbench doctor`: whether this machine is fit to measure."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from sensorbench.analysis.verdicts import EQUIVALENCE_MARGIN
from sensorbench.app.doctor import diagnose
from sensorbench.benchmarks.doctor import TARGETS, Diagnosis, Noise
from sensorbench.cli.compare import Margin
from sensorbench.cli.model_options import takes
from sensorbench.cli.options import Json, Out
from sensorbench.cli.printing import new_table, print_json
from sensorbench.errors import UsageError
from sensorbench.paths import new_results_folder
from sensorbench.progress import ProgressReporter, console
from sensorbench.report import formatting
from sensorbench.runner import ChangeOptions

_STYLES = {"ok": "green", "warning": "yellow", "problem": "red", "unknown": "dim"}


@takes(ChangeOptions)
def doctor(
    options: ChangeOptions,
    experiment: Annotated[
        Path | None,
        typer.Argument(
            help="Experiment file whose first target runs against itself (A/A), which shows the noise.", show_default=False
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure a tenth as long; figures vary more.")] = False,
    margin: Margin = EQUIVALENCE_MARGIN,
    out: Out = None,
    json: Json = False,
) -> None:
    """Check whether this machine is fit to measure, and which latencies can be trusted."""
    if experiment is None and (options.changes or out is not None):
        raise UsageError("--set and --out are for an A/A run: name an experiment file as well")
    folder = out or new_results_folder(f"doctor-{experiment.stem}" if experiment else "doctor")
    diagnosis = diagnose(
        folder, ProgressReporter(quiet=json), quick=quick, experiment=experiment, changes=options.changes, margin=margin
    )
    print_json(diagnosis) if json else _print(diagnosis)


def _print(diagnosis: Diagnosis) -> None:
    screen = console()
    ceilings = new_table("the client at most", "measured", "other clients", wide=True)
    for name, value in diagnosis.ceilings.items():
        for key, item in value.items() if isinstance(value, dict) else [("", value)]:
            ceilings.add_row(f"{name} {key}".strip(), _described(name, item), TARGETS.get(name, ""))
    screen.print(ceilings)
    screen.print()
    if diagnosis.noise:
        _print_noise(diagnosis.noise)
    checks = new_table("check", "", "measured", "what to do", wide=True)
    for check in diagnosis.checks:
        checks.add_row(check.name, Text(check.state, style=_STYLES[check.state]), check.measured, check.action)
    screen.print(checks)
    screen.print()
    screen.print(diagnosis.verdict, style="bold", highlight=False)


def _print_noise(noise: Noise) -> None:
    screen = console()
    table = new_table("A/A: operation", "A", "B", "A / B", "interval", "A is", texts={"A/A: operation", "A is"}, wide=True)
    for each in noise.operations:
        interval = "" if each.low is None or each.high is None else " – ".join(map(formatting.significant, (each.low, each.high)))
        seconds = (formatting.duration(each.a_s), formatting.duration(each.b_s))
        table.add_row(each.operation, *seconds, formatting.significant(each.ratio), interval, each.verdict)
    screen.print(table)
    screen.print(f"report: {noise.report}\n", highlight=False)


def _described(name: str, value: Any) -> str:
    if value is None:
        return "needs a server"
    if not isinstance(value, int | float):
        return str(value)
    return f"{value:.2%}" if name.endswith("_error") else formatting.count(value)
