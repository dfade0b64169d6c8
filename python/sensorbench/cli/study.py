"""`sensorbench study`: list, show and run studies."""

import typer

from sensorbench.cli.lazy import LazyGroup


class _Commands(LazyGroup):
    places = {
        "list": ("study_list:list_studies", "List the studies."),
        "show": ("study_show:show", "Show a study's question, grid and claims, and what its paper printed."),
        "run": ("study_run:app", "Run a study: load the data, measure, validate the answers, judge the claims, write a report."),
    }


app = typer.Typer(cls=_Commands, help="Reproduce published studies.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass
