"""TOML files of the project and of its users, with errors that name file, line and key."""

import copy
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from sensorbench._engine import UsageError as EngineUsageError
from sensorbench._engine import toml_lines
from sensorbench.errors import UsageError, problem_text

Model = TypeVar("Model", bound=BaseModel)


# Keys of earlier versions of files, and what they are called now.
RENAMED: dict[str, str] = {
    "least_scale": "min_scale",
    "most": "max",
    "least": "min",
    "in_flight": "concurrency",
    "stand_in": "substitute",
    "fill": "load_query",
    "draws": "parameter_sources",
    "draw": "parameter_source",
    "goes_on": "continue_on_error",
    "lacks": "blocked_by",
    "variants": "instances",
    "warm_up": "warmup",
    "repeat": "repetitions",
}


class FileModel(BaseModel):
    """A part of a TOML file: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Change = Callable[[dict[str, Any]], dict[str, Any]]


class FileError(UsageError):
    """Wrong content of a file. The message is the first problem; `problems` are all of them, each with file, line and key."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(problems[0])
        self.problems = problems


def load(path: Path, model: type[Model], change: Change | None = None) -> Model:
    """Reads a file into a model, its content changed before if so wished. Raises UsageError naming file, line and key."""
    return parse(text_of(path), model, path, change)


def text_of(path: Path) -> str:
    """The text of a file. Raises UsageError naming it."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from None


def load_keys(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """The content of a file that no model describes, and the lines of its keys. Raises UsageError naming file and line."""
    return _parsed(text_of(path), path)


def parse(text: str, model: type[Model], path: Path, change: Change | None = None) -> Model:
    """Reads the text of the file `path` into a model."""
    content, lines = _parsed(text, path)
    return validate(change(content) if change else content, model, path, lines)


def _parsed(text: str, path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    try:
        lines = toml_lines(text)
    except EngineUsageError as error:
        line, message = error.args
        raise UsageError(f"{path}, line {line}: {message}") from None
    return tomllib.loads(text), lines


def validate(content: dict[str, Any], model: type[Model], path: Path, lines: dict[str, int] | None = None) -> Model:
    """Turns the content of the file `path` into a model; `lines` are those of its keys, if known."""
    try:
        return model.model_validate(content, by_alias=True)
    except ValidationError as error:
        raise FileError(_problems(error, content, model, lines or {}, path)) from None


def error_at(path: Path, key: str, message: str) -> UsageError:
    """An error about a key of a file, which may be a path such as `operation.get_peak_data.statement`."""
    try:
        lines = toml_lines(path.read_text(encoding="utf-8"))
    except (OSError, EngineUsageError):
        lines = {}
    return UsageError(f"{place_of(path, lines, key)}: {message}")


def place_of(path: Path, lines: dict[str, int], key: str) -> str:
    """The file, the line of the key or of the nearest key around it, and the key."""
    key = _as_written(key, lines)
    known = key
    while known and known not in lines:
        known = known.rpartition(".")[0] if not known.endswith("]") else known.rpartition("[")[0]
    line = f", line {lines[known]}" if known else ""
    return f"{path}{line}, {key}" if key else str(path)


def _as_written(key: str, lines: dict[str, int]) -> str:
    """The key without the numbers of lists that stand in the file as a single member."""
    for number in reversed(list(re.finditer(r"\[0\]", key))):
        before = key[: number.start()]
        if before in lines and f"{before}[0]" not in lines:
            key = before + key[number.end() :]
    return key


def _problems(
    error: ValidationError, content: dict[str, Any], model: type[BaseModel], lines: dict[str, int], path: Path
) -> list[str]:
    found = [(problem, _present_name(problem, content, model)) for problem in error.errors(include_url=False)]
    # What comes from a renamed key is said first: the key that is missing may be the same one.
    found.sort(key=lambda pair: pair[1] is None)
    return list(dict.fromkeys(_described(problem, renamed, lines, path) for problem, renamed in found))


def _described(problem: ErrorDetails, renamed: str | None, lines: dict[str, int], path: Path) -> str:
    key = ""
    for part in problem["loc"]:
        key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else str(part)
    message = {"extra_forbidden": "unknown key", "missing": "this key is missing"}.get(problem["type"], problem_text(problem))
    if renamed:
        message = f"unknown key; it is called {renamed} now"
    return f"{place_of(path, lines, key)}: {message}{_expected(problem)}"


def _present_name(problem: ErrorDetails, content: dict[str, Any], model: type[BaseModel]) -> str | None:
    """What an unknown key is called now, if it is one of an earlier version of this file: the model knows the present name at its place."""
    if problem["type"] != "extra_forbidden" or str(problem["loc"][-1]) not in RENAMED:
        return None
    place, key = problem["loc"][:-1], str(problem["loc"][-1])
    present = RENAMED[key]
    changed: Any = copy.deepcopy(content)
    table = changed
    for part in place:
        # Pydantic names the members of unions too, which are no keys.
        is_there = part in table if isinstance(table, dict) else isinstance(table, list) and isinstance(part, int)
        table = table[part] if is_there else table
    if not isinstance(table, dict) or key not in table or present in table:
        return None
    table[present] = table.pop(key)
    try:
        model.model_validate(changed, by_alias=True)
    except ValidationError as error:
        unknown = {found["loc"] for found in error.errors(include_url=False) if found["type"] == "extra_forbidden"}
        return None if (*place, present) in unknown else present
    return present


def _expected(problem: ErrorDetails) -> str:
    given = problem["input"]
    is_plain = isinstance(given, str | int | float | bool) and problem["type"] not in {"extra_forbidden", "missing"}
    return f" (it is {given!r})" if is_plain else ""
