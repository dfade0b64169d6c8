"""The JSON Lines form of traffic, which anybody can write: a statement per line."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sensorbench.errors import UsageError, problem_text
from sensorbench.traffic.entries import Entry, Skipped

Line = TypeVar("Line", bound=BaseModel)


class StatementLine(BaseModel):
    """A line. `$1`, `$2`, … in the statement are its parameters; without them its literals are taken out."""

    model_config = ConfigDict(extra="forbid")

    at: datetime = Field(description="When the statement arrived: ISO 8601, UTC unless it has an offset.")
    session: str | int = Field(description="Its session: statements of one follow one another.")
    statement: str
    parameters: list[str | int | float | bool | None] = Field(default=[], description="What was bound, in order.")
    duration: float | None = Field(default=None, ge=0, description="s")
    rows: int | None = Field(default=None, ge=0, description="Rows that it returned.")
    error: str | None = Field(default=None, description="What the server said when it failed.")


def read_json_lines(path: Path, skipped: Skipped) -> Iterator[Entry]:
    """The statements of a file of JSON Lines; empty lines are left out. Raises UsageError that names the line and the key."""
    for _, line in read_lines(path, StatementLine, skipped):
        yield entry_of(line)


def read_lines(path: Path, form: type[Line], skipped: Skipped) -> Iterator[tuple[int, Line]]:
    """The lines of a file of JSON Lines, by their numbers from 1.

    Args:
        path: the file.
        form: what each line is.
        skipped: where empty lines, which are left out, are counted.

    Raises:
        UsageError: names the line and the key.

    """
    with path.open("rb") as file:
        for number, text in enumerate(file, start=1):
            if not text.strip():
                skipped.entries += 1
                continue
            try:
                line = form.model_validate_json(text)
            except ValidationError as error:
                problem = error.errors(include_url=False)[0]
                where = ".".join(map(str, problem["loc"]))
                raise UsageError(f"{path}:{number}: {f'{where}: ' if where else ''}{problem_text(problem)}") from None
            yield number, line


def entry_of(line: StatementLine) -> Entry:
    """A line as an entry."""
    at = line.at if line.at.tzinfo else line.at.replace(tzinfo=UTC)
    return Entry(
        round(at.timestamp() * 1e6),
        line.session,
        line.statement,
        tuple(line.parameters),
        line.duration,
        line.rows,
        line.error,
    )
