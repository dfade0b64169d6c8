"""Replay: recorded statements at a target, on the clock that they were recorded by."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
