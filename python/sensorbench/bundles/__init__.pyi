from .make import BundleHead, make_bundle
from .trust import Evidence, Trust, trust_of
from .verify import Verification, stored_summaries, verify_bundle, verify_unpacked

__all__ = [
    "BundleHead",
    "Evidence",
    "Trust",
    "Verification",
    "make_bundle",
    "stored_summaries",
    "trust_of",
    "verify_bundle",
    "verify_unpacked",
]
