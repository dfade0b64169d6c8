"""Operations that were asked at several places: what is shown of all of them together."""

from sensorbench.report.charts import ShareRow
from sensorbench.results import VariantManifest
from sensorbench.results.summary.comparison import ComparisonSummary


def groups(summary: ComparisonSummary) -> dict[str, list[str]]:
    """The names of the instances by the operation that they are instances of."""
    found: dict[str, list[str]] = {}
    for name, operation in summary.result.operations.items():
        if operation.instance_of:
            found.setdefault(operation.instance_of, []).append(name)
    return found


def title(summary: ComparisonSummary, group: list[str]) -> str:
    """What the instances of one operation have in common."""
    return summary.result.operations[group[0]].title.rpartition(",")[0]


def variants_by_level(summary: ComparisonSummary) -> dict[str, list[str]]:
    """The variants that were asked, by what their labels begin with; those without a label stand beside all others."""
    level_of = {variant.id: _level(variant) for variant in summary.variants if not variant.only_loads}
    levels = list(dict.fromkeys(filter(None, level_of.values()))) or [""]
    return {level: [variant for variant, own in level_of.items() if own in {"", level}] for level in levels}


def _level(variant: VariantManifest) -> str:
    return variant.label.partition("-")[0]


def chart_name(operation: str, level: str) -> str:
    """The name of the chart of an operation's instances for the variants of one level."""
    return "-".join(filter(None, ["selectivity", operation, level]))


def rows(summary: ComparisonSummary, group: list[str], variants: list[str]) -> list[ShareRow]:
    """Share and latency of each instance of which the share is known, above zero."""
    found = []
    for figure in summary.result.figures:
        interval = figure.latency_s.get(summary.result.metric)
        operation = summary.result.operations[figure.operation]
        if figure.operation in group and figure.variant in variants and interval and interval.value and operation.share:
            place = (figure.variant, operation.share, operation.instance)
            found.append(ShareRow(*place, interval.value, interval.low, interval.high))
    return found


def access(summary: ComparisonSummary, variant: str, operation: str) -> str | None:
    """How a variant's database says that it goes about an operation: an index, or a scan; None if it does not say."""
    plan = summary.result.query_plans.get(variant, {}).get(operation)
    return plan.access if plan else None
