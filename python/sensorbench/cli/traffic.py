"""`sensorbench traffic`: your own traffic."""

from pathlib import Path
from typing import Annotated

import typer

from sensorbench.cli.options import Json, NoOpen, length_s
from sensorbench.cli.printing import new_table, open_page, print_json
from sensorbench.cli.traffic_fit import fit
from sensorbench.cli.traffic_replay import replay
from sensorbench.errors import UsageError
from sensorbench.paths import REPORT_FILE, check_is_free, check_page_is_free
from sensorbench.progress import ProgressReporter, console
from sensorbench.report import formatting, traffic_page
from sensorbench.report.build import write_page
from sensorbench.report.traffic import shown_statement, traffic_facts
from sensorbench.results.traffic import TrafficDescription
from sensorbench.traffic import (
    FORMATS,
    Trace,
    anonymise_trace,
    describe_trace,
    import_logs,
    parse_positions,
    read_key,
    read_trace,
    record_traffic,
    recordable,
)
from sensorbench.wording import counted

# Templates that the terminal shows; the page has all.
_SHOWN = 12
app = typer.Typer(help="Record, describe and replay your own traffic: what clients sent to a database.", no_args_is_help=True)

TraceFolder = Annotated[Path, typer.Argument(metavar="TRACE", help="Folder of a trace.")]
NewTrace = Annotated[Path, typer.Option("--out", help="Folder of the new trace.")]


@app.command("import")
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES...",
            help="Logs of one format, in the order in which they were written; a full query log of Cassandra is a folder.",
        ),
    ],
    out: NewTrace,
    log_format: Annotated[
        str | None,
        typer.Option(
            "--log-format",
            help=f"Format of the logs; detected from the first line if not given: {', '.join(FORMATS)}.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Make a trace of the logs of a server: templates, parameters, sessions, transactions."""
    check_is_free(out)
    if log_format is not None and log_format not in FORMATS:
        raise UsageError(f"--log-format {log_format}: unknown format; expected one of {', '.join(FORMATS)}")
    reporter = ProgressReporter(quiet=json)
    with reporter.task("reading") as task:
        trace = import_logs(files, out, FORMATS[log_format] if log_format else None)
        task.end(counted(trace.statements or 0, "statement"))
    _show(trace, out, as_json=json)


def _show(trace: Trace, folder: Path, *, as_json: bool) -> None:
    if as_json:
        print_json(
            trace.model_dump(mode="json", exclude={"templates"}) | {"templates": len(trace.templates), "folder": str(folder)}
        )
        return
    counts = (
        counted(trace.statements or 0, "statement"),
        counted(trace.sessions or 0, "session"),
        counted(len(trace.templates), "template"),
    )
    console().print(f"{', '.join(counts)}; {counted(trace.skipped, 'other entry', 'other entries')} left out")
    console().print(f"see it with: sensorbench traffic describe {folder}")


@app.command("record")
def record(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Server of the lab, lab:NAME; or a URL.")],
    out: NewTrace,
    duration: Annotated[str, typer.Option("--for", help="How long: 30s, 5m.")] = "5m",
    allow_settings: Annotated[
        bool,
        typer.Option(
            "--allow-settings",
            help="Also change log settings of a server that the lab did not start; they are restored afterwards.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Record what clients send to a server: its log is switched on for a while, and put back afterwards."""
    check_is_free(out)
    length = length_s("--for", duration)
    if not length > 0:
        raise UsageError(f"--for {duration}: expected a duration above 0, for example 30s or 5m")
    recorder = recordable(target, allow_settings=allow_settings)
    reporter = ProgressReporter(quiet=json)
    with reporter.task(f"recording {recorder.name}", total=length) as task:
        trace = record_traffic(recorder, length, out, task.advance_to)
        task.end(counted(trace.statements or 0, "statement"))
    _show(trace, out, as_json=json)


@app.command("anonymise")
def anonymise(
    trace: TraceFolder,
    key: Annotated[
        Path, typer.Option("--key", help="A file with a secret of at least 16 bytes; the same key makes the same values.")
    ],
    out: NewTrace,
    keep_order: Annotated[
        list[str] | None,
        typer.Option(
            "--keep-order",
            help="Parameters whose values keep their order: TEMPLATE:PARAMETER, as 3:1; 3:1+5:2 are compared with one another. May be given "
            "several times.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write a trace without the literals of another one: equal ones stay equal, and none can be inferred without the key."""
    check_is_free(out)
    secret = read_key(key)
    ordered = parse_positions(keep_order or (), read_trace(trace))
    reporter = ProgressReporter(quiet=json)
    with reporter.task("anonymising") as task:
        made = anonymise_trace(trace, secret, out, ordered)
        task.end(counted(made.statements or 0, "statement"))
    _show(made, out, as_json=json)


@app.command("describe")
def describe(trace: TraceFolder, json: Json = False, no_open: NoOpen = False) -> None:
    """Show what a trace has: templates, rate, burstiness, sessions, transactions, skew, tables. Its page is report.html in its folder."""
    check_page_is_free(trace / REPORT_FILE)
    reporter = ProgressReporter(quiet=json)
    with reporter.task("describing") as task:
        description = describe_trace(trace)
        task.end(counted(description.statements, "statement"))
    page = write_page(traffic_page(description, trace), trace, with_files=False)
    if json:
        print_json(description)
        return
    _show_description(description)
    console().print(f"report: {page}")
    open_page(page, no_open=no_open)


def _show_description(description: TrafficDescription) -> None:
    table = new_table("kind", "statements", "share", "median", "p99", "errors", "statement", texts={"kind", "statement"})
    for template in description.templates[:_SHOWN]:
        took = template.duration_s
        table.add_row(
            template.kind,
            f"{template.statements:,}",
            formatting.percent(template.share),
            formatting.duration(took.median if took else None),
            formatting.duration(took.p99 if took else None),
            f"{template.errors:,}",
            shown_statement(template),
        )
    console().print(table)
    if len(description.templates) > _SHOWN:
        console().print(f"and {len(description.templates) - _SHOWN} more templates")
    for name, value in traffic_facts(description):
        console().print(f"{name}: {value}")


app.command("replay")(replay)
app.command("fit")(fit)
