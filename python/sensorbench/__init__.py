"""Benchmarks databases for sensor data: the same data and operations for each, answers validated, latency without coordinated omission."""

from typing import TYPE_CHECKING

__version__: str

if not TYPE_CHECKING:

    def __getattr__(name: str) -> str:
        """The version, whose look-up takes too long for commands that do not show it."""
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.metadata import version

        return version("sensorbench")
