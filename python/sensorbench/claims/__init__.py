"""Claims: what was published, the evidence that was measured, and the rules by which it is judged."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
