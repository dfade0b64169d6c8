"""`sensorbench guarantees`: what a database gave its clients, as their history shows it."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from sensorbench.analysis import guarantees
from sensorbench.cli.options import Json
from sensorbench.cli.output import print_json
from sensorbench.progress import console
from sensorbench.report import words
from sensorbench.results.history import read_history

app = typer.Typer(help="What a database gave its clients: stale reads, lost writes, values never written.", no_args_is_help=True)

MOST_SHOWN = 3
TITLES = {
    "lost_writes": "lost writes",
    "stale_reads": "stale reads",
    "non_monotonic_reads": "non-monotonic reads",
    "never_written": "values never written",
    "failed_writes_seen": "failed writes seen",
    "possibly_stale_reads": "possibly stale reads",
}


@app.callback()
def _group() -> None:
    pass


@app.command("check")
def check(
    history: Annotated[Path, typer.Argument(help="A history: JSON lines with process, type, f, key, value and time (ns).")],
    json: Json = False,
) -> None:
    """Check a history of reads and writes. Exit code 0 whatever is found; 2 when the file is no history."""
    checked = guarantees.check(read_history(history))
    if json:
        print_json(checked.summary())
        return
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
        for example in finding.examples[:MOST_SHOWN]:
            screen.print(escape(f"{TITLES[name]}: {_told(name, example)}"), highlight=False, soft_wrap=True)
    unread = counts["keys"] - checked.findings["lost_writes"].of
    if unread:
        screen.print(
            f"note: {unread:,} of {counts['keys']:,} keys have no acknowledged write, or were not read after their last one: "
            "nothing is known of losses there",
            highlight=False,
        )


def _table(checked: guarantees.Checked) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("", "found", "of", "share", "age p50", "p99", "max"):
        table.add_column(column, justify="right" if column else "left")
    for name, finding in checked.findings.items():
        ages = [words.duration(age / 1e9) for age in (finding.ages_ns or {}).values()]
        share = "–" if finding.share is None else words.percent(finding.share)
        unit = "keys" if name == "lost_writes" else "reads"
        table.add_row(TITLES[name], f"{finding.count:,}", f"{finding.of:,} {unit}", share, *ages)
    return table


def _told(name: str, example: dict[str, Any]) -> str:
    """An example in a sentence, with key, times and the operations involved."""
    where = f"key {example['key']!r}"
    if name == "lost_writes":
        return (
            f"{where}: {_operation(example['write'])}; older reads at the end: {example['stale_reads_at_end']:,}, "
            f"the last: {_operation(example['last_stale_read'])}, {example['behind']:,} behind"
        )
    told = f"{where}: {_operation(example['read'])}"
    if name in {"stale_reads", "possibly_stale_reads"}:
        age = words.duration(example["age_ns"] / 1e9)
        newer = _operation(example["first_newer_write"])
        return f"{told}, {age} after a newer value was acknowledged ({newer}), {example['behind']:,} behind"
    if name == "non_monotonic_reads":
        return f"{told}, after it had a newer one: {_operation(example['earlier_read'])}"
    if name == "failed_writes_seen":
        return f"{told}, of a write that failed: {_operation(example['write'])}"
    return f"{told}, which nobody wrote"


def _operation(operation: dict[str, Any]) -> str:
    value = "null" if operation["value"] is None else operation["value"]
    until = "the end" if operation["ended_ns"] is None else operation["ended_ns"]
    return f"process {operation['process']} {operation['f']} {value} from {operation['invoked_ns']} to {until} ns"
