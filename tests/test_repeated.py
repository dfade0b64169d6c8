"""Parts of a schema that are there once for each field."""

from typing import Any

import pytest

from sensorbench.schemas.repeated import repeated


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("CREATE TABLE t (k text[[, {field} text]])", "CREATE TABLE t (k text, a text, b text)"),
        ("UPDATE t SET [[{field} = :{field}|, ]] WHERE k = :k", "UPDATE t SET a = :a, b = :b WHERE k = :k"),
        ("SELECT {field} FROM t", "SELECT {field} FROM t"),
        (["HSET", {"each": ["{field}", "{{field}}"]}], ["HSET", "a", "{a}", "b", "{b}"]),
        ([{"name": "k"}, {"each": {"name": "{field}"}}], [{"name": "k"}, {"name": "a"}, {"name": "b"}]),
        ({"k": ":k", "each": {"{field}": ":{field}"}}, {"k": ":k", "a": ":a", "b": ":b"}),
        ({"put": {"values": {"each": {"{field}": ":{field}"}}}, "n": 1}, {"put": {"values": {"a": ":a", "b": ":b"}}, "n": 1}),
        ([["[[{field}|-]]"], 2], [["a-b"], 2]),
        (
            {"each": {"set_{field}": {"all": "[[{field}|, ]]", "one": "{field}", "list": [{"each": "{field}"}]}}},
            {f"set_{name}": {"all": "a, b", "one": name, "list": ["a", "b"]} for name in "ab"},
        ),
    ],
)
def test_a_part_is_there_for_each_field(part: Any, expected: Any) -> None:
    assert repeated(part, "field", ["a", "b"]) == expected


def test_of_one_field_nothing_stands_in_between() -> None:
    assert repeated("[[{field}|, ]]", "field", ["a"]) == "a"
