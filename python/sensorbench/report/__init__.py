"""Charts, words and pages of results: the functions that make pages are imported when they are asked for, because the chart library is large."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
