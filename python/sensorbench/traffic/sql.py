"""Statements that recording needs itself, at a server that is asked by SQL. Each has a connection of its own."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from sensorbench import interrupts
from sensorbench._engine import Target
from sensorbench.errors import EngineError, FailedError, message_of
from sensorbench.paths import remove_if_empty

# Stands in each of our statements, so that they are known in the log that they end up in.
MARK = "sensorbench traffic record"
PUT_BACK_FILE = "put-back.sql"
Cell = str | int | float | bool | None
_TYPES: dict[type, str] = {str: "text", int: "integer", float: "double", bool: "boolean"}


class Server:
    """A server by its URL."""

    def __init__(self, url: str, inside: str | None = None) -> None:
        """Connections are inside a database or keyspace of the server's own where one is named, else where the URL says."""
        address, _, options = url.partition("?")
        kept = [option for option in options.split("&") if option and not (inside and option.startswith("namespace="))]
        if inside:
            kept.append(f"namespace={inside}")
        self._target = Target(f"{address}?{'&'.join(kept)}" if kept else address)

    @property
    def name(self) -> str:
        """The URL without secrets."""
        return self._target.url

    def ask(self, statement: str, columns: Mapping[str, str] | None = None, **values: Cell) -> list[list[Cell]]:
        """The rows of a statement.

        Args:
            statement: with :name in the places of values.
            columns: of its answer, each with its type: text, integer, double or boolean.
            values: by name; none of them null.

        Raises:
            FailedError: with what the server says where it refuses.

        """
        operation = {
            "name": "record",
            "parameters": [{"name": name, "type": _TYPES[type(value)]} for name, value in values.items()],
            "columns": [{"name": name, "type": its_type} for name, its_type in (columns or {}).items()],
            "statement": {"statement": f"{statement} /* {MARK} */"},
        }
        parameters = pa.table({name: pa.array([value]) for name, value in values.items()}) if values else pa.table({})
        try:
            rows: list[list[Cell]] = json.loads(self._target.execute_once(json.dumps(operation), parameters.to_reader()))
        except EngineError as error:
            raise FailedError(f"{self.name}: {message_of(error)}") from None
        return rows

    def row(self, statement: str, columns: Mapping[str, str], **values: Cell) -> list[Cell]:
        """The one row of a statement. Raises FailedError."""
        rows = self.ask(statement, columns, **values)
        if len(rows) != 1:
            raise FailedError(f"{self.name}: {len(rows)} rows where one was expected: {statement}")
        return rows[0]


@contextmanager
def put_back_afterwards(folder: Path, statements: list[str], put_back: Callable[[], None]) -> Iterator[None]:
    """A context after which a server's settings are put back, whatever happens.

    Args:
        folder: where the statements are written down meanwhile, for somebody whose recording is killed; it is made, and goes with them.
        statements: what puts the settings back.
        put_back: sends them.

    Raises:
        FailedError: if the server does not take them; they stay written down.

    """
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / PUT_BACK_FILE
    note.write_text("".join(f"{statement};\n" for statement in statements), encoding="utf-8")
    try:
        yield
    finally:
        with interrupts.held_back():
            try:
                put_back()
            except FailedError as error:
                raise FailedError(
                    f"{error}; the server still logs: {note} has the statements that restore its settings"
                ) from None
            note.unlink()
            remove_if_empty(folder)
