from .options import parse_operations, parse_rate
from .profile import read_profile
from .run import CassandraStressSpec, carry_out
from .text import as_text
from .visits import Partitions, parse_partitions

__all__ = [
    "CassandraStressSpec",
    "Partitions",
    "as_text",
    "carry_out",
    "parse_operations",
    "parse_partitions",
    "parse_rate",
    "read_profile",
]
