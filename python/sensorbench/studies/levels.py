"""Studies whose parts are levels of one thing that grows until databases fail: what failed at a level, and which levels come before one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.studies.study import Study


@dataclass(frozen=True)
class Break:
    """Where a variant failed: at which step, or in which operation, and what was said of it."""

    step: str
    message: str


def breaks_of(summary: ComparisonSummary) -> dict[str, Break]:
    """The variants that failed at a level, by their ids: those that were left out, and those of which one operation never succeeded."""
    result = summary.result
    never = [figure for figure in result.figures if figure.runs and not figure.counts.ok and figure.counts.ended]
    found: dict[str, Break] = {}
    for figure in never:
        errors = [error for error in result.client_health[figure.variant].error_kinds if error.operation == figure.operation]
        message = errors[0].first_message if errors else f"no answer within {result.workload['timeout']}"
        found.setdefault(figure.variant, Break(f"answering {figure.operation}", message))
    return found | {variant: Break(failure.step, failure.cause) for variant, failure in result.failures.items()}


def levels_before(study: Study, name: str, chosen: Sequence[str]) -> Iterator[str]:
    """The levels that one follows, the nearest first, of those that were chosen."""
    before = study.file.parts[name].follows
    while before is not None:
        if before in chosen:
            yield before
        before = study.file.parts[before].follows
