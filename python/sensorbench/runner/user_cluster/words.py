"""Commands of users as lists of words: what they are filled with, and how they are shown without secrets."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

HIDDEN = "…"
# What a word may stand for; `env:NAME` is a variable of the environment, whose value is shown nowhere.
PLACES = ("host", "port", "address", "name", "value")
_PLACE = re.compile(r"\{(host|port|address|name|value|env:[^{}]*)\}")
_VARIABLE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")
_SECRET_OPTION = re.compile(r"-.*(pass|secret|token|credential).*", re.IGNORECASE)
_USER_INFO = re.compile(r"//[^/@\s]*@")


@dataclass(frozen=True)
class FilledWords:
    """The words of a command that are run, and those that may be shown."""

    run: tuple[str, ...]
    shown: tuple[str, ...]

    @property
    def text(self) -> str:
        """The command as people read it."""
        return shlex.join(self.shown).replace(f"'{HIDDEN}'", HIDDEN)


def checked_words(words: list[str]) -> list[str]:
    """Words of a file. Raises ValueError for none, and for a place that is only a part of a word."""
    if not words or not words[0]:
        raise ValueError('expected a command as a list of words, such as ["systemctl", "restart", "NAME"]')
    for word in words:
        found = _PLACE.search(word)
        if found and found[0] != word:
            raise ValueError(f"{word!r}: {found[0]} must be a word of its own, since no shell takes words apart")
        if found and found[1].startswith("env:") and not _VARIABLE.fullmatch(found[1]):
            raise ValueError(f"{word!r}: expected the name of a variable of the environment, as in {{env:SERVER_PASSWORD}}")
    return words


def missing_variables(words: Sequence[str]) -> list[str]:
    """The variables that a command takes from the environment, and that are not set there."""
    return [name for name in _variables(words) if name not in os.environ]


def filled(words: Sequence[str], values: Mapping[str, str]) -> FilledWords:
    """A command with values in its places. A variable of the environment stays a place in what is shown."""
    known = {f"{{{name}}}": value for name, value in values.items()}
    secrets = {f"{{env:{name}}}": os.environ[name] for name in _variables(words)}
    run = tuple(secrets.get(word, known.get(word, word)) for word in words)
    return FilledWords(run, without_secrets(tuple(known.get(word, word) for word in words)))


def without_secrets(words: Sequence[str]) -> tuple[str, ...]:
    """Words without what looks like a secret: the value of an option that is called so, and user info of URLs."""
    shown = []
    for before, word in zip(["", *words], words, strict=False):
        option, equals, _ = word.partition("=")
        if _SECRET_OPTION.fullmatch(before) and "=" not in before and not word.startswith("{env:"):
            shown.append(HIDDEN)
        elif equals and _SECRET_OPTION.fullmatch(option):
            shown.append(f"{option}={HIDDEN}")
        else:
            shown.append(_USER_INFO.sub(f"//{HIDDEN}@", word))
    return tuple(shown)


def output_without_secrets(text: str, words: FilledWords) -> str:
    """What a command said, without the values that are not shown of its words."""
    hidden = {word for word, shown in zip(words.run, words.shown, strict=True) if word != shown}
    for secret in sorted(hidden, key=len, reverse=True):
        text = text.replace(secret, HIDDEN) if secret else text
    return text


def _variables(words: Sequence[str]) -> list[str]:
    places = (_PLACE.fullmatch(word) for word in words)
    return [place[1].removeprefix("env:") for place in places if place and place[1].startswith("env:")]
