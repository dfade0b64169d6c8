"""What pages of several kinds show alike."""

from collections.abc import Mapping, Sequence
from typing import Any

from sensorbench.report import formatting
from sensorbench.results.described import Environment
from sensorbench.results.manifest import Status
from sensorbench.results.page import Block, Columns, Line, Piece, Section, Table, Text
from sensorbench.results.summary.envelope import Caveat, OperationErrors, Summary


def muted(line: Line) -> Piece:
    """How sure a value is, or what else is said of it, smaller."""
    return Piece(line, "muted")


def between(low: Line, high: Line) -> Line:
    """An interval below its value; nothing where there is none."""
    return muted([low, " – ", high]) if low is not None else ""


def joined(lines: Sequence[Line], between: str = ", ") -> Line:
    """Lines in one."""
    return [part for number, line in enumerate(lines) for part in ([between, line] if number else [line])]


def grouped(number: int) -> str:
    """A count to its last digit: 12,345."""
    return formatting.of_kind(number, "whole")


def state(status: Status, reason: str | None, what: str = "work") -> Text | None:
    """That work is not complete."""
    if status == "complete":
        return None
    why = f": {reason}" if reason else ""
    line: Line = [f"This {what} is ", Piece(status, "strong"), f"{why}. The figures are of what was measured until then."]
    return Text(line, "banner bad")


def warnings(caveats: Sequence[Caveat]) -> list[Block]:
    """A banner for each."""
    return [Text(f"{caveat.text} {caveat.action}", "banner") for caveat in caveats]


def mix(shares: Mapping[str, float], operations: Mapping[str, str]) -> str:
    """The shares of operations in a sentence."""
    return ", ".join(f"{formatting.percent(share)} {operations[name].lower()}" for name, share in shares.items())


def errors(found: Sequence[OperationErrors]) -> Section | None:
    """The section of operations that failed."""
    if not found:
        return None
    rows: list[list[Line]] = [
        [operation_errors.operation, operation_errors.kind, operation_errors.count, operation_errors.first_message]
        for operation_errors in found
    ]
    columns: Columns = [("operation", "name"), ("kind", "text"), ("times", "count"), ("the first", "text")]
    return Section("errors", "Errors", [Table(columns, rows)])


def servers(environment: Environment, when: str = "") -> list[tuple[str, str]]:
    """A fact of each server."""
    return [
        (
            name,
            f"{server['database']} {server['version']}, {server['nodes']} node{'s' if server['nodes'] != 1 else ''}{when}"
            + "".join(f", {key}={value}" for key, value in server["settings"].items()),
        )
        for name, server in environment.get("servers", {}).items()
    ]


def machine(environment: Environment, processors: str = "processors") -> tuple[str, str]:
    """The fact of the machine."""
    processor, allowed = environment.get("processor", ""), environment.get("processors_allowed", "")
    system, kernel = environment.get("system", ""), environment.get("kernel", "")
    memory = formatting.size(environment.get("memory_bytes"))
    return "machine", f"{processor}, {allowed} {processors}, {memory}, {system}, kernel {kernel}"


def command(arguments: Sequence[str], title: str = "command") -> tuple[str, Line]:
    """The fact of the command that made the results."""
    return title, Piece(formatting.command(arguments), "code")


def footer(summary: Summary[Any], more: str) -> str:
    """What made a page, and where all numbers are."""
    return f"Made by sensorbench {summary.version}. All numbers are in summary.json{more}"
