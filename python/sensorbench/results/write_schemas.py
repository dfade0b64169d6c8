"""Writes the JSON Schemas of result files: `make schemas`."""

import json

from sensorbench.results.files import write_text
from sensorbench.results.manifest import SCHEMAS_FOLDER, json_schemas


def write_schemas() -> None:
    """Writes one file for each kind of manifest."""
    SCHEMAS_FOLDER.mkdir(exist_ok=True)
    for name, schema in json_schemas().items():
        write_text(SCHEMAS_FOLDER / f"{name}.schema.json", json.dumps(schema, indent=2) + "\n")


if __name__ == "__main__":
    write_schemas()
