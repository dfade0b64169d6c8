"""Experiment files: a user's own question. See docs/how-to/experiments.md for the keys with a worked example."""

import re
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from sensorbench import lab, toml_file
from sensorbench.dataset import is_named, open_dataset
from sensorbench.errors import UsageError
from sensorbench.options import DEFAULT_SEED
from sensorbench.progress import ProgressReporter
from sensorbench.results import ServerResources
from sensorbench.runner.comparison import DATA_FOLDER, Comparison
from sensorbench.runner.generators.options import GeneratorOptions
from sensorbench.runner.generators.sharing import load_generators
from sensorbench.runner.options import BlockOptions
from sensorbench.runner.registers import operations_with_registers
from sensorbench.runner.sweep import swept
from sensorbench.runner.variants import VariantSpec, make_variants, parse_target, placed_on
from sensorbench.runner.workload import Workload
from sensorbench.schemas import load_operations, load_schema
from sensorbench.schemas.operations import operations_file
from sensorbench.schemas.schema_file import ParameterValue


class TargetEntry(toml_file.FileModel):
    """One target and how the data lie there."""

    url: str = Field(description="A database's name (a fresh instance for this run), `lab:NAME`, or a URL.")
    schema_: str = Field(alias="schema", description="A shipped schema, or a file.")
    parameters: dict[str, ParameterValue] = Field(
        default={}, description="Values of the schema's parameters, by name. The schema's defaults count for the others."
    )


class ExperimentFile(toml_file.FileModel):
    """An experiment file."""

    title: str = Field(default="", description="Headline of the report; the file's name if not given.")
    dataset: str = Field(description="Name of a dataset, its folder, or a mapping file.")
    scale: float = Field(default=1.0, gt=0, le=1, description="Share of the dataset that is used, above 0 and at most 1.")
    dataset_seed: int = Field(default=DEFAULT_SEED, description="Seed of a generated dataset.")
    operations: str = Field(default="sensors", description="A shipped operation set, or a file.")
    metric: Literal["mean", "median", "p95", "p99", "mean_to_p95"] = Field(
        default="median", description="The figure of the response time that variants are ranked by."
    )
    server_memory: str | None = Field(
        default=None, description="Memory of each server that is started, such as `2G`; `--server-memory` comes first."
    )
    server_cpus: int | None = Field(
        default=None, ge=1, description="CPUs of each server that is started; `--server-cpus` comes first."
    )
    one_at_a_time: bool = Field(
        default=False, description="Whether the server of one variant is up at a time; `--one-at-a-time` says the same."
    )
    repetitions_per_block: int | None = Field(
        default=None,
        ge=1,
        description="Repetitions from a start of a server until it is stopped, 1 if not given; `--repetitions-per-block` comes first.",
    )
    disk_reserve: str | None = Field(
        default=None, description="Disk that stays free, such as `20G`, `2G` if not given; `--disk-reserve` comes first."
    )
    target: list[TargetEntry] = Field(min_length=1, description="The targets that are compared, each with a schema.")
    workload: Workload = Field(description="Which operations run, when, and for how long.")


def load_experiment(path: Path, changes: list[str]) -> ExperimentFile:
    """Reads an experiment file, with `key=value` changes laid over it."""
    if not changes:
        return toml_file.load(path, ExperimentFile)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except (OSError, tomllib.TOMLDecodeError):
        # Read it once more for an error that names the line.
        return toml_file.load(path, ExperimentFile)
    for change in changes:
        _set(content, change)
    return toml_file.validate(content, ExperimentFile, path)


_PART = re.compile(r"(?P<key>[A-Za-z_][A-Za-z0-9_]*)(\[(?P<index>\d+)\])?")


def _set(content: dict[str, Any], change: str) -> None:
    """Lays `workload.schedule.rate=500` or `target[0].url=sqlite` over the content of a file."""
    path, equals, text = change.partition("=")
    parts = [_PART.fullmatch(part) for part in path.strip().split(".")]
    if not equals or not all(parts):
        raise UsageError(f"--set {change}: expected key=value, for example workload.operations=500")
    place: Any = content
    for number, part in enumerate(found for found in parts if found):
        is_last = number == len(parts) - 1
        key, index = part["key"], part["index"]
        if index is not None:
            items = place.get(key) if isinstance(place, dict) else None
            if not isinstance(items, list) or int(index) >= len(items):
                raise UsageError(f"--set {change}: there is no {part[0]} in the file")
            if is_last:
                items[int(index)] = _value(text)
            place = items[int(index)]
        elif is_last:
            place[key] = _value(text)
        else:
            place = place.setdefault(key, {})
            if not isinstance(place, dict):
                raise UsageError(f"--set {change}: {key} has no keys of its own")


def _value(text: str) -> Any:
    """A value as TOML has it; what is none is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def plan_experiment(
    path: Path,
    changes: list[str],
    out: Path,
    reporter: ProgressReporter,
    sweeps: dict[str, list[str]] | None = None,
    *,
    file: ExperimentFile | None = None,
    include_outdated: bool = False,
    resources: ServerResources = ServerResources(),
    blocks: BlockOptions = BlockOptions(),
    generators: GeneratorOptions = GeneratorOptions(),
) -> Comparison:
    """The comparison that an experiment file describes, with each target at each choice of the swept factors. Files that it names
    are relative to it. `resources` and `blocks` come before those of the file; load `generators` share each run. `file` is its content where
    that was read and changed already; else it is read, and `changes` are laid over it.
    """
    file = file or load_experiment(path, changes)
    folder = path.parent
    operations_path = operations_file(file.operations, folder)
    operations = load_operations(file.operations, folder)
    specs = []
    for number, entry in enumerate(file.target):
        try:
            target = placed_on(parse_target(entry.url), generators.hosts)
        except UsageError as error:
            raise toml_file.error_at(path, f"target[{number}].url", str(error)) from None
        schema = load_schema(
            entry.schema_,
            operations=file.operations,
            database=target.database.dialect,
            parameters=entry.parameters,
            relative_to=folder,
        )
        specs += swept([VariantSpec(target, schema)], sweeps or {})
    known_operations = operations_with_registers(operations, set(file.workload.mix)).operation
    for name in file.workload.mix:
        if name not in known_operations:
            known = ", ".join(known_operations)
            raise toml_file.error_at(
                path, f"workload.mix.{name}", f"there is no such operation in {operations_path}; expected one of {known}"
            )
    dataset = open_dataset(
        file.dataset if is_named(file.dataset) else str(folder / file.dataset),
        scale=file.scale,
        seed=file.dataset_seed,
        reporter=reporter,
    )
    return Comparison(
        kind="experiment",
        name=path.stem,
        title=file.title or path.stem,
        dataset=dataset,
        operations_name=file.operations,
        operations=operations,
        variants=make_variants(specs, out / DATA_FOLDER),
        workload=file.workload.with_concurrency(embedded=any(spec.target.database.embedded for spec in specs)),
        metric=file.metric,
        include_outdated=include_outdated,
        generators=load_generators(generators, reporter),
        resources=ServerResources(
            memory_bytes=resources.memory_bytes or _bytes(file.server_memory, "server_memory", path),
            cpus=resources.cpus or file.server_cpus,
        ),
        blocks=blocks.over(
            one_at_a_time=file.one_at_a_time,
            repetitions_per_block=file.repetitions_per_block,
            disk_reserve=_bytes(file.disk_reserve, "disk_reserve", path),
        ),
    )


def _bytes(text: str | None, key: str, path: Path) -> int | None:
    """A size of the file in bytes. Raises UsageError that names the key."""
    try:
        return lab.parse_memory(text, key) if text else None
    except UsageError as error:
        raise toml_file.error_at(path, key, str(error)) from None
