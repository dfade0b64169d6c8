"""What was measured in one comparison, by the roles that claims speak of."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from pydantic import Field

from sensorbench import toml_file
from sensorbench.analysis.intervals import CONFIDENCE, Interval, contrast_interval, scaled
from sensorbench.analysis.sample import Floats, Sample
from sensorbench.benchmarks.comparison import done_in_s, sample_of, too_few_blocks, unit_of
from sensorbench.claims.expression import Expression, Figure
from sensorbench.claims.figures import LOAD_VARIATION, SIZE_VARIATION, FigureEvidence, RunValues
from sensorbench.dataset.dataset import readings_of
from sensorbench.results import ComparisonResult, RunResult, VariantManifest
from sensorbench.results.latencies import logged_latencies
from sensorbench.results.manifest import MEASURE, PhaseFigures
from sensorbench.results.server_use import server_use

V = TypeVar("V")

# What a figure of a role is made of: of evidence, role, and what else the figure's arguments say.
Quantity = Callable[["Evidence", str, Sequence[str]], RunValues | None]


class Roles(toml_file.FileModel):
    """Which variant plays which part in the claims, as system/schema or system/schema/label (a system is a database where the study
    names none); the first that was measured does. Those of `substitute` are of the same kind of system as the paper's own, which
    cannot be obtained: they judge claims, and are named in the verdict. A system of another kind has no place here.
    """

    published: dict[str, list[str]] = Field(description="Variants of the paper's own systems, by role.")
    substitute: dict[str, list[str]] = Field(default={}, description="Variants that stand in for a system of the paper, by role.")


def variant_name(variant: VariantManifest) -> str:
    """How roles name a variant: system/schema or system/schema/label."""
    return "/".join(filter(None, [variant.system or variant.database, variant.schema_name, variant.label]))


class Evidence(FigureEvidence):
    """What was measured in one comparison, by the roles that claims speak of. `parts` is the evidence of all parts of the study
    that were measured, this one's among it.

    Figures are `quantity(role, …)` or `quantity(part: role, …)`, where the part is one of those that the claim names. Quantities are those of
    `QUANTITIES`, and those of the study itself, `own`.
    """

    def __init__(
        self,
        result: ComparisonResult,
        roles: dict[str, str],
        metric: str,
        parts: Mapping[str, "Evidence"] = MappingProxyType({}),
        own: Mapping[str, Quantity] = MappingProxyType({}),
    ) -> None:
        self.result = result
        self.roles = roles
        self.metric = metric
        self._parts = parts
        self._quantities = {**QUANTITIES, **own}
        self._sample = cache(self._load_sample)

    def part(self, name: str) -> "Evidence":
        """The evidence of a part of the study: one of those that the claim names, without which it is not judged."""
        if name == self.result.manifest.plan.part:
            return self
        if name not in self._parts:
            raise AssertionError(f"the claim speaks of the part {name}, which it does not name")
        return self._parts[name]

    def place_of(self, figure: Figure) -> tuple["Evidence", str, tuple[str, ...]]:
        """In which part a figure was measured, its role there, and its other arguments."""
        first, *others = figure.arguments
        part, colon, role = first.partition(":")
        return (self.part(part.strip()), role.strip(), tuple(others)) if colon else (self, first, tuple(others))

    def values(self, figure: Figure) -> RunValues | None:
        """A figure by run; None if its role was not measured."""
        evidence, role, others = self.place_of(figure)
        quantity = self._quantities[figure.quantity]
        return quantity(evidence, role, others) if role in evidence.roles else None

    def interval(self, expression: Expression, confidence: float = CONFIDENCE, *, is_ratio: bool = True) -> Interval | None:
        """The interval of a formula. That of latencies alone knows how they vary within runs, too."""
        if expression.weights is None or any(figure.quantity != "latency" for figure in expression.figures):
            return super().interval(expression, confidence, is_ratio=is_ratio)
        places = [self.place_of(figure) for figure in expression.figures]
        samples = [evidence.sample(role, *others) if role in evidence.roles else None for evidence, role, others in places]
        known = [(sample, weight) for sample, weight in zip(samples, expression.weights, strict=True) if sample is not None]
        if len(known) < len(samples):
            return None
        # Parts are measured one after the other, so that nothing that they share cancels.
        paired = len({id(evidence) for evidence, _, _ in places}) == 1
        return scaled(contrast_interval(known, self.metric, paired=paired, confidence=confidence), expression.factor)

    def shares(self, figure: Figure) -> list[tuple[int, int]] | None:
        """Of each run, how many operations had an outcome: `timeout(role, operation)` or `error(role, operation)`."""
        evidence, role, (operation,) = self.place_of(figure)
        if role not in evidence.roles:
            return None
        counts = evidence.counts_by_run(role, operation)
        shares = [(counted[figure.quantity], sum(counted.values())) for counted in counts]
        of_units = evidence._of_units(shares)
        return [(sum(hits for hits, _ in unit), sum(total for _, total in unit)) for unit in of_units] or None

    def scale(self, name: str) -> float | None:
        """The value of something that findings depend on."""
        return _SCALES[name](self) if name in _SCALES else None

    @property
    def has_equal_memory(self) -> bool:
        """Whether every server could use the same memory, and was set to use it."""
        return self.result.manifest.plan.resources.memory_bytes is not None

    def too_few_blocks(self, roles: Sequence[str]) -> str | None:
        """Why nothing is judged of roles whose variants were measured one at a time; None if it may be."""
        return too_few_blocks(self.result, [self.roles[role] for role in roles if role in self.roles])

    def runs(self, role: str) -> list[RunResult]:
        """The complete runs of a role."""
        return [run for run in self.result.runs[self.roles[role]] if run.state == "complete"]

    def sample(self, role: str, operation: str) -> Sample | None:
        """The latencies of an operation."""
        return self._sample(role, operation)

    def _load_sample(self, role: str, operation: str) -> Sample | None:
        return sample_of(self.runs(role), operation, unit_of(self.result))

    def loaded_s(self, role: str) -> float | None:
        """The time until everything was loaded and settled."""
        return self.result.loaded_s(self.roles[role])

    def size_bytes(self, role: str) -> float | None:
        """What the loaded data take, on disk or in memory."""
        return self.result.size_bytes(self.roles[role])

    def largest_partition_bytes(self, role: str) -> int | None:
        """The largest partition of any table, as the server reports it."""
        return self.result.largest_partition_bytes(self.roles[role])

    def access(self, role: str, operation: str) -> str | None:
        """The access path that the database plans for an operation, where it says: an index, or a scan."""
        return self.result.access(self.roles[role], operation)

    def counts(self, role: str, operation: str) -> dict[str, int]:
        """How many operations of one kind ended how, over all runs."""
        by_run = self.counts_by_run(role, operation)
        return {outcome: sum(counts[outcome] for counts in by_run) for outcome in _OUTCOMES}

    def counts_by_run(self, role: str, operation: str) -> list[dict[str, int]]:
        """How many operations of one kind ended how, in each run that reached its measured phase."""
        phases = self._measured_phases(role)
        of_runs = [phase.operations[operation]["counts"] if operation in phase.operations else {} for phase in phases]
        return [dict.fromkeys(_OUTCOMES, 0) | dict(counts) for counts in of_runs]

    def first_error(self, role: str, operation: str) -> str | None:
        """The message of an operation of one kind that failed."""
        errors = [
            error for run in self.result.runs[self.roles[role]] if run.manifest.totals for error in run.manifest.totals.errors
        ]
        of_kind = (error for error in errors if error["operation"] == operation and error["kind"] != "cancelled")
        return next((str(error["first_message"]) for error in of_kind), None)

    def _measured_phases(self, role: str) -> list[PhaseFigures]:
        """What the engine counted in the measured phase of each run, also of those that failed."""
        all_totals = [run.manifest.totals for run in self.result.runs[self.roles[role]] if run.manifest.totals]
        return [phase for totals in all_totals for phase in totals.phases if phase.name == MEASURE]

    def server_means(self, role: str, what: str) -> list[float]:
        """Of each run, the mean of what the servers used: `processors` or `megabytes`."""
        uses = [server_use(self.result, run, self.roles[role]) for run in self.runs(role)]
        return [float(np.mean([getattr(moment, what) for moment in use])) for use in uses if use]

    def contrast(self, terms: Sequence[tuple[str, str, float]]) -> Interval | None:
        """The product of latency(role, operation) ** weight; None when something was not measured."""
        samples = [(self.sample(role, operation), weight) for role, operation, weight in terms]
        if any(sample is None for sample, _ in samples):
            return None
        return contrast_interval([(sample, weight) for sample, weight in samples if sample is not None], self.metric)

    def latencies(self, run: RunResult, operations: Sequence[str]) -> list[Floats]:
        """Latencies of each kind of operation in one run, in order of time."""
        return [logged_latencies(run, operation)[1] for operation in operations]

    def by_run(self, values: Sequence[float | None]) -> RunValues | None:
        """Values of the complete runs of a role, in order; None among them where a run has none. Where variants were measured one at a time, runs of
        one block give one value, their mean.
        """
        return self.by_unit([list(of_unit) for of_unit in self._of_units(values)])

    def by_unit(self, values: Sequence[Sequence[float | None]]) -> RunValues | None:
        """The same of values by what is resampled together: a run, or a block."""
        finite = [[value for value in of_unit if value is not None and np.isfinite(value)] for of_unit in values]
        known = {number: float(np.mean(of_unit)) for number, of_unit in enumerate(finite) if of_unit}
        return RunValues(known, self.result.manifest.plan.part or "") if known else None

    def _of_units(self, values: Sequence[V]) -> list[list[V]]:
        """Values of runs in order, those of one block together."""
        unit, found = unit_of(self.result), dict[int, list[V]]()
        for number, value in enumerate(values, start=1):
            found.setdefault(unit(number), []).append(value)
        return list(found.values())


_OUTCOMES = ("ok", "error", "timeout", "cancelled")


def _latency(evidence: Evidence, role: str, others: Sequence[str]) -> RunValues | None:
    (operation,) = others
    sample = evidence.sample(role, operation)
    if sample is None:
        return None
    runs = [sample.figures(evidence.metric, (sample.run_of_block == run)[None, :].astype(float)) for run in range(sample.runs)]
    return evidence.by_unit([[float(of_run[0])] for of_run in runs])


def _deviation(evidence: Evidence, role: str, others: Sequence[str]) -> RunValues | None:
    (operation,) = others
    of_runs = [evidence.latencies(run, [operation])[0] for run in evidence.runs(role)]
    return evidence.by_run([float(np.std(latencies)) if len(latencies) else None for latencies in of_runs])


def _rate(evidence: Evidence, role: str, others: Sequence[str]) -> RunValues | None:
    (operation,) = others
    return evidence.by_run([done / elapsed_s for done, elapsed_s in done_in_s(evidence.runs(role), operation)])


def _server(what: str) -> Quantity:
    return lambda evidence, role, _: evidence.by_run(evidence.server_means(role, what))


# The quantities of comparisons. Latency is by the study's metric; rates are operations per second that succeeded.
QUANTITIES: Mapping[str, Quantity] = {
    "latency": _latency,
    "latency_deviation": _deviation,
    "rate": _rate,
    "processors": _server("processors"),
    "megabytes": _server("megabytes"),
    "load_s": lambda evidence, role, _: RunValues.once(evidence.loaded_s(role), LOAD_VARIATION),
    "size_bytes": lambda evidence, role, _: RunValues.once(evidence.size_bytes(role), SIZE_VARIATION),
    "partition_bytes": lambda evidence, role, _: RunValues.once(evidence.largest_partition_bytes(role), SIZE_VARIATION),
}


def _rows(evidence: Evidence) -> float:
    """Rows of the relation with the readings."""
    relations = evidence.result.manifest.plan.dataset["relations"]
    return float(relations[readings_of(relations).relation]["rows"])


def _bytes_over_memory(evidence: Evidence) -> float | None:
    """The smallest of the variants' sizes over the memory that their servers are limited to, or that the machine has. What runs elsewhere
    does not say how much memory it has.
    """
    environment = evidence.result.manifest.environment
    of_machine = environment.get("memory_limit_bytes") or environment.get("memory_bytes")
    shares = []
    for variant in evidence.result.manifest.variants:
        server = environment.get("servers", {}).get(variant.url.partition("?")[0])
        limit = server["memory_bytes"] if server else None
        memory = limit or (of_machine if server or variant.embedded else None)
        size = evidence.result.size_bytes(variant.id) if variant.id in evidence.roles.values() else None
        if size is not None and memory:
            shares.append(size / memory)
    return min(shares, default=None)


_SCALES: Mapping[str, Callable[[Evidence], float | None]] = {
    "scale": lambda evidence: float(evidence.result.manifest.plan.dataset.get("scale", 1.0)),
    "rows": _rows,
    "bytes_over_memory": _bytes_over_memory,
}
