"""`sensorbench traffic`: your own traffic."""

from pathlib import Path
from typing import Annotated

import typer

from sensorbench.cli.options import Json
from sensorbench.cli.printing import print_json
from sensorbench.errors import UsageError
from sensorbench.paths import check_is_free
from sensorbench.progress import ProgressReporter, console
from sensorbench.report import formatting
from sensorbench.traffic import FORMATS, Trace, import_logs

app = typer.Typer(help="Your own traffic: what clients sent to a database, recorded and described.", no_args_is_help=True)

TraceFolder = Annotated[Path, typer.Argument(metavar="TRACE", help="The folder of a trace.")]
NewTrace = Annotated[Path, typer.Option("--out", help="The folder of the new trace.")]


@app.command("import")
def import_(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES...", help="Logs of one form, in the order in which they were written.")
    ],
    out: NewTrace,
    log_format: Annotated[
        str | None,
        typer.Option(
            "--log-format", help=f"The form of the logs, if not by their first line: {', '.join(FORMATS)}.", show_default=False
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Make a trace of the logs of a server: templates, parameters, sessions, transactions."""
    check_is_free(out)
    if log_format is not None and log_format not in FORMATS:
        raise UsageError(f"--log-format {log_format}: no such form; expected one of {', '.join(FORMATS)}")
    reporter = ProgressReporter(quiet=json)
    with reporter.task("reading") as task:
        trace = import_logs(files, out, FORMATS[log_format] if log_format else None)
        task.end(formatting.counted(trace.statements or 0, "statement"))
    _show(trace, out, as_json=json)


def _show(trace: Trace, folder: Path, *, as_json: bool) -> None:
    if as_json:
        print_json(
            trace.model_dump(mode="json", exclude={"templates"}) | {"templates": len(trace.templates), "folder": str(folder)}
        )
        return
    counts = (
        formatting.counted(trace.statements or 0, "statement"),
        formatting.counted(trace.sessions or 0, "session"),
        formatting.counted(len(trace.templates), "template"),
    )
    console().print(
        f"{', '.join(counts)}; {formatting.counted(trace.skipped, 'other entry').replace('entrys', 'entries')} left out"
    )
    console().print(f"see it with: sensorbench traffic describe {folder}")
