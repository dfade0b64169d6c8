"""Running a study, and summing it up with its claims."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sensorbench.dataset import DEFAULT_SEED, open_dataset
from sensorbench.errors import UsageError
from sensorbench.experiment import (
    DATA_FOLDER,
    Schedule,
    Side,
    TargetSpec,
    Workload,
    make_settings,
    parse_target,
    started_target,
    swept,
)
from sensorbench.experiment.comparison import Comparison
from sensorbench.experiment.registers import READ, WRITE
from sensorbench.experiment.summary import summarise as summarise_comparison
from sensorbench.progress import Teller
from sensorbench.results import ComparisonResult
from sensorbench.results.latencies import MEASURE
from sensorbench.schemas import load_operations, load_schema
from sensorbench.schemas.operations import Draw
from sensorbench.study.models import compared_models
from sensorbench.study.registry import STUDIES
from sensorbench.study.study import Claim, Evidence, Judgement, Layout, Study, setting_name

# At this scale and above, runs are as long as in the source study; below it they have fewer requests, but at least so many.
WHOLE_RUNS_FROM = 0.1
LEAST_OPERATIONS = 120


@dataclass(frozen=True)
class StudyOptions:
    """What a user may change of a study."""

    targets: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    scale: float = 1.0
    seed: int = DEFAULT_SEED
    operations: int | None = None
    warm_up: int | None = None
    repeat: int | None = None
    in_flight: int | None = None
    sweeps: dict[str, list[str]] = field(default_factory=dict)
    # The weight of writing and of reading registers beside the study's questions.
    registers: int | None = None


@dataclass(frozen=True)
class Part:
    """The part of a study that is about one dataset, and the folder that it goes to."""

    folder: Path
    comparison: Comparison


def plan_study(study: Study, options: StudyOptions, out: Path, teller: Teller) -> list[Part]:
    """The comparison that a study with these options is, for each of its datasets; of several, each has a folder of its own.

    Raises UsageError for what makes no sense.
    """
    datasets = options.datasets or tuple(study.file.datasets)
    sides = [side for text in options.targets or study.file.targets for side in _sides(study, _target(study, text), options)]
    sides = swept(sides, options.sweeps)
    folders = [out] if len(datasets) == 1 else [out / _as_folder(name) for name in datasets]
    return [
        Part(folder, _comparison(study, options, name, sides, folder, teller))
        for name, folder in zip(datasets, folders, strict=True)
    ]


def _as_folder(dataset: str) -> str:
    return Path(dataset).stem


def _comparison(
    study: Study, options: StudyOptions, dataset_name: str, sides: list[Side], folder: Path, teller: Teller
) -> Comparison:
    dataset = open_dataset(dataset_name, scale=options.scale, seed=options.seed, teller=teller)
    operations = load_operations(study.file.operations)
    for name, draw in study.file.draws.items():
        if dataset.name in draw.datasets:
            operations = operations.with_draw(name, Draw(query=draw.query))
    return Comparison(
        kind="study",
        name=study.name,
        title=study.file.title,
        dataset=dataset,
        operations_name=study.file.operations,
        operations=operations,
        settings=make_settings(sides, folder / DATA_FOLDER),
        workload=_workload(study.file.workload, options),
        metric=study.file.metric,
        goes_on=study.file.goes_on,
    )


def _target(study: Study, text: str) -> TargetSpec:
    """A target by the name of one of the study's systems, or as everywhere."""
    name, _, options = text.partition("?")
    system = study.file.systems.get(name)
    if system is None:
        return _other_target(study, text)
    named = "&".join(filter(None, [system.options, options]))
    return started_target(system.database, named, system=name, nodes=system.nodes, server_settings=system.settings)


def _other_target(study: Study, text: str) -> TargetSpec:
    try:
        return parse_target(text)
    except UsageError as error:
        systems = f"; study {study.name} has the systems {', '.join(study.file.systems)}" if study.file.systems else ""
        raise UsageError(f"{error}{systems}") from None


def _sides(study: Study, target: TargetSpec, options: StudyOptions) -> list[Side]:
    """The study's layouts for a target. Raises UsageError when there is none."""
    dialect = target.database.dialect
    wanted = [
        layout
        for layout in study.file.schemas.get(dialect, [])
        if (not options.schemas or layout.schema_ in options.schemas)
        and (layout.systems is None or (target.system or target.database.name) in layout.systems)
    ]
    if not wanted:
        known = {name: [layout.schema_ for layout in layouts] for name, layouts in study.file.schemas.items() if layouts}
        raise UsageError(f"study {study.name} has no schema for {dialect}{_of_those(options)}; it has {known}")
    own = [key for layout in wanted for key in options.sweeps if key in layout.parameters]
    if own:
        raise UsageError(f"--sweep {own[0]}: study {study.name} compares the values of {own[0]} already; leave it out")
    return [side for layout in wanted for side in _sides_of(study, target, layout)]


def _sides_of(study: Study, target: TargetSpec, layout: Layout) -> list[Side]:
    return [
        Side(
            target.with_options(layout.options),
            load_schema(
                layout.schema_, operations=study.file.operations, database=target.database.dialect, parameters=parameters
            ),
            label,
            layout.only_loads,
        )
        for parameters, label in layout.variants()
    ]


def _of_those(options: StudyOptions) -> str:
    return f" among {', '.join(options.schemas)}" if options.schemas else ""


def _workload(workload: Workload, options: StudyOptions) -> Workload:
    changes: dict[str, Any] = {
        name: getattr(options, name) for name in ("operations", "warm_up", "repeat") if getattr(options, name) is not None
    }
    if options.operations is None and workload.operations is not None:
        changes["operations"] = _operations_at(options.scale, workload.operations)
    if options.in_flight is not None:
        changes["schedule"] = Schedule(in_flight=options.in_flight)
    changed = workload.model_copy(update=changes)
    return changed if options.registers is None else _beside_registers(changed, options.registers, options.operations)


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
    return max(min(operations, LEAST_OPERATIONS), round(operations * min(1.0, scale / WHOLE_RUNS_FROM)))


def summarise(result: ComparisonResult) -> dict[str, Any]:
    """The summary of an experiment or study, with the claims of the study."""
    summary = summarise_comparison(result)
    study = STUDIES.get(result.manifest.name) if result.manifest.kind == "study" else None
    if study is None:
        return summary
    published = _roles(study.file.roles.published, result)
    evidence = Evidence(result, published, study.file.metric)
    with_stand_ins = Evidence(result, {**_roles(study.file.roles.stand_in, result), **published}, study.file.metric)
    return {
        **summary,
        "claims": [_judged(claim, study, evidence, with_stand_ins, summary) for claim in study.claims],
        "models": compared_models(study.file.models, with_stand_ins, list(summary["operations"])),
        "sections": [asdict(section) for section in study.sections(with_stand_ins, summary)] if study.sections else [],
    }


def _judged(claim: Claim, study: Study, evidence: Evidence, with_stand_ins: Evidence, summary: dict[str, Any]) -> dict[str, Any]:
    """A claim with its verdict, and what it is with stand-ins where the claim's own databases were not measured."""
    judgement = _judgement(claim, study, evidence, summary)
    stand_in = None
    if set(claim.requires) - evidence.roles.keys() and set(claim.requires) <= with_stand_ins.roles.keys() and not claim.lacks:
        stand_in = {
            "roles": {role: with_stand_ins.roles[role] for role in claim.requires},
            **vars(_judgement(claim, study, with_stand_ins, summary)),
        }
    return {
        "id": claim.id,
        "text": claim.text,
        "form": claim.form,
        "published": claim.published,
        "requires": _requirement(claim, study),
        "verdict": judgement.word,
        "reason": judgement.reason,
        "measured": judgement.measured,
        "stand_in": stand_in,
    }


def _requirement(claim: Claim, study: Study) -> list[str]:
    needed = [" or ".join(study.file.roles.published[role]) for role in claim.requires]
    return [*needed, *([claim.lacks] if claim.lacks else []), *([f"scale {claim.least_scale:g}"] if claim.least_scale else [])]


def _judgement(claim: Claim, study: Study, evidence: Evidence, summary: dict[str, Any]) -> Judgement:
    missing = [" or ".join(study.file.roles.published[role]) for role in claim.requires if role not in evidence.roles]
    if missing:
        return Judgement("not tested here", None, f"needs {' and '.join(missing)}")
    if claim.lacks:
        return Judgement("not tested here", None, claim.lacks)
    if evidence.result.manifest.dataset.get("scale", 1.0) < claim.least_scale:
        return Judgement("not tested at this scale", None, f"needs scale {claim.least_scale:g}")
    if summary["answers_equal"] is False:
        return Judgement("inconclusive", None, "the databases did not give equal answers")
    return study.judges[claim.id](evidence)


def _roles(wanted: dict[str, list[str]], result: ComparisonResult) -> dict[str, str]:
    """For each role, the first of its settings that has complete runs."""
    measured = {
        setting_name(setting): setting.id
        for setting in result.manifest.settings
        if any(run.state == "complete" and MEASURE in run.manifest.phases for run in result.runs[setting.id])
    }
    found = {role: next((measured[name] for name in names if name in measured), None) for role, names in wanted.items()}
    return {role: setting for role, setting in found.items() if setting is not None}
