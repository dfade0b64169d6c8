"""What all commands have in common: options for what is printed, options from environment and file, examples in their help."""

import re
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from sensorbench.cli.help_groups import epilog_of, prints_tables
from sensorbench.cli.settings import Settings
from sensorbench.errors import UsageError
from sensorbench.options import GIVEN_ELSEWHERE
from sensorbench.terminal import TERMINAL, TableFormat

_PANEL = "For all commands"
# What typer found at its start.
_given_colors: tuple[Any, Any] | None = None


def use_no_color() -> None:
    """Has nothing printed in colours from now on, help and errors of the command line too."""
    import typer.rich_utils as of_typer

    global _given_colors
    TERMINAL.no_color = True
    _given_colors = _given_colors or (of_typer.COLOR_SYSTEM, of_typer.FORCE_TERMINAL)
    of_typer.COLOR_SYSTEM, of_typer.FORCE_TERMINAL = None, False


def restore_color() -> None:
    """Takes back `use_no_color`, where a process runs several commands."""
    if _given_colors is not None:
        import typer.rich_utils as of_typer

        of_typer.COLOR_SYSTEM, of_typer.FORCE_TERMINAL = _given_colors


def _set_quiet(value: bool) -> None:
    TERMINAL.quiet |= value


def _set_verbose(value: bool) -> None:
    if value:
        TERMINAL.log_steps()


def _set_no_color(value: bool) -> None:
    if value:
        use_no_color()


def _set_format(value: TableFormat | None) -> None:
    TERMINAL.table_format = value or TERMINAL.table_format


def _shared(
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Print only results, warnings and errors.",
            callback=_set_quiet,
            expose_value=False,
            rich_help_panel=_PANEL,
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help="Also print each step and statement.",
            callback=_set_verbose,
            expose_value=False,
            rich_help_panel=_PANEL,
        ),
    ] = False,
    no_color: Annotated[
        bool,
        typer.Option(
            "--no-color",
            help="Print without colours, like NO_COLOR=1.",
            callback=_set_no_color,
            expose_value=False,
            rich_help_panel=_PANEL,
        ),
    ] = False,
    table_format: Annotated[
        TableFormat | None,
        typer.Option(
            "--format",
            help="Print tables in this format, and everything else to standard error.",
            callback=_set_format,
            expose_value=False,
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None,
) -> None:
    pass


def shared_options(*, with_format: bool) -> list[Any]:
    """The options that all commands have; --format is there for tables."""
    app = typer.Typer(add_completion=False)
    app.command()(_shared)
    options: list[Any] = get_command(app).params
    return options if with_format else [option for option in options if "--format" not in option.opts]


class Command(TyperCommand):
    """A command with what all commands have."""

    path: tuple[str, ...] = ()

    def adopt(self, path: tuple[str, ...]) -> None:
        """Gives the command its place, and what follows from that."""
        self.path = path
        has_format = any("--format" in parameter.opts for parameter in self.params)
        self.params += shared_options(with_format=prints_tables(path) and not has_format)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the help, with examples below."""
        self.epilog = epilog_of(self.path)
        super().format_help(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses the command line, and takes what it does not say from environment and file."""
        settings = ctx.default_map = Settings(ctx, self.path, self.params)
        try:
            rest = super().parse_args(ctx, args)
        except typer.BadParameter as error:
            name = error.param.name if error.param and not ctx.resilient_parsing else ""
            place = settings.place_of(name) if name else None
            if place is None:
                raise
            raise UsageError(f"{place}: {error.message} (it is {settings.found[name].value!r})") from None
        if not ctx.resilient_parsing:
            # What may not be set is refused, even where the command line says all that the command has.
            GIVEN_ELSEWHERE[:] = settings.as_words()
            self._check(ctx)
        return rest

    def _check(self, ctx: Any) -> None:
        if TERMINAL.quiet and TERMINAL.verbose:
            raise UsageError("--quiet and --verbose contradict one another; give one of them")
        if TERMINAL.table_format is not None and ctx.params.get("json"):
            raise UsageError(
                "--json prints the whole document, --format the rows of its tables; give one of them, in the environment and in "
                "sensorbench.toml, too"
            )

    def invoke(self, ctx: Any) -> Any:
        """Runs the command, and prints the tables that it left. What environment or file set is named where it is refused."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            settings: Settings = ctx.default_map
            places = {word: settings.place_of(option.name) for option in self.params for word in option.opts}
            said = set(re.findall(r"--?[a-zA-Z][\w-]*", str(error)))
            named = [f"{word} is set by {place}" for word, place in places.items() if place and word in said]
            if not named:
                raise
            raise type(error)(f"{error} ({', '.join(named)})") from None
        finally:
            TERMINAL.print_tables()


def use_own_commands(app: typer.Typer) -> None:
    """Makes each command of an application, and of those below it, one that has what all commands have."""
    for command in app.registered_commands:
        command.cls = Command
    for group in app.registered_groups:
        if group.typer_instance is not None:
            use_own_commands(group.typer_instance)


def adopt_all(command: Any, path: tuple[str, ...]) -> None:
    """Gives a command, and those below it that are imported already, their places."""
    if isinstance(command, Command):
        command.adopt(path)
    elif isinstance(command, TyperGroup):
        for name, below in command.commands.items():
            adopt_all(below, (*path, name))
