"""The canonical form of recorded traffic: a folder with `trace.json` and `statements.parquet`."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sensorbench.errors import UsageError, problem_text

TRACE_FILE, STATEMENTS_FILE = "trace.json", "statements.parquet"
TemplateKind = Literal["read", "write", "begin", "commit", "rollback", "other"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Template(_Part):
    """A statement with its literals taken out."""

    number: int
    statement: str = Field(description="With $1, $2, … in the places of literals.")
    kind: TemplateKind
    parameters: list[str] = Field(default=[], description="Types of the literals, in order.")


class Trace(_Part):
    """`trace.json`: what the numbers in the statements mean."""

    database: str
    version: str = ""
    templates: list[Template]


def statements_file(folder: Path) -> Path:
    """The statements of a trace, in the order of their arrival."""
    return folder / STATEMENTS_FILE


def read_trace(folder: Path) -> Trace:
    """The trace in a folder. Raises UsageError where there is none, or it cannot be read."""
    file = folder / TRACE_FILE
    missing = next((path for path in (file, statements_file(folder)) if not path.is_file()), None)
    if missing is not None:
        raise UsageError(f"{folder}: no trace is there ({missing.name} is missing)")
    try:
        return Trace.model_validate_json(file.read_bytes())
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise UsageError(f"{file}: {'.'.join(map(str, problem['loc']))}: {problem_text(problem)}") from None
