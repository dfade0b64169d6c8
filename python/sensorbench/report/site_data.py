"""What a site of bundles shows, as data: one entry for each bundle, comparison and variant, small enough for all to load at once; and details of
each comparison, which a page loads when it is opened.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sensorbench.report import formatting
from sensorbench.results import ComparisonResult, VariantManifest
from sensorbench.results.bundle import BundleIndex
from sensorbench.results.durability import durability_of
from sensorbench.results.latencies import weighted_latencies
from sensorbench.results.summary.claims import JudgedClaim
from sensorbench.results.summary.comparison import ComparisonSummary, RankedVariant
from sensorbench.results.summary.envelope import Summary
from sensorbench.results.summary.stress import StressSummary
from sensorbench.wording import counted

# At which shares of the operations a latency curve has its points.
CURVE_SHARES = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999)
FASTEST = "fastest"
VERDICTS = (FASTEST, "slower", "equivalent", "no significant difference", "inconclusive", "faster")
_DURABILITY = {"memory": "memory", "cache": "operating system's cache", "disk": "on disk", None: "not known"}
_DIGITS = 4


@dataclass(frozen=True)
class PricePerHour:
    """What an hour of the machine costs, in whatever money the number is of."""

    per_hour: float

    def of_readings(self, readings_per_s: float | None) -> float | None:
        """The cost of writing a million readings at this many per second."""
        return self._of(readings_per_s, 1e6)

    def of_queries(self, per_s: float | None) -> float | None:
        """The cost of a thousand operations at this many per second."""
        return self._of(per_s, 1e3)

    def _of(self, per_s: float | None, count: float) -> float | None:
        return _rounded(self.per_hour / 3600 * count / per_s) if per_s else None


@dataclass(frozen=True)
class SiteVariant:
    """A variant on the start page: `values` are the metric (s) of each operation of its comparison, null if it is not ranked; `verdicts` what it
    is there against the fastest of all, as places in `VERDICTS`.
    """

    id: str
    title: str
    database: str
    version: str
    schema: str
    durability: str
    consistency: str
    temperature: str
    nodes: int
    load_s: float | None
    bytes: float | None
    readings_per_s: float | None
    per_s: float | None
    values: list[float | None]
    verdicts: list[int | None]
    write_cost: float | None
    query_cost: float | None


@dataclass(frozen=True)
class SiteOperation:
    """An operation on the start page; `excluded` says why nobody is ranked at it."""

    name: str
    title: str
    writes: bool
    excluded: str | None


@dataclass(frozen=True)
class SiteComparison:
    """Variants that were measured together, of which alone ratios are shown."""

    id: str
    bundle: str
    part: str
    title: str
    study: str
    dataset: str
    scale: float | None
    metric: str
    machine: str
    operations: list[SiteOperation]
    variants: list[SiteVariant]


@dataclass(frozen=True)
class SiteBundle:
    """A bundle on the start page: `verdicts` counts its claims, `capacity` says in words what a search for it found."""

    id: str
    file: str
    bytes: int
    title: str
    kind: str
    study: str
    measured: str
    version: str
    machine: str
    status: str
    trust: str
    why: str
    stale: bool
    verified: bool
    signed: bool
    answers_equal: bool | None
    verdicts: dict[str, int]
    capacity: str = ""
    query_cost: float | None = None


@dataclass(frozen=True)
class SiteClaim:
    """A claim of a study with its verdict."""

    id: str
    text: str
    published: str
    verdict: str
    reason: str


@dataclass(frozen=True)
class BundleDetails:
    """What the page of a bundle loads besides."""

    command: str
    claims: list[SiteClaim]
    warnings: list[str]
    unverified: list[str]


@dataclass(frozen=True)
class OperationDetails:
    """An operation at a variant: figures (s) with the ends of their intervals, counts, and a curve of latencies (s) at `CURVE_SHARES`."""

    figures: dict[str, tuple[float | None, float | None, float | None]]
    counts: dict[str, int]
    verdict: str
    curve: list[float]


@dataclass(frozen=True)
class VariantDetails:
    """What the page of a variant loads besides."""

    summary: str
    schema_file: str
    schema_text: str
    statements: dict[str, str]
    settings: dict[str, str]
    facts: dict[str, str]
    health: dict[str, str]
    warnings: list[str]
    operations: dict[str, OperationDetails]


@dataclass(frozen=True)
class BundleOnSite:
    """Everything that a site has of one bundle."""

    bundle: SiteBundle
    details: BundleDetails
    comparisons: list[SiteComparison] = field(default_factory=list)
    variants: dict[str, dict[str, VariantDetails]] = field(default_factory=dict)


def site_bundle(
    index: BundleIndex,
    summary: Summary[Any],
    *,
    identity: str,
    file: str,
    size: int,
    trust: str,
    why: str,
    is_stale: bool,
    is_verified: bool,
    is_signed: bool,
    price: PricePerHour | None,
) -> SiteBundle:
    """The entry of a bundle.

    Args:
        index: of the bundle.
        summary: of the whole.
        identity: by which the site names it.
        file: where the site has it.
        size: in bytes.
        trust: its trust label.
        why: the reason of the label.
        is_stale: whether it is stale.
        is_verified: whether it was verified.
        is_signed: whether it has a signature.
        price: of the machine; None if nobody gave one.

    """
    stress = summary.result if isinstance(summary, StressSummary) else None
    capacity, objective = (stress.capacity, stress.objective) if stress else (None, None)
    return SiteBundle(
        id=identity,
        file=file,
        bytes=size,
        title=index.title,
        kind=index.results,
        study=study_of(summary),
        measured=(index.finished or index.created).date().isoformat(),
        version=index.version,
        machine=machine_of(summary),
        status=summary.status,
        trust=trust,
        why=why,
        stale=is_stale,
        verified=is_verified,
        signed=is_signed,
        answers_equal=summary.answers_equal,
        verdicts=dict(Counter(claim.verdict for claim in summary.claims)),
        capacity=formatting.capacity(capacity, objective) if capacity and objective else "",
        query_cost=price.of_queries(capacity.met_per_s) if price and capacity and objective else None,
    )


def bundle_details(summary: Summary[Any], unverified: list[str]) -> BundleDetails:
    """What the page of a bundle shows besides."""
    return BundleDetails(
        command=formatting.command(summary.command),
        claims=[_claim(claim) for claim in summary.claims],
        warnings=[f"{caveat.text} {caveat.action}" for caveat in summary.warnings],
        unverified=unverified,
    )


def study_of(summary: Summary[Any]) -> str:
    """By which results of the same work are put together: the name of the study or experiment, else the kind."""
    return str(getattr(summary.result, "name", "") or summary.kind)


def machine_of(summary: Summary[Any]) -> str:
    """The machine in a few words."""
    environment = summary.environment
    memory = environment.get("memory_bytes")
    cpus, of_client = environment.get("processors"), environment.get("processors_allowed")
    shown = counted(cpus, "CPU") if cpus else ""
    # A client that is kept to some of them leaves the others to servers.
    if cpus and of_client and of_client < cpus:
        shown += f" (client on {of_client})"
    return ", ".join(filter(None, [environment.get("processor"), shown, formatting.size(memory) if memory else ""]))


def site_comparison(
    result: ComparisonResult, summary: ComparisonSummary, *, identity: str, bundle: str, part: str, price: PricePerHour | None
) -> SiteComparison:
    """The entry of a comparison.

    Args:
        result: as it was recorded.
        summary: of it.
        identity: by which the site names it.
        bundle: by which the site names its bundle.
        part: the part of the bundle that it is; empty for the whole.
        price: of the machine; None if nobody gave one.

    """
    figures = summary.result
    places = {(ranking.operation, place.variant): place for ranking in figures.rankings for place in ranking.places}
    return SiteComparison(
        id=identity,
        bundle=bundle,
        part=part,
        title=summary.title,
        study=figures.name,
        dataset=figures.dataset["name"],
        scale=figures.dataset.get("scale"),
        metric=_metric(figures.metric),
        machine=machine_of(summary),
        operations=[
            SiteOperation(
                ranking.operation,
                figures.operations[ranking.operation].title,
                figures.operations[ranking.operation].writes,
                ranking.excluded,
            )
            for ranking in figures.rankings
        ],
        variants=[_variant(variant, result, summary, places, price) for variant in summary.variants],
    )


def variant_details(
    result: ComparisonResult, summary: ComparisonSummary, schema_texts: Mapping[str, str]
) -> dict[str, VariantDetails]:
    """What the page of each variant of a comparison shows besides, by its id. `schema_texts`: its schema file."""
    return {
        variant.id: VariantDetails(
            summary=variant.schema_summary,
            schema_file=variant.schema_file.rpartition("/")[2],
            schema_text=schema_texts.get(variant.id, ""),
            statements={operation: _text(statement) for operation, statement in variant.statements.items()},
            settings=_settings(result, variant.id),
            facts=_facts(variant, result),
            health=_health(summary, variant.id),
            warnings=[f"{caveat.text} {caveat.action}" for caveat in summary.warnings if caveat.variant in ("", variant.id)],
            operations=_operations(result, summary, variant.id),
        )
        for variant in summary.variants
    }


def _metric(name: str) -> str:
    """A figure of latencies by itself."""
    return formatting.metric(name).removesuffix(" of the")


def _claim(claim: JudgedClaim) -> SiteClaim:
    return SiteClaim(claim.id, claim.text, claim.published, claim.verdict, claim.reason)


def _variant(
    variant: VariantManifest,
    result: ComparisonResult,
    summary: ComparisonSummary,
    places: Mapping[tuple[str, str], RankedVariant],
    price: PricePerHour | None,
) -> SiteVariant:
    figures, load, server = summary.result, result.loads.get(variant.id), result.server(variant)
    own = [places.get((ranking.operation, variant.id)) for ranking in figures.rankings]
    readings_per_s = (load.settled_readings_per_s or load.readings_per_s) if load else None
    health = figures.client_health.get(variant.id)
    per_s = health.rate_per_s if health else None
    runs = figures.runs.get(variant.id)
    return SiteVariant(
        id=variant.id,
        title=formatting.variant(variant.id),
        database=variant.database,
        version=load.description.version if load else "",
        schema=variant.schema_name,
        durability=_DURABILITY[durability_of(load.description.database, load.description.settings) if load else None],
        consistency=next((place.consistency for place in own if place and place.consistency), "one level"),
        temperature=(runs.temperature if runs else None) or "only loaded",
        nodes=server["nodes"] if server else 1,
        load_s=_rounded(result.loaded_s(variant.id)),
        bytes=result.size_bytes(variant.id),
        readings_per_s=_rounded(readings_per_s),
        per_s=_rounded(per_s),
        values=[_rounded(place.value_s) if place else None for place in own],
        verdicts=[VERDICTS.index(_verdict(place)) if place else None for place in own],
        write_cost=price.of_readings(readings_per_s) if price else None,
        query_cost=price.of_queries(per_s) if price else None,
    )


def _verdict(place: RankedVariant) -> str:
    """What a variant is against the fastest of its class."""
    return place.against_best.word if place.against_best else FASTEST


def _text(statement: Mapping[str, object]) -> str:
    """A statement as people read it, with what belongs to it."""
    return "\n".join(
        str(value).strip() if key == "statement" else f"{key}: {value if isinstance(value, str) else json.dumps(value)}"
        for key, value in statement.items()
    )


def _settings(result: ComparisonResult, variant: str) -> dict[str, str]:
    load = result.loads.get(variant)
    return {name: str(value) for name, value in load.description.settings.items()} if load else {}


def _facts(variant: VariantManifest, result: ComparisonResult) -> dict[str, str]:
    load = result.loads.get(variant.id)
    if load is None:
        return {}
    return {
        "rows": formatting.count(load.rows),
        "load": formatting.duration(load.load_s),
        "settle": formatting.duration(load.settle_s),
        "readings per second, settled": formatting.count(load.settled_readings_per_s),
        "size": formatting.size(load.size.total_bytes),
        "target": variant.target,
    }


def _health(summary: ComparisonSummary, variant: str) -> dict[str, str]:
    health = summary.result.client_health.get(variant)
    if health is None:
        return {}
    return {
        "started": formatting.count(health.started),
        "dropped": formatting.count(health.dropped),
        "ok": formatting.count(health.ok),
        "errors": formatting.count(health.errors),
        "timeouts": formatting.count(health.timeouts),
        "operations per second": formatting.count(health.rate_per_s),
        "client CPU": formatting.count(health.client_cpu),
        "schedule lag p99": formatting.duration(health.schedule_lag_p99_s),
        "client-bound": health.client_bound or "no",
    }


def _operations(result: ComparisonResult, summary: ComparisonSummary, variant: str) -> dict[str, OperationDetails]:
    verdicts = {
        ranking.operation: _verdict(place)
        for ranking in summary.result.rankings
        for place in ranking.places
        if place.variant == variant
    }
    return {
        figures.operation: OperationDetails(
            figures={
                _metric(name): (_rounded(figure.value), _rounded(figure.low), _rounded(figure.high))
                for name, figure in figures.latency_s.items()
            },
            counts=figures.counts.model_dump(),
            verdict=verdicts.get(figures.operation, ""),
            curve=_curve(result, variant, figures.operation),
        )
        for figures in summary.result.figures
        if figures.variant == variant
    }


def _curve(result: ComparisonResult, variant: str, operation: str) -> list[float]:
    """Latencies (s) of all usable runs at those of `CURVE_SHARES` that this many operations can support; empty if there are none."""
    runs = [weighted_latencies(run, operation) for run in result.usable_runs(variant) if operation in run.manifest.operations]
    values = np.concatenate([np.empty(0), *(latencies for latencies, _ in runs)])
    counts = np.concatenate([np.empty(0), *(weights for _, weights in runs)])
    if not len(values):
        return []
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(counts[order])
    known = np.asarray([share for share in CURVE_SHARES if (1.0 - share) * cumulated[-1] >= 1.0])
    places = np.searchsorted(cumulated, known * cumulated[-1] * (1 - 1e-12))
    return [float(f"{value:.{_DIGITS}g}") for value in values[order][np.minimum(places, len(values) - 1)]]


def _rounded(value: float | None) -> float | None:
    """A number with as many digits as a page can show, and no more bytes."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.{_DIGITS}g}")
