"""What a search for server settings would do, and what it would take."""

from pathlib import Path

from sensorbench.benchmarks.stress import WorkPilot, steps_time, work_estimate, work_part
from sensorbench.benchmarks.tune.run import TunePlan
from sensorbench.results.estimate import Estimate


def estimate_tune(plan: TunePlan, pilot: WorkPilot | None, out: Path) -> Estimate:
    """What a search takes: each measurement is on a server that is started for it and loaded again."""
    run_s, steps = steps_time(plan.bench.load, plan.bench.goal.steps, pilot)
    part = work_part(plan.work, pilot, 1, run_s)
    each_s = (part.time_s or run_s) + (pilot.start_s if pilot else 0.0)
    confirming = 2 * plan.pairs
    trials = plan.budget.runs or max(2, round((plan.budget.time_s or 0.0) / each_s)) if each_s else plan.budget.runs or 2
    measurements = trials + confirming
    variant = part.variants[0].model_copy(update={"repetitions": measurements})
    time_s = None if part.time_s is None else part.time_s * measurements
    whole = part.model_copy(update={"variants": [variant], "time_s": time_s})
    said = [
        f"about {trials} trials of {len(plan.space.settings)} server settings, every fifth the default",
        f"{confirming} runs, default and best, that confirm",
        *(f"each: {step}" for step in steps),
    ]
    estimate = work_estimate(
        f"{plan.work.variant.target.label} tuned for {plan.bench.goal.text}", "tune", whole, said, pilot, measurements, out
    )
    cluster = plan.work.variant.target.cluster
    if cluster is None:
        return estimate
    edge = plan.space.written({key: setting.choices[0] for key, setting in plan.space.settings.items()})
    note = "which values are tried follows from what is measured: configuration 1 is the default, 2 has each setting at its first value"
    commands = cluster.planned([plan.start, {**plan.start, **edge}])
    return estimate.model_copy(update={"commands": commands, "notes": [*estimate.notes, note]})
