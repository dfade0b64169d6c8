"""All commands of the command line, with their options."""

from docsite.command_line import commands

__all__ = ["commands"]
