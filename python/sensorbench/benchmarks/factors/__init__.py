"""One factor at a time: each level of some settings on fresh servers under the same loads, then drafts of all of them together."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
