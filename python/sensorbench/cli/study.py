"""`sensorbench study`: list, show and run studies."""

import typer

from sensorbench.cli.lazy import LazyGroup


class _Commands(LazyGroup):
    places = {
        "list": ("study_list:list_studies", "List the studies."),
        "show": ("study_show:show", "Show what a study asks, its grid, what its paper printed, and its claims."),
        "run": ("study_run:app", "Run a study: load, ask, check the answers, judge the claims, write a report."),
    }


app = typer.Typer(cls=_Commands, help="Reproduce published studies.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass
