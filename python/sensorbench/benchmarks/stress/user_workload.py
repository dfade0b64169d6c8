"""Work of one's own: the dataset, the schema and the operations of an experiment file."""

import json
from dataclasses import replace as with_fields
from pathlib import Path

import pyarrow as pa

from sensorbench._engine import Target
from sensorbench.benchmarks.stress.work import Means, Work
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.results.engine_plan import OperationsPlan
from sensorbench.results.files import write_text
from sensorbench.results.ownership import Claim, Intent
from sensorbench.results.writer import LOAD_FILE
from sensorbench.runner import (
    Variant,
    load_variant,
    placed_on,
    plan_experiment,
    plan_operations,
    prepare_tables,
    validated,
)

# What a stress run leaves at a target is not used by experiments.
FINGERPRINT = "stress"


class UserWorkload(Work):
    """The operations of an experiment file at one of its targets. What the file says of schedule, length and repeats does not count."""

    def __init__(
        self,
        file: Path,
        target: str | None,
        mix: dict[str, float],
        folder: Path,
        reporter: ProgressReporter,
        *,
        seed: int,
        replace: bool,
        hosts: str | None = None,
    ) -> None:
        changes = [f"workload.mix.{name}={weight}" for name, weight in mix.items()]
        comparison = plan_experiment(file, [f"workload.seed={seed}", *changes], folder, reporter)
        variant = _at(target, comparison.variants, file)
        self.variant = with_fields(variant, target=placed_on(variant.target, hosts))
        self._ready = validated(comparison)
        names = self._ready.names
        self.operations = {name: self._ready.comparison.operations.operation[name].title for name in names}
        dataset = comparison.dataset.describe()
        weights = {name: self._ready.comparison.workload.mix[name] for name in names}
        self.described = {
            "data": f"{dataset.title}: {dataset.extent}",
            "records": dataset.readings,
            "mix": {name: weight / sum(weights.values()) for name, weight in weights.items()},
            "choice": None,
        }
        self._intent: Intent = "replace" if replace else "create"

    @property
    def seed(self) -> int:
        """Seed of all operations."""
        return self._ready.comparison.workload.seed

    def plan(self) -> OperationsPlan:
        """The file's operations in their mix."""
        comparison = self._ready.comparison
        schema = self._schema_variant().schema
        return plan_operations(comparison.operations, schema, self._ready.parameters, comparison.workload)

    def tables(self) -> list[pa.Table]:
        """What the operations draw their parameters from."""
        return list(self._ready.parameters.tables.values())

    def intent(self, target: Target) -> Intent:
        """The dataset is loaded again."""
        del target
        return self._intent

    def make_ready(self, at: Variant, target: Target, means: Means) -> None:
        """Loads the dataset."""
        with self._ready.workbench as workbench:
            tables = prepare_tables(
                self._ready.comparison.dataset,
                self._schema_variant().schema,
                self._ready.columns[self.variant.id],
                workbench,
                means.progress,
            )
        described = self._ready.comparison.dataset.describe()
        load = load_variant(
            at,
            target,
            self._ready.schemas[self.variant.id],
            tables,
            described.readings,
            FINGERPRINT,
            claim=Claim(means.owner, self._intent),
            reporter=means.progress,
            values_per_reading=described.values_per_reading,
            generators=means.generators,
        )
        means.folder.mkdir(parents=True)
        write_text(means.folder / LOAD_FILE, json.dumps(load, indent=2) + "\n")

    def _schema_variant(self) -> Variant:
        """The variant as it was validated: its schema may have learned from the dataset how close together readings are."""
        return next(variant for variant in self._ready.comparison.variants if variant.id == self.variant.id)


def _at(target: str | None, variants: list[Variant], file: Path) -> Variant:
    """The variant that is asked for, by its target as the file writes it; the only one if none is."""
    wanted = [variant for variant in variants if target is None or variant.target.text == target]
    known = ", ".join(dict.fromkeys(variant.target.text for variant in variants))
    if not wanted:
        raise UsageError(f"--target {target}: {file} has no such target; expected one of {known}")
    if len(wanted) > 1:
        raise UsageError(
            f"{file} has {len(wanted)} variants; a stress run has one: name a target that one alone has ({known}) by --target"
        )
    return wanted[0]
