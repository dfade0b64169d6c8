from .make import make_bundle
from .trust import Trust, trust_of
from .verify import Verification, verify_bundle

__all__ = ["Trust", "Verification", "make_bundle", "trust_of", "verify_bundle"]
