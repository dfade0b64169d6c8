"""TSBS (Time Series Benchmark Suite): its loads and queries by the names of its options, and what its programs print."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
