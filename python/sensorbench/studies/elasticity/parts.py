"""The parts of the study: each is one cluster to which one thing is done, once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sensorbench.benchmarks.elasticity import (
    REQUESTS_OF_A_SET,
    Change,
    ElasticityOptions,
    ElasticitySpec,
    ElasticityStudyOptions,
    nodes_of_study,
    parse_change,
    spec_of,
    why_unavailable,
)
from sensorbench.dataset import Dataset
from sensorbench.errors import UsageError
from sensorbench.lab import find_instance, parse_memory
from sensorbench.studies.elasticity.study_file import Scenario, StudyFile, System

_LAB = "lab:"


@dataclass(frozen=True)
class StudyPart:
    """`repetition` counts from 1; `options` are those of `elasticity run` with which it is the same by itself."""

    system: str
    scenario: str
    repetition: int
    options: ElasticityOptions

    @property
    def name(self) -> str:
        """Its folder in that of the study."""
        return f"{self.system}-{self.scenario}-{self.repetition}"

    @property
    def changes(self) -> list[Change]:
        """What is done to the cluster, in this order."""
        return [parse_change(text) for text in self.options.changes]

    def spec(self, articles: Dataset, *, replaces: bool = False, drop_after: bool = False) -> ElasticitySpec:
        """What is asked of the cluster. Raises UsageError for what makes no sense."""
        (target,) = self.options.targets
        drops = drop_after or target.startswith(_LAB)
        return spec_of(
            self.options, target, self.repetition - 1, articles, system=self.system, replace=replaces, drop_after=drops
        )


def parts_of(file: StudyFile, options: ElasticityStudyOptions) -> list[StudyPart]:
    """The parts in their order: what a verdict needs first comes first, and no system is always the first. Raises UsageError."""
    systems = {name: system for text in options.targets or file.systems for name, system in _systems(file, text).items()}
    unknown = [name for name in options.scenarios if name not in file.scenarios]
    if unknown:
        raise UsageError(f"--scenario {unknown[0]}: expected one of {', '.join(file.scenarios)}")
    parts: list[StudyPart] = []
    for repetition in range(1, (options.repetitions or file.repetitions) + 1):
        for name in options.scenarios or file.scenarios:
            chosen = _options_of(file, options, systems, file.scenarios[name])
            order = list(systems) if repetition % 2 else list(systems)[::-1]
            parts += [StudyPart(system, name, repetition, chosen[system]) for system in order]
    return parts


def _systems(file: StudyFile, text: str) -> dict[str, System]:
    """The systems that a target names: one of the study, those of a database, or another target. Raises UsageError."""
    if text in file.systems:
        return {text: file.systems[text]}
    of_database = {name: system for name, system in file.systems.items() if system.target.partition("?")[0] == text}
    if of_database:
        return of_database
    return {text.removeprefix(_LAB).partition("?")[0].replace("+", "-"): System(target=text)}


def _options_of(
    file: StudyFile, options: ElasticityStudyOptions, systems: Mapping[str, System], scenario: Scenario
) -> dict[str, ElasticityOptions]:
    """What is asked of each system in a scenario."""
    return {name: _options(file, options, system, scenario) for name, system in systems.items()}


def _options(file: StudyFile, options: ElasticityStudyOptions, system: System, scenario: Scenario) -> ElasticityOptions:
    nodes = nodes_of_study(system.target, options.nodes or file.nodes)
    of_lab = system.target.startswith(_LAB)
    count = nodes if nodes is not None else len(find_instance(system.target.removeprefix(_LAB).partition("?")[0]).nodes)
    memory = options.server_memory or parse_memory(file.server_memory, "server_memory") * count // file.nodes
    chosen: dict[str, object] = {
        "executions": options.executions,
        "before": options.measurements,
        "after": options.measurements,
        "warmup": options.warmup,
    }
    whole = ElasticityOptions(
        targets=(system.target,),
        nodes=nodes,
        changes=tuple(change.replace("{nodes}", str(count)) for change in scenario.changes),
        dataset=options.dataset or file.dataset,
        scale=options.used_scale,
        copies=options.copies or system.copies or file.copies,
        server_memory=None if of_lab else memory,
        settings=() if of_lab else tuple(system.server_settings),
        requests=options.operations or REQUESTS_OF_A_SET,
        rate=options.rate,
        seed=options.seed,
        hosts=None if of_lab else options.hosts,
    )
    return whole.model_copy(update={key: value for key, value in chosen.items() if value is not None})


def without_unavailable(parts: Sequence[StudyPart]) -> tuple[list[StudyPart], dict[str, str]]:
    """The parts without the faults that this machine does not permit, and why it does not, by what was asked. Parts that have nothing left are gone."""
    changes = {text for part in parts for text in part.options.changes}
    reasons = {text: reason for text in sorted(changes) if (reason := why_unavailable(parse_change(text)))}
    kept = {part.name: tuple(text for text in part.options.changes if text not in reasons) for part in parts}
    left = [part for part in parts if kept[part.name]]
    return [replace(part, options=part.options.model_copy(update={"changes": kept[part.name]})) for part in left], reasons


def notes_of(file: StudyFile, parts: Sequence[StudyPart]) -> list[str]:
    """What of the paper's conditions the systems of some parts cannot have here."""
    systems = dict.fromkeys(part.system for part in parts)
    return [f"{name}: {note}" for name in systems if name in file.systems and (note := file.systems[name].note)]
