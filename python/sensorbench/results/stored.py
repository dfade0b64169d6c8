"""Reading one file of results. Each function says which file is damaged, in what way, and what can still be done."""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError

from sensorbench._engine import read_interval_log
from sensorbench.errors import EngineError, SensorbenchError, problem_text
from sensorbench.results.checksums import CHECKSUMS_FILE, checksum_of, checksums_in
from sensorbench.results.format_1 import present_name, with_present_names

Model = TypeVar("Model", bound=BaseModel)

# Folders of what can be measured again or left out: variants and their runs.
_RUN = re.compile(r"run-\d+")
_VARIANTS = "experiments"


class DamagedResultsError(SensorbenchError):
    """A file of results is damaged: which, in what way, and what can still be done."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path}: damaged: {problem}. {_advice(path)}")
        self.path = path
        self.problem = problem


def _advice(path: Path) -> str:
    """What can be done without the file."""
    for folder in path.parents:
        if folder.parent.name == _VARIANTS or (_RUN.fullmatch(folder.name) and folder.parent.parent.name == _VARIANTS):
            what = "run" if _RUN.fullmatch(folder.name) else "variant"
            return f"Restore it from a copy; or remove the folder {folder}: the rest can be shown then, and --resume measures this {what} again"
    return "Restore it from a copy"


def is_stored(path: Path) -> bool:
    """Whether a file is there. Raises DamagedResultsError when it is not, though it was written."""
    if path.is_file():
        return True
    if path.name in checksums_in(path.parent):
        raise DamagedResultsError(path, f"the file is missing ({CHECKSUMS_FILE} lists it)")
    return False


def stored_in(folder: Path, pattern: str) -> list[Path]:
    """The files of a folder whose names match a pattern, in their order. Raises DamagedResultsError when one is missing."""
    listed = [folder / name for name in checksums_in(folder) if Path(name).match(pattern)]
    return [path for path in sorted({*folder.glob(pattern), *listed}) if is_stored(path)]


def check_sound(path: Path) -> None:
    """Raises DamagedResultsError for a file that cannot be read, or has another content than was written."""
    try:
        checksum = checksum_of(path)
    except OSError as error:
        raise DamagedResultsError(path, f"it cannot be read ({error.strerror or error})") from None
    # Looked up afterwards: what lies there was listed before it came there.
    known = checksums_in(path.parent).get(path.name)
    if known is None or checksum in known:
        return
    problem = "the file is empty" if not path.stat().st_size else "its content is not what was written"
    raise DamagedResultsError(path, f"{problem} ({CHECKSUMS_FILE} has another SHA-256)")


def read_text(path: Path) -> str:
    """A file of text."""
    check_sound(path)
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DamagedResultsError(path, f"it cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError as error:
        raise DamagedResultsError(path, f"it is not UTF-8 text ({error.reason}, byte {error.start})") from None


def read_json(path: Path, keys: Iterable[str] = ()) -> dict[str, Any]:
    """A file of one JSON object, which must have these keys."""
    text = read_text(path)
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"it is not JSON ({error.msg}, line {error.lineno})" if text.strip() else "the file is empty"
        raise DamagedResultsError(path, problem) from None
    if not isinstance(content, dict):
        raise DamagedResultsError(path, "it is not a JSON object")
    missing = [key for key in keys if key not in content]
    if missing:
        raise DamagedResultsError(path, f"it has no key {missing[0]!r}")
    return content


def read_model(path: Path, model: type[Model]) -> Model:
    """A file of one JSON object that a model describes."""
    return as_model(path, read_json(path), model)


def as_model(path: Path, content: dict[str, Any], model: type[Model]) -> Model:
    """The content of a JSON file as a model."""
    try:
        return model.model_validate_json(json.dumps(content))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise DamagedResultsError(path, f"{key}: {problem_text(first)}") from None


def read_parquet(path: Path, columns: Collection[str] = ()) -> pa.Table:
    """A Parquet file, which must have these columns."""
    check_sound(path)
    try:
        table = with_present_names(pq.read_table(path))
    except (pa.ArrowException, OSError) as error:
        raise DamagedResultsError(path, _not_parquet(path, error)) from None
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        raise DamagedResultsError(path, f"it has no column {missing[0]!r}, but {', '.join(table.column_names)}")
    return table


def parquet_batches(path: Path, columns: Collection[str], rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file, which must have these columns, some at a time: of a long run no more are in memory.

    Args:
        path: the file.
        columns: those that are read.
        rows: rows of a batch at most.

    Raises:
        DamagedResultsError: while the first batch is read, or a later one.

    """
    check_sound(path)
    with _opened(path, columns) as (file, present):
        for batch in file.iter_batches(rows, columns=[present[name] for name in columns]):
            yield batch.rename_columns([present_name(name) for name in batch.schema.names])


class NumberedRows:
    """The rows of Parquet files about operations, which have a number `k`: those of some numbers are read at a time, of a long run never all.

    Args:
        paths: the files.
        columns: the columns that are read; `k` must be one of them.

    Attributes:
        count: how many rows there are.

    Raises:
        DamagedResultsError: now or while rows are read.

    """

    def __init__(self, paths: Iterable[Path], columns: Collection[str]) -> None:
        self._columns = columns
        self.count = 0
        self._places: list[tuple[Path, int, int, int]] = []
        for path in paths:
            check_sound(path)
            with _opened(path, columns) as (file, present):
                self.count += file.metadata.num_rows
                at = file.schema_arrow.names.index(present["k"])
                for number in range(file.num_row_groups):
                    known = file.metadata.row_group(number).column(at).statistics
                    if known is None or not known.has_min_max:
                        raise DamagedResultsError(path, "its column 'k' has no statistics")
                    self._places.append((path, number, known.min, known.max))

    @property
    def end(self) -> int:
        """The first number that no row has any more."""
        return max((last + 1 for *_, last in self._places), default=0)

    def between(self, first: int, end: int) -> pa.Table | None:
        """The rows whose numbers are at least `first` and below `end`, in the order of the files; None if there is none."""
        found = []
        for path, number, lowest, highest in self._places:
            if highest < first or lowest >= end:
                continue
            with _opened(path, self._columns) as (file, present):
                rows = file.read_row_group(number, columns=[present[name] for name in self._columns])
            rows = with_present_names(rows)
            if lowest < first or highest >= end:
                numbers = rows["k"].to_numpy()
                rows = rows.filter(pa.array((numbers >= first) & (numbers < end)))
            found.append(rows)
        return pa.concat_tables(found) if found else None


@contextmanager
def _opened(path: Path, columns: Collection[str]) -> Iterator[tuple[pq.ParquetFile, dict[str, str]]]:
    """A Parquet file that must have some columns, and how each of its columns is called in it by today's name."""
    try:
        with pq.ParquetFile(path) as file:
            present = {present_name(name): name for name in file.schema_arrow.names}
            missing = [name for name in columns if name not in present]
            if missing:
                raise DamagedResultsError(path, f"it has no column {missing[0]!r}, but {', '.join(present)}")
            yield file, present
    except (pa.ArrowException, OSError) as error:
        raise DamagedResultsError(path, _not_parquet(path, error)) from None


def _not_parquet(path: Path, error: Exception) -> str:
    if not path.stat().st_size:
        return "the file is empty"
    return f"it is not a whole Parquet file ({str(error).splitlines()[0].rstrip('. ')})"


def read_histogram_log(texts: Iterable[str], path: Path) -> pa.Table:
    """The histograms of interval logs that are read as one: tag, start_ns, length_ns, value_ns, count. `path` is where they are from."""
    try:
        return pa.Table.from_batches([read_interval_log("".join(texts))])
    except EngineError:
        raise DamagedResultsError(path, "it is not a log of HdrHistograms") from None
