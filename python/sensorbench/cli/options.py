"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

from sensorbench.errors import UsageError
from sensorbench.runner import seconds

Out = Annotated[
    Path | None, typer.Option("--out", help="Folder for the results; a new one below results/ if not given.", show_default=False)
]
NoOpen = Annotated[bool, typer.Option("--no-open", help="Do not open the report in a browser.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Evidence = Annotated[
    list[Path] | None,
    typer.Option(
        "--evidence",
        metavar="FOLDER|FILE",
        help="Bundle of results, or folder of bundles, to use in addition to the packaged ones. May be given several times.",
        show_default=False,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Print what would be done, with estimates of time, disk and memory; do nothing."),
]
NoPilot = Annotated[bool, typer.Option("--no-pilot", help="With --dry-run: estimate by arithmetic, without a pilot run.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in --out; what is complete is not repeated.")]
Replace = Annotated[
    bool, typer.Option("--replace", help="Delete what an earlier run left at a target (only what sensorbench created).")
]
DropAfter = Annotated[
    bool,
    typer.Option(
        "--drop-after", help="When the run is complete, remove what it created at its targets, including your own servers."
    ),
]
Metrics = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        help="Serve OpenMetrics on this port of 127.0.0.1 (or on ADDRESS:PORT) during the run; docs/how-to/grafana.md.",
        show_default=False,
    ),
]

Live = Annotated[bool, typer.Option("--live", help="Serve a live page of the load on 127.0.0.1 during the run.")]
LivePort = Annotated[
    int | None,
    typer.Option(
        "--live-port",
        min=0,
        max=65535,
        help="Port of the live page; a free one if not given. Implies --live.",
        show_default=False,
    ),
]


def live_port(live: bool, port: int | None) -> int | None:
    """The port of the live page: 0 for a free one, None if no page was requested."""
    return port if port is not None else (0 if live else None)


def require_out(resume: bool, out: Path | None) -> None:
    """Raises UsageError for --resume without a results folder."""
    if resume and out is None:
        raise UsageError("--resume: name the folder of the results to continue with --out")


def length_s(option: str, text: str) -> float:
    """A length of time in s. Raises UsageError."""
    try:
        return seconds(text)
    except ValueError as error:
        raise UsageError(f"{option} {error}") from None
