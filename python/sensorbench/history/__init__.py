"""A history of results in one file: what goes in, series of figures, and where they changed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
