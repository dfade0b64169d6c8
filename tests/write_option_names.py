"""Writes the names of all options again, by which keys of sensorbench.toml are known: python -m tests.write_option_names"""

from pathlib import Path

from typer.main import get_command

import sensorbench.cli
from sensorbench.cli.command import Command
from sensorbench.cli.main import app
from sensorbench.cli.settings import NAMES_FILE, keys_of
from tests.commands import commands

if __name__ == "__main__":
    found = (command for _, command in commands(get_command(app)) if isinstance(command, Command))
    names = {key for command in found for parameter in command.params for key in keys_of(parameter)}
    file = Path(sensorbench.cli.__file__).with_name(NAMES_FILE)
    file.write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")
