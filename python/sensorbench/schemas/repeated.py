"""Parts of a schema file that are there once for each of several names, such as the fields of a record.

In a text, `[[{field} text|, ]]` is repeated for each field, with what stands behind the bar in between (nothing without a bar). In a list,
a member `{ each = X }` becomes X once for each field; where X is a list, its members. In a table, the key `each` has a table whose
keys and values are put in once for each field; what is repeated within it, is so for all of them.
"""

import re
from collections.abc import Sequence
from typing import Any

EACH = "each"
_REPEATED = re.compile(r"\[\[(?P<text>.*?)\]\]", re.DOTALL)


def repeated(part: Any, word: str, names: Sequence[str]) -> Any:
    """A part of a file, with `{word}` standing for each of the names."""
    if isinstance(part, str):
        return _REPEATED.sub(lambda match: _joined(match["text"], word, names), part)
    if isinstance(part, list):
        return [member for item in part for member in _members(item, word, names)]
    if isinstance(part, dict):
        own = {key: repeated(value, word, names) for key, value in part.items() if key != EACH}
        of_each = [_with_name(repeated(part[EACH], word, names), word, name) for name in names] if EACH in part else []
        return {**own, **{key: value for item in of_each for key, value in item.items()}}
    return part


def _joined(text: str, word: str, names: Sequence[str]) -> str:
    part, _, between = text.partition("|")
    return between.join(part.replace(f"{{{word}}}", name) for name in names)


def _members(member: Any, word: str, names: Sequence[str]) -> list[Any]:
    if not isinstance(member, dict) or set(member) != {EACH}:
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
