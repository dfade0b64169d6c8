"""A checksum of a dataset's rows, whatever their order and however they are spread over files."""

import hashlib
import json
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from sensorbench import _engine
from sensorbench.dataset import Dataset
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter, Task
from sensorbench.schemas.arrow_types import arrow_schema
from sensorbench.schemas.types import canonical_columns

# Few enough for the longest articles to fit.
_ROWS_A_BATCH = 20_000
_MODULUS = 1 << 64


@dataclass(frozen=True)
class Checksum:
    """The rows of a relation, and the sum of their hashes, as answers have it: XXH3-64 of canonical values, modulo 2^64."""

    rows: int
    sum: int

    def __str__(self) -> str:
        return f"{self.sum:016x}"


def checksums(dataset: Dataset, reporter: ProgressReporter) -> dict[str, Checksum]:
    """The checksum of each relation. Raises UsageError for a column that has no canonical type."""
    relations = dataset.describe().relations
    with (
        dataset.connect() as connection,
        reporter.task("reading", total=sum(relation.rows for relation in relations.values())) as task,
    ):
        return {name: _checksum(name, connection.table(name), task) for name in sorted(relations)}


def checksum_of_all(relations: dict[str, Checksum]) -> str:
    """One checksum for all relations of a dataset."""
    lines = "".join(f"{name} {relation.rows} {relation}\n" for name, relation in sorted(relations.items()))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def _checksum(name: str, relation: duckdb.DuckDBPyRelation, task: Task) -> Checksum:
    try:
        columns = canonical_columns(relation)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
    operation = json.dumps({"name": name, "columns": [{"name": column, "type": kind} for column, kind in columns.items()]})
    rows = row_hashes = 0
    for batch in relation.to_arrow_reader(_ROWS_A_BATCH):
        canonical = pa.Table.from_batches([batch]).cast(arrow_schema(columns))
        of_batch, hashes, _, _ = _engine.digest(canonical.to_reader(), operation)
        rows, row_hashes = rows + of_batch, (row_hashes + hashes) % _MODULUS
        task.advance_to(rows, f"{rows:,} rows of {name}")
    return Checksum(rows, row_hashes)
