from .amounts import bytes_of, length_s, rate_per_s
from .recommend import Entry, Prices, Recommendation, RecommendOptions, use_cases
from .reference import shipped
from .relational import Relational

__all__ = [
    "Entry",
    "Prices",
    "RecommendOptions",
    "Recommendation",
    "Relational",
    "bytes_of",
    "length_s",
    "rate_per_s",
    "shipped",
    "use_cases",
]
