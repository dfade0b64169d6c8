"""`sensorbench schema`: the schemas of the package."""

import json as json_text
from collections.abc import Mapping
from typing import Annotated

import typer
from pydantic import JsonValue
from rich.console import Console

from sensorbench.app.listing import ShownSchema, ShownStatement, list_schemas, show_schema
from sensorbench.cli.code import print_code
from sensorbench.cli.listing import Dataset, OperationSet, print_listed
from sensorbench.cli.options import Json
from sensorbench.cli.printing import new_table, print_json
from sensorbench.progress import console

# What fits into a line.
_SHORT = 100

app = typer.Typer(
    help="The schemas of the package: tables, load queries and statements, by dataset and database.", no_args_is_help=True
)

Database = Annotated[str | None, typer.Option("--database", help="Only schemas of this database.", show_default=False)]
_COLUMNS = {"schema": "name", "database": "database", "operations": "operations", "what": "summary"}


@app.command("list")
def list_all(dataset: Dataset = None, database: Database = None, operations: OperationSet = None, json: Json = False) -> None:
    """List the schemas of the package."""
    print_listed(list_schemas(dataset, database, operations), _COLUMNS, as_json=json)


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="Name of a schema; see `schema list`.")],
    dataset: Dataset = None,
    database: Database = None,
    operations: OperationSet = None,
    json: Json = False,
) -> None:
    """Show a schema: its tables, load queries, statements and parameters, and the advice that it follows."""
    schema = show_schema(name, dataset, database, operations)
    if json:
        print_json(schema)
        return
    screen = console()
    screen.print(
        f"{schema.name} ({schema.database}, operations {schema.operations}): {schema.summary}", style="bold", highlight=False
    )
    screen.print(f"file: sensorbench/schemas/{schema.file}", highlight=False)
    for text in schema.advice:
        screen.print(f"advice: {text}", highlight=False)
    if schema.parameters:
        _heading(screen, "parameters")
        table = new_table("parameter", "values", "default", "what", wide=True)
        for parameter in schema.parameters:
            values = f"{', '.join(map(str, parameter.values))} ({len(parameter.values)})"
            table.add_row(parameter.name, values, str(parameter.default), parameter.summary)
        screen.print(table)
    _print_tables(screen, schema)
    for statement in schema.statements:
        _print_statement(screen, statement)
    for operation, why in schema.cannot.items():
        _heading(screen, f"operation {operation}")
        screen.print(f"not expressed: {why}", highlight=False)


def _heading(screen: Console, text: str) -> None:
    screen.print()
    screen.print(text, style="bold", highlight=False)


def _print_tables(screen: Console, schema: ShownSchema) -> None:
    for title, part in (("create", schema.create), ("settle, after loading", schema.settle)):
        if part:
            _heading(screen, title)
            _print_part(screen, part)
    for query in schema.load_queries:
        _heading(screen, f"load query {query.name} (DuckDB's SQL over the dataset)")
        _print_when(screen, query.when)
        print_code(screen, query.query, "sql")
        if query.more:
            screen.print("then:", highlight=False)
            _print_part(screen, query.more)


def _print_when(screen: Console, when: Mapping[str, object]) -> None:
    """For which values of parameters something is there; nothing is printed of what always is."""
    if when:
        screen.print(f"for {', '.join(f'{name} = {_listed(values)}' for name, values in when.items())}:", highlight=False)


def _listed(values: object) -> str:
    return " or ".join(map(str, values)) if isinstance(values, list) else str(values)


def _print_statement(screen: Console, statement: ShownStatement) -> None:
    _heading(screen, f"operation {statement.operation}{f': {statement.question}' if statement.question else ''}")
    if statement.parameters:
        listed = ", ".join(f":{name} ({value_type})" for name, value_type in statement.parameters.items())
        screen.print(f"parameters: {listed}", highlight=False)
    _print_when(screen, statement.when)
    _print_part(screen, statement.statement)
    if statement.client_steps:
        screen.print("the client does:", highlight=False)
        _print_part(screen, statement.client_steps)


def _print_part(screen: Console, part: Mapping[str, JsonValue]) -> None:
    """Statements as SQL, everything else as JSON."""
    others = {}
    for key, value in part.items():
        texts = value if isinstance(value, list) and key == "statements" else [value] if key in {"statement", "query"} else None
        if texts is None:
            others[key] = value
            continue
        for text in texts:
            # With `when`, it is there only for some values of a parameter.
            code, when = (text["statement"], text["when"]) if isinstance(text, dict) and "when" in text else (text, None)
            _print_when(screen, when if isinstance(when, dict) else {})
            print_code(screen, str(code), "sql")
    if others:
        line = json_text.dumps(others, ensure_ascii=False)
        text = line if len(line) <= _SHORT else json_text.dumps(others, indent=2, ensure_ascii=False)
        print_code(screen, text, "json")
