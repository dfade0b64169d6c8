"""What a run of another tool's workload would do. Its target is a server of the user's, which a dry run does not touch."""

from pathlib import Path

from sensorbench.results.estimate import Estimate, PartEstimate, VariantEstimate
from sensorbench.runner import Variant, arithmetic_estimate, place_of


def estimate_of_tool(
    title: str,
    kind: str,
    variant: Variant,
    data: str,
    steps: list[str],
    out: Path,
    *,
    rows: int | None,
    operations: int | None,
    rate_per_s: float | None,
    limit_s: float | None,
    row_bytes: int | None = None,
) -> Estimate:
    """What a run does.

    Args:
        title: of the benchmark.
        kind: of the benchmark.
        variant: where it runs.
        data: what it is about, in words.
        steps: what it does, in words.
        out: the folder of the results.
        rows: rows that there are afterwards; None if that is not known.
        operations: operations of the run; None if it ends by time.
        rate_per_s: at which they arrive; None in a closed loop.
        limit_s: after which it ends; None if its operations end it.
        row_bytes: bytes of a row as it is sent.

    """
    by_rate = operations / rate_per_s if operations and rate_per_s else None
    ends_s = [end for end in (by_rate, limit_s) if end]
    run_s = min(ends_s, default=None)
    size = rows * row_bytes if rows and row_bytes else None
    notes = ["the target is not touched by a dry run: what it takes there is only the arithmetic of what is sent"]
    if by_rate is None and operations:
        notes.append(
            "how long a closed loop takes is not known without the target" + (f"; at most {limit_s:g} s" if limit_s else "")
        )
    estimated = VariantEstimate(
        variant=variant.id,
        place=place_of(variant.target),
        rows=rows,
        operations=operations,
        repetitions=1,
        run_s=run_s,
        disk_bytes=size,
    )
    part = PartEstimate(data=data, variants=[estimated], time_s=run_s)
    return arithmetic_estimate(title, kind, [part], out, steps=steps, time_s=run_s, notes=notes)
