"""`sensorbench operations`: the operations of the package."""

from typing import Annotated

import typer

from sensorbench.app.listing import ShownOperation, list_operations, show_operation
from sensorbench.cli.code import print_code
from sensorbench.cli.listing import Dataset, OperationSet, print_listed
from sensorbench.cli.options import Json
from sensorbench.cli.printing import new_table, print_json
from sensorbench.progress import console

app = typer.Typer(
    help="The operations of the package: what each returns, its parameters, and which databases express it.",
    no_args_is_help=True,
)

_COLUMNS = {"operation": "name", "operations": "operations", "kind": "kind", "what": "question"}


@app.command("list")
def list_all(dataset: Dataset = None, operations: OperationSet = None, json: Json = False) -> None:
    """List the operations of the package."""
    print_listed(list_operations(dataset, operations), _COLUMNS, as_json=json)


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="Name of an operation; see `operations list`.")],
    dataset: Dataset = None,
    operations: OperationSet = None,
    json: Json = False,
) -> None:
    """Show an operation: what it returns, where its parameters come from, and which databases express it."""
    operation = show_operation(name, dataset, operations)
    if json:
        print_json(operation)
    else:
        _print(operation)


def _print(operation: ShownOperation) -> None:
    screen = console()
    screen.print(f"{operation.name} (operations {operation.operations}): {operation.title}", style="bold", highlight=False)
    screen.print(operation.question, highlight=False)
    if operation.writes:
        screen.print(f"writes: {operation.writes}", highlight=False)
    else:
        screen.print(f"returns: {', '.join(f'{name} ({kind})' for name, kind in operation.columns.items())}", highlight=False)
    if operation.order:
        screen.print(f"order: {', '.join(operation.order)}", highlight=False)
    if operation.parameters:
        listed = ", ".join(f"{name} ({kind})" for name, kind in operation.parameters.items())
        screen.print(f"parameters: {listed}", highlight=False)
    for source in operation.sources:
        rows = f" ({source.rows:,} rows in this dataset)" if source.rows is not None else ""
        screen.print(f"\nparameter source {source.name}{rows}: {source.summary}", highlight=False)
        print_code(screen, source.query, "sql")
    if operation.reference:
        screen.print("\nreference (DuckDB's SQL over the dataset)", style="bold")
        print_code(screen, operation.reference, "sql")
    screen.print()
    table = new_table("database", "schemas", wide=True)
    for database, schemas in operation.expressed.items():
        table.add_row(database, ", ".join(schemas))
    screen.print(table)
    for database, why in operation.not_expressed.items():
        screen.print(f"not in {database}: {why}", highlight=False)
