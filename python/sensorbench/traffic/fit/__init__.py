"""Makes an experiment of a trace, and compares what it sends with the half of the trace that it was not made of."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
