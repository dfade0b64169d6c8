"""Tuning: which settings of a server are better for a goal, searched under a budget and confirmed by runs of their own."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
