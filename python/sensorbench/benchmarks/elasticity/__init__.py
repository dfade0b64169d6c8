"""Clusters that grow, shrink and lose nodes under load: what it costs, and when they are stable again."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
