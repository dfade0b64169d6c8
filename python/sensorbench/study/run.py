"""Running a study, and summing it up with its claims."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorbench.dataset import DEFAULT_SEED, open_dataset
from sensorbench.errors import UsageError
from sensorbench.experiment import DATA_FOLDER, Schedule, Workload, make_settings, parse_target
from sensorbench.experiment.conduct import Comparison
from sensorbench.experiment.summary import summarise as summarise_comparison
from sensorbench.progress import Teller
from sensorbench.results import ComparisonResult
from sensorbench.results.latencies import MEASURE
from sensorbench.schemas import load_operations, load_schema
from sensorbench.study.models import compared_models
from sensorbench.study.registry import STUDIES
from sensorbench.study.study import Claim, Evidence, Judgement, Study

# At this scale and above, runs are as long as in the source study; below it they have fewer requests, but at least so many.
WHOLE_RUNS_FROM = 0.1
LEAST_OPERATIONS = 120


@dataclass(frozen=True)
class StudyOptions:
    """What a user may change of a study."""

    targets: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    dataset: str | None = None
    scale: float = 1.0
    seed: int = DEFAULT_SEED
    operations: int | None = None
    warm_up: int | None = None
    repeat: int | None = None
    in_flight: int | None = None


def plan_study(study: Study, options: StudyOptions, out: Path, teller: Teller) -> Comparison:
    """The comparison that a study with these options is. Raises UsageError for what makes no sense."""
    targets = [parse_target(text) for text in options.targets or study.file.targets]
    pairs = []
    for target in targets:
        names = [
            name for name in study.file.schemas.get(target.database.dialect, []) if not options.schemas or name in options.schemas
        ]
        if not names:
            known = {database: schemas for database, schemas in study.file.schemas.items() if schemas}
            raise UsageError(
                f"study {study.name} has no schema for {target.database.dialect}{_of_those(options)}; it has {known}"
            )
        pairs += [
            (target, load_schema(name, operations=study.file.operations, database=target.database.dialect)) for name in names
        ]
    dataset = open_dataset(options.dataset or study.file.dataset, scale=options.scale, seed=options.seed, teller=teller)
    return Comparison(
        kind="study",
        name=study.name,
        title=study.file.title,
        dataset=dataset,
        operations_name=study.file.operations,
        operations=load_operations(study.file.operations),
        settings=make_settings(pairs, out / DATA_FOLDER),
        workload=_workload(study.file.workload, options),
        metric=study.file.metric,
    )


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
    return workload.model_copy(update=changes)


def _operations_at(scale: float, operations: int) -> int:
    """Requests of a run at a scale: a look at a small part of the data asks fewer questions, so that it stays one."""
    return max(min(operations, LEAST_OPERATIONS), round(operations * min(1.0, scale / WHOLE_RUNS_FROM)))


def summarise(result: ComparisonResult) -> dict[str, Any]:
    """The summary of an experiment or study, with the claims of the study."""
    summary = summarise_comparison(result)
    study = STUDIES.get(result.manifest.name) if result.manifest.kind == "study" else None
    if study is None:
        return summary
    parts = {**_roles(study.file.roles.stand_in, result), **_roles(study.file.roles.published, result)}
    evidence = Evidence(result, parts, study.file.metric)
    return {
        **summary,
        "claims": [_judged(claim, study, result, summary) for claim in study.claims],
        "models": compared_models(study.file.models, evidence, list(summary["operations"])),
    }


def _judged(claim: Claim, study: Study, result: ComparisonResult, summary: dict[str, Any]) -> dict[str, Any]:
    """A claim with its verdict, and what the stand-ins say where the claim's own databases were not measured."""
    roles = _roles(study.file.roles.published, result)
    judgement = _judgement(claim, roles, study, result, summary)
    stand_in = None
    if claim.requires and not set(claim.requires) <= set(roles) and not claim.lacks:
        parts = _roles(study.file.roles.stand_in, result)
        if set(claim.requires) <= set(parts):
            stand_in = {
                "roles": {role: parts[role] for role in claim.requires},
                **vars(_judgement(claim, parts, study, result, summary)),
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


def _judgement(claim: Claim, roles: dict[str, str], study: Study, result: ComparisonResult, summary: dict[str, Any]) -> Judgement:
    missing = [" or ".join(study.file.roles.published[role]) for role in claim.requires if role not in roles]
    if missing:
        return Judgement("not tested here", None, f"needs {' and '.join(missing)}")
    if claim.lacks:
        return Judgement("not tested here", None, claim.lacks)
    if result.manifest.dataset.get("scale", 1.0) < claim.least_scale:
        return Judgement("not tested at this scale", None, f"needs scale {claim.least_scale:g}")
    if summary["answers_equal"] is False:
        return Judgement("inconclusive", None, "the databases did not give equal answers")
    return study.judges[claim.id](Evidence(result, roles, study.file.metric))


def _roles(wanted: dict[str, list[str]], result: ComparisonResult) -> dict[str, str]:
    """For each role, the first of its settings that has complete runs."""
    measured = {
        f"{setting.database}/{setting.schema_name}": setting.id
        for setting in result.manifest.settings
        if any(run.state == "complete" and MEASURE in run.manifest.phases for run in result.runs[setting.id])
    }
    found = {role: next((measured[name] for name in names if name in measured), None) for role, names in wanted.items()}
    return {role: setting for role, setting in found.items() if setting is not None}
