"""Variants: one operation that is asked at several places, such as seven ranges, each measured as an operation of its own."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sensorbench.errors import UsageError
from sensorbench.schemas.operations import Draw, Operation, Operations, Variant, variant_name
from sensorbench.schemas.types import canonical_columns

if TYPE_CHECKING:
    import duckdb

# Columns of a draw of variants that are no parameters: the variant's name, and which share of the rows it is about.
NAME, SHARE = "variant", "share"


def with_variants(
    operations: Operations, names: Collection[str], workbench: "duckdb.DuckDBPyConnection", where: str
) -> Operations:
    """The operations, of those with these names each that has variants replaced by them. `where` says in errors which file asks
    for them.
    """
    found: dict[str, Operation] = {}
    draws = dict(operations.draw)
    for name, operation in operations.operation.items():
        if operation.variants is None or name not in names:
            found[name] = operation
            continue
        for rows in _by_variant(_rows(operations.draw[operation.variants], workbench, f"{where}, draw.{operation.variants}")):
            variant = Variant(of=name, name=str(rows[0][NAME]), share=rows[0].get(SHARE))
            draw = f"{operation.variants}.{variant.name}"
            draws[draw] = Draw(query=" UNION ALL ".join(_selected(row) for row in rows))
            own_draws = [draw if one == operation.variants else one for one in operation.draws]
            found[variant_name(variant)] = _variant(operation, variant, own_draws)
    return operations.model_copy(update={"draw": draws, "operation": found})


def mix_of_variants(mix: Mapping[str, float], operations: Operations) -> dict[str, float]:
    """A mix in which each variant has the weight of its operation."""
    whole: dict[str, float] = {}
    for name, weight in mix.items():
        variants = [key for key, operation in operations.operation.items() if operation.variant and operation.variant.of == name]
        whole |= dict.fromkeys(variants or [name], weight)
    return whole


def _rows(draw: Draw, workbench: "duckdb.DuckDBPyConnection", where: str) -> list[dict[str, Any]]:
    import duckdb

    try:
        relation = workbench.sql(draw.query or "")
        canonical_columns(relation)
        rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    except (duckdb.Error, ValueError) as error:
        raise UsageError(f"{where}: {error}") from None
    if not rows or NAME not in rows[0]:
        raise UsageError(f"{where}: expected rows with a column {NAME!r}, which names each; found {relation.columns}")
    return rows


def _by_variant(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows of each variant, in the order in which their first ones come."""
    of_each: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        of_each.setdefault(str(row[NAME]), []).append(row)
    return list(of_each.values())


def _selected(row: dict[str, Any]) -> str:
    """A row of parameters as a query."""
    return f"SELECT {', '.join(_column(key, value) for key, value in row.items() if key not in {NAME, SHARE})}"


def _variant(operation: Operation, variant: Variant, draws: list[str]) -> Operation:
    share = "" if variant.share is None else f" ({_percent(variant.share)})"
    changes = {"title": f"{operation.title}, {variant.name}{share}", "draws": draws, "variants": None, "variant": variant}
    return operation.model_copy(update=changes)


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"


def _column(name: str, value: Any) -> str:
    """A value as a column of a query: no doubt about its type, and no bit of a double lost."""
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE) AS \"{name}\""
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat()}' AS \"{name}\""
    if isinstance(value, str):
        escaped = value.replace("'", "''")
        return f"'{escaped}' AS \"{name}\""
    return f'{value} AS "{name}"'
