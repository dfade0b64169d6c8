"""`sensorbench consistency`: what a database gave its clients, as their history shows it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sensorbench.analysis import guarantees
from sensorbench.cli.fail_on import FailOnFindings, fail_on_findings, parse_findings
from sensorbench.cli.options import Json
from sensorbench.cli.printing import new_table, print_json
from sensorbench.errors import UsageError
from sensorbench.progress import console
from sensorbench.report import findings, formatting
from sensorbench.results.history import read_history
from sensorbench.runner import seconds_or_none

app = typer.Typer(
    help="Check what clients of a database saw: stale reads, lost writes, values never written.", no_args_is_help=True
)

MAX_SHOWN = 3


@app.callback()
def _group() -> None:
    pass


@app.command("check")
def check(
    history: Annotated[Path, typer.Argument(help="A history: JSON lines with process, type, f, key, value and time (ns).")],
    fail_on: FailOnFindings = None,
    clock_bound: Annotated[
        str,
        typer.Option(
            help="How far apart the clients' clocks may be: 2ms. With several hosts it is `bound_ns` of the load generators in the "
            "manifest of the run. Nothing is found that clocks so far apart could explain."
        ),
    ] = "0",
    json: Json = False,
) -> None:
    """Check a history of reads and writes. Exit code 0 whatever is found, but for what --fail-on names; 2 when the file is not a history."""
    failing = parse_findings(fail_on)
    checked = guarantees.check(guarantees.widened(read_history(history), _bound_ns(clock_bound)))
    if json:
        print_json(checked.summary())
    else:
        _print(checked)
    fail_on_findings(failing, lambda name: checked.findings[name].count)


def _bound_ns(text: str) -> int:
    """A bound of clocks. Raises UsageError."""
    try:
        return round(seconds_or_none(text) * 1e9)
    except ValueError as error:
        raise UsageError(f"--clock-bound {error}") from None


def _print(checked: guarantees.Checked) -> None:
    counts, screen = checked.counts, console()
    screen.print(
        f"{counts['operations']:,} operations of {counts['processes']:,} processes on {counts['keys']:,} keys: "
        f"{counts['reads']:,} reads ({counts['answered_reads']:,} answered), "
        f"{counts['writes']:,} writes ({counts['acknowledged_writes']:,} acknowledged), "
        f"{counts['failed']:,} failed, {counts['unknown']:,} of unknown outcome",
        highlight=False,
    )
    screen.print(_table(checked))
    for name, finding in checked.findings.items():
        for example in finding.examples[:MAX_SHOWN]:
            screen.print(f"{findings.TITLES[name]}: {findings.described(name, dict(example))}", highlight=False, soft_wrap=True)
    unread = counts["keys"] - checked.findings["lost_writes"].of
    if unread:
        screen.print(
            f"note: {unread:,} of {counts['keys']:,} keys have no acknowledged write, or were not read after their last one: "
            "nothing is known of losses there",
            highlight=False,
        )


def _table(checked: guarantees.Checked) -> Table:
    table = new_table("", "found", "of", "share", "age p50", "p99", "max", texts={""}, wide=True)
    for name, finding in checked.findings.items():
        share = "–" if finding.share is None else formatting.percent(finding.share)
        of = f"{finding.of:,} {findings.unit(name)}"
        table.add_row(findings.TITLES[name], f"{finding.count:,}", of, share, *findings.ages(finding.ages_ns))
    return table
