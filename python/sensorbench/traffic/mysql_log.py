"""MySQL's and MariaDB's logs: the slow log, which with long_query_time=0 has every statement with its duration, and the general log."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from sensorbench.errors import UsageError
from sensorbench.traffic.entries import Entry, Skipped

# A server writes these three lines whenever it opens a log.
_HEADER = re.compile(r"\S+, Version: .* started with:$")
_COLUMNS = re.compile(r"Time\s+Id\s+Command\s+Argument\s*$")
_SERVER = re.compile(r"Tcp port: ")
_SHORT_TIME = r"\d{6}\s+\d{1,2}:\d\d:\d\d"
_LONG_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:\d\d)"
_SLOW_TIME = re.compile(rf"# Time: (?:{_SHORT_TIME}|(?P<ended>{_LONG_TIME}))\s*$")
_SLOW_USER = re.compile(r"# User@Host: .*?(?:Id:\s*(?P<session>\d+))?\s*$")
_SLOW_THREAD = re.compile(r"# Thread_id: (\d+)")
_SLOW_FIGURES = re.compile(r"# Query_time: ([\d.]+)\s+Lock_time: [\d.]+\s+Rows_sent: (\d+)")
_SLOW_SET = re.compile(r"SET (?:[^;]*,)?timestamp=(\d+(?:\.\d+)?);$")
_GENERAL = re.compile(
    rf"(?:(?P<short>{_SHORT_TIME})|(?P<long>{_LONG_TIME}))?\t\s*(?P<session>\d+) (?P<command>[A-Z][A-Za-z ]*)\t(?P<argument>.*)",
    re.DOTALL,
)
# Of what is prepared by SQL, the server logs the statement that is executed as well.
_BY_SQL = re.compile(r"\s*(?:prepare|execute|deallocate)\b", re.IGNORECASE)


def is_slow_log(lines: list[str]) -> bool | None:
    """Whether a log is the slow log, by its first lines; False for the general log, None for neither."""
    rest = [line for line in lines if not (_HEADER.match(line) or _SERVER.match(line) or _COLUMNS.match(line))]
    if not rest:
        return None
    if _SLOW_TIME.match(rest[0]) or _SLOW_USER.match(rest[0]):
        return True
    return False if _GENERAL.match(rest[0]) else None


def read_slow_log(path: Path, skipped: Skipped) -> Iterator[Entry]:
    """The statements of a slow log. MariaDB writes whole seconds: where a session's statements began in the same one, each begins when the one
    before was answered. Raises UsageError that names the line.
    """
    answered_us: dict[str, int] = {}
    for number, lines in _blocks(path):
        entry = _slow_entry(path, number, lines)
        if entry is None:
            skipped.entries += 1
            continue
        session = str(entry.session)
        entry.at_us = max(entry.at_us, answered_us.get(session, entry.at_us))
        answered_us[session] = entry.at_us + round((entry.duration_s or 0.0) * 1e6)
        yield entry


def _blocks(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines of each entry with the number of its first one. A line `# Time:` belongs to the entry after it."""
    block: list[str] = []
    begin, has_user = 1, False
    for number, line in _lines(path):
        is_user = bool(_SLOW_USER.match(line))
        if (is_user and has_user) or _SLOW_TIME.match(line) or _HEADER.match(line):
            if has_user:
                yield begin, block
            block, begin, has_user = [], number, False
        has_user = has_user or is_user
        block.append(line)
    if has_user:
        yield begin, block


def _slow_entry(path: Path, number: int, lines: list[str]) -> Entry | None:
    """The statement of a block of the slow log; None for a command that is none, such as Quit."""
    session, ended, figures, since = "", None, None, None
    for place, line in enumerate(lines):
        if found := _SLOW_TIME.match(line):
            ended = found["ended"] or ended
        elif found := _SLOW_USER.match(line):
            session = found["session"] or session
        elif found := _SLOW_THREAD.match(line):
            session = found[1]
        elif found := _SLOW_FIGURES.match(line):
            figures = found
        elif found := _SLOW_SET.match(line):
            since, statement = found[1], lines[place + 1 :]
            break
    if figures is None or since is None:
        raise UsageError(f"{path}:{number}: expected an entry of a slow log, with lines '# Query_time: …' and 'SET timestamp=…;'")
    text = "\n".join(statement).removesuffix(";")
    if not text or text.startswith("# administrator command: ") or _BY_SQL.match(text):
        return None
    duration_s = float(figures[1])
    at_us = round(float(since) * 1e6) if ended is None else _microseconds(ended) - round(duration_s * 1e6)
    return Entry(at_us, session, text, duration_s=duration_s, rows=int(figures[2]))


def read_general_log(path: Path, skipped: Skipped) -> Iterator[Entry]:
    """The statements of a general log, which has no durations. Times of MariaDB have no zone, and are taken as UTC. Raises UsageError that names
    the line.
    """
    entry: Entry | None = None
    at_us: int | None = None
    for number, line in _lines(path):
        found = _GENERAL.match(line)
        if found is None:
            if _HEADER.match(line) or _SERVER.match(line) or _COLUMNS.match(line):
                continue
            if entry is None and at_us is None:
                raise UsageError(f"{path}:{number}: expected a line of a general log: time, id, command and argument")
            if entry is not None:
                entry.statement += f"\n{line}"
            continue
        if entry is not None:
            yield entry
            entry = None
        at_us = _time_of(found, at_us)
        if at_us is None:
            raise UsageError(f"{path}:{number}: expected a time in the first line of a general log")
        if is_statement(found["command"], found["argument"]):
            entry = Entry(at_us, found["session"], found["argument"])
        else:
            skipped.entries += 1
    if entry is not None:
        yield entry


def is_statement(command: str, argument: str) -> bool:
    """Whether an entry of the general log is a statement that was executed."""
    return command == "Execute" or (command == "Query" and not _BY_SQL.match(argument))


def _time_of(found: "re.Match[str]", before: int | None) -> int | None:
    """When a line of the general log was written; MariaDB leaves out a time that is that of the line before."""
    if found["long"]:
        return _microseconds(found["long"])
    if found["short"]:
        day, clock = found["short"].split()
        time = datetime.strptime(f"{day} {clock}", "%y%m%d %H:%M:%S").replace(tzinfo=UTC)
        return round(time.timestamp() * 1e6)
    return before


def _microseconds(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * 1e6)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    # Bytes that are not UTF-8 are of text in another character set: they are replaced as in the other logs.
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            yield number, line.removesuffix("\n")
