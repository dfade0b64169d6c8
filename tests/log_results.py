"""Results of the persistent-log study that are in memory alone, and the paper's own figures as evidence."""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast

from sensorbench.analysis.intervals import CONFIDENCE, Interval
from sensorbench.claims import Evidence, Expression, Figure, FigureEvidence, Judgement, RunValues
from sensorbench.claims.judging import decided
from sensorbench.dataset.machine_log import DATASETS, records_of
from sensorbench.results import ComparisonResult, ServerResources, VariantManifest
from sensorbench.results.summary.comparison import Failure, LoadFigures, LoadSize, QueryPlan
from sensorbench.studies.log_analytics import LOG_ANALYTICS
from sensorbench.studies.log_analytics.claims import COUNT, FETCH, JUDGES, QUANTITIES
from sensorbench.studies.published import published_of
from tests.given_evidence import NOISE

# By role, and what it is of: an operation, `load` or `size`.
Figures = Mapping[tuple[str, str], float]
ROLES = LOG_ANALYTICS.file.roles.published
CLAIMS = {claim.id: claim for claim in LOG_ANALYTICS.claims}
EVERYTHING = ("load", "size", "look_up", *FETCH, *COUNT)
_ONCE = {"load_s": "load", "size_bytes": "size"}


class FakeResult(SimpleNamespace):
    """Results that are in memory alone; what follows from them follows as from those on disk."""

    loaded_s = ComparisonResult.loaded_s
    size_bytes = ComparisonResult.size_bytes
    snapshot_bytes = ComparisonResult.snapshot_bytes
    access = ComparisonResult.access


def fake_result(size: str = "1GB", *, variants: Iterable[str] = (), records: int = 0, **known: Any) -> ComparisonResult:
    """Results of a size, with variants as roles name them and whatever else is known of them."""
    described = {"name": DATASETS.get(size, size), "relations": {"log": {"rows": records or records_of("1GB")}}, "scale": 1.0}
    plan = SimpleNamespace(
        dataset=described,
        metric="mean",
        part="",
        resources=ServerResources(),
        one_at_a_time=None,
        operations=dict.fromkeys(EVERYTHING[2:]),
    )
    manifest = SimpleNamespace(plan=plan, variants=[variant_of(name) for name in variants], environment={})
    loads = {name: LoadFigures.model_construct(**_sized(load)) for name, load in known.pop("loads", {}).items()}
    plans = {
        name: {operation: QueryPlan(text="", **plan) for operation, plan in of_variant.items()}
        for name, of_variant in known.pop("plans", {}).items()
    }
    failures = {name: Failure(**failure) for name, failure in known.pop("failures", {}).items()}
    empty: dict[str, Any] = {"loads": loads, "plans": plans, "failures": failures}
    runs = {variant.id: [] for variant in manifest.variants}
    return cast("ComparisonResult", FakeResult(manifest=manifest, **{**empty, "runs": runs, **known}))


def _sized(load: dict[str, Any]) -> dict[str, Any]:
    return {**load, "size": LoadSize(**load.get("size", {"total_bytes": None}))}


def variant_of(name: str) -> VariantManifest:
    system, schema, label = (*name.split("/"), "")[:3]
    index = label.removesuffix("-by_writes").removesuffix("-by_copy")
    index = "" if index.startswith("by_") else index
    operations = {"hash_only": ["look_up"], "range_only": ["fetch_range", "count_range"]}.get(schema)
    return VariantManifest(
        id=id_of(name), target=system, database=system, system=system, embedded=False, url=system, schema_name=schema, schema_summary="",
        schema_file="", schema_parameters={"index": index} if index else {}, label=label, only_loads=label == "by_pipe" and schema == "hash_only", operations=operations,
    )  # fmt: skip


def id_of(name: str) -> str:
    return name.replace("/", "-")


def run_of_r1(message: str = "", **counts: int) -> Any:
    """A run that executed fetching r1 alone."""
    outcomes = {"counts": {"ok": 0, "error": 0, "timeout": 0, "cancelled": 0, **counts}}
    errors = [{"operation": FETCH[0], "kind": "server", "count": 1, "first_message": message}] if message else []
    whole = SimpleNamespace(phases=[SimpleNamespace(name="measure", operations={FETCH[0]: outcomes})], errors=errors)
    return SimpleNamespace(manifest=SimpleNamespace(totals=whole, operations=[FETCH[0]]), state="complete")


class LogEvidence(Evidence):
    """Figures by role and what they are of, each that of three runs, which differ by 0.1%."""

    def __init__(self, figures: Figures, result: ComparisonResult | None = None) -> None:
        roles = {role: role for role, _ in figures}
        super().__init__(result or fake_result(), roles, "mean", own=QUANTITIES)
        self.figures = figures

    def values(self, figure: Figure) -> RunValues | None:
        if figure.quantity in QUANTITIES:
            return super().values(figure)
        role, *others = figure.arguments
        value = self.figures.get((role, _ONCE.get(figure.quantity) or others[0]))
        return None if value is None else RunValues({run: value * noise for run, noise in enumerate(NOISE)})

    def interval(self, expression: Expression, confidence: float = CONFIDENCE, *, is_ratio: bool = True) -> Interval | None:
        return FigureEvidence.interval(self, expression, confidence, is_ratio=is_ratio)


def judged(claim: str, figures: Figures, **known: Any) -> Judgement:
    return decided(CLAIMS[claim], LogEvidence(figures, fake_result(**known)), JUDGES)


def alike(roles: Iterable[str] = ROLES) -> dict[tuple[str, str], float]:
    """Roles with all figures at 1."""
    return {(role, what): 1.0 for role in roles for what in EVERYTHING}


def paper_figures(size: str, first: str = "Appendix F") -> dict[tuple[str, str], float]:
    """The paper's own figures at one size; where it has two, those of the tables that are named come first."""
    published = published_of("log-analytics")
    assert published is not None
    rows = [row for row in published.rows if row.printed.dataset_size == size and row.value is not None]
    figures: dict[tuple[str, str], float] = {}
    for row in sorted(rows, key=lambda row: (not row.title.startswith(first), "in the text" in row.title)):
        figure = Expression.parse(row.figure).figures if row.figure else ()
        # Snapshots are in no claim.
        if len(figure) == 1 and row.figure == str(figure[0]) and figure[0].quantity != "snapshot_bytes":
            role, *others = figure[0].arguments
            figures.setdefault((role, others[0] if others else _ONCE[figure[0].quantity]), row.value)
    return figures


def of_paper(claim: str, size: str, first: str = "Appendix F") -> Judgement:
    """What a claim's rules say of the paper's own figures."""
    return judged(claim, paper_figures(size, first), size=size, records=records_of(size))
