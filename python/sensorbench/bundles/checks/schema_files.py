"""Whether the schema files of a bundle are those that were run."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from sensorbench.bundles.checks.problem import Problem
from sensorbench.errors import UsageError
from sensorbench.results import ComparisonResult, VariantManifest
from sensorbench.results.checksums import new_checksum_of
from sensorbench.schemas import load_schema

SCHEMA_FILES = "schema file"
_PLACEHOLDER = "{"


def check_schema_files(result: ComparisonResult, files: Mapping[str, Path]) -> Iterator[Problem]:
    """Each variant's file has the SHA-256 that loading noted, and the tables and statements of the results.

    Args:
        result: a comparison.
        files: the schema file of each variant that was loaded.

    """
    for variant in result.manifest.variants:
        load = result.loads.get(variant.id)
        if load is None:
            continue
        file = files.get(variant.id)
        if file is None or not file.is_file():
            yield Problem(SCHEMA_FILES, variant.id, "there is no schema file of it")
            continue
        if load.schema_sha256 is not None and new_checksum_of(file) != load.schema_sha256:
            yield Problem(SCHEMA_FILES, variant.id, f"{file.name} is not the file that was run: its SHA-256 is another one")
        yield from _statements(variant, file, {table["table"] for table in load.tables})


def _statements(variant: VariantManifest, file: Path, loaded: set[str]) -> Iterator[Problem]:
    """What the file says, against the statements of the results and the tables that were loaded."""
    try:
        schema = load_schema(str(file), operations="", database=_database_of(file), parameters=dict(variant.schema_parameters))
        # What depends on how close together the readings of the dataset are does not follow from the file alone.
        known = {} if schema.needs_sampling_interval else variant.statements
        said = {name: schema.described_statements(name) for name in known}
    except (UsageError, KeyError, tomllib.TOMLDecodeError) as error:
        yield Problem(SCHEMA_FILES, variant.id, f"{file.name} is not the file that was run: {error}")
        return
    for name, statement in known.items():
        if said[name] != statement:
            yield Problem(
                SCHEMA_FILES, variant.id, f"{file.name} is not the file that was run: its statement of {name} is another one"
            )
    tables = {query.table or name for name, queries in schema.file.load_query.items() for query in queries}
    # Tables that are split have names with a number in them.
    if not any(_PLACEHOLDER in table for table in tables) and (odd := loaded - tables):
        yield Problem(SCHEMA_FILES, variant.id, f"{file.name} has no table {min(odd)}, but rows were loaded into it")


def _database_of(file: Path) -> str:
    """The database that a schema file is for."""
    return str(tomllib.loads(file.read_text(encoding="utf-8", errors="replace"))["database"])
