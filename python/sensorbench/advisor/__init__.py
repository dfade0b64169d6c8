"""The advisor: which schema and how many nodes, from what was measured."""

from sensorbench.advisor.amounts import bytes_of, length_s, rate_per_s
from sensorbench.advisor.recommend import Entry, Prices, Recommendation, Wish, recommend, use_cases
from sensorbench.advisor.reference import shipped
from sensorbench.advisor.relational import Relational

__all__ = [
    "Entry",
    "Prices",
    "Recommendation",
    "Relational",
    "Wish",
    "bytes_of",
    "length_s",
    "rate_per_s",
    "recommend",
    "shipped",
    "use_cases",
]
