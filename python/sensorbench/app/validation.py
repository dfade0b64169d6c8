"""Checks files of every kind without a server, by the checks that a run makes itself."""

import tempfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from sensorbench import toml_file
from sensorbench.app.surroundings import dataset_of_operations, surroundings_of_schema
from sensorbench.benchmarks.tune import load_space
from sensorbench.claims import claims_in
from sensorbench.compat.cassandra_stress import read_profile
from sensorbench.compat.ycsb import parse_core_workload, read_all_properties
from sensorbench.dataset import MEASUREMENTS, SHIPPED, open_dataset
from sensorbench.dataset.csv_rows import columns_of, require_columns
from sensorbench.dataset.mapping import PARQUET_SUFFIX, Mapping, matching_files
from sensorbench.errors import SensorbenchError, UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.runner import ExperimentFile, check_references, parameters_of, plan_experiment, validated
from sensorbench.schemas import Operations, Schema, load_operations, load_schema, shipped_operations
from sensorbench.schemas.schema_file import SchemaFile
from sensorbench.schemas.time_buckets import SamplingInterval
from sensorbench.wording import counted

# How close together readings are, where a schema that is checked by itself counts in readings.
_HOUR_US = 3_600_000_000
EXPERIMENT = "experiment"
# Of records, whose fields YCSB's properties count, where a schema of them is checked by itself.
_FIELDS = ("field0",)


@dataclass(frozen=True)
class CheckedFile:
    """A file that was checked: what kind it is (empty if it is none that is known), what it is in a line, and what is wrong
    with it.
    """

    path: Path
    kind: str
    about: str = ""
    problems: list[str] = field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.problems


@dataclass(frozen=True)
class _Kind:
    """A kind of file: `keys` are those of its top level, of which some in `tells` tell it from others. `check` returns what the
    file is in a line.
    """

    name: str
    tells: frozenset[str]
    keys: frozenset[str]
    check: Callable[[Path, ProgressReporter], str]


def check_files(paths: Sequence[Path], progress: ProgressReporter) -> list[CheckedFile]:
    """Checks each file as what it is; the wrong ones stop nothing."""
    return [_checked(path, progress) for path in paths]


def _checked(path: Path, progress: ProgressReporter) -> CheckedFile:
    name = ""
    try:
        kind = _kind_of(path)
        name = kind.name
        return CheckedFile(path, name, kind.check(path, progress))
    except toml_file.FileError as error:
        return CheckedFile(path, name, problems=error.problems)
    except SensorbenchError as error:
        return CheckedFile(path, name, problems=[str(error)])


def _kind_of(path: Path) -> _Kind:
    """The kind of a file, by its content. Raises UsageError if it is none that is known."""
    if not path.is_file():
        raise UsageError(f"{path}: {'expected a file, found a folder' if path.is_dir() else 'no such file'}")
    if path.suffix in {".yaml", ".yml"}:
        return _PROFILE
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: expected {_expected()}; found a file that is not text") from None
    if path.suffix != ".toml" and _is_of_ycsb(path):
        return _YCSB
    try:
        keys = set(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        if path.suffix != ".toml":
            raise UsageError(f"{path}: expected {_expected()}; found a text that is none of them") from None
        # Once more, for an error that names the line.
        toml_file.parse(text, Mapping, path)
        raise UsageError(f"{path}: {error}") from None
    ranked = sorted(_kinds(), key=lambda kind: (len(keys & kind.tells), len(keys & kind.keys)), reverse=True)
    if not keys & ranked[0].tells:
        found = f"the keys {', '.join(sorted(keys))}" if keys else "no keys"
        raise UsageError(f"{path}: expected {_expected()}; found {found}")
    return ranked[0]


def _expected() -> str:
    names = [kind.name for kind in (*_kinds(), _YCSB, _PROFILE)]
    return f"one of {', '.join(names)}"


def _is_of_ycsb(path: Path) -> bool:
    """Whether a file has properties of YCSB's core workloads."""
    found = read_all_properties([path])
    return "workload" in found or any(key.endswith("proportion") or key == "recordcount" for key in found)


def _experiment(path: Path, progress: ProgressReporter) -> str:
    with tempfile.TemporaryDirectory(prefix="sensorbench-validate-") as nowhere:
        sound = validated(plan_experiment(path, [], Path(nowhere), progress))
    comparison = sound.comparison
    sound.workbench.close()
    variants = ", ".join(variant.id for variant in comparison.variants)
    readings = comparison.dataset.describe().relations
    rows = ", ".join(
        f"{counted(relation.rows, 'row')} of {name}"
        for name, relation in readings.items()
        if name in comparison.operations.relations
    )
    return f"{counted(len(comparison.variants), 'variant')} ({variants}), {counted(len(sound.names), 'operation')}" + (
        f", {rows}" if rows else ""
    )


def _mapping(path: Path, progress: ProgressReporter) -> str:
    mapping = toml_file.load(path, Mapping)
    for file in matching_files(path, mapping):
        if file.suffix != PARQUET_SUFFIX:
            require_columns(file, columns_of(file, mapping.encoding), mapping.columns)
    described = open_dataset(str(path), reporter=progress).describe()
    rows = ", ".join(f"{counted(relation.rows, 'row')} of {name}" for name, relation in described.relations.items())
    return f"{mapping.name}: {rows}" + "".join(f"; {note}" for note in described.notes)


def _operations(path: Path, progress: ProgressReporter) -> str:
    operations = load_operations(str(path))
    names = list(operations.operation)
    about = f"{counted(len(names), 'operation')}: {', '.join(names)}"
    own = dataset_of_operations(path)
    dataset = own or _dataset_for(operations.relations)
    if dataset is None:
        return f"{about} ({_UNCHECKED.format('SQL', ', '.join(operations.relations))})"
    with open_dataset(dataset, scale=1.0 if own else _SCALE, reporter=progress).connect() as workbench:
        check_references(operations, names, workbench, str(path))
        if own:
            # Whether a parameter source finds anything depends on the data.
            parameters_of(operations, names, workbench, str(path))
    return about


_UNCHECKED = "{} is checked by the experiment that uses the file: no dataset of the package has the relations {}"
# A small part of a dataset is enough to see whether SQL over it works.
_SCALE = 0.05


@cache
def _relations(dataset: str) -> frozenset[str]:
    return frozenset(open_dataset(dataset).describe().relations)


def _dataset_for(relations: Sequence[str]) -> str | None:
    """A dataset of the package with these relations: the columns of a relation are the same in all datasets."""
    return next((name for name in sorted(SHIPPED) if set(relations) <= _relations(name)), None)


def _schema(path: Path, progress: ProgressReporter) -> str:
    text = path.read_text(encoding="utf-8")
    database = str(tomllib.loads(text).get("database", ""))
    schema = load_schema(str(path), operations="", database=database, fields=_FIELDS if "{field}" in text else ())
    near = surroundings_of_schema(path)
    name = near[0] if near else _shipped_operations_of(schema)
    operations = load_operations(name) if name else Operations(operation={})
    names = [operation for operation in operations.operation if schema.asks(operation)]
    dataset = near[1] if near else _dataset_for(operations.relations or [MEASUREMENTS])
    about = f"{schema.database}: {schema.summary}"
    if dataset is None:
        return f"{about} ({_UNCHECKED.format('it', ', '.join(operations.relations))})"
    sampling = SamplingInterval(_HOUR_US)
    with open_dataset(dataset, scale=1.0 if near else _SCALE, reporter=progress).connect() as workbench:
        for changed in (schema, *_with_each_value(schema)):
            at = changed.on(sampling) if changed.needs_sampling_interval else changed
            at.driver_schema(operations, names, at.loaded_columns(workbench))
    if name is None:
        return f"{about} (its statements are checked by the experiment that uses it: no operation set of the package has all of them)"
    return f"{about} ({counted(len(names), 'statement')})"


def _shipped_operations_of(schema: Schema) -> str | None:
    """The operation set of the package that has all operations of a schema, also those that it says it cannot express."""
    wanted = {*schema.file.operation, *schema.file.cannot}
    return next((name for name in shipped_operations() if wanted and wanted <= set(load_operations(name).operation)), None)


def _with_each_value(schema: Schema) -> list[Schema]:
    return [
        schema.with_parameters({name: value})
        for name, choice in schema.file.parameters.items()
        for value in choice.values
        if value != choice.default
    ]


def _space(path: Path, progress: ProgressReporter) -> str:
    del progress
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    space, _ = load_space(str(content.get("database", "")), path)
    return f"{space.database}: {counted(len(space.settings), 'server setting')}"


def _claims(path: Path, progress: ProgressReporter) -> str:
    del progress
    return counted(len(claims_in(path)), "claim")


def _ycsb(path: Path, progress: ProgressReporter) -> str:
    del progress
    workload, notes = parse_core_workload(read_all_properties([path]))
    shares = ", ".join(f"{name} {share:g}" for name, share in workload.proportions.items() if share)
    return f"{shares}; {workload.recordcount:,} records" + "".join(f"; {note}" for note in notes)


def _profile(path: Path, progress: ProgressReporter) -> str:
    del progress
    profile, notes = read_profile(path)
    queries = ", ".join(profile.queries) or "no queries"
    return f"table {profile.table.name}, {queries}" + "".join(f"; {note}" for note in notes)


_YCSB = _Kind("properties of YCSB", frozenset(), frozenset(), _ycsb)
_PROFILE = _Kind("profile of cassandra-stress", frozenset(), frozenset(), _profile)


@cache
def _kinds() -> tuple[_Kind, ...]:
    def kind(name: str, model: type[toml_file.FileModel], tells: str, check: Callable[[Path, ProgressReporter], str]) -> _Kind:
        keys = {info.alias or key for key, info in model.model_fields.items()}
        return _Kind(name, frozenset(tells.split()), frozenset(keys), check)

    return (
        kind(EXPERIMENT, ExperimentFile, "target workload", _experiment),
        kind("dataset mapping", Mapping, "files time sensors", _mapping),
        kind("schema", SchemaFile, "database create load_query summary settle", _schema),
        kind("operation set", Operations, "parameter_source relations operation", _operations),
        _Kind("search space", frozenset({"settings", "file"}), frozenset({"database", "file", "line", "settings"}), _space),
        _Kind("claims", frozenset({"claim"}), frozenset({"claim"}), _claims),
    )
