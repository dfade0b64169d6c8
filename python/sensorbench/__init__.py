"""Benchmarks databases for sensor data: the same data, the same questions, answers checked, latencies that do not lie."""

from importlib.metadata import version

__version__ = version("sensorbench")
