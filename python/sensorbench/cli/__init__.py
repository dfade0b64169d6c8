"""The command line."""

from sensorbench.cli.main import main, start

__all__ = ["main", "start"]
