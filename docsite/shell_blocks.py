"""Blocks of shell commands on pages: found, executed in order in a folder of their own, and compared with the output that the page shows.

- A block of `sh` is a script. In a block of `console`, lines that begin with `$ ` are commands (`> ` continues with one), and the others are
  what they print. A block of `text` right after a block of commands is what its last command prints.
- `<!-- needs: NAME, NAME -->` in the line before a block says what it takes that not every machine has: a server, a cluster, your own files.
  Such a block is executed only where all of that is said to be there.
- `<!-- exits: N -->` in the same place says that the last command ends with this code.
- Output may be a part of what is printed: its lines come in the same order there, numbers aside. A line `…` says that something is left out.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEFT_OUT = "…"

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*).*$")
_NEEDS = re.compile(r"<!-- needs: (?P<what>[^>]+?) -->")
_EXITS = re.compile(r"<!-- exits: (?P<code>\d+) -->")
_SCRIPTS = {"sh", "bash", "shell"}
# No command of the documentation takes longer; what does needs time, and says so.
_LIMIT_S = 300.0


@dataclass(frozen=True)
class Command:
    """A command, or a script, with what the page says that it prints: lines, and the numbers of these on the page."""

    script: str
    shown: tuple[str, ...] = ()
    shown_at: tuple[int, int] | None = None


@dataclass(frozen=True)
class Block:
    """A block of commands; `line` is where it begins, from 1."""

    line: int
    commands: tuple[Command, ...]
    needs: frozenset[str] = frozenset()
    exit_code: int = 0


@dataclass
class Printed:
    """What a command printed, and how it ended."""

    command: Command
    text: str
    exit_code: int
    lines: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.lines = [line.rstrip() for line in self.text.splitlines()]


def blocks_of(text: str) -> list[Block]:
    """The blocks of commands of a page, in their order."""
    lines = text.splitlines()
    found: list[Block] = []
    for start, end, language in _fenced(lines):
        if language in _SCRIPTS or language == "console":
            before = _comments_before(lines, start)
            needs = frozenset(name.strip() for what in _NEEDS.findall(before) for name in what.split(","))
            code = _EXITS.search(before)
            commands = _session(lines, start, end) if language == "console" else (Command("\n".join(lines[start + 1 : end])),)
            found.append(Block(start + 1, commands, needs, int(code["code"]) if code else 0))
        elif language == "text" and found and _follows(lines, start):
            block = found[-1]
            *others, last = block.commands
            shown = Command(last.script, tuple(lines[start + 1 : end]), (start + 1, end))
            found[-1] = Block(block.line, (*others, shown), block.needs, block.exit_code)
    return found


def _fenced(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Beginning, end and language of each fenced block."""
    start, language = -1, ""
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence and start < 0:
            start, language = number, fence["language"]
        elif start >= 0 and line.strip() == "```":
            yield start, number, language
            start = -1


def _comments_before(lines: Sequence[str], start: int) -> str:
    """The comments in the lines right before a block."""
    first = start
    while first and lines[first - 1].lstrip().startswith("<!--"):
        first -= 1
    return "\n".join(lines[first:start])


def _follows(lines: Sequence[str], start: int) -> bool:
    """Whether nothing but blank lines stands between a block and the one before."""
    before = start - 1
    while before >= 0 and not lines[before].strip():
        before -= 1
    return before >= 0 and lines[before].strip() == "```"


def _session(lines: Sequence[str], start: int, end: int) -> tuple[Command, ...]:
    found: list[Command] = []
    number = start + 1
    while number < end:
        script = [lines[number].removeprefix("$ ")]
        number += 1
        while number < end and (lines[number].startswith("> ") or script[-1].endswith("\\")):
            script.append(lines[number].removeprefix("> "))
            number += 1
        first = number
        while number < end and not lines[number].startswith("$ "):
            number += 1
        found.append(Command("\n".join(script), tuple(lines[first:number]), (first, number) if number > first else None))
    return tuple(found)


# Execution.


def executed(blocks: Sequence[Block], folder: Path, available: frozenset[str] = frozenset()) -> Iterator[tuple[Block, Printed]]:
    """Executes the commands of those blocks that need no more than there is, one after the other.

    Args:
        blocks: those of a page.
        folder: an empty folder to work in; the examples of the documentation are put there, under their usual path.
        available: what may be needed.

    """
    shutil.copytree(ROOT / "docs" / "example", folder / "docs" / "example")
    shutil.copytree(ROOT / "docs" / "grafana", folder / "docs" / "grafana")
    programs = folder / ".programs"
    programs.mkdir()
    program = programs / "sensorbench"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sensorbench "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT / 'python'}:{ROOT}",
        "SENSORBENCH_CACHE": str(folder / ".cache"),
        "NO_COLOR": "1",
        "COLUMNS": "120",
    }
    for block in blocks:
        if block.needs <= available:
            for command in block.commands:
                ended = subprocess.run(
                    ["bash", "-e", "-o", "pipefail", "-c", command.script],
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=_LIMIT_S,
                    check=False,
                )
                yield block, Printed(command, ended.stdout, ended.returncode)


def problem(block: Block, printed: Printed) -> str | None:
    """What is wrong with what a command did; None if nothing is."""
    expected = block.exit_code if printed.command is block.commands[-1] else 0
    if printed.exit_code != expected:
        return f"line {block.line}: exit code {printed.exit_code} of: {printed.command.script}\n{printed.text}"
    missing = [line for line, found in zip(printed.command.shown, matched(printed), strict=True) if found is None]
    if missing:
        return f"line {block.line}: what is shown is not printed (make docs-outputs): {missing[0]!r}; printed was\n{printed.text}"
    return None


def matched(printed: Printed) -> list[str | None]:
    """For each shown line the printed one of the same shape, in their order; None if there is none."""
    found: list[str | None] = []
    remaining = printed.lines
    for line in printed.command.shown:
        if line.strip() in ("", LEFT_OUT):
            found.append(line)
            continue
        place = next((number for number, other in enumerate(remaining) if shape(other) == shape(line)), None)
        found.append(None if place is None else remaining[place])
        if place is not None:
            remaining = remaining[place + 1 :]
    return found


_NUMBER = r"[-+−]?\d[\d,.]*(?:e[-+]?\d+)?"
_UNIT = r"(?:ns|µs|ms|s|min|h|B|kB|KB|MB|GB|KiB|MiB|GiB|%|×|k|M)"


def shape(line: str) -> str:
    """A line without what differs from run to run: numbers with their units, dates, and how far columns are apart."""
    masked = re.sub(rf"{_NUMBER}(?:\s?{_UNIT}(?![\w]))?", "#", line)
    masked = re.sub(r"#(?:[-–:T/ ]+#)+", "#", masked)
    return " ".join(re.sub(r"[─━═-]{3,}", "---", masked).split())


def refreshed(text: str, printed: Sequence[Printed]) -> str:
    """A page with the outputs of a new execution: lines of the same shape, or all that was printed where there are none."""
    lines = text.splitlines()
    for each in sorted(
        (each for each in printed if each.command.shown_at), key=lambda each: each.command.shown_at or (0, 0), reverse=True
    ):
        first, last = each.command.shown_at or (0, 0)
        new = matched(each)
        lines[first:last] = each.lines if None in new else [line or "" for line in new]
    return "\n".join(lines) + "\n"
