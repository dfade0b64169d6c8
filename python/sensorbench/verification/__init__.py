"""Whether targets answered alike: answers, final contents, what was written, histories and guarantees."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
