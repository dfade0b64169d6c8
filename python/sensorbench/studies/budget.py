"""A budget of time, turned into a scale, operations and repetitions by a pilot."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from sensorbench.analysis.extrapolation import Line, common_limit
from sensorbench.benchmarks.comparison import Pilot, estimate_comparisons, found_of, run_cost, run_pilot
from sensorbench.dataset import open_dataset
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.results.estimate import Budget, Estimate
from sensorbench.runner import Comparison, Variant, Workload
from sensorbench.schemas import Timelines
from sensorbench.studies.options import DEFAULT_BUDGET_S, StudyOptions
from sensorbench.studies.run import plan_study, workload_of
from sensorbench.studies.study import Study
from sensorbench.studies.widths import refused_widths, timelines_of

# What is planned for: the rest is for what the pilot could not know. The pilot itself may take this much of the budget.
PLANNED_SHARE, PILOT_SHARE = 0.85, 0.2
# Measuring gets at least this much of the time: a study that only loads has no answer.
MEASURED_SHARE = 0.25
SCALES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
# Each kind of operation is executed at least so often, by the slowest variant, too.
MIN_OF_A_KIND = 10
# Verdicts need this many repetitions.
MIN_REPETITIONS = 3


@dataclass(frozen=True)
class StudyPilot:
    """The pilot of a study, and what it needs to be asked about other scales."""

    study: Study
    options: StudyOptions
    out: Path
    pilot: Pilot
    is_measured: bool
    variants: dict[str, list[Variant]]

    def only(self, parts: Sequence[str]) -> "StudyPilot":
        """The pilot of some of its parts."""
        pilot = replace(self.pilot, parts={name: self.pilot.parts[name] for name in parts})
        options = self.options.model_copy(update={"parts": tuple(parts)})
        return replace(self, pilot=pilot, options=options, variants={name: self.variants[name] for name in parts})

    @property
    def workloads(self) -> dict[str, Workload]:
        """The workload of each comparison as the study has it at the options' scale."""
        return self.workloads_at(self.options)

    def workloads_at(self, options: StudyOptions) -> dict[str, Workload]:
        """The workload of each comparison with other options."""
        grids = {name: self.study.file.parts.get(name, self.study.file) for name in self.pilot.parts}
        of_pilot = {name: part.comparison.workload.schedule for name, part in self.pilot.parts.items()}
        return {
            name: workload_of(grid.workload, options).model_copy(update={"schedule": of_pilot[name]})
            for name, grid in grids.items()
        }

    def estimate(self, options: StudyOptions, max_variant_time_s: float = math.inf) -> Estimate:
        """What the study takes with some options."""
        return estimate_comparisons(
            self.pilot,
            self.variants,
            self.workloads_at(options),
            options.used_scale,
            self.out,
            title=self.study.file.title,
            max_variant_time_s=max_variant_time_s,
            is_measured=self.is_measured,
            refused={name: self.refused_at(name, options.used_scale) for name in self.pilot.parts},
            blocks=options.blocks,
        )

    def refused_at(self, part: str, scale: float) -> dict[str, str]:
        """The variants of a comparison that make no sense at a scale."""
        timelines = self._timelines[part]
        if timelines is None:
            return {}
        sampling = replace(timelines.sampling, scale=scale)
        readings = round(timelines.readings * scale / timelines.sampling.scale)
        return refused_widths(self.variants[part], replace(timelines, readings=readings, sampling=sampling))

    @cached_property
    def _timelines(self) -> dict[str, Timelines | None]:
        """The timelines of each comparison, as the pilot had them."""
        return {
            name: timelines_of(part.comparison.dataset)
            if any(variant.schema.needs_sampling_interval for variant in self.variants[name])
            else None
            for name, part in self.pilot.parts.items()
        }


def pilot_study(
    study: Study,
    options: StudyOptions,
    out: Path,
    allowed_s: float,
    reporter: ProgressReporter,
    *,
    measures: bool = True,
    touches_users: bool = False,
    budget_s: float | None = None,
) -> StudyPilot:
    """Measures a study on short prefixes of its data; at servers of users only where that is said. With a budget, parts are measured only as long as
    there is time for more of them. Raises UsageError for what makes no sense.
    """
    quiet = ProgressReporter(quiet=True)
    found: dict[str, list[Variant]] = {}

    def comparisons_at(scale: float, folder: Path) -> dict[str, Comparison]:
        first = () if study.file.parts else (options.datasets or tuple(study.file.datasets))[:1]
        at_scale = options.model_copy(update={"scale": scale, "datasets": first or options.datasets})
        comparisons = {part.name: part.comparison for part in plan_study(study, at_scale, folder, quiet)}
        found.update({name: comparison.variants for name, comparison in comparisons.items()})
        return comparisons

    def is_full(pilot: Pilot) -> bool:
        return budget_s is not None and _is_used_up(StudyPilot(study, options, out, pilot, measures, found), budget_s)

    datasets = options.datasets or tuple(study.file.datasets)
    pilot = run_pilot(
        comparisons_at,
        options.used_scale,
        allowed_s,
        reporter,
        measures=measures,
        touches_users=touches_users,
        is_full=is_full if study.file.parts else None,
    )
    if not study.file.parts and len(datasets) > 1:
        pilot = _on_all(pilot, datasets, options)
        found = dict.fromkeys(pilot.parts, next(iter(found.values())))
    return StudyPilot(study, options, out, pilot, measures, found)


def _on_all(pilot: Pilot, datasets: Sequence[str], options: StudyOptions) -> Pilot:
    """What was found on the first dataset, for all of them: they have other numbers of readings."""
    (first,) = pilot.parts.values()
    parts = {}
    for name in datasets:
        dataset = open_dataset(name, scale=pilot.smallest_scale, seed=options.seed)
        readings = Line(0.0, dataset.describe().readings / pilot.smallest_scale)
        parts[dataset.name] = replace(first, comparison=replace(first.comparison, dataset=dataset), readings=readings)
    return replace(pilot, parts=parts)


def budget_of(options: StudyOptions) -> float | None:
    """The budget that a study has, in s: none where its scale is given and nothing else is said."""
    return options.budget if options.budget is not None else DEFAULT_BUDGET_S if options.scale is None else None


def choose(piloted: StudyPilot, budget_s: float) -> Budget:
    """The largest scale that fits, with as many repetitions as verdicts need, and as much measuring as the time allows. Where not all parts of a
    study fit, the last of its parts are left out.

    Raises:
        UsageError: if nothing does; with how long the least takes.

    """
    if not any(part.variants for part in piloted.pilot.parts.values()):
        raise UsageError(
            "--budget: a dry run does not touch servers of yours, so it has no pilot to choose a scale by; give --scale"
        )
    usable_s = PLANNED_SHARE * (budget_s - piloted.pilot.took_s)
    smallest: tuple[float, float] | None = None
    names = list(piloted.pilot.parts)
    for repetitions in _repetitions(piloted):
        # The parts of a study are in the order of their weight.
        for count in range(len(names), 0, -1) if piloted.study.file.parts else [len(names)]:
            left_out = [*names[count:], *piloted.pilot.skipped]
            some = piloted.only(names[:count]) if left_out else piloted
            for scale in _scales(some):
                options = some.options.model_copy(update={"scale": scale, "repetitions": repetitions})
                attempt = _Attempt(some, options, repetitions)
                if not attempt.fits_room:
                    continue
                needed_s = attempt.fixed_s + attempt.min_s
                smallest = min(smallest or (needed_s, scale), (needed_s, scale))
                limit_s = attempt.limit_s(usable_s)
                if limit_s is not None:
                    return _budget(some, options, budget_s, limit_s, repetitions, left_out=left_out)
    if smallest is None:
        raise UsageError(
            "--budget: no scale of this study fits disk and memory with all variants; name fewer by --target or --part"
        )
    shortest_s = smallest[0] / PLANNED_SHARE + piloted.pilot.took_s
    raise UsageError(
        f"--budget {budget_s / 60:,.0f}m: the smallest run of this study, {_part_alone(names, piloted)}scale {smallest[1]:g} with one repetition, takes about {shortest_s / 60:,.0f} "
        "minutes; give more time, or name fewer variants by --target, --schema or --part"
    )


def _is_used_up(piloted: StudyPilot, budget_s: float) -> bool:
    """Whether the parts that were measured leave no time for more of them: further ones would only cost repetitions, operations, or parts."""
    try:
        chosen = choose(piloted, budget_s)
    except UsageError:
        # It is reported when the pilot has ended.
        return True
    is_cut = any(variant.expected is not None for part in chosen.estimate.parts for variant in part.variants)
    verdicts_need = min(_repetitions(piloted)[0], MIN_REPETITIONS)
    return is_cut or chosen.repetitions < verdicts_need or chosen.left_out != piloted.pilot.skipped


def _part_alone(names: Sequence[str], piloted: StudyPilot) -> str:
    """The part that is the last to be left out, in words; empty if a study has none."""
    has_more = len(names) + len(piloted.pilot.skipped) > 1
    return f"part {names[0]} alone, " if piloted.study.file.parts and has_more else ""


def _repetitions(piloted: StudyPilot) -> list[int]:
    """Numbers of repetitions to try: what the user or the study says, then what verdicts need, then one."""
    if piloted.options.repetitions is not None:
        return [piloted.options.repetitions]
    of_study = max(workload.repetitions for workload in piloted.workloads.values())
    return [*dict.fromkeys([of_study, min(of_study, MIN_REPETITIONS), 1])]


def _scales(piloted: StudyPilot) -> list[float]:
    """Scales to try, at which the study makes sense."""
    if piloted.options.scale is not None:
        return [piloted.options.scale]
    return [scale for scale in SCALES if scale >= piloted.pilot.smallest_scale] or [piloted.pilot.smallest_scale]


class _Attempt:
    """What a study takes with some options: what is fixed, and what measuring may be cut to."""

    def __init__(self, piloted: StudyPilot, options: StudyOptions, repetitions: int) -> None:
        self.estimate = piloted.estimate(options)
        self._repetitions = repetitions
        workloads = piloted.workloads_at(options)
        self._runs_s: list[float] = []
        self._min_runs_s: list[float] = []
        for name, part in piloted.pilot.parts.items():
            readings, refused = part.readings.at(options.used_scale), piloted.refused_at(name, options.used_scale)
            for variant in piloted.variants[name]:
                found = found_of(variant, part)
                if found is None or variant.only_loads or variant.id in refused:
                    continue
                cost = run_cost(variant, found, part, workloads[name], readings)
                required = _min_operations(part.mix, workloads[name])
                self._runs_s.append(cost.at_most(math.inf))
                self._min_runs_s.append(cost.at_most(required * cost.operation_s))
        self.fixed_s = (self.estimate.time_s or 0.0) - repetitions * sum(self._runs_s)

    @property
    def min_s(self) -> float:
        """What measuring takes at least."""
        return self._repetitions * sum(self._min_runs_s)

    @property
    def fits_room(self) -> bool:
        """Whether everything fits disk and memory."""
        rooms = (self.estimate.disk, self.estimate.memory)
        return all(room.needed is None or room.needed <= room.free for room in rooms)

    def limit_s(self, usable_s: float) -> float | None:
        """How long each variant may be measured in a run, so that all of it takes a time; None if that is too little."""
        left_s = usable_s - self.fixed_s
        whole_s = self._repetitions * sum(self._runs_s)
        if left_s < self.min_s or (left_s < whole_s and left_s < MEASURED_SHARE * usable_s):
            return None
        if not self._runs_s:
            return math.inf
        limit_s = common_limit(self._runs_s, left_s / self._repetitions)
        if math.isfinite(limit_s):
            return limit_s if limit_s >= max(self._min_runs_s) else None
        # What is left guards the time where the pilot was wrong.
        return max(self._runs_s) + (left_s - whole_s) / self._repetitions / len(self._runs_s)


def _min_operations(mix: dict[str, float], workload: Workload) -> int:
    """With this many operations each question is asked: some of each kind, or a round where they come in turn."""
    wanted = math.ceil(sum(mix.values())) if workload.order == "in turn" else MIN_OF_A_KIND * len(mix)
    return min(wanted, workload.operations or wanted)


def _budget(
    piloted: StudyPilot, options: StudyOptions, budget_s: float, limit_s: float, repetitions: int, *, left_out: list[str]
) -> Budget:
    limit_s = _rounded_down(limit_s) if math.isfinite(limit_s) else limit_s
    has_end = options.duration is None
    of_workloads = {workload.operations for workload in piloted.workloads_at(options).values()}
    # The parts of a study have operations of their own.
    operations = next(iter(of_workloads)) if len(of_workloads) == 1 and has_end else None
    max_variant_time_s = limit_s if has_end and math.isfinite(limit_s) else None
    command = list(_command(piloted, options, operations, repetitions, max_variant_time_s))
    return Budget(
        budget_s=budget_s,
        is_default=piloted.options.budget is None,
        scale=options.used_scale,
        operations=operations,
        repetitions=repetitions,
        max_variant_time_s=max_variant_time_s,
        parts=list(options.parts) if left_out else [],
        left_out=left_out,
        command=command,
        estimate=piloted.estimate(options, limit_s),
    )


def _rounded_down(length_s: float) -> float:
    """To two digits."""
    unit = 10.0 ** (math.floor(math.log10(length_s)) - 1)
    return max(0.1, round(math.floor(length_s / unit) * unit, 3))


def with_budget(options: StudyOptions, budget: Budget) -> StudyOptions:
    """The options that a budget was turned into."""
    limit = None if budget.max_variant_time_s is None else f"{budget.max_variant_time_s:g}s"
    return options.model_copy(
        update={
            "scale": budget.scale,
            "operations": budget.operations,
            "repetitions": budget.repetitions,
            "max_variant_time": limit,
            "budget": None,
            "parts": tuple(budget.parts) or options.parts,
        }
    )


def _command(
    piloted: StudyPilot, options: StudyOptions, operations: int | None, repetitions: int, limit_s: float | None
) -> Iterator[str]:
    """The command that makes the same choice: without a pilot, but for the rest as it was given."""
    yield from ("sensorbench", "study", "run", piloted.study.name)
    for flag, values in (
        ("--target", options.targets),
        ("--schema", options.schemas),
        ("--dataset", options.datasets),
        ("--part", options.parts),
        ("--nodes", () if options.nodes is None else (str(options.nodes),)),
    ):
        for value in values:
            # Addresses are not shown anywhere.
            yield from (flag, f"{value.partition(':')[0]}:…" if "//" in value else value)
    yield from _one_at_a_time(options)
    yield from ("--scale", f"{options.used_scale:g}")
    if operations is not None:
        yield from ("--operations", f"{operations}")
    yield from ("--repetitions", f"{repetitions}")
    if limit_s is not None:
        yield from ("--max-variant-time", f"{limit_s:g}s")


def _one_at_a_time(options: StudyOptions) -> Iterator[str]:
    """How variants are measured one at a time, as options."""
    if options.one_at_a_time:
        yield "--one-at-a-time"
    if options.repetitions_per_block is not None:
        yield from ("--repetitions-per-block", f"{options.repetitions_per_block}")
    if options.disk_reserve is not None:
        yield from ("--disk-reserve", f"{options.disk_reserve}")
