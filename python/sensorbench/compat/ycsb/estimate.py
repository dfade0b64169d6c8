"""What a phase of a core workload would do."""

from pathlib import Path

from sensorbench.compat.estimate import estimate_of_tool
from sensorbench.compat.ycsb.plan import operations_of_phase
from sensorbench.compat.ycsb.run import YcsbPlan
from sensorbench.results.estimate import Estimate


def estimate_ycsb(plan: YcsbPlan, out: Path) -> Estimate:
    """What a phase does at its target, by arithmetic."""
    workload = plan.workload
    planned = operations_of_phase(workload, plan.phase)
    total = sum(operation.weight for operation in planned)
    operations = workload.loaded if plan.phase == "load" else workload.operationcount or None
    inserted = sum(operation.weight for operation in planned if operation.kind == "INSERT") / total
    added = 0 if plan.phase == "load" or operations is None else round(operations * inserted)
    return estimate_of_tool(
        f"YCSB {plan.phase} at {plan.variant.target.label}",
        "ycsb",
        plan.variant,
        f"{workload.loaded:,} records of {workload.fieldcount} fields, each of up to {workload.fieldlength} bytes",
        [f"{operation.name}: {operation.weight / total:.1%} of all operations" for operation in planned],
        out,
        rows=workload.loaded + added,
        operations=operations,
        rate_per_s=workload.target or None,
        limit_s=workload.maxexecutiontime or None,
        row_bytes=workload.fieldcount * workload.fieldlength,
    )
