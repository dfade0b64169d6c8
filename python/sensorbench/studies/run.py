"""Running a study, and summing it up with its claims."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sensorbench import lab
from sensorbench.benchmarks.comparison import summarise as summarise_comparison
from sensorbench.claims import Claim, Evidence, judged, measured, not_tested
from sensorbench.dataset import open_dataset
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.results import ComparisonResult
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.comparison import ComparisonSummary, ModelComparison, ModelFigure
from sensorbench.runner import (
    DATA_FOLDER,
    READ,
    WRITE,
    Comparison,
    Schedule,
    TargetSpec,
    VariantSpec,
    Workload,
    lab_takes,
    load_generators,
    make_variants,
    parse_target,
    placed_on,
    seconds,
    started_target,
    swept,
)
from sensorbench.schemas import Schema, load_operations, load_schema
from sensorbench.schemas.operations import ParameterSource
from sensorbench.studies.options import StudyOptions
from sensorbench.studies.published_comparison import published_tables, tables_of_part
from sensorbench.studies.registry import STUDIES
from sensorbench.studies.study import Grid, Layout, LayoutChoice, Models, Study, StudyPart


def compared_models(models: dict[str, Models], evidence: Evidence, operations: list[str]) -> list[ModelComparison]:
    """For each question and kind of system whose two models were measured: both figures, and how many times as long the generic
    one takes.
    """
    measured = {kind: model for kind, model in models.items() if {model.shaped, model.generic} <= evidence.roles.keys()}
    return [_compared(operation, kind, model, evidence) for operation in operations for kind, model in measured.items()]


def _compared(operation: str, kind: str, model: Models, evidence: Evidence) -> ModelComparison:
    ratio = evidence.contrast([(model.generic, operation, 1.0), (model.shaped, operation, -1.0)])
    return ModelComparison(
        operation=operation,
        kind=kind,
        shaped=_figure(model.shaped, evidence, operation),
        generic=_figure(model.generic, evidence, operation),
        ratio=MeasuredFigure(**asdict(ratio)) if ratio else None,
    )


def _figure(role: str, evidence: Evidence, operation: str) -> ModelFigure:
    interval = evidence.contrast([(role, operation, 1.0)])
    return ModelFigure(variant=evidence.roles[role], latency_s=interval.value if interval else None)


# At this scale and above, runs are as long as in the paper; below it they have fewer requests, but at least this many.
WHOLE_RUNS_FROM = 0.1
MIN_OPERATIONS = 120


@dataclass(frozen=True)
class Part:
    """One comparison of a study, on one dataset or of one of the study's parts, and the folder that it goes to."""

    folder: Path
    comparison: Comparison

    @property
    def name(self) -> str:
        """What distinguishes it from the others."""
        return self.comparison.part or self.comparison.dataset.name


def plan_study(study: Study, options: StudyOptions, out: Path, reporter: ProgressReporter) -> list[Part]:
    """The comparisons that a study with these options is: one for each of its parts, or for each of its datasets where it has
    none. Of several, each has a folder of its own.

    Raises UsageError for what makes no sense.
    """
    return _planned_parts(study, options, out, reporter) if study.file.parts else _planned_datasets(study, options, out, reporter)


def _planned_datasets(study: Study, options: StudyOptions, out: Path, reporter: ProgressReporter) -> list[Part]:
    if options.parts:
        raise UsageError(f"--part {options.parts[0]}: study {study.name} has no parts")
    targets = _targets(study, options.targets or study.file.targets, options)
    _check_nodes(study, options, targets)
    specs = _specs(study, study.file, targets, options)
    datasets = options.datasets or tuple(study.file.datasets)
    folders = [out] if len(datasets) == 1 else [out / _as_folder(name) for name in datasets]
    return [
        Part(folder, _comparison(study, study.file, options, name, specs, folder, reporter))
        for name, folder in zip(datasets, folders, strict=True)
    ]


def _as_folder(dataset: str) -> str:
    return Path(dataset).stem


def _planned_parts(study: Study, options: StudyOptions, out: Path, reporter: ProgressReporter) -> list[Part]:
    if len(options.datasets) > 1:
        raise UsageError(f"--dataset: each part of study {study.name} is a comparison of its own; give one dataset at a time")
    chosen = chosen_parts(study, options)
    targets = _targets_of_parts(study, chosen, options)
    for name in (name for name in chosen if not targets[name]):
        labels = ", ".join(_target(study, text).label for text in options.targets or chosen[name].targets)
        reporter.say(f"part {name} is left out: it has no schema for {labels}{_of_those(options)}")
    specs = {name: _specs(study, part, targets[name], options) for name, part in chosen.items() if targets[name]}
    # Who names a part wants it even so.
    alone = [name for name in specs if chosen[name].compares_targets and len(targets[name]) == 1 and not options.parts]
    for name in alone:
        reporter.say(f"part {name} is left out: {targets[name][0].label} would be compared with nothing")
    parts = {name: chosen[name] for name in specs if name not in alone}
    planned = []
    for name, part in parts.items():
        folder = out if len(parts) == 1 else out / name
        dataset = (*options.datasets, *part.datasets)[0]
        comparison = _comparison(study, part, options, dataset, specs[name], folder, reporter)
        planned.append(Part(folder, replace(comparison, part=name, title=f"{study.file.title}: {part.title}")))
    return planned


def chosen_parts(study: Study, options: StudyOptions) -> dict[str, StudyPart]:
    """The parts of a study that options name, by name, in the study's order; all if they name none. Raises UsageError for one that there is not."""
    unknown = [name for name in options.parts if name not in study.file.parts]
    if unknown:
        raise UsageError(f"--part {unknown[0]}: study {study.name} has the parts {', '.join(study.file.parts)}")
    return {name: part for name, part in study.file.parts.items() if not options.parts or name in options.parts}


def _targets_of_parts(study: Study, parts: dict[str, StudyPart], options: StudyOptions) -> dict[str, list[TargetSpec]]:
    """The targets of each part: of the study's, or of those that the user named, the ones that it has layouts for. Raises UsageError for one that no
    part has layouts for, and when there is nothing left.
    """
    targets = {name: _targets(study, options.targets or part.targets, options) for name, part in parts.items()}
    _check_nodes(study, options, [target for of_part in targets.values() for target in of_part])
    fitting = {
        name: [target for target in targets[name] if _layouts(study, part, target, options)] for name, part in parts.items()
    }
    named = next(iter(targets.values()))
    homeless = [target for target in named if not any(target in of_part for of_part in fitting.values())]
    if (options.targets and homeless) or not any(fitting.values()):
        raise _no_schema(study, parts.values(), homeless[0], options)
    return fitting


def _comparison(
    study: Study,
    grid: Grid,
    options: StudyOptions,
    dataset_name: str,
    specs: list[VariantSpec],
    folder: Path,
    reporter: ProgressReporter,
) -> Comparison:
    dataset = open_dataset(dataset_name, scale=options.used_scale, seed=options.seed, reporter=reporter)
    operations = load_operations(grid.operations)
    for name, source in grid.parameter_sources.items():
        if dataset.name in source.datasets:
            operations = operations.with_parameter_source(name, ParameterSource(query=source.query))
    workload = workload_of(grid.workload, options)
    return Comparison(
        kind="study",
        name=study.name,
        title=study.file.title,
        dataset=dataset,
        operations_name=grid.operations,
        operations=operations,
        variants=make_variants(specs, folder / DATA_FOLDER),
        workload=workload.with_concurrency(embedded=any(spec.target.database.embedded for spec in specs)),
        metric=study.file.metric,
        continue_on_error=study.file.continue_on_error,
        expects_failures=study.file.levels is not None,
        max_load_s=seconds(limit) if (limit := options.max_load_time or grid.max_load_time) else None,
        encodings=grid.encodings,
        snapshots=grid.snapshots,
        include_outdated=options.include_outdated,
        generators=load_generators(options, reporter),
        resources=options.resources,
        blocks=options.blocks,
    )


def _target(study: Study, text: str, nodes: int | None = None) -> TargetSpec:
    """A target by the name of one of the study's systems, or as everywhere. `nodes` is the size of a cluster that is started."""
    name, _, options = text.partition("?")
    system = study.file.systems.get(name)
    if system is None:
        target = _other_target(study, text)
        is_cluster = target.place == "started" and target.database.name in lab.clusters()
        return replace(target, nodes=nodes) if nodes and is_cluster else target
    named = "&".join(filter(None, [system.options, options]))
    size = nodes if nodes and system.nodes else system.nodes
    return started_target(system.database, named, system=name, nodes=size, server_settings=system.settings)


def _targets(study: Study, texts: Iterable[str], options: StudyOptions) -> list[TargetSpec]:
    return [placed_on(_target(study, text, options.nodes), options.hosts) for text in texts]


def _check_nodes(study: Study, options: StudyOptions, targets: Iterable[TargetSpec]) -> None:
    """Raises UsageError for a number of nodes that no target is started with."""
    if options.nodes is None or any(target.nodes == options.nodes for target in targets):
        return
    rings = [name for name, system in study.file.systems.items() if system.nodes]
    of_study = f"; study {study.name} has the systems {', '.join(rings)}" if rings else ""
    raise UsageError(f"--nodes {options.nodes}: no target is a cluster that is started for this run{of_study}")


def _other_target(study: Study, text: str) -> TargetSpec:
    try:
        return parse_target(text)
    except UsageError as error:
        systems = f"; study {study.name} has the systems {', '.join(study.file.systems)}" if study.file.systems else ""
        raise UsageError(f"{error}{systems}") from None


def _layouts(study: Study, grid: Grid, target: TargetSpec, options: StudyOptions) -> list[Layout]:
    """The layouts for a target, of those that the user wants; of a server that the lab starts, those that its version takes."""

    def takes(layout: Layout) -> bool:
        schema = load_schema(layout.schema_, operations=grid.operations, database=target.database.dialect)
        return lab_takes(target, schema)

    return [
        layout
        for layout in grid.schemas.get(target.database.dialect, [])
        if (not options.schemas or layout.schema_ in options.schemas)
        and (layout.systems is None or (target.system or target.database.name) in layout.systems)
        and takes(layout)
    ]


def _no_schema(study: Study, grids: Iterable[Grid], target: TargetSpec, options: StudyOptions) -> UsageError:
    known: dict[str, list[str]] = {}
    for dialect, layouts in (schema for grid in grids for schema in grid.schemas.items() if schema[1]):
        names = known.setdefault(dialect, [])
        names += [layout.schema_ for layout in layouts if layout.schema_ not in names]
    dialect = target.database.dialect
    expected = f"expected one of {', '.join(known[dialect])}" if dialect in known else f"it has some for {', '.join(known)}"
    return UsageError(f"study {study.name} has no schema for {dialect}{_of_those(options)}; {expected}")


def _specs(study: Study, grid: Grid, targets: list[TargetSpec], options: StudyOptions) -> list[VariantSpec]:
    """Each target with its layouts, at each choice of the factors that are swept. Raises UsageError when a target has none."""
    specs = []
    for target in targets:
        layouts = _layouts(study, grid, target, options)
        if not layouts:
            raise _no_schema(study, [grid], target, options)
        own = [key for layout in layouts for key in options.sweeps if key in layout.parameters]
        if own:
            raise UsageError(f"--sweep {own[0]}: study {study.name} compares the values of {own[0]} already; leave it out")
        specs += [spec for layout in layouts for spec in _specs_of(grid, target, layout)]
    return swept(specs, options.sweeps)


def _specs_of(grid: Grid, target: TargetSpec, layout: Layout) -> list[VariantSpec]:
    return [_spec(grid, target, layout, choice) for choice in layout.choices()]


def _spec(grid: Grid, target: TargetSpec, layout: Layout, choice: LayoutChoice) -> VariantSpec:
    schema = load_schema(
        layout.schema_,
        operations=grid.operations,
        database=target.database.dialect,
        parameters={**grid.parameters, **choice.parameters},
    )
    operations = _answered(grid, layout, schema)
    return VariantSpec(
        target.with_options(layout.options),
        schema,
        choice.label,
        layout.only_loads or operations == (),
        choice.concurrency,
        layout.operations_share,
        layout.may_lose_rows,
        operations,
    )


def _answered(grid: Grid, layout: Layout, schema: Schema) -> tuple[str, ...] | None:
    """The operations that a layout is asked where those are not all: those that it names, or what its schema does not say it cannot express."""
    if layout.operations is not None:
        return tuple(layout.operations)
    if not any(name in schema.file.cannot for name in grid.workload.mix):
        return None
    return tuple(name for name in grid.workload.mix if schema.asks(name))


def _of_those(options: StudyOptions) -> str:
    return f" among {', '.join(options.schemas)}" if options.schemas else ""


def workload_of(workload: Workload, options: StudyOptions) -> Workload:
    """A study's workload with what a user changes of it."""
    chosen = {"warmup": options.warmup, "repetitions": options.repetitions, "seed": options.seed}
    changes: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    changed = workload.model_copy(
        update={**changes, **_end(workload, options), "schedule": _schedule(workload.schedule, options)}
    )
    return changed if options.registers is None else _beside_registers(changed, options.registers, options.operations)


def _end(workload: Workload, options: StudyOptions) -> dict[str, Any]:
    """When a run ends: as the user says, else as the study does; at the latest after the time that each variant has."""
    if options.duration is not None:
        return {"operations": None, "duration": options.duration}
    end: dict[str, Any] = {}
    if options.operations is not None:
        end = {"operations": options.operations, "duration": None}
    elif workload.operations is not None:
        end = {"operations": _operations_at(options.used_scale, workload.operations)}
    limits = [limit for limit in (end.get("duration", workload.duration), options.max_variant_time) if limit is not None]
    return {**end, "duration": min(limits, key=seconds, default=None)}


def _schedule(schedule: Schedule, options: StudyOptions) -> Schedule:
    """When operations come: at the user's rate, else as in the study, with as many in flight as the user says."""
    if options.rate is not None:
        at_rate = Schedule(rate=options.rate, concurrency=schedule.concurrency if schedule.is_open_loop else None)
        schedule = at_rate.model_copy(update={"arrival": options.arrival or schedule.arrival})
    return schedule if options.concurrency is None else schedule.model_copy(update={"concurrency": options.concurrency})


def _beside_registers(workload: Workload, weight: int, operations: int | None) -> Workload:
    """The workload with registers in its mix. Its own questions are asked as often as before, unless a number was wished for."""
    mix = {**workload.mix, WRITE: weight, READ: weight}
    if operations is not None or workload.operations is None:
        return workload.model_copy(update={"mix": mix})
    # A study that asks in turn says how many operations one round has.
    of_registers = 2 * weight if workload.order == "in turn" else workload.operations * 2 * weight / sum(workload.mix.values())
    return workload.model_copy(update={"mix": mix, "operations": workload.operations + round(of_registers)})


def _operations_at(scale: float, operations: int) -> int:
    """Requests of a run at a scale: a look at a small part of the data asks fewer questions, so that it stays one."""
    return max(min(operations, MIN_OPERATIONS), round(operations * min(1.0, scale / WHOLE_RUNS_FROM)))


def summarise(result: ComparisonResult) -> ComparisonSummary:
    """The summary of an experiment or study, with the claims of the study; what one part cannot say is not tested there."""
    summary = summarise_comparison(result)
    study = STUDIES.get(result.manifest.plan.name) if result.manifest.plan.source == "study" else None
    if study is None:
        return summary
    part = result.manifest.plan.part
    by = measured(study, {part: result}, {part: summary})[part]
    own = {
        "part": part,
        "models": compared_models(study.file.models, by.evidence, list(summary.result.operations)),
        "sections": [section.described() for section in study.sections(by.evidence, summary)] if study.sections else [],
    }
    claims = [
        judged(claim, study, [by]) if claim.parts in ([], [part]) else not_tested(claim, study, _why_not_here(claim, part))
        for claim in study.claims
    ]
    warnings = [*summary.warnings, *(study.caveats(by.evidence, summary) if study.caveats else [])]
    tables = published_tables(study, {part: result}, {part: summary})
    published = tables_of_part(tables, part) if part else tables
    own_result = summary.result.model_copy(update=own)
    return summary.model_copy(update={"claims": claims, "published": published, "warnings": warnings, "result": own_result})


def _why_not_here(claim: Claim, part: str) -> str:
    """Why a claim about other parts cannot be judged by one part."""
    word = "part" if len(claim.parts) == 1 else "parts"
    return claim.blocked_by or f"it is about {word} {', '.join(claim.parts)}; this is part {part}"
