"""Computation over whole datasets on Apache Spark, which an extra brings (`sensorbench[spark]`)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
