"""`sensorbench study list`."""

from rich.table import Table

from sensorbench.cli.options import Json
from sensorbench.cli.printing import print_json
from sensorbench.progress import console
from sensorbench.studies import listed_studies


def list_studies(json: Json = False) -> None:
    """List the studies."""
    studies = listed_studies()
    if json:
        print_json([study.model_dump() for study in studies])
        return
    table = Table(box=None)
    for column in ("study", "what", "databases", "claims"):
        table.add_column(column)
    for study in studies:
        table.add_row(study.name, study.title, ", ".join(study.databases), str(study.claims))
    console().print(table)
