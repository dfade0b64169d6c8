"""Comparing two results."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from sensorbench.analysis.verdicts import EQUIVALENCE_MARGIN
from sensorbench.api import html
from sensorbench.api.errors import NotAvailableError, own_errors
from sensorbench.api.results import AnyResults, ComparisonResults
from sensorbench.api.rows import Rows, rows_of
from sensorbench.app.compare import ComparedOperation, Side, compare_results, side_at
from sensorbench.report import formatting

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ComparedOperation", "Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """The comparison of two results, by operation.

    Attributes:
        a: the first result.
        b: the second result.
        metric: the response-time metric that was compared.
        operations: ratio, interval and verdict for each operation and pair of variants.
        differences: other differences between the results, such as the machines; read these before the verdicts.

    Examples:
        >>> import sensorbench as sb
        >>> comparison = sb.compare("results/iot", "results/iot")
        >>> {operation.verdict for operation in comparison.operations}
        {'equivalent'}
        >>> comparison.slower
        Rows(items=())

    """

    a: str
    b: str
    metric: str
    operations: Rows[ComparedOperation]
    differences: Sequence[str]

    @property
    def slower(self) -> Rows[ComparedOperation]:
        """The operations for which `a` is slower than `b`."""
        return self.operations.where(lambda operation: operation.verdict == "slower")

    @property
    def faster(self) -> Rows[ComparedOperation]:
        """The operations for which `a` is faster than `b`."""
        return self.operations.where(lambda operation: operation.verdict == "faster")

    def to_arrow(self) -> pa.Table:
        """Returns the operations as an Arrow table.

        Returns:
            A table with one column per field of `ComparedOperation`.

        """
        return self.operations.to_arrow()

    def to_pandas(self) -> "pd.DataFrame":
        """Returns the operations as a pandas DataFrame.

        Returns:
            A DataFrame with one column per field of `ComparedOperation`.

        Raises:
            NotAvailableError: if pandas is not installed.

        """
        return self.operations.to_pandas()

    def _repr_html_(self) -> str:
        """The representation in a notebook: a row for each operation."""
        columns = ("variant", "operation", "A", "B", "A / B", "interval", "A is", "why")
        rows = (
            (
                formatting.variant(row.a) if row.a == row.b else f"{formatting.variant(row.a)} / {formatting.variant(row.b)}",
                row.operation,
                formatting.duration(row.a_s),
                formatting.duration(row.b_s),
                formatting.significant(row.ratio),
                formatting.interval(row.low, row.high, row.confidence),
                row.verdict or "–",
                row.reason or "",
            )
            for row in self.operations
        )
        return html.of_table(f"{self.metric} response times: A = {self.a}, B = {self.b}", columns, rows, self.differences)


def compare(
    a: str | Path | AnyResults,
    b: str | Path | AnyResults,
    *,
    metric: str | None = None,
    margin: float = EQUIVALENCE_MARGIN,
    force: bool = False,
) -> Comparison:
    """Compares two results of the same dataset and workload: which is faster, by how much, with a confidence interval.

    Args:
        a: the first result: a results object, a results folder, or `FOLDER:VARIANT` for one variant.
        b: the second result, in the same form.
        metric: the response-time metric: `mean`, `median`, `sd`, `p75`, `p95`, `p99` or `mean_to_p95`; the ranking metric of `a` if None.
        margin: ratios within this share of 1 are equivalent; 0.05 is 5%.
        force: allow different datasets or workloads; these are shown side by side, without verdicts.

    Returns:
        The comparison, by operation.

    Raises:
        UsageError: if there are no results, or they cannot be compared.
        NotAvailableError: if the results are not of a comparison.
        DamagedResultsError: if a file is damaged.

    Examples:
        >>> import sensorbench as sb
        >>> comparison = sb.compare("results/iot:sqlite-star", "results/iot:fjall-by_sensor", metric="median")
        >>> comparison.operations[0].a, comparison.operations[0].b
        ('sqlite-star', 'fjall-by_sensor')

    """
    with own_errors():
        sides = _side(a), _side(b)
        found = compare_results(*sides, metric=metric, margin=margin, force=force)
    return Comparison(sides[0].name, sides[1].name, found.metric, rows_of(found.operations), tuple(found.differences))


def _side(place: str | Path | AnyResults) -> Side:
    if isinstance(place, str | Path):
        return side_at(str(place))
    if not isinstance(place, ComparisonResults):
        raise NotAvailableError(f"{place.folder}: results of kind {place.kind} are not compared; expected those of a comparison")
    return side_at(str(place.folder))
