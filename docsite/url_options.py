"""The reference of URL options: which there are, the engine's drivers say; what they mean, `url_options.toml` does."""

import json
import re
import tomllib
from functools import cache
from pathlib import Path

from docsite.markdown import code, table
from sensorbench import _engine
from sensorbench.errors import EngineUsageError, UsageError

_FILE = Path(__file__).with_suffix(".toml")
# Options of every driver of a server.
SERVER = "server"
# Its other options are attributes for drivers that nobody here knows, so it refuses none by name.
_TAKES_ALL = "odbc"
_NO_OPTION = "no_such_option"


@cache
def described() -> dict[str, dict[str, dict[str, str]]]:
    """What each option means: values, default and text, by dialect (or `server`) and name."""
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


def options_of(database: str, *, embedded: bool) -> list[str]:
    """The options that a database's driver knows, as it says when it refuses one."""
    if database == _TAKES_ALL:
        return [*described()[_TAKES_ALL], "namespace", "connections", "credentials"]
    address = "" if embedded else "//127.0.0.1:1"
    try:
        _engine.Target(f"{database}:{address}?{_NO_OPTION}=1")
    except EngineUsageError as error:
        found = re.search(r"expected one of (.*)$", str(error))
        if found:
            return found[1].split(", ")
        raise
    raise AssertionError(f"{database} took the option {_NO_OPTION}")


def key(database: str, dialect: str, *, embedded: bool) -> str:
    """What a database's options are described under: its dialect, whose databases are reached alike, or its own name where it is embedded."""
    return database if embedded else dialect


def reference() -> str:
    """A table for what all servers have, and one for each dialect. Raises UsageError for an option that is not described."""
    parts, done = [_section("All servers", SERVER, list(described()[SERVER]))], set[str]()
    for entry in json.loads(_engine.databases()):
        described_as = key(entry["name"], entry["dialect"], embedded=entry["embedded"])
        if described_as in done:
            continue
        done.add(described_as)
        others = json.loads(_engine.databases())
        names = [
            other["name"] for other in others if key(other["name"], other["dialect"], embedded=other["embedded"]) == described_as
        ]
        known = options_of(entry["name"], embedded=entry["embedded"])
        own = [option for option in known if entry["embedded"] or option not in described()[SERVER]]
        parts.append(_section(", ".join(map(code, (f"{name}:" for name in names))), described_as, own))
    return "\n".join(parts)


def _section(title: str, dialect: str, options: list[str]) -> str:
    about = described().get(dialect, {})
    missing = [option for option in options if option not in about]
    if missing:
        raise UsageError(f"{_FILE}: [{dialect}.{missing[0]}] is missing; describe what the option means")
    rows = [(code(f"{name}="), about[name]["values"], about[name].get("default", ""), about[name]["about"]) for name in options]
    body = table(("option", "values", "default", "meaning"), rows) if rows else "No options but those of all servers.\n"
    return f"### {title}\n\n{body}"
