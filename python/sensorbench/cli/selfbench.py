"""`sensorbench selfbench`: how good is this machine as a load generator."""

from typing import Annotated, Any

import typer

from sensorbench.benchmarks.selfbench import TARGETS, measure
from sensorbench.cli.options import Json
from sensorbench.cli.printing import new_table, print_json
from sensorbench.progress import ProgressReporter, console
from sensorbench.report import formatting


def selfbench(
    json: Json = False,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter measurements, for a look: figures are less sure.")] = False,
) -> None:
    """Measure the client's own ceilings on this machine: what it cannot do, it cannot measure."""
    figures = measure(ProgressReporter(), quick=quick)
    if json:
        print_json(figures)
        return
    table = new_table("what", "measured", "mark")
    for name, value in figures.items():
        for key, item in value.items() if isinstance(value, dict) else [("", value)]:
            table.add_row(f"{name} {key}".strip(), _described(name, item), TARGETS.get(name, ""))
    console().print(table)


def _described(name: str, value: Any) -> str:
    if value is None:
        return "needs a server"
    if not isinstance(value, int | float):
        return str(value)
    return f"{value:.2%}" if name.endswith("_error") else formatting.count(value)
