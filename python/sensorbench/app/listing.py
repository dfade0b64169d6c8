"""What there is to choose from: the schemas and the operations of the package, as people read them."""

import re
from dataclasses import dataclass
from functools import cache

from pydantic import JsonValue

from sensorbench.errors import UsageError
from sensorbench.runner import databases
from sensorbench.schemas import Operations, Schema, load_operations, load_schema, shipped_operations, shipped_schemas
from sensorbench.schemas.operations import Operation
from sensorbench.schemas.schema_file import OperationText, When
from sensorbench.schemas.shipped import SHIPPED_FOLDER, shipped_dialects


@dataclass(frozen=True)
class ListedSchema:
    """A schema of the package."""

    name: str
    operations: str
    database: str
    summary: str


@dataclass(frozen=True)
class ShownParameter:
    """A parameter of a schema, and how many values it may take."""

    name: str
    summary: str
    values: list[JsonValue]
    default: JsonValue


@dataclass(frozen=True)
class ShownSource:
    """Where parameters come from: the columns, and how many rows there are to draw from in a dataset (None if that is unknown)."""

    name: str
    summary: str
    query: str
    rows: int | None


@dataclass(frozen=True)
class ShownLoadQuery:
    """How a table is filled; `more` is what happens to the rows of the query."""

    name: str
    when: When
    query: str
    more: dict[str, JsonValue]


@dataclass(frozen=True)
class ShownStatement:
    """How a schema asks an operation."""

    operation: str
    question: str
    # The values of the schema's parameters for which it is so; all if empty.
    when: When
    statement: dict[str, JsonValue]
    parameters: dict[str, str]
    client_steps: dict[str, JsonValue]


@dataclass(frozen=True)
class ShownSchema:
    """A schema with its DDL, load queries and statements. `advice` are the comments of its file, with the sources that they name."""

    name: str
    operations: str
    database: str
    summary: str
    file: str
    advice: list[str]
    parameters: list[ShownParameter]
    create: dict[str, JsonValue]
    settle: dict[str, JsonValue]
    load_queries: list[ShownLoadQuery]
    statements: list[ShownStatement]
    cannot: dict[str, str]


@dataclass(frozen=True)
class ListedOperation:
    """An operation of the package."""

    name: str
    operations: str
    title: str
    question: str
    kind: str


@dataclass(frozen=True)
class ShownOperation:
    """An operation: what it returns, where its parameters come from, and which schemas express it, by database; of the others why."""

    name: str
    operations: str
    title: str
    question: str
    writes: str | None
    columns: dict[str, str]
    order: list[str]
    parameters: dict[str, str]
    sources: list[ShownSource]
    reference: str | None
    expressed: dict[str, list[str]]
    not_expressed: dict[str, str]


def list_schemas(dataset: str | None, database: str | None, operations: str | None) -> list[ListedSchema]:
    """The schemas of the package: of a dataset's operation sets, of a database, of an operation set. Raises UsageError."""
    dialects = [_dialect(database)] if database else shipped_dialects()
    return [
        ListedSchema(name, of, dialect, _load(name, of, dialect).summary)
        for of in _sets(dataset, operations, with_tools=True)
        for dialect in dialects
        for name in shipped_schemas(of, dialect)
    ]


def show_schema(name: str, dataset: str | None, database: str | None, operations: str | None) -> ShownSchema:
    """A schema of the package. Raises UsageError if none, or more than one, has this name."""
    found = [listed for listed in list_schemas(dataset, database, operations) if listed.name == name]
    if not found:
        known = sorted({listed.name for listed in list_schemas(dataset, database, operations)})
        raise UsageError(f"there is no schema {name!r} here; expected one of {', '.join(known)}")
    if len(found) > 1:
        places = "; ".join(f"--operations {listed.operations} --database {listed.database}" for listed in found)
        raise UsageError(f"{len(found)} schemas are called {name}; choose one of them by {places}")
    listed = found[0]
    schema = _load(name, listed.operations, listed.database)
    of_set = _operations_of(listed.operations)
    return ShownSchema(
        name=name,
        operations=listed.operations,
        database=listed.database,
        summary=schema.summary,
        file=str(schema.path.relative_to(SHIPPED_FOLDER)),
        advice=_comments(schema),
        parameters=[
            ShownParameter(key, choice.summary, list(choice.values), choice.default)
            for key, choice in schema.file.parameters.items()
        ],
        create=schema.file.create,
        settle=schema.file.settle,
        load_queries=[
            ShownLoadQuery(
                key, dict(part.when), part.query, part.model_dump(mode="json", exclude_defaults=True, exclude={"when", "query"})
            )
            for key, parts in schema.file.load_query.items()
            for part in parts
        ],
        statements=[_statement(key, text, of_set.get(key)) for key, texts in schema.file.operation.items() for text in texts],
        cannot=schema.file.cannot,
    )


def list_operations(dataset: str | None, operations: str | None) -> list[ListedOperation]:
    """The operations of the package, of the sets that a dataset has the relations for. Raises UsageError."""
    return [
        ListedOperation(name, of, operation.title, operation.question, "write" if operation.writes else "query")
        for of in _sets(dataset, operations)
        for name, operation in load_operations(of).operation.items()
    ]


def show_operation(name: str, dataset: str | None, operations: str | None) -> ShownOperation:
    """An operation of the package; with a dataset, how many rows its parameters are drawn from. Raises UsageError."""
    sets = [of for of in _sets(dataset, operations) if name in load_operations(of).operation]
    if not sets:
        known = sorted({listed.name for listed in list_operations(dataset, operations)})
        raise UsageError(f"there is no operation {name!r} here; expected one of {', '.join(known)}")
    if len(sets) > 1:
        raise UsageError(
            f"{len(sets)} operation sets have an operation {name}; choose one of them by --operations {', '.join(sets)}"
        )
    of = sets[0]
    loaded = load_operations(of)
    operation = loaded.operation[name]
    expressed, not_expressed = _where(name, of)
    return ShownOperation(
        name=name,
        operations=of,
        title=operation.title,
        question=operation.question,
        writes=operation.writes,
        columns={column.name: f"{column.type}, computed" if column.computed else column.type for column in operation.columns},
        order=[f"{order.column} {order.direction}" for order in operation.order],
        parameters=dict(operation.parameters),
        sources=_sources(loaded, name, dataset),
        reference=operation.reference,
        expressed=expressed,
        not_expressed=not_expressed,
    )


def _sets(dataset: str | None, operations: str | None, *, with_tools: bool = False) -> list[str]:
    """The operation sets that are meant."""
    known = shipped_operations()
    if operations:
        allowed = [*known, *(_sets_of_tools() if with_tools else [])]
        if operations not in allowed:
            raise UsageError(f"--operations {operations}: expected one of {', '.join(allowed)}")
        return [operations]
    if dataset:
        # A list of what there is needs no data, and should not wait for DuckDB.
        from sensorbench.dataset import open_dataset

        relations = set(open_dataset(dataset).describe().relations)
        found = [name for name in known if (needed := set(load_operations(name).relations)) and needed <= relations]
        if not found:
            raise UsageError(f"no operation set of the package is for {dataset}, which has {', '.join(sorted(relations))}")
        return found
    return [*known, *(_sets_of_tools() if with_tools else [])]


def _sets_of_tools() -> list[str]:
    """Sets of schemas without a file of operations: another tool's files have the operations."""
    folders = {path.parent.parent.name for path in SHIPPED_FOLDER.glob("*/*/*.toml")}
    return sorted(folders - set(shipped_operations()))


def _dialect(database: str) -> str:
    known = databases()
    if database in known:
        return known[database].dialect
    raise UsageError(f"--database {database}: expected one of {', '.join(known)}")


@cache
def _load(name: str, operations: str, dialect: str) -> Schema:
    return load_schema(name, operations=operations, database=dialect, fields=_FIELDS if operations in _sets_of_tools() else ())


# Records of other tools have fields that their files count; one stands for all.
_FIELDS = ("field0",)


def _operations_of(name: str) -> dict[str, Operation]:
    return load_operations(name).operation if name in shipped_operations() else {}


def _statement(name: str, text: OperationText, operation: Operation | None) -> ShownStatement:
    steps = text.model_dump(mode="json", exclude_defaults=True, by_alias=True, exclude={"when", *text.statement})
    return ShownStatement(
        name,
        operation.question if operation else "",
        dict(text.when),
        text.statement,
        dict(operation.parameters) if operation else {},
        steps,
    )


def _comments(schema: Schema) -> list[str]:
    """The comments of a schema's file, those that follow each other as one text: why it is as it is, and who says so."""
    texts: list[str] = []
    before = ""
    for line in schema.path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            words = line.lstrip("# ").rstrip()
            if before.startswith("#"):
                texts[-1] += f" {words}"
            else:
                texts.append(words)
        before = line
    return texts


def _where(name: str, operations: str) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The schemas that express an operation, by database; and of the databases where none does, why."""
    expressed: dict[str, list[str]] = {}
    why: dict[str, str] = {}
    for dialect in shipped_dialects():
        schemas = [_load(schema, operations, dialect) for schema in shipped_schemas(operations, dialect)]
        if not schemas:
            why[dialect] = f"no schema of the set {operations} is for it"
            continue
        if found := [schema.name for schema in schemas if schema.asks(name)]:
            expressed[dialect] = found
        else:
            said = next((schema.file.cannot[name] for schema in schemas if name in schema.file.cannot), None)
            why[dialect] = said or f"no schema of the set {operations} has a statement of it"
    return expressed, why


def _sources(operations: Operations, name: str, dataset: str | None) -> list[ShownSource]:
    rows: dict[str, int] = {}
    if dataset:
        from sensorbench.dataset import open_dataset
        from sensorbench.runner import parameters_of

        with open_dataset(dataset).connect() as workbench:
            drawn = parameters_of(operations, [name], workbench, f"operation {name}")
        rows = {source: table.num_rows for source, table in drawn.tables.items()}
    return [
        ShownSource(
            source,
            (found := operations.parameter_source[source]).summary,
            re.sub(r"\s+", " ", found.query or _described(operations, source)).strip(),
            rows.get(source),
        )
        for source in operations.operation[name].parameter_sources
    ]


def _described(operations: Operations, source: str) -> str:
    """A parameter source that is not a query."""
    found = operations.parameter_source[source]
    if found.written:
        return f"parameters of an earlier {found.written.operation}, at least {found.written.window:,} operations old"
    return "; ".join(f"{column}: from {number.start} by {number.step}" for column, number in found.numbers.items())
