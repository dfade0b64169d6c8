"""The shipped schemas of machine logs: each can be used, and the levels of indexes give the same answers."""

import itertools
import json
from pathlib import Path

import pytest

from sensorbench.dataset import open_dataset
from sensorbench.schemas import Schema, load_operations, load_schema, shipped_schemas
from sensorbench.schemas.shipped import SHIPPED_FOLDER
from tests.conftest import Cli

DATABASES = sorted(folder.name for folder in (SHIPPED_FOLDER / "logs").iterdir() if folder.is_dir())


def every_schema() -> list[tuple[str, str]]:
    return [(database, name) for database in DATABASES for name in shipped_schemas("logs", database)]


def every_choice(database: str, name: str) -> list[Schema]:
    """A schema with each combination of its parameters."""
    declared = load_schema(name, operations="logs", database=database).file.parameters
    values = itertools.product(*(choice.values for choice in declared.values()))
    chosen = [dict(zip(declared, combination, strict=True)) for combination in values]
    return [load_schema(name, operations="logs", database=database, parameters=parameters) for parameters in chosen]


@pytest.mark.parametrize(("database", "name"), every_schema())
def test_every_schema_can_be_used(database: str, name: str) -> None:
    operations = load_operations("logs")
    workbench = open_dataset("azure-vm-noise").connect()
    for schema in every_choice(database, name):
        assert set(schema.file.operation) <= set(operations.operation)
        assert schema.driver_schema(operations, list(schema.file.operation), schema.loaded_columns(workbench))


def test_what_redis_keeps_one_structure_for_is_all_that_it_is_asked() -> None:
    asked = {
        name: set(load_schema(name, operations="logs", database="redis").file.operation) for name in ("hash_only", "range_only")
    }
    assert asked == {"hash_only": {"look_up"}, "range_only": {"fetch_range", "count_range"}}


EXPERIMENT = """\
dataset = "azure-vm-noise"
scale = 0.02
operations = "logs"
[[target]]
url = "sqlite"
schema = "relational"
parameters = { index = "none" }
[[target]]
url = "sqlite"
schema = "relational"
parameters = { index = "key" }
[[target]]
url = "sqlite"
schema = "relational"
parameters = { index = "key_value" }
[workload]
mix = { look_up = 20, fetch_range = 1, count_range = 1 }
order = "in turn"
operations = 68
repetitions = 1
"""


def test_answers_are_equal_whatever_the_indexes(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "experiment.toml").write_text(EXPERIMENT, encoding="utf-8")
    ended = cli("run", tmp_path / "experiment.toml", "--out", tmp_path / "out", "--no-open")
    assert ended.exit_code == 0, ended.err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["answers_equal"] is True
    ranges = [f"{operation}.r{number}" for operation in ("fetch_range", "count_range") for number in range(1, 8)]
    assert set(summary["result"]["answers"]) == {"look_up", *ranges}
    assert all(answers["compared_with_reference"] > 0 for answers in summary["result"]["answers"].values())
