from .estimate import estimate_cassandra_stress
from .options import CassandraStressOptions
from .profile import read_profile
from .run import CassandraStressBenchmark, plan_cassandra_stress
from .summary import summarise_cassandra_stress
from .text import as_text

__all__ = [
    "CassandraStressBenchmark",
    "CassandraStressOptions",
    "as_text",
    "estimate_cassandra_stress",
    "plan_cassandra_stress",
    "read_profile",
    "summarise_cassandra_stress",
]
