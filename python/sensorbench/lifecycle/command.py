"""The command line as results show it."""

import sys

# How options end that are followed by a command of the user's.
_COMMANDS = "-command"


def command_line() -> list[str]:
    """The command line, without what could be a secret: targets are shown in the variants, and commands of users are not shown."""
    words = zip(["", *sys.argv[1:]], sys.argv[1:], strict=False)
    return ["sensorbench", *("…" if before.endswith(_COMMANDS) else _shown(word) for before, word in words)]


def _shown(word: str) -> str:
    option, equals, _ = word.partition("=")
    if equals and option.startswith("--") and option.endswith(_COMMANDS):
        return f"{option}=…"
    return word.partition(":")[0] + ":…" if "//" in word and ":" in word else word
