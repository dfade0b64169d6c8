"""`sensorbench study run`: each study is a command of its own, with the options that its kind has."""

from typing import Any

import typer

from sensorbench.cli.lazy import LazyGroup
from sensorbench.errors import UsageError
from sensorbench.studies import kinds_of_studies, listed_studies


class _Studies(LazyGroup):
    def __init__(self, **options: Any) -> None:
        titles = {study.name: study.title for study in listed_studies()}
        self.places = {name: (f"{kind}:run_study", f"{titles.get(name, name)}.") for name, kind in kinds_of_studies().items()}
        super().__init__(**options)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The study that the arguments name."""
        if args and not args[0].startswith("-") and args[0] not in self.places and not ctx.resilient_parsing:
            raise UsageError(f"there is no study {args[0]!r}; expected one of {', '.join(self.places)}")
        return super().resolve_command(ctx, args)

    def load(self, name: str) -> Any:
        """The command of a study's kind, with the study's title above its help."""
        command = super().load(name)
        command.help = f"{self.places[name][1]}\n\n{command.help}"
        return command


app = typer.Typer(
    cls=_Studies,
    help="Run a study: load the data, measure, validate the answers, judge the claims, write a report.",
    no_args_is_help=True,
)


@app.callback()
def _group() -> None:
    pass
