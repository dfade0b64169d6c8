"""Operations and schemas, which are files: what is asked, and how a dataset lies in a database and is asked there."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
