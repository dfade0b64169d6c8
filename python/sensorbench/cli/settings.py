"""Options that the environment and sensorbench.toml give. The command line goes before the environment, that before the file.

What destroys or permits something is given by the command line alone: elsewhere it is an error, since nobody would see that it was
ignored, and nobody should lose data by a line that was written for another run.
"""

import os
import shlex
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import typer

from sensorbench.errors import UsageError

FILE = Path("sensorbench.toml")
PREFIX = "SENSORBENCH_"
# A list of all options of all commands, so that a key of another command is known without importing that command.
NAMES_FILE = "option_names.txt"
# Options that destroy or permit; those that begin with `allow-` permit, too.
COMMAND_LINE_ALONE = ("replace", "yes", "force", "drop-after")
# They end the command that they are given to.
_NO_SETTINGS = {"help", "install-completion", "show-completion"}
_BOOLS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class Setting:
    """A value, as the command line would have it, and where it stands."""

    value: object
    place: str


def is_command_lines_alone(option: str) -> bool:
    """Whether an option, without its dashes, destroys or permits something."""
    return option in COMMAND_LINE_ALONE or option.startswith("allow-")


def keys_of(parameter: Any) -> list[str]:
    """The names by which an option is set: its long ones, without dashes."""
    if parameter.param_type_name != "option":
        return []
    return [word[2:] for word in parameter.opts if word.startswith("--") and word[2:] not in _NO_SETTINGS]


def variables_of(path: tuple[str, ...], key: str) -> list[str]:
    """The environment variables of an option of a command, that of this command alone first."""
    levels = [path[:length] for length in range(len(path), -1, -1)]
    return [PREFIX + "_".join([*level, key]).replace("-", "_").upper() for level in levels]


class Settings(dict[str, Any]):
    """The defaults of a command's parameters that environment and file give. Both are read when the first of them is needed, which
    help never does.
    """

    def __init__(self, context: typer.Context, path: tuple[str, ...], parameters: list[Any]) -> None:
        super().__init__()
        self._context = context
        self._path = path
        self._parameters = parameters

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a parameter, by its name. Raises UsageError that names the place of a wrong one."""
        # Help and completion show what the program has.
        if self._context.resilient_parsing:
            return default
        setting = self.found.get(name)
        return default if setting is None else setting.value

    def place_of(self, name: str) -> str | None:
        """Where the value of a parameter stands, if it is one of environment or file."""
        source = self._context.get_parameter_source(name)
        return self.found[name].place if name in self.found and source is not None and source.name == "DEFAULT_MAP" else None

    def as_words(self) -> list[str]:
        """What is set, as words of a command line; without what changes only how results are printed."""
        words: list[str] = []
        for parameter in self._parameters:
            if parameter.expose_value and self.place_of(parameter.name) and parameter.name != "json":
                value, flag = self.found[parameter.name].value, f"--{keys_of(parameter)[0]}"
                if isinstance(value, list):
                    words += [word for item in value for word in (flag, str(item))]
                elif value is not False:
                    words += [flag] if value is True else [flag, str(value)]
        return words

    @cached_property
    def found(self) -> dict[str, Setting]:
        """What is set, by the names of parameters. Raises UsageError for anything that may not be set, whatever it is for."""
        _refuse_variables()
        file = _File.read() if FILE.exists() else None
        if file is not None:
            file.check(self._context, self._path, {key for parameter in self._parameters for key in keys_of(parameter)})
        settings: dict[str, Setting] = {}
        for parameter in self._parameters:
            for key in keys_of(parameter):
                if is_command_lines_alone(key):
                    continue
                setting = _of_environment(self._path, key, parameter) or (file and file.setting(self._path, key, parameter))
                if setting:
                    settings[parameter.name] = setting
        return settings


def _refuse_variables() -> None:
    """Raises UsageError for a variable that would destroy or permit something, for whatever command."""
    for variable in sorted(os.environ):
        option = variable.removeprefix(PREFIX).replace("_", "-").lower()
        is_of_a_command = option.endswith(tuple(f"-{name}" for name in COMMAND_LINE_ALONE)) or "-allow-" in option
        if variable.startswith(PREFIX) and os.environ[variable] and (is_command_lines_alone(option) or is_of_a_command):
            raise UsageError(
                f"{variable}: {_alone(option)}; unset the variable, and give the option to the command that needs it"
            )


def _alone(option: str) -> str:
    name = next((name for name in COMMAND_LINE_ALONE if option == name or option.endswith(f"-{name}")), None)
    name = name or option[option.index("allow-") :]
    return f"--{name} can destroy data or lift a safeguard, so it must be on the command line"


def _of_environment(path: tuple[str, ...], key: str, parameter: Any) -> Setting | None:
    for variable in variables_of(path, key):
        if text := os.environ.get(variable):
            return Setting(_value_of_text(variable, text, parameter), variable)
    return None


def _value_of_text(variable: str, text: str, parameter: Any) -> object:
    if parameter.is_flag:
        if text.lower() not in _BOOLS:
            raise UsageError(f"{variable}={text}: expected true or false")
        return _BOOLS[text.lower()]
    if not parameter.multiple:
        return text
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{variable}={text}: expected values with spaces between them, quoted as in a shell ({error})") from None


@dataclass(frozen=True)
class _File:
    """The content of sensorbench.toml, and the lines of its keys. Names may be written with `_` or `-`."""

    content: dict[str, object]
    lines: dict[str, int]

    @classmethod
    def read(cls) -> "_File":
        # It brings the models of files, which a command without such a file needs not wait for.
        from sensorbench.toml_file import load_keys

        return cls(*load_keys(FILE))

    def place(self, *keys: str) -> str:
        from sensorbench.toml_file import place_of

        return place_of(FILE, self.lines, ".".join(keys))

    def check(self, context: typer.Context, path: tuple[str, ...], options: set[str]) -> None:
        """Raises UsageError for what may not stand in the file, and for unknown keys of tables that this command reads."""
        self._refuse(self.content, ())
        contexts: list[Any] = [context]
        while (parent := contexts[0].parent) is not None:
            contexts.insert(0, parent)
        table = self.content
        for depth, of_level in enumerate(contexts):
            commands = list(getattr(of_level.command, "commands", {}))
            known = options if of_level is context else set[str]()
            self._check_table(table, path[:depth], commands, known)
            below = table.get(path[depth]) if depth < len(path) else None
            if not isinstance(below, dict):
                break
            table = below

    def check_for_all(self, command: Any, table: dict[str, object], above: tuple[str, ...] = ()) -> None:
        """Raises UsageError for what no command below `command` takes."""
        commands = getattr(command, "commands", {})
        options = {key for parameter in command.params for key in keys_of(parameter)}
        self._refuse(table, above)
        self._check_table(table, above, list(commands), options)
        for key, value in table.items():
            if isinstance(value, dict):
                below = command.load(key) if hasattr(command, "load") else commands[key]
                self.check_for_all(below, value, (*above, key))

    def _refuse(self, table: dict[str, object], above: tuple[str, ...]) -> None:
        for key, value in table.items():
            option = key.replace("_", "-")
            if is_command_lines_alone(option):
                raise UsageError(
                    f"{self.place(*above, key)}: {_alone(option)}; remove the key, and give the option to the command that needs it"
                )
            if isinstance(value, dict):
                self._refuse(value, (*above, key))

    def _check_table(self, table: dict[str, object], above: tuple[str, ...], commands: list[str], options: set[str]) -> None:
        for key, value in table.items():
            option = key.replace("_", "-")
            if isinstance(value, dict):
                if key not in commands:
                    expected = f"one of the commands {', '.join(commands)}" if commands else "a key for each option, no table"
                    raise UsageError(f"{self.place(*above, key)}: unknown table; expected {expected}")
            elif option not in options and (not commands or option not in option_names()):
                what = f"an option of {' '.join(above)}" if above and not commands else "an option of some command"
                raise UsageError(f"{self.place(*above, key)}: unknown key; expected {what}, without its dashes")

    def setting(self, path: tuple[str, ...], key: str, parameter: Any) -> Setting | None:
        """What the file says of an option: in the table of its command, or in one around it."""
        for length in range(len(path), -1, -1):
            table: object = self.content
            for name in path[:length]:
                table = table.get(name) if isinstance(table, dict) else None
            for written, value in table.items() if isinstance(table, dict) else ():
                if written.replace("_", "-") == key and not isinstance(value, dict):
                    place = self.place(*path[:length], written)
                    return Setting(_value_of_toml(place, value, parameter), place)
        return None


def check_settings_file(path: Path, program: Any) -> str:
    """Checks a sensorbench.toml for all commands of the program; returns what it sets. Raises UsageError."""
    from sensorbench.toml_file import load_keys

    file = _File(*load_keys(path))
    file.check_for_all(program, file.content)
    return f"sets {', '.join(file.content) or 'nothing'}"


def _value_of_toml(place: str, value: object, parameter: Any) -> object:
    if parameter.is_flag:
        if not isinstance(value, bool):
            raise UsageError(f"{place}: expected true or false (it is {value!r})")
        return value
    values = value if isinstance(value, list) else [value]
    if not parameter.multiple and isinstance(value, list):
        raise UsageError(f"{place}: expected one value, not a list")
    for item in values:
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            raise UsageError(f"{place}: expected a text or a number (it is {item!r})")
    texts = [str(item) for item in values]
    return texts if parameter.multiple else texts[0]


def option_names() -> set[str]:
    """The names of all options of all commands that may be set."""
    return set(files("sensorbench.cli").joinpath(NAMES_FILE).read_text(encoding="utf-8").split())
