"""`sensorbench compare`: results against results."""

from collections.abc import Sequence
from typing import Annotated

import typer

from sensorbench.analysis.sample import METRICS
from sensorbench.analysis.verdicts import EQUIVALENCE_MARGIN
from sensorbench.app.compare import ComparedOperation, compare_results, side_at
from sensorbench.cli.fail_on import FailOnSlower, check_slower, fail_on_slower
from sensorbench.cli.options import Json
from sensorbench.cli.printing import new_table, print_json
from sensorbench.errors import UsageError
from sensorbench.progress import console, error_console, print_labelled
from sensorbench.report import formatting

Metric = Annotated[
    str | None,
    typer.Option("--metric", help=f"One of {', '.join(METRICS)}; that of the results if not given.", show_default=False),
]
Margin = Annotated[float, typer.Option("--margin", help="Differences within this share are equivalent.", min=0.0)]
Place = Annotated[str, typer.Argument(help="Folder of results, or FOLDER:VARIANT for one of its variants.")]


Force = Annotated[
    bool, typer.Option("--force", help="Allow different datasets or workloads; they are shown side by side, without verdicts.")
]


def compare(
    a: Place,
    b: Place,
    metric: Metric = None,
    margin: Margin = EQUIVALENCE_MARGIN,
    force: Force = False,
    fail_on: FailOnSlower = None,
    json: Json = False,
) -> None:
    """Compare two results of the same dataset and workload: which is faster, by how much, with a confidence interval."""
    fails_if_slower = check_slower(fail_on)
    found = compare_results(side_at(a), side_at(b), metric=metric, margin=margin, force=force)
    without = any(row.verdict is None for row in found.operations)
    if without and fails_if_slower:
        raise UsageError(f"--fail-on slower: {a} and {b} get no verdicts: {'; '.join(found.differences)}")
    if json:
        print_json({"a": a, "b": b, "metric": found.metric, "comparisons": found.operations, "differences": found.differences})
    else:
        _print(found.operations, a, b)
        for difference in found.differences:
            print_labelled(error_console(), "warning", difference)
    if fails_if_slower:
        slower = [row for row in found.operations if row.verdict == "slower" and row.ratio > 1.0 + margin]
        fail_on_slower([f"{row.a} {row.operation} ({row.ratio:.3g} times)" for row in slower])


def _print(rows: Sequence[ComparedOperation], a: str, b: str) -> None:
    screen = console()
    screen.print(f"A = {a}\nB = {b}", highlight=False)
    has_verdicts = any(row.verdict for row in rows)
    table = new_table("variant", "operation", "A", "B", "A / B", "interval", *(("A is", "why") if has_verdicts else ()))
    for row in rows:
        variant = row.a if row.a == row.b else f"{row.a} / {row.b}"
        interval = (
            f"{formatting.significant(row.low)} – {formatting.significant(row.high)}"
            if row.low is not None and row.high is not None
            else ""
        )
        table.add_row(
            variant,
            row.operation,
            formatting.duration(row.a_s),
            formatting.duration(row.b_s),
            formatting.significant(row.ratio),
            interval,
            *((row.verdict, row.reason) if has_verdicts else ()),
        )
    screen.print(table)
