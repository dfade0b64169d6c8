"""`sensorbench watch`: a run that is over, as its live page showed it."""

import sys
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from sensorbench.app.watch import replayed
from sensorbench.cli.options import Json, NoOpen
from sensorbench.cli.printing import print_json
from sensorbench.progress import console


def watch(
    folder: Annotated[Path, typer.Argument(help="Results of a benchmark, or one run of it.")],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port of 127.0.0.1; 0 for a free one.")] = 0,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Replay the runs of a benchmark second by second, in a page on 127.0.0.1, until Ctrl-C."""
    with replayed(folder, port) as address:
        if json:
            print_json({"address": address, "folder": str(folder)})
        else:
            console().print(f"{address} replays {folder}; Ctrl-C ends it", highlight=False, soft_wrap=True)
        if not no_open and sys.stdout.isatty():
            webbrowser.open(address)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return
