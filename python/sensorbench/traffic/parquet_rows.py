"""Traffic in Parquet, which anybody can write: a row per statement, with the columns of the JSON Lines form."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from sensorbench.errors import UsageError, problem_text
from sensorbench.traffic.entries import Entry, Skipped
from sensorbench.traffic.json_lines import StatementLine, entry_of
from sensorbench.traffic.trace import BATCH_ROWS

_REQUIRED = ("at", "session", "statement")
_MAGIC = b"PAR1"


def is_parquet(path: Path) -> bool:
    """Whether a file is in Parquet. Raises OSError if it cannot be read."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def read_parquet(path: Path, skipped: Skipped) -> Iterator[Entry]:
    """The statements of a file in Parquet, some rows at a time. Raises UsageError that names the row and the column."""
    del skipped
    first = 1
    try:
        with pq.ParquetFile(path) as file:
            columns = _columns(path, file.schema_arrow)
            for batch in file.iter_batches(BATCH_ROWS, columns=columns):
                for number, row in enumerate(batch.to_pylist(), start=first):
                    yield _entry(path, number, row)
                first += batch.num_rows
    except pa.ArrowException as error:
        raise UsageError(f"{path}: {error}; expected a file in Parquet") from None


def _columns(path: Path, schema: pa.Schema) -> list[str]:
    missing = next((name for name in _REQUIRED if name not in schema.names), None)
    if missing is not None:
        raise UsageError(
            f"{path}: column {missing} is missing; expected {', '.join(_REQUIRED)}, and what else JSON Lines may have"
        )
    unknown = next((name for name in schema.names if name not in StatementLine.model_fields), None)
    if unknown is not None:
        raise UsageError(f"{path}: column {unknown} is not known; expected some of {', '.join(StatementLine.model_fields)}")
    return list(schema.names)


def _entry(path: Path, number: int, row: dict[str, object]) -> Entry:
    """What is not there in a row is as if its column were not there."""
    given = {name: value for name, value in row.items() if value is not None}
    if isinstance(parameters := given.get("parameters"), str):
        try:
            given["parameters"] = json.loads(parameters)
        except ValueError:
            raise UsageError(f"{path}: row {number}: column parameters: expected a list, or a text with a JSON array") from None
    try:
        return entry_of(StatementLine.model_validate(given))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join(map(str, problem["loc"]))
        raise UsageError(f"{path}: row {number}: column {where}: {problem_text(problem)}") from None
