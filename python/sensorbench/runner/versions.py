"""Versions of databases that schemas need."""

import json

from sensorbench import _engine, lab
from sensorbench.errors import UsageError
from sensorbench.results.outdated import is_before
from sensorbench.runner.variants import TargetSpec, Variant
from sensorbench.schemas.schema import Schema


def lab_takes(target: TargetSpec, schema: Schema) -> bool:
    """Whether what the lab starts for a target is of a version that a schema needs; True where the lab starts nothing, and nobody knows yet."""
    started = lab.LAB_DATABASES.get(target.database.name) if target.place != "url" else None
    return started is None or not is_before(started.server_version or started.sources[0].version, schema.file.min_version)


def check_version(variant: Variant, target: _engine.Target) -> None:
    """Raises UsageError if what answers at a target is of a version before the one that the schema needs."""
    needed = variant.schema.file.min_version
    if needed is None:
        return
    described = json.loads(target.describe())
    if is_before(described["version"], needed):
        raise UsageError(
            f"{variant.id}: the schema {variant.schema.name} needs version {needed} of {described['database']} or a later one, but "
            f"{variant.target.label} has {described['version']}; choose another --schema, or name a newer server by its URL"
        )
