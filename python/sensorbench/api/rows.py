"""Rows of equal form: a sequence of typed values that is also a table."""

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
    """A sequence of typed rows, such as figures, that is also a table. It cannot be changed.

    Attributes:
        items: the rows, each of which is a dataclass.

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
        """The rows for which a condition holds.

        Args:
            condition: a function of one row.

        Returns:
            These rows, in their order.

        Examples:
            >>> import sensorbench as sb
            >>> figures = sb.read("results/iot").figures()
            >>> len(figures.where(lambda figure: figure.metric == "p95"))
            16

        """
        return Rows(tuple(row for row in self.items if condition(row)))

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table.

        Returns:
            A table with a column for each field of a row.

        """
        if not self.items:
            return pa.table({})
        columns = [field.name for field in fields(self.items[0])]  # type: ignore[arg-type]
        rows: list[dict[str, Any]] = [asdict(row) for row in self.items]  # type: ignore[call-overload]
        return pa.table({name: [row[name] for row in rows] for name in columns})

    def to_pandas(self) -> "pd.DataFrame":
        """The rows as a pandas DataFrame.

        Returns:
            A frame with a column for each field of a row.

        Raises:
            NotAvailableError: where pandas is not installed.

        """
        require_pandas()
        return self.to_arrow().to_pandas()


def rows_of(items: Iterable[Row]) -> Rows[Row]:
    """Rows, of whatever gives them."""
    return Rows(tuple(items))


def require_pandas() -> None:
    """Raises NotAvailableError where pandas is not installed."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        raise NotAvailableError(
            "pandas is not installed; install it, or sensorbench with its extra `notebook`, or use the Arrow table of the same rows"
        ) from None
