"""Result bundles: making one of a results folder, verifying one of anybody's, and how far results may be trusted."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
