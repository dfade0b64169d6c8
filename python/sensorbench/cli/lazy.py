"""Groups of commands that are imported when they are run: help needs their names alone."""

from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from sensorbench.cli.command import adopt_all, use_own_commands
from sensorbench.cli.help_texts import with_plain_help
from sensorbench.cli.renamed import refuse_renamed_command, refuse_renamed_option
from sensorbench.interrupts import held_back


class LazyGroup(TyperGroup):
    """A group whose commands are modules of `sensorbench.cli`. `places` has, for each command, `module:attribute` (a function, or a Typer
    with more commands) and the line that stands for it in the group's help. `panels` are the headings of that help, each with its commands.
    """

    places: dict[str, tuple[str, str]] = {}
    panels: ClassVar[dict[str, tuple[str, ...]]] = {}
    path: tuple[str, ...] = ()

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        panel_of = {name: panel for panel, names in self.panels.items() for name in names}
        order = {name: number for number, name in enumerate(panel_of)}
        names = sorted(self.places, key=lambda name: order.get(name, len(order)))
        self.commands = {
            name: TyperCommand(name, help=self.places[name][1], rich_help_panel=panel_of.get(name)) for name in names
        }

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The name of the command that the arguments name, the command as its module has it, and the other arguments."""
        if args and args[0] not in self.places:
            refuse_renamed_command([*_words(ctx), *args])
        name, listed, rest = super().resolve_command(ctx, args)
        return name, with_plain_help(self.load(name)) if name and listed else None, rest

    def invoke(self, ctx: Any) -> Any:
        """Runs the command that was named. Raises UsageError that says the present name of an option that has another one now."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            # Typer does not export the exception of an option that there is not.
            if option := getattr(error, "option_name", None):
                refuse_renamed_option(" ".join(_words(getattr(error, "ctx", ctx))), option)
            raise

    def load(self, name: str) -> Any:
        """A command as its module has it."""
        module, attribute = self.places[name][0].split(":")
        # Libraries in C++ end the process when an interruption comes while they make their types.
        with held_back():
            found = getattr(import_module(f"sensorbench.cli.{module}"), attribute)
        parent = typer.Typer(add_completion=False)
        parent.callback()(lambda: None)
        if isinstance(found, typer.Typer):
            parent.add_typer(found, name=name)
        else:
            parent.command(name)(found)
        use_own_commands(parent)
        group: Any = get_command(parent)
        command = group.commands[name]
        if isinstance(command, LazyGroup):
            command.path = (*self.path, name)
        else:
            adopt_all(command, (*self.path, name))
        return command


def _words(ctx: Any) -> list[str]:
    """The words of a command's name, without the program's."""
    words: list[str] = []
    while ctx.parent is not None:
        words.insert(0, ctx.info_name)
        ctx = ctx.parent
    return words
