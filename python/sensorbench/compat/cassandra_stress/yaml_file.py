"""YAML files with the line of every value, so that errors can name it. Scalars are kept as they are written."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from sensorbench.errors import UsageError


@dataclass(frozen=True)
class Said:
    """A value of a file: a text, a list or a mapping, and where it stands. `key` leads to it from the top of the file."""

    value: "str | list[Said] | dict[str, Said]"
    path: Path
    line: int
    key: str = ""

    @property
    def text(self) -> str:
        """The value as a text. Raises UsageError if it is none."""
        if not isinstance(self.value, str):
            raise self.error("expected a single value")
        return self.value.strip()

    @property
    def members(self) -> "list[Said]":
        """The members of a list. Raises UsageError if it is none; nothing said is an empty list."""
        if self.value == "":
            return []
        if not isinstance(self.value, list):
            raise self.error("expected a list")
        return self.value

    @property
    def mapping(self) -> "dict[str, Said]":
        """The values of a mapping by their keys. Raises UsageError if it is none; nothing said is an empty mapping."""
        if self.value == "":
            return {}
        if not isinstance(self.value, dict):
            raise self.error("expected keys with values")
        return self.value

    def error(self, message: str) -> UsageError:
        """An error about it."""
        place = f", {self.key}" if self.key else ""
        return UsageError(f"{self.path}, line {self.line}{place}: {message}")


def read_yaml(path: Path) -> Said:
    """What a file says. Raises UsageError for one that cannot be read or is not YAML."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"{path}: {reason}") from None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UsageError(f"{path}, line {line}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: {error}") from None
    if node is None:
        raise UsageError(f"{path}: it says nothing")
    return _said(node, path, "")


def _said(node: yaml.Node, path: Path, key: str) -> Said:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        return Said(dict(_members(node, path, key)), path, line, key)
    if isinstance(node, yaml.SequenceNode):
        members = [_said(member, path, f"{key}[{number}]") for number, member in enumerate(node.value)]
        return Said(members, path, line, key)
    # A key without a value and `~` both mean nothing.
    return Said("" if node.tag == "tag:yaml.org,2002:null" else node.value, path, line, key)


def _members(node: yaml.MappingNode, path: Path, key: str) -> Iterator[tuple[str, Said]]:
    known = set()
    for name, value in node.value:
        own = f"{key}.{name.value}" if key else str(name.value)
        if name.value in known:
            raise Said("", path, name.start_mark.line + 1, own).error("this key appears twice")
        known.add(name.value)
        # A block of text begins in the line of its key.
        yield name.value, _said(value, path, own)
