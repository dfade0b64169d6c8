"""What a run of a profile would do."""

from pathlib import Path

from sensorbench.compat.cassandra_stress.profile import INSERT
from sensorbench.compat.cassandra_stress.run import CassandraStressPlan
from sensorbench.compat.cassandra_stress.visits import rows_of_a_partition
from sensorbench.compat.estimate import estimate_of_tool
from sensorbench.results.estimate import Estimate


def estimate_cassandra_stress(plan: CassandraStressPlan, out: Path) -> Estimate:
    """What a run of a profile does at its target, by arithmetic."""
    options, total = plan.options, sum(plan.weights.values())
    rows = f"{rows_of_a_partition(plan.profile):,.1f} rows in a partition on average"
    return estimate_of_tool(
        f"{plan.profile.path.name} at {plan.variant.target.label}",
        "cassandra-stress",
        plan.variant,
        f"table {plan.profile.table.name}, {rows}",
        [
            *(f"{name}: {weight / total:.1%} of all operations" for name, weight in plan.weights.items()),
            *(["the table is made if it is not there"] if INSERT in plan.weights else []),
        ],
        out,
        rows=None,
        operations=options.operations,
        rate_per_s=options.rate,
        limit_s=options.duration,
    )
