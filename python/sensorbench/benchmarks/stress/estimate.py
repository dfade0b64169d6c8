"""What a stress benchmark would do, and what it would take."""

from pathlib import Path

from sensorbench.benchmarks.stress.pilot import WorkPilot, trials_of
from sensorbench.benchmarks.stress.run import CapacitySearch, Load, Steps, StepsApart, StressPlan
from sensorbench.benchmarks.stress.work import Work
from sensorbench.results.estimate import Estimate, PartEstimate, Room, VariantEstimate
from sensorbench.runner import free_room, place_of

# Between the trials of a search: a run is written down, and the next one connects.
BETWEEN_S = 1.0
# Without a pilot, a search is counted as if the capacity were this many times the rate at which it begins.
ASSUMED_TIMES = 16.0


def steps_time(load: Load, steps: Steps, pilot: WorkPilot | None) -> tuple[float, list[str]]:
    """How long steps or a search take (s), and what they are, in words."""
    warmup = [f"warm-up: {load.warmup_s:g} s at the first rate"] if load.warmup_s else []
    if isinstance(steps, CapacitySearch):
        known = pilot.closed_loop_per_s if pilot else steps.search.first_per_s * ASSUMED_TIMES
        trials, each_s = trials_of(steps.search, known), steps.ramp_s + steps.held_s
        found = "as a closed loop reached it in the pilot" if pilot else "assumed"
        words = f"search: about {trials} trials of {each_s:g} s, if the capacity is near {known:,.0f} operations/s ({found})"
        return load.warmup_s + trials * (each_s + BETWEEN_S), [*warmup, words]
    held = steps.steps if isinstance(steps, StepsApart) else steps
    rates = [
        f"{step.rate_per_s:,.6g} operations/s for {step.held_s:g} s, about {step.rate_per_s * step.held_s:,.0f}" for step in held
    ]
    return load.warmup_s + sum(step.length_s for step in held), [*warmup, *rates]


def work_part(work: Work, pilot: WorkPilot | None, repetitions: int, run_s: float) -> PartEstimate:
    """The data of work and its target, with a run of this many s."""
    records = work.described["records"]
    size = round(pilot.size_bytes.at(records)) if pilot and pilot.size_bytes else None
    in_memory = work.variant.target.database.in_memory
    load_s = pilot.load_s.at(records) if pilot else None
    variant = VariantEstimate(
        variant=work.variant.id,
        place=place_of(work.variant.target),
        rows=records,
        repetitions=repetitions,
        load_s=load_s,
        run_s=run_s,
        disk_bytes=None if in_memory else size,
        memory_bytes=size if in_memory else None,
    )
    return PartEstimate(
        data=work.described["data"],
        variants=[variant],
        time_s=None if load_s is None else load_s + run_s * repetitions,
    )


def work_estimate(
    title: str, kind: str, part: PartEstimate, steps: list[str], pilot: WorkPilot | None, starts: int, out: Path
) -> Estimate:
    """What a benchmark at one target takes that starts its server this many times."""
    (variant,) = part.variants
    disk_free, memory_free = free_room(out)
    notes = []
    if pilot is None and variant.place == "yours":
        notes.append(
            "servers of yours are not touched by a dry run: loading, disk and memory there are not known; the time is that of the steps"
        )
    elif pilot is None:
        notes.append("there was no pilot: loading, disk and memory are not known; the time is that of the steps")
    start_s = starts * pilot.start_s if pilot else None
    steps_s = part.time_s if part.time_s is not None else (variant.run_s or 0.0) * variant.repetitions
    return Estimate(
        title=title,
        kind=kind,
        parts=[part],
        steps=steps,
        disk=Room(needed=variant.disk_bytes if pilot else None, free=disk_free),
        memory=Room(needed=(variant.memory_bytes or 0) + pilot.server_bytes if pilot else None, free=memory_free),
        start_s=start_s,
        pilot_s=pilot.took_s if pilot else None,
        time_s=steps_s + (start_s or 0.0),
        notes=notes,
    )


def estimate_stress(plan: StressPlan, pilot: WorkPilot | None, out: Path) -> Estimate:
    """What a stress benchmark takes."""
    run_s, steps = steps_time(plan.load, plan.steps, pilot)
    part = work_part(plan.work, pilot, 1, run_s)
    return work_estimate(f"{plan.work.variant.target.label} under stress", "stress", part, steps, pilot, 1, out)
