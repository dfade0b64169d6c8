"""Parts of a schema file that are there once for each of several names, such as the fields of a record. A file may have such names of its own: `lists`, the word
of each with its names, `sensors = ["s0", "s1"]` or `sensors = "s0..s99"`.

In a text, `[[{field} text|, ]]` is repeated for each field, separated by what follows the bar (by nothing without a bar). In a list,
a member `{ each = X }` becomes X once for each field; where X is a list, its members. In a table, the key `each` has a table whose
keys and values are put in once for each field; what is repeated within it, is so for all of them.
"""

import re
from collections.abc import Sequence
from typing import Any

EACH = "each"
LISTS = "lists"
_NUMBERED = re.compile(r"(?P<stem>[A-Za-z_]+)(?P<first>\d+)\.\.(?P=stem)(?P<last>\d+)")
_REPEATED = re.compile(r"\[\[(?P<text>.*?)\]\]", re.DOTALL)


def names_of(written: str | Sequence[str]) -> list[str]:
    """The names of a list as a file writes it: themselves, or the first and the last of those that differ by a number.

    Raises:
        ValueError: for a text that is not a range of names.

    """
    if not isinstance(written, str):
        return list(written)
    found = _NUMBERED.fullmatch(written)
    if found is None or int(found["first"]) > int(found["last"]):
        raise ValueError(f"{written!r}: expected names, or a range of numbered ones such as 's0..s99'")
    return [f"{found['stem']}{number}" for number in range(int(found["first"]), int(found["last"]) + 1)]


def with_lists(content: Any) -> Any:
    """The content of a file, with what it says once for each name of its `lists` there for each of them. A list that is wrong is left to the file's model."""
    lists = content.get(LISTS)
    if not isinstance(lists, dict):
        return content
    whole = {key: part for key, part in content.items() if key != LISTS}
    for word, written in lists.items():
        try:
            whole = repeated(whole, word, names_of(written))
        except (TypeError, ValueError):
            return content
    return {LISTS: lists, **whole}


def repeated(part: Any, word: str, names: Sequence[str]) -> Any:
    """A part of a file, with `{word}` standing for each of the names."""
    if isinstance(part, str):
        return _REPEATED.sub(lambda match: _joined(match["text"], word, names), part)
    if isinstance(part, list):
        return [member for item in part for member in _members(item, word, names)]
    if isinstance(part, dict):
        is_repeated = EACH in part and _names(part[EACH], word)
        own = {key: repeated(value, word, names) for key, value in part.items() if key != EACH or not is_repeated}
        of_each = [_with_name(repeated(part[EACH], word, names), word, name) for name in names] if is_repeated else []
        return {**own, **{key: value for item in of_each for key, value in item.items()}}
    return part


def _joined(text: str, word: str, names: Sequence[str]) -> str:
    part, _, between = text.partition("|")
    if f"{{{word}}}" not in part:
        # It is there for each of other names.
        return f"[[{text}]]"
    return between.join(part.replace(f"{{{word}}}", name) for name in names)


def _members(member: Any, word: str, names: Sequence[str]) -> list[Any]:
    if not isinstance(member, dict) or set(member) != {EACH} or not _names(member[EACH], word):
        return [repeated(member, word, names)]
    item = repeated(member[EACH], word, names)
    found = [_with_name(item, word, name) for name in names]
    return [item for of_name in found for item in of_name] if isinstance(item, list) else found


def _with_name(part: Any, word: str, name: str) -> Any:
    """A part with one of the names put in wherever the word stands."""
    if isinstance(part, str):
        return part.replace(f"{{{word}}}", name)
    if isinstance(part, list):
        return [_with_name(item, word, name) for item in part]
    if isinstance(part, dict):
        return {_with_name(key, word, name): _with_name(value, word, name) for key, value in part.items()}
    return part


def _names(part: Any, word: str) -> bool:
    """Whether the word stands anywhere in a part."""
    if isinstance(part, str):
        return f"{{{word}}}" in part
    if isinstance(part, dict):
        return any(_names(key, word) or _names(value, word) for key, value in part.items())
    return isinstance(part, list) and any(_names(item, word) for item in part)
