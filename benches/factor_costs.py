"""`python -m benches.factor_costs RESULTS`: the costs in `benchmarks/factors/expected.py`, made again out of the results of a study of factors.

START_S is what a measurement with shared records takes besides its rates, ADDED_PER_S how many records per second were added in one without. Measure on a machine
that does nothing else: `sensorbench study run cassandra-tuning --part file-cache --scale 0.016 --duration 10s --out RESULTS`.
"""

import sys
from pathlib import Path
from statistics import mean

from sensorbench.benchmarks.factors.expected import COUNTED_PER_S
from sensorbench.benchmarks.factors.plan import ADDING, FINDING
from sensorbench.results.factors import read_factors
from sensorbench.studies import FACTOR_STUDIES


def main(folder: Path) -> None:
    """Prints the costs."""
    plan = read_factors(folder).manifest.plan
    loads, records = FACTOR_STUDIES[plan.name].file.loads, plan.workload["records"]
    shared = [name for name in plan.took_s if name in loads and not loads[name].measures_adding and not loads[name].again_after]
    if not plan.shares_records or not shared or not plan.took_s.keys() & {ADDING, FINDING}:
        sys.exit(f"{folder}: expected results of servers of the lab, with a measurement of a load that shares records")
    besides = [took_s - len(loads[name].shares) * plan.step_s for name in shared for took_s in plan.took_s[name]]
    start_s = mean(besides) - records / COUNTED_PER_S
    added_s = [took_s - start_s for took_s in plan.took_s.get(ADDING, [])]
    added_s += [took_s - start_s - plan.step_s for took_s in plan.took_s.get(FINDING, [])]
    print(f"START_S = {start_s:.0f}, of {len(besides)} measurements")
    print(f"ADDED_PER_S = {records / mean(added_s):,.0f}, of {len(added_s)} times")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
