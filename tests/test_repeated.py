"""Parts of a schema that are there once for each field."""

from pathlib import Path
from typing import Any

import pytest

from sensorbench.errors import UsageError
from sensorbench.schemas import load_operations
from sensorbench.schemas.repeated import names_of, repeated, with_lists

ROOT = Path(__file__).parent.parent


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


def test_a_file_has_lists_of_its_own() -> None:
    content = {
        "lists": {"few": "s0..s2", "two": ["a", "b"]},
        "text": "SELECT [[avg({few}) AS avg_{few}|, ]] FROM t WHERE k IN ([[:{two}|, ]]) AND [[{field}]]",
        "columns": [{"name": "time"}, {"each": {"name": "{two}"}}],
        "parameters": {"from": "timestamp", "each": {"{two}": "double"}},
    }
    whole = with_lists(content)
    assert whole["lists"] == content["lists"]
    assert (
        whole["text"]
        == "SELECT avg(s0) AS avg_s0, avg(s1) AS avg_s1, avg(s2) AS avg_s2 FROM t WHERE k IN (:a, :b) AND [[{field}]]"
    )
    assert whole["columns"] == [{"name": "time"}, {"name": "a"}, {"name": "b"}]
    assert whole["parameters"] == {"from": "timestamp", "a": "double", "b": "double"}
    assert with_lists({"text": "[[{few}|, ]]"}) == {"text": "[[{few}|, ]]"}


@pytest.mark.parametrize("written", ["s0", "s3..s1", "s0..t3", "..", "s0...s3"])
def test_a_range_of_names_that_is_none_is_refused_with_its_file_and_key(written: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected names, or a range of numbered ones"):
        names_of(written)
    file = tmp_path / "operations.toml"
    file.write_text(f'[lists]\nfew = "{written}"\n[operation]\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"operations\.toml, line 2, lists\.few.*expected names, or a range"):
        load_operations(str(file))


def test_a_file_is_parsed_once_and_again_when_it_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "operations.toml"
    file.write_text((ROOT / "docs" / "example" / "operations.toml").read_text(encoding="utf-8"), encoding="utf-8")
    first = load_operations(str(file))
    assert load_operations(str(file)) is first
    file.write_text(file.read_text(encoding="utf-8").replace('"Mean of an hour"', '"Average of an hour"'), encoding="utf-8")
    assert (first.operation["mean_of_hour"].title, load_operations(str(file)).operation["mean_of_hour"].title) == (
        "Mean of an hour",
        "Average of an hour",
    )
