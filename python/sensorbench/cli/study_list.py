"""`sensorbench study list`."""

from sensorbench.cli.options import Json
from sensorbench.cli.printing import new_table, print_json
from sensorbench.progress import console
from sensorbench.studies import listed_studies


def list_studies(json: Json = False) -> None:
    """List the studies."""
    studies = listed_studies()
    if json:
        print_json([study.model_dump() for study in studies])
        return
    table = new_table("study", "what", "databases", "claims")
    for study in studies:
        table.add_row(study.name, study.title, ", ".join(study.databases), str(study.claims))
    console().print(table)
