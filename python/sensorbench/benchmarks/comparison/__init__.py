"""Comparisons: variants that are loaded, warmed up and run in turn under one workload."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
