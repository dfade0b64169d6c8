from .amounts import bytes_of, length_s, rate_per_s
from .basis import Basis, basis_of
from .recommend import Entry, Prices, Recommendation, RecommendOptions, use_cases
from .reference import shipped
from .relational import Relational
from .source import EvidenceBundle, Source, evidence_text, shipped_evidence

__all__ = [
    "Basis",
    "Entry",
    "EvidenceBundle",
    "Prices",
    "RecommendOptions",
    "Recommendation",
    "Relational",
    "Source",
    "basis_of",
    "bytes_of",
    "evidence_text",
    "length_s",
    "rate_per_s",
    "shipped",
    "shipped_evidence",
    "use_cases",
]
