from .amounts import bytes_of, length_s, rate_per_s
from .basis import Basis, basis_of
from .recommend import Entry, Prices, Recommendation, RecommendOptions, use_cases
from .reference import shipped
from .relational import Relational

__all__ = [
    "Basis",
    "Entry",
    "Prices",
    "RecommendOptions",
    "Recommendation",
    "Relational",
    "basis_of",
    "bytes_of",
    "length_s",
    "rate_per_s",
    "shipped",
    "use_cases",
]
