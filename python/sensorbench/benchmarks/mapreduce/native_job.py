"""The job by a database itself, where it can do it: statements of `native/<dialect>.toml`, each of the two jobs one of them."""

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import ConfigDict, Field

from sensorbench import toml_file
from sensorbench._engine import Target
from sensorbench.errors import EngineError, FailedError, message_of
from sensorbench.spark.inverted_index import Word

FOLDER = Path(__file__).parent / "native"


class Statement(toml_file.FileModel):
    """What only the database's driver understands, with the parameters `:word` and `:pattern`."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Alternative(toml_file.FileModel):
    """Something by which the job could be done otherwise, and a statement that needs nothing else of a server."""

    needs: str
    statement: Statement


class NativeJob(toml_file.FileModel):
    """A file in `native/`."""

    title: str
    job: list[Statement] = Field(min_length=2, max_length=2)
    # What is asked of a server that cannot do the job as it is written, so that results have its words on each.
    alternative: list[Alternative] = []
    empty: list[Statement]
    # The final pairs: their columns are `id` and `n`.
    counts: Statement

    def do_empty(self, target: Target) -> None:
        """Removes what earlier jobs stored. Raises EngineError."""
        for statement in self.empty:
            _ask(target, statement, {})

    def do_jobs(self, target: Target, word: Word) -> list[float]:
        """Carries out both jobs; what each took (s). Raises FailedError with what the database says, also of the alternatives."""
        durations = []
        for statement in self.job:
            begun_s = time.monotonic()
            try:
                _ask(target, statement, {"word": word.text, "pattern": word.pattern})
            except EngineError as error:
                raise FailedError("; ".join([message_of(error), *self._refused(target)])) from None
            durations.append(time.monotonic() - begun_s)
        return durations

    def _refused(self, target: Target) -> list[str]:
        """What a server says of the alternatives that it does not have."""
        said = []
        for alternative in self.alternative:
            try:
                _ask(target, alternative.statement, {})
            except EngineError as error:
                said.append(f"{alternative.needs}: {message_of(error)}")
        return said

    def read_counts(self, target: Target, word: Word) -> dict[int, int]:
        """The final pairs. Raises EngineError."""
        return {int(article): int(n) for article, n in _ask(target, self.counts, {"word": word.text}, ("id", "n"))}


def native_job(dialect: str) -> NativeJob | None:
    """The native job of databases of a dialect; None if they have none."""
    file = FOLDER / f"{dialect}.toml"
    return toml_file.load(file, NativeJob) if file.exists() else None


def _ask(target: Target, statement: Statement, values: dict[str, str], columns: tuple[str, ...] = ()) -> list[list[Any]]:
    """Asks a statement with those of the values that it names; the rows of integer columns."""
    used = {name: value for name, value in values.items() if f":{name}" in statement.model_dump_json()}
    operation = {
        "name": "native",
        "parameters": [{"name": name, "type": "text"} for name in used],
        "columns": [{"name": name, "type": "integer", "computed": False} for name in columns],
        "order": [],
        "statement": statement.model_dump(),
    }
    parameters = pa.table({name: pa.array([value]) for name, value in used.items()}) if used else pa.table({})
    rows: list[list[Any]] = json.loads(target.execute_once(json.dumps(operation), parameters.to_reader()))
    return rows
