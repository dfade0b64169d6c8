"""`sensorbench traffic`: your own traffic."""

import typer

from sensorbench.cli.traffic_replay import replay

app = typer.Typer(help="Your own traffic: what clients asked of a database, replayed.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


app.command("replay")(replay)
