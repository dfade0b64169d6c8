"""Doctor: whether a machine is fit to measure, and which latencies can be trusted there."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
