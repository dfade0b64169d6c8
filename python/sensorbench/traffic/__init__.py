"""Recorded traffic: what clients asked of a database, when, in which sessions and transactions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
