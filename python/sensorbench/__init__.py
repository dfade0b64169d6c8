"""Benchmarks databases for sensor data: the same data and operations for each, answers validated, latency without coordinated omission."""

import lazy_loader

_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """A public name, imported when it is first used; and the version, whose look-up takes too long for commands that do not show it."""
    if name != "__version__":
        return _attribute(name)
    from importlib.metadata import version

    return version("sensorbench")
