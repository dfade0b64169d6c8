"""Makes operations of the templates that most of the traffic is of."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb

from sensorbench.results.traffic_fit import FittedOperation, LeftOut
from sensorbench.schemas.operations import WORD, Column, Operation
from sensorbench.schemas.types import ValueType, canonical_type
from sensorbench.traffic.fit.data import Tables
from sensorbench.traffic.fit.halves import Halves
from sensorbench.traffic.fit.samplers import Parameter, Source, SourceFitter, groups_of
from sensorbench.traffic.fit.statements import bare, compares, parameter_name, reference_statement
from sensorbench.traffic.trace import Template

MAX_OPERATIONS = 40
# A template whose executions failed more often says nothing of how long it takes.
_MAX_FAILED = 0.5
# Distinct values by which it is looked whether they are those of a column, and how many of them must be there.
_LOOKED_AT, _MIN_FOUND = 300, 0.98
_EXAMPLES: dict[ValueType, str] = {
    "boolean": "false",
    "integer": "CAST(0 AS BIGINT)",
    "double": "CAST(0 AS DOUBLE)",
    "timestamp": "TIMESTAMP '1970-01-01'",
    "text": "''",
    "bytes": "CAST('' AS BLOB)",
}
_LIKE: dict[ValueType, str] = {
    "boolean": "v IN ('t', 'f', 'true', 'false')",
    "integer": "regexp_full_match(v, '-?(0|[1-9][0-9]{0,17})')",
    "double": "regexp_full_match(v, '-?[0-9]*[.]?[0-9]+([eE][+-]?[0-9]+)?') AND NOT regexp_full_match(v, '-?0[0-9]+')",
    "timestamp": "regexp_full_match(v, '[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}.*') AND TRY_CAST(v AS TIMESTAMPTZ) IS NOT NULL",
}
_CASTS: dict[ValueType, str] = {
    "boolean": "given[{place}] IN ('t', 'true')",
    "integer": "TRY_CAST(given[{place}] AS BIGINT)",
    "double": "TRY_CAST(given[{place}] AS DOUBLE)",
    "timestamp": "CAST(TRY_CAST(given[{place}] AS TIMESTAMPTZ) AS TIMESTAMP)",
    "text": "given[{place}]",
}


# What is compared, by the type of a column: its values, and the texts of parameters.
_FOUND_AS: dict[ValueType, tuple[str, str]] = {
    "integer": ("CAST({column} AS VARCHAR)", "v"),
    "text": ("{column}", "v"),
    "timestamp": ("CAST(CAST({column} AS TIMESTAMPTZ) AS VARCHAR)", "CAST(TRY_CAST(v AS TIMESTAMPTZ) AS VARCHAR)"),
    "double": ("{column}", "TRY_CAST(v AS DOUBLE)"),
}


@dataclass(frozen=True)
class MadeOperation:
    """An operation of the experiment: what was fitted, the operation itself, and where its parameters come from. Its executions are in
    the table of its name in the workbench.
    """

    fitted: FittedOperation
    template: Template
    operation: Operation
    sources: list[Source]
    # Tables of the data that its statement names.
    tables: list[str]

    @property
    def name(self) -> str:
        """Its name."""
        return self.fitted.name

    @property
    def types(self) -> Mapping[str, ValueType]:
        """The types of its parameters."""
        return self.operation.parameters


@dataclass(frozen=True)
class MadeOperations:
    """All operations, and what is left out."""

    operations: list[MadeOperation]
    left_out: list[LeftOut]

    @property
    def templates(self) -> list[int]:
        """The templates of the operations."""
        return [operation.template.number for operation in self.operations]


class _NoOperationError(Exception):
    """A template that no operation can be made of; the message says why."""


def make_operations(halves: Halves, tables: Tables | None, coverage: float) -> MadeOperations:
    """The operations of a trace.

    Args:
        halves: of the trace; what is fitted is the first.
        tables: the data that statements ask; without data, operations can be compared with the second half, and not be run.
        coverage: the share of the first half's reads and writes from which on rarer templates are left out.

    Returns:
        The operations, the most frequent first, and what is left out with its share of the first half.

    """
    whole = sum(halves.first.values())
    templates = sorted(halves.trace.templates, key=lambda each: -halves.first.get(each.number, 0))
    usable = sum(halves.first.get(each.number, 0) for each in templates if each.kind in {"read", "write"})
    made: list[MadeOperation] = []
    left_out: list[LeftOut] = []
    rare, others, seen = 0, 0, 0
    for template in templates:
        count = halves.first.get(template.number, 0)
        if not count:
            continue
        if template.kind not in {"read", "write"}:
            others += count
            continue
        is_rare = seen >= coverage * usable or len(made) >= MAX_OPERATIONS
        seen += count
        if is_rare:
            rare += count
            continue
        try:
            made.append(_made(halves, tables, template, count / whole, [operation.name for operation in made]))
        except _NoOperationError as error:
            what = f"template {template.number}: {' '.join(template.statement.split())}"
            left_out.append(LeftOut(what=what, statements=count, share=count / whole, reason=str(error)))
    if others:
        reason = "each operation is executed by itself, outside of transactions, and settings of sessions are those of the target"
        left_out.append(
            LeftOut(what="BEGIN, COMMIT and other control statements", statements=others, share=others / whole, reason=reason)
        )
    if rare:
        what = f"templates beyond the first {coverage:.0%} of reads and writes, or after the first {MAX_OPERATIONS}"
        left_out.append(LeftOut(what=what, statements=rare, share=rare / whole, reason="they are rare"))
    return MadeOperations(made, left_out)


def _made(halves: Halves, tables: Tables | None, template: Template, share: float, taken: list[str]) -> MadeOperation:
    count = halves.first[template.number]
    if halves.failed[template.number] > _MAX_FAILED * count:
        raise _NoOperationError(f"{halves.failed[template.number]:,} of its {count:,} executions failed when it was recorded")
    named = _tables_of(template, tables)
    if template.kind == "write" and not template.tables:
        raise _NoOperationError("it is not known which table it writes")
    name = _name(template, taken)
    parameters = _parameters(halves, tables, template, name, named)
    types = {parameter.name: parameter.type for parameter in parameters}
    operation = _operation(halves.workbench, template, name, types, named, has_data=tables is not None)
    fitter = SourceFitter(halves, name, name, writes=template.kind == "write")
    sources = [fitter.fit(group) for group in groups_of(halves, name, parameters)]
    fitted = FittedOperation(
        name=name,
        template=template.number,
        kind=template.kind,
        statement=template.statement,
        statements=count,
        share=share,
        sources=[source.fitted for source in sources],
    )
    if tables is not None:
        compared = [
            parameter.column
            for place, parameter in enumerate(parameters, start=1)
            if parameter.column and compares(template, parameter.column[1], place)
        ]
        for table in {table for table, _ in compared}:
            # In the order in which they are compared: what is equal mostly comes first, and ranges last.
            tables.looked_up.add((table, tuple(dict.fromkeys(column for of, column in compared if of == table))))
    operation = operation.model_copy(update={"parameter_sources": [source.name for source in sources]})
    return MadeOperation(fitted, template, operation, sources, named)


def _tables_of(template: Template, tables: Tables | None) -> list[str]:
    if tables is None:
        return []
    found = {name: tables.find(name) for name in template.tables}
    missing = next((name for name, table in found.items() if table is None), None)
    if missing is not None:
        raise _NoOperationError(f"--data has no table {bare(missing)}")
    return [table for table in found.values() if table is not None]


def _name(template: Template, taken: list[str]) -> str:
    """Verb and table, such as select_orders; with a number where there are several of them."""
    verb = (re.findall(r"[A-Za-z]+", template.statement) or ["statement"])[0].lower()
    name = re.sub(r"\W+", "_", "_".join([verb, *map(bare, template.tables[:1])])).strip("_") or "statement"
    if name not in taken:
        return name
    return next(f"{name}_{number}" for number in range(2, len(taken) + 3) if f"{name}_{number}" not in taken)


def _parameters(halves: Halves, tables: Tables | None, template: Template, name: str, named: list[str]) -> list[Parameter]:
    """The parameters of a template with their types. Its executions get a table, with a column for each."""
    raw = f"{name}_given"
    halves.executions(template.number, raw)
    workbench = halves.workbench
    width = int(workbench.execute(f'SELECT coalesce(max(len(given)), 0) FROM "{raw}"').fetchall()[0][0])
    parameters = [_parameter(workbench, tables, template, raw, place, named) for place in range(1, width + 1)]
    casts = [
        f"{_CASTS[parameter.type].format(place=place)} AS {parameter.name}" for place, parameter in enumerate(parameters, start=1)
    ]
    workbench.execute(f'CREATE TEMP TABLE "{name}" AS SELECT {", ".join(["is_second", "us", *casts])} FROM "{raw}"')
    workbench.execute(f'DROP TABLE "{raw}"')
    return parameters


def _parameter(
    workbench: duckdb.DuckDBPyConnection, tables: Tables | None, template: Template, raw: str, place: int, named: list[str]
) -> Parameter:
    column, of_column = _column_of(workbench, tables, template, raw, place, named) if tables else (None, None)
    return Parameter(parameter_name(place), of_column or _like(workbench, raw, place), column)


def _like(workbench: duckdb.DuckDBPyConnection, raw: str, place: int) -> ValueType:
    """The type that all values of a parameter look like."""
    likes = ", ".join(f"coalesce(bool_and({like}), false)" for like in _LIKE.values())
    found = workbench.execute(
        f'SELECT {likes} FROM (SELECT given[{place}] AS v FROM "{raw}" WHERE NOT is_second) WHERE v IS NOT NULL'
    ).fetchall()[0]
    return next((value_type for value_type, is_like in zip(_LIKE, found, strict=True) if is_like), "text")


def _column_of(
    workbench: duckdb.DuckDBPyConnection, tables: Tables, template: Template, raw: str, place: int, named: list[str]
) -> tuple[tuple[str, str] | None, ValueType | None]:
    """The column that the values of a parameter are of, with its type: the statement names it, and has nearly all of the values."""
    candidates = [
        (table, column, value_type)
        for table in named
        for column, value_type in tables.columns[table].items()
        if value_type in _FOUND_AS and compares(template, column, place) is not None
    ]
    candidates.sort(key=lambda each: not compares(template, each[1], place))
    for table, column, value_type in candidates:
        value, looked_for = (text.format(column=f'"{column}"') for text in _FOUND_AS[value_type])
        found = workbench.execute(
            f'WITH looked_for AS (SELECT DISTINCT given[{place}] AS v FROM "{raw}" WHERE NOT is_second AND given[{place}] IS NOT NULL '
            f"ORDER BY hash(v) LIMIT {_LOOKED_AT}) "
            f'SELECT count(*), count(*) FILTER ({looked_for} IN (SELECT {value} FROM "{table}")) FROM looked_for'
        ).fetchall()[0]
        if found[0] and found[1] >= _MIN_FOUND * found[0]:
            return (table, column), value_type
    return None, None


def _operation(
    workbench: duckdb.DuckDBPyConnection,
    template: Template,
    name: str,
    types: dict[str, ValueType],
    named: list[str],
    *,
    has_data: bool,
) -> Operation:
    statement = " ".join(template.statement.split())
    title, question = name.replace("_", " "), f"Recorded as: {statement}"
    if template.kind == "write" or not has_data:
        # Without data nobody runs it; what it sends can be described all the same.
        writes = named[0] if named else bare(template.tables[0]) if template.tables else name
        return Operation(title=title, question=question, parameters=types, writes=writes, changes=True)
    reference, columns = _answer(workbench, reference_statement(template), types)
    return Operation(title=title, question=question, parameters=types, columns=columns, reference=reference)


def _answer(workbench: duckdb.DuckDBPyConnection, reference: str, types: Mapping[str, ValueType]) -> tuple[str, list[Column]]:
    """DuckDB's query for the answer, and the columns of it in canonical types."""
    try:
        plain = re.sub(r"\$(p\d+)\b", lambda found: _EXAMPLES[types[found[1]]], reference)
        described = [(str(name), str(found)) for name, found, *_ in workbench.execute(f"DESCRIBE {plain}").fetchall()]
    except (duckdb.Error, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise _NoOperationError(f"DuckDB, which computes the answers that are expected, does not take it: {reason}") from None
    names = _column_names([name for name, _ in described])
    casts = [_cast_of(found) for _, found in described]
    columns = [
        Column(name=name, type=value_type, computed=value_type == "double")
        for name, (_, found), cast in zip(names, described, casts, strict=True)
        for value_type in [canonical_type(name, cast or found)]
    ]
    if not any(casts) and names == [name for name, _ in described]:
        return reference, columns
    listed = ", ".join(f"CAST({name} AS {cast}) AS {name}" if cast else name for name, cast in zip(names, casts, strict=True))
    return f"SELECT {listed} FROM ({reference}) AS answer({', '.join(names)})", columns


def _cast_of(found: str) -> str | None:
    """The type that DuckDB casts a column to, where its own is none that answers have."""
    try:
        canonical_type("", found)
    except ValueError:
        is_number = found.startswith("DECIMAL") or found in {"HUGEINT", "UHUGEINT", "UBIGINT"}
        return "DOUBLE" if is_number else "TIMESTAMP" if found.startswith("TIMESTAMP") else "VARCHAR"
    return None


def _column_names(found: list[str]) -> list[str]:
    """Words that are all different, as columns of answers are called."""
    names: list[str] = []
    for number, name in enumerate(found, start=1):
        word = name if re.match(WORD, name) and name.lower() not in {taken.lower() for taken in names} else f"c{number}"
        names.append(word)
    return names
