"""Streams whose readings come out of order and are sent again with other values, and what became of them at each target."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sensorbench.schemas import load_schema, shipped_schemas
from tests.conftest import Cli

WRITES = 400
# One reading in twenty is sent again.
AGAIN = 20
WRONG = ("lost", "wrong_winners", "extra", "other_values", "unanswered", "unexamined", "unstable")
_EXPERIMENT = """
dataset = "{dataset}"
scale = {scale}
operations = "{operations}"
{targets}
[workload]
mix = {{ {write} = 1 }}
schedule = {{ concurrency = 4 }}
operations = {writes}
repetitions = 1
[workload.delivery]
disorder = {{ model = "poisson", ratio = 0.2, mean = 20 }}
duplicates = {{ share = 0.05, values = "other", window = 100 }}
"""


def schemas_with_a_rule(dialect: str) -> list[str]:
    """The schemas for sensors that say which of several writes of a reading counts, and that any version takes."""
    files = {name: load_schema(name, operations="sensors", database=dialect).file for name in shipped_schemas("sensors", dialect)}
    return [name for name, file in files.items() if file.duplicates is not None and file.min_version is None]


def check_rules(
    cli: Cli,
    folder: Path,
    targets: Sequence[tuple[str, object]],
    operations: str = "sensors",
    *,
    write: str = "insert_reading",
    readings: int = 1,
    dataset: str = "beijing-air-quality",
    scale: float = 0.001,
) -> dict[str, dict[str, Any]]:
    """Every acknowledged reading is there as the rule of each schema says. Returns the accounts of each variant.

    Args:
        cli: runs a command.
        folder: where the experiment and its results are written.
        targets: a URL and the name or path of a schema for each variant.
        operations: the operation set.
        write: the operation that writes.
        readings: how many readings each write has, for which the schemas have a parameter `batch` if it is not 1.
        dataset: what is loaded.
        scale: how much of it.

    """
    batch = f"parameters = {{ batch = {readings} }}\n" if readings > 1 else ""
    entries = "".join(f'[[target]]\nurl = "{url}"\nschema = "{schema}"\n{batch}' for url, schema in targets)
    file = folder / "streams.toml"
    experiment = _EXPERIMENT.format(
        targets=entries, operations=operations, writes=WRITES, write=write, dataset=dataset, scale=scale
    )
    file.write_text(experiment, encoding="utf-8")
    ended = cli("run", file, "--replace", "--no-open", "--out", folder / "out")
    result = json.loads((folder / "out" / "summary.json").read_text(encoding="utf-8"))["result"]
    accounts = {variant: checks["accounting"][0] for variant, checks in result["contents"].items()}
    assert len(accounts) == len(targets), ended.err
    for variant, of_write in accounts.items():
        assert {name: of_write[name] for name in WRONG} == dict.fromkeys(WRONG, 0), (variant, of_write)
        # What a key refuses is an error, which nobody acknowledged.
        assert of_write["acknowledged"] + of_write["unknown"] == WRITES * readings, variant
        assert of_write["again"] == AGAIN * readings - of_write["unknown"], variant
    assert ended.exit_code == 0, ended.err
    return accounts
