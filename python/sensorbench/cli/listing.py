"""What `schema` and `operations` have in common: the options that choose, and how a list is printed."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from sensorbench.app.listing import ListedOperation, ListedSchema
from sensorbench.cli.printing import new_table, print_json
from sensorbench.progress import console

Dataset = Annotated[
    str | None,
    typer.Option("--dataset", help="Only entries for this dataset: a name, a folder or a mapping file.", show_default=False),
]
OperationSet = Annotated[str | None, typer.Option("--operations", help="Only entries of this operation set.", show_default=False)]


def print_listed(
    listed: Sequence[ListedSchema] | Sequence[ListedOperation], columns: Mapping[str, str], *, as_json: bool
) -> None:
    """Prints a list.

    Args:
        listed: the rows.
        columns: titles of the columns, and the attribute that each shows.
        as_json: whether all attributes are printed as JSON instead.

    """
    if as_json:
        print_json(listed)
        return
    table = new_table(*columns, wide=True)
    for row in listed:
        table.add_row(*(str(getattr(row, attribute)) for attribute in columns.values()))
    console().print(table)
