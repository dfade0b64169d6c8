from .amounts import bytes_of, length_s, rate_per_s
from .recommend import Entry, Prices, Recommendation, Wish, use_cases
from .reference import shipped
from .relational import Relational

__all__ = [
    "Entry",
    "Prices",
    "Recommendation",
    "Relational",
    "Wish",
    "bytes_of",
    "length_s",
    "rate_per_s",
    "shipped",
    "use_cases",
]
