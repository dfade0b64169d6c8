"""What pages of several kinds show alike."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sensorbench.report import formatting
from sensorbench.results.described import Environment
from sensorbench.results.manifest import Status
from sensorbench.results.page import Block, Code, Columns, Line, Piece, Section, Table, Text
from sensorbench.results.summary.envelope import Caveat, OperationErrors, Summary
from sensorbench.wording import counted

# What warnings of a kind are about, where the kind's name does not say so.
_KINDS = {"prefix": "runs that ended by time"}


def muted(line: Line) -> Piece:
    """How sure a value is, or what else is said of it, smaller."""
    return Piece(line, "muted")


def between(low: Line, high: Line) -> Line:
    """An interval below its value; nothing if there is none."""
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


def warnings_by_kind(caveats: Iterable[Caveat]) -> dict[str, list[Caveat]]:
    """Of many variants most have the same warnings: those of a kind together."""
    by_kind: dict[str, list[Caveat]] = {}
    for caveat in caveats:
        by_kind.setdefault(caveat.kind, []).append(caveat)
    return by_kind


def of_many_variants(kind: str, alike: Sequence[Caveat]) -> tuple[str, str]:
    """What warnings of a kind are about, and what to do about them."""
    return f"{len(alike)} variants: {_KINDS.get(kind, kind)}", " ".join(dict.fromkeys(caveat.action for caveat in alike))


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
            f"{server['database']} {server['version']}, {counted(server['nodes'], 'node')}{when}"
            + (f", on {', '.join(hosts)}" if (hosts := server.get("hosts")) else "")
            + "".join(f", {key}={value}" for key, value in server["settings"].items()),
        )
        for name, server in environment.get("servers", {}).items()
    ]


def machine(environment: Environment) -> tuple[str, str]:
    """The fact of the machine."""
    processor, allowed = environment.get("processor", ""), environment.get("processors_allowed", "")
    system, kernel = environment.get("system", ""), environment.get("kernel", "")
    memory = formatting.size(environment.get("memory_bytes"))
    return "machine", f"{processor}, {allowed} CPUs, {memory}, {system}, kernel {kernel}"


# What a recorded command has in place of addresses and of commands of users, which may hold secrets.
HIDDEN = "…"


def reproduce(*commands: Sequence[str], version: str = "") -> Section | None:
    """How to measure the same again: the commands that made the results, as a shell takes them. Nothing where none was recorded."""
    recorded = [command for command in commands if command]
    if not recorded:
        return None
    by = f" with sensorbench {version}" if version else ""
    hidden = any(HIDDEN in argument for command in recorded for argument in command)
    secrets = (
        f" Addresses and commands of your own may hold secrets and are not recorded: put yours where {HIDDEN} stands."
        if hidden
        else ""
    )
    which = "This command" if len(recorded) == 1 else "These commands"
    text = f"{which} made these results{by}. The folder of new results must be new, too.{secrets}"
    return Section(
        "reproduce", "Reproduce this", [Text(text), *(Code(formatting.command(command), "command") for command in recorded)]
    )


def footer(summary: Summary[Any], more: str = "") -> str:
    """What made a page, and how to make it again. It names no file: whoever has the page may have nothing else."""
    return f"Made by sensorbench {summary.version} from results of {summary.created.date()}.{more}"
