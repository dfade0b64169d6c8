"""Runs one workload on targets: variants, servers, loading, plans, runs and what they are watched by."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
