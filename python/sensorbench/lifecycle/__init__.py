"""The lifecycle that all benchmarks share: from a validated plan to results on disk, however the work ends."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
