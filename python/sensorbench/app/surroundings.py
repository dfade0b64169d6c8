"""The experiment that a file belongs to: what an operation set or a schema is checked against, when it is checked by itself."""

from collections.abc import Iterator
from pathlib import Path

from sensorbench.dataset import is_named
from sensorbench.errors import UsageError
from sensorbench.runner import ExperimentFile, load_experiment

# Experiments lie in the folder of a file, or above it as `init` writes them.
_FOLDERS_ABOVE = 2


def dataset_of_operations(operations: Path) -> str | None:
    """The dataset of an experiment that names an operation set; None if there is no such experiment near it."""
    for folder, experiment in _experiments_near(operations):
        if _is(folder, experiment.operations, operations):
            return _dataset(folder, experiment)
    return None


def surroundings_of_schema(schema: Path) -> tuple[str, str] | None:
    """The operation set and the dataset (names or files) of an experiment that names a schema; None if there is none near it."""
    for folder, experiment in _experiments_near(schema):
        if any(_is(folder, target.schema_, schema) for target in experiment.target):
            is_file = experiment.operations.endswith(".toml")
            return str(folder / experiment.operations) if is_file else experiment.operations, _dataset(folder, experiment)
    return None


def _dataset(folder: Path, experiment: ExperimentFile) -> str:
    return experiment.dataset if is_named(experiment.dataset) else str(folder / experiment.dataset)


def _experiments_near(path: Path) -> Iterator[tuple[Path, ExperimentFile]]:
    """The experiments in the folder of a file and in those above it, with their folders. Files that are none are passed over."""
    for folder in [path.resolve().parent, *path.resolve().parent.parents][: _FOLDERS_ABOVE + 1]:
        for file in sorted(folder.glob("*.toml")):
            try:
                yield folder, load_experiment(file, [])
            except UsageError:
                continue


def _is(folder: Path, named: str, path: Path) -> bool:
    return named.endswith(".toml") and (folder / named).resolve() == path.resolve()
