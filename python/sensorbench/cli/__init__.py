"""The command line."""

from sensorbench.cli.main import main

__all__ = ["main"]
