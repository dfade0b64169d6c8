"""A sequence of typed rows that can be converted to a table."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import pyarrow as pa

from sensorbench.api.errors import NotAvailableError

if TYPE_CHECKING:
    import pandas as pd

Row = TypeVar("Row")


@dataclass(frozen=True)
class Rows(Sequence[Row], Generic[Row]):
    """An immutable sequence of typed rows, such as figures, that can be converted to a table.

    Attributes:
        items: the rows; each is a dataclass.

    Examples:
        >>> import sensorbench as sb
        >>> figures = sb.read("results/iot").figures(metric="p99")
        >>> len(figures), figures[0].operation
        (16, 'get_sensor_data')
        >>> figures.to_arrow().num_rows
        16

    """

    items: tuple[Row, ...]

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> "Rows[Row]": ...
    def __getitem__(self, index: int | slice) -> "Row | Rows[Row]":
        return Rows(self.items[index]) if isinstance(index, slice) else self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def where(self, condition: Callable[[Row], object]) -> "Rows[Row]":
        """Returns the rows that satisfy a condition.

        Args:
            condition: a function that takes a row.

        Returns:
            The matching rows, in the same order.

        Examples:
            >>> import sensorbench as sb
            >>> figures = sb.read("results/iot").figures()
            >>> len(figures.where(lambda figure: figure.metric == "p95"))
            16

        """
        return Rows(tuple(row for row in self.items if condition(row)))

    def to_arrow(self) -> pa.Table:
        """Returns the rows as an Arrow table.

        Returns:
            A table with one column per field.

        """
        if not self.items:
            return pa.table({})
        columns = [field.name for field in fields(self.items[0])]  # type: ignore[arg-type]
        rows: list[dict[str, Any]] = [asdict(row) for row in self.items]  # type: ignore[call-overload]
        return pa.table({name: [row[name] for row in rows] for name in columns})

    def to_pandas(self) -> "pd.DataFrame":
        """Returns the rows as a pandas DataFrame.

        Returns:
            A DataFrame with one column per field.

        Raises:
            NotAvailableError: if pandas is not installed.

        """
        require_pandas()
        return self.to_arrow().to_pandas()


def rows_of(items: Iterable[Row]) -> Rows[Row]:
    """Collects rows from an iterable."""
    return Rows(tuple(items))


def require_pandas() -> None:
    """Raises NotAvailableError if pandas is not installed."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        raise NotAvailableError(
            "pandas is not installed; install it, or sensorbench with its extra `notebook`, or use the Arrow table of the same rows"
        ) from None
