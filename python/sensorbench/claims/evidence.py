"""What was measured in one comparison, by the roles that claims speak of."""

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

import numpy as np

from sensorbench import toml_file
from sensorbench.analysis.intervals import Interval, contrast_interval
from sensorbench.analysis.sample import Floats, Sample
from sensorbench.benchmarks.comparison import sample_of
from sensorbench.results import ComparisonResult, RunResult, VariantManifest
from sensorbench.results.latencies import logged_latencies
from sensorbench.results.manifest import MEASURE, PhaseFigures
from sensorbench.results.server_use import server_use


class Roles(toml_file.FileModel):
    """Which variant plays which part in the claims, as system/schema or system/schema/label (a system is a database where the study
    names none); the first that was measured does.
    """

    published: dict[str, list[str]]
    substitute: dict[str, list[str]] = {}


def variant_name(variant: VariantManifest) -> str:
    """How roles name a variant: system/schema or system/schema/label."""
    return "/".join(filter(None, [variant.system or variant.database, variant.schema_name, variant.label]))


class Evidence:
    """What was measured in one comparison, by the roles that claims speak of. `parts` is the evidence of all parts of the study
    that were measured, this one's among it.
    """

    def __init__(
        self,
        result: ComparisonResult,
        roles: dict[str, str],
        metric: str,
        parts: Mapping[str, "Evidence"] = MappingProxyType({}),
    ) -> None:
        self.result = result
        self.roles = roles
        self.metric = metric
        self._parts = parts
        self._sample = cache(self._load_sample)

    def part(self, name: str) -> "Evidence":
        """The evidence of a part of the study: one of those that the claim names, without which it is not judged."""
        if name == self.result.manifest.plan.part:
            return self
        if name not in self._parts:
            raise AssertionError(f"the claim speaks of the part {name}, which it does not name")
        return self._parts[name]

    def runs(self, role: str) -> list[RunResult]:
        """The complete runs of a role."""
        return [run for run in self.result.runs[self.roles[role]] if run.state == "complete"]

    def sample(self, role: str, operation: str) -> Sample | None:
        """The latencies of an operation."""
        return self._sample(role, operation)

    def _load_sample(self, role: str, operation: str) -> Sample | None:
        return sample_of(self.runs(role), operation)

    def loaded_s(self, role: str) -> float | None:
        """The time until everything was loaded and settled."""
        return self.result.loaded_s(self.roles[role])

    def size_bytes(self, role: str) -> float | None:
        """What the loaded data take, on disk or in memory."""
        return self.result.size_bytes(self.roles[role])

    def largest_partition_bytes(self, role: str) -> int | None:
        """The largest partition of any table, as the server tells."""
        return self.result.largest_partition_bytes(self.roles[role])

    def access(self, role: str, operation: str) -> str | None:
        """The access path that the database plans for an operation, where it says: an index, or a scan."""
        return self.result.access(self.roles[role], operation)

    def counts(self, role: str, operation: str) -> dict[str, int]:
        """How many operations of one kind ended how."""
        counts = {"ok": 0, "error": 0, "timeout": 0, "cancelled": 0}
        for phase in self._measured_phases(role):
            ended = phase.operations[operation]["counts"] if operation in phase.operations else {}
            for outcome, count in ended.items():
                counts[outcome] += count
        return counts

    def first_error(self, role: str, operation: str) -> str | None:
        """The message of an operation of one kind that failed."""
        errors = [
            error for run in self.result.runs[self.roles[role]] if run.manifest.totals for error in run.manifest.totals.errors
        ]
        of_kind = (error for error in errors if error["operation"] == operation and error["kind"] != "cancelled")
        return next((str(error["first_message"]) for error in of_kind), None)

    def _measured_phases(self, role: str) -> list[PhaseFigures]:
        """What the engine told of the measured phase of each run, also of those that failed."""
        all_totals = [run.manifest.totals for run in self.result.runs[self.roles[role]] if run.manifest.totals]
        return [phase for totals in all_totals for phase in totals.phases if phase.name == MEASURE]

    def server_means(self, role: str, what: str) -> list[float]:
        """Of each run, the mean of what the servers used: `processors` or `megabytes`."""
        uses = [server_use(self.result, run, self.roles[role]) for run in self.runs(role)]
        return [float(np.mean([getattr(moment, what) for moment in use])) for use in uses if use]

    def contrast(self, terms: Sequence[tuple[str, str, float]]) -> Interval | None:
        """The product of figure(role, operation) ** weight; None when something was not measured."""
        samples = [(self.sample(role, operation), weight) for role, operation, weight in terms]
        if any(sample is None for sample, _ in samples):
            return None
        return contrast_interval([(sample, weight) for sample, weight in samples if sample is not None], self.metric)

    def contrast_of_parts(self, terms: Sequence[tuple[str, str, str, float]]) -> Interval | None:
        """The same over several parts: (part, role, operation, weight). They were measured one after the other, so that nothing
        that they share cancels.
        """
        samples = [(self.part(part).sample(role, operation), weight) for part, role, operation, weight in terms]
        known = [(sample, weight) for sample, weight in samples if sample is not None]
        return contrast_interval(known, self.metric, paired=False) if len(known) == len(terms) else None

    def latencies(self, run: RunResult, operations: Sequence[str]) -> list[Floats]:
        """Latencies of each kind of operation in one run, in order of time."""
        return [logged_latencies(run, operation)[1] for operation in operations]
