"""The JSON Schemas of result files, committed in `schemas/` beside this module; a test keeps them equal to the models."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from sensorbench.results.files import write_text
from sensorbench.results.manifest import RunManifest
from sensorbench.results.planned import (
    CassandraStressManifest,
    ComparisonManifest,
    ElasticityManifest,
    FactorsManifest,
    MapReduceManifest,
    SeriesManifest,
    StressManifest,
    TsbsManifest,
    TuneManifest,
    YcsbManifest,
)
from sensorbench.results.replay import ReplayManifest
from sensorbench.results.summary.gate import GateResult
from sensorbench.results.summary.kinds import SUMMARIES

SCHEMAS_FOLDER = Path(__file__).parent / "schemas"

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MANIFESTS: tuple[type[BaseModel], ...] = (
    RunManifest,
    ComparisonManifest,
    StressManifest,
    ElasticityManifest,
    TuneManifest,
    FactorsManifest,
    MapReduceManifest,
    YcsbManifest,
    CassandraStressManifest,
    TsbsManifest,
    SeriesManifest,
    ReplayManifest,
)


def json_schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of each kind of manifest and summary, and of what a gate writes, by the name of its file."""
    manifests = {f"{_kind(model, 'Manifest')}-manifest": model for model in _MANIFESTS}
    summaries = {f"{_kind(model, 'Summary')}-summary": model for model in SUMMARIES}
    all_models: dict[str, type[BaseModel]] = {**manifests, **summaries, "gate": GateResult}
    return {name: {"$schema": _DIALECT, **model.model_json_schema()} for name, model in all_models.items()}


def _kind(model: type[BaseModel], suffix: str) -> str:
    return model.__name__.removesuffix(suffix).lower()


def write_schemas() -> None:
    """Writes the schema files: `make schemas`."""
    SCHEMAS_FOLDER.mkdir(exist_ok=True)
    for name, schema in json_schemas().items():
        write_text(SCHEMAS_FOLDER / f"{name}.schema.json", json.dumps(schema, indent=2) + "\n")


if __name__ == "__main__":
    write_schemas()
