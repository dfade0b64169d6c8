"""cassandra-stress' user mode, from its own profiles."""

from sensorbench.stress.cassandra_stress.options import parse_operations, parse_rate
from sensorbench.stress.cassandra_stress.profile import Profile, read_profile
from sensorbench.stress.cassandra_stress.run import Wish, carry_out
from sensorbench.stress.cassandra_stress.text import as_text
from sensorbench.stress.cassandra_stress.visits import Partitions, parse_partitions

__all__ = [
    "Partitions",
    "Profile",
    "Wish",
    "as_text",
    "carry_out",
    "parse_operations",
    "parse_partitions",
    "parse_rate",
    "read_profile",
]
