"""What a study of factors would do. Each measurement has fresh servers and loads its records again, which is too dear for a pilot."""

from pathlib import Path

from sensorbench.benchmarks.factors.cells import Cell
from sensorbench.benchmarks.factors.plan import FactorsPlan
from sensorbench.results.estimate import Estimate, PartEstimate, VariantEstimate
from sensorbench.runner import arithmetic_estimate, place_of, seconds


def estimate_factors(plan: FactorsPlan, out: Path) -> Estimate:
    """The measurements of a study of factors, and how long their rates are held: a lower bound of the time."""
    cells = plan.cells()
    variants = [_variant(plan, cell) for cell in cells.values()]
    held_s = sum((variant.run_s or 0.0) * variant.repetitions for variant in variants)
    part = PartEstimate(
        data=f"{plan.bench.records:,} records",
        readings=plan.bench.records,
        variants=variants,
        time_s=held_s,
    )
    rounds = f"{plan.first_rounds} to {plan.rounds}" if plan.looks else f"{plan.rounds}"
    steps = [
        "find the rates: what the default configuration takes of writes and reads",
        f"measure {len(cells)} configurations under their loads in {rounds} rounds, each on fresh servers",
        *(["measure the best draft against the default"] if not plan.groups_of_budget else []),
    ]
    notes = [
        "the time is that of the rates which are held, without the best draft; starting servers and loading records come on top, "
        "and are not known without a pilot"
    ]
    estimate = arithmetic_estimate(
        plan.file.title, "factors", [part], out, steps=steps, scale=plan.options.used_scale, time_s=held_s, notes=notes
    )
    if plan.target.cluster is None:
        return estimate
    configurations = list({tuple(cell.settings.items()): cell.settings for cell in cells.values()}.values())
    return estimate.model_copy(update={"commands": plan.target.cluster.planned(configurations)})


def _variant(plan: FactorsPlan, cell: Cell) -> VariantEstimate:
    load = plan.file.loads[cell.load]
    held_s = len(load.shares) * plan.step_s * (2 if load.again_after else 1)
    later_s = seconds(load.again_after) * plan.bench.at.time if load.again_after else 0.0
    return VariantEstimate(
        variant=cell.id,
        place=place_of(plan.target),
        rows=plan.bench.records,
        repetitions=plan.first_rounds,
        run_s=max(held_s, later_s + held_s / 2),
    )
