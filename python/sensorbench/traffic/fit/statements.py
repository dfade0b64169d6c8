"""The statement of a template in the words of schema files and of DuckDB: placeholders by name, tables without the namespace they lay in."""

import re
from collections.abc import Mapping

from sensorbench.schemas.types import ValueType
from sensorbench.traffic.formats import FORMATS
from sensorbench.traffic.lexer import Dialect
from sensorbench.traffic.trace import Template

# A text or a name stays as it is; a placeholder may be cast.
_PLACEHOLDER = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|(?P<before>\bcast\s*\(\s*)?\$(?P<number>\d+)(?P<cast>::numeric\b)?",
    re.IGNORECASE,
)
_QUOTES = '"`'


def dialect_of(database: str) -> Dialect | None:
    """The dialect of the statements of a trace; None if they are not SQL."""
    return next((log_format.dialect for log_format in FORMATS.values() if log_format.database == database), None)


def parameter_name(place: int) -> str:
    """The parameter at a place of a template, from 1."""
    return f"p{place}"


def bare(table: str) -> str:
    """The name of a table as it is without the namespace and quotes, in lower case."""
    return table.rpartition(".")[2].strip(_QUOTES).lower()


def schema_statement(template: Template, types: Mapping[str, ValueType], dialect: Dialect) -> str:
    """A template as schema files have it: parameters are written :p1, and tables are those of the experiment's own namespace."""

    def named(found: re.Match[str]) -> str:
        if found["number"] is None:
            return found[0]
        name = parameter_name(int(found["number"]))
        before, cast = found["before"] or "", found["cast"] or ""
        # The server takes a placeholder for the type of the cast, which is none that texts and doubles are bound as.
        if dialect == "postgresql" and before and types.get(name) == "text":
            return f"{before}:{name}::text"
        if cast and types.get(name) == "double":
            return f"{before}:{name}::double precision{cast}"
        return f"{before}:{name}{cast}"

    return _PLACEHOLDER.sub(named, _in_own_namespace(template))


def reference_statement(template: Template) -> str:
    """A template in DuckDB's words: parameters are written $p1."""

    def named(found: re.Match[str]) -> str:
        if found["number"] is None:
            text = found[0]
            return f'"{text[1:-1]}"' if text[0] == "`" else text
        cast = "::double" if found["cast"] else ""
        return f"{found['before'] or ''}${parameter_name(int(found['number']))}{cast}"

    return _PLACEHOLDER.sub(named, _in_own_namespace(template))


def _in_own_namespace(template: Template) -> str:
    statement = template.statement
    for table in template.tables:
        if "." in table:
            last = table.rpartition(".")[2]
            statement = re.sub(rf"(?<![\w.\"`]){re.escape(table)}(?![\w\"`])", last, statement)
    return statement


def compares(template: Template, column: str, place: int) -> bool | None:
    """Whether a template compares a column with the parameter at a place; None if it does not even name the column."""
    name = re.escape(column)
    if not re.search(rf"(?<![\w]){name}(?![\w])", template.statement, re.IGNORECASE):
        return None
    after = rf"(?<![\w]){name}[\"`]?\s*(?:=|<=|>=|<>|!=|<|>|\bin\b|\blike\b|\bbetween\b)\s*(?:\(|\bcast\s*\(|\s)*\${place}(?!\d)"
    return re.search(after, template.statement, re.IGNORECASE) is not None
