"""The MapReduce job of the study over whole databases: carried out on Spark and by databases themselves, and summed up."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
