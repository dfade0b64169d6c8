"""The reference of the command line, made of its commands."""

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from typer.main import get_command

from docsite.markdown import code, table
from sensorbench.cli.help_texts import unbroken
from sensorbench.cli.lazy import LazyGroup

_NAME = "sensorbench"
# Options that every command has are described once, at the top of the page.
_OF_ALL = {"help"}


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command, as it is written, with the words that call it."""
    yield path, command
    for name, listed in getattr(command, "commands", {}).items():
        yield from commands(command.load(name) if isinstance(command, LazyGroup) else listed, (*path, name))


def reference() -> str:
    """Every command: what it does, its usage, its arguments and options."""
    # The help of commands is not imported before it is asked for, and neither is the command line.
    from sensorbench.cli.main import app

    return "\n".join(_described(path, command) for path, command in commands(get_command(app)))


def _described(path: tuple[str, ...], command: Any) -> str:
    words = " ".join((_NAME, *path))
    parameters = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    arguments = [parameter for parameter in parameters if parameter.param_type_name == "argument"]
    options = [parameter for parameter in parameters if parameter.param_type_name == "option" and parameter.name not in _OF_ALL]
    below = getattr(command, "commands", {})
    usage = [words, *(["COMMAND"] if below else []), *map(_usage, arguments), *(["[OPTIONS]"] if options else [])]
    parts = [f"{'#' * min(2 + max(len(path) - 1, 0), 3)} `{words}`", _plain(command.help), f"```text\n{' '.join(usage)}\n```"]
    if below:
        parts.append(table(("command", "what it does"), ((_link(words, name), _first(item)) for name, item in below.items())))
    if arguments:
        parts.append(table(("argument", "meaning"), ((code(_metavar(each)), _plain(each.help)) for each in arguments)))
    if options:
        parts.append(table(("option", "meaning", "default"), map(_option_row, options)))
    return "\n\n".join(part for part in parts if part) + "\n"


def _link(words: str, name: str) -> str:
    return f"[{code(name)}](#{'-'.join((*words.split(), name))})"


def _first(command: Any) -> str:
    return _plain(command.help).split("\n\n")[0]


def _plain(text: str | None) -> str:
    """Help without the escapes that keep rich from reading styles into it, and without what Markdown would read into it."""
    return unbroken(text or "").replace("\\[", "[").replace("<", "&lt;").replace("*", "\\*")


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name).upper()


def _usage(argument: Any) -> str:
    shown = _metavar(argument) + ("…" if argument.nargs == -1 else "")
    return shown if argument.required else f"[{shown}]"


def _option_row(option: Any) -> tuple[str, str, str]:
    flags = " / ".join([", ".join(option.opts), *([", ".join(option.secondary_opts)] if option.secondary_opts else [])])
    value = "" if option.is_flag else f" {option.metavar or _value(option.type_descriptor.annotation)}"
    # What a command fills in later stands in the help text, as typer would write it.
    about, _, said = _plain(option.help).partition(" [default: ")
    several = " May be given several times." if option.multiple else ""
    return code(flags + value), f"{about.strip()}{_limits(option)}{several}", code(said.rstrip("]")) or _default(option)


def _value(annotation: Any) -> str:
    """What stands for the value of an option."""
    inner = [argument for argument in get_args(annotation) if argument is not type(None)]
    if get_origin(annotation) is Literal:
        return "|".join(map(str, inner))
    if inner:
        return _value(inner[0])
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "|".join(str(member.value) for member in annotation)
    return {int: "INTEGER", float: "NUMBER", Path: "PATH"}.get(annotation, "TEXT")


def _limits(option: Any) -> str:
    low, high = option.min, option.max
    if low is None and high is None:
        return ""
    return f" From {low:g} on." if high is None else f" At most {high:g}." if low is None else f" From {low:g} to {high:g}."


def _default(option: Any) -> str:
    if option.required:
        return "must be given"
    default = option.default
    if default in (None, (), [], "") or (option.is_flag and not default):
        return ""
    values = default if isinstance(default, list | tuple) else (default,)
    return ", ".join(code("on" if value is True else value) for value in values)
