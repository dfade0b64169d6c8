"""`schema list|show` and `operations list|show`: all that the package has, plain when piped, and why a database cannot express something."""

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from sensorbench.app.listing import list_operations, list_schemas, show_operation, show_schema
from sensorbench.errors import UsageError
from sensorbench.schemas.repeated import repeated
from sensorbench.schemas.shipped import SHIPPED_FOLDER
from tests.conftest import Cli


def test_every_schema_is_listed_and_shown_with_all_its_parts() -> None:
    listed = list_schemas(None, None, None)
    assert len(listed) == len(list(SHIPPED_FOLDER.glob("*/*/*.toml")))
    for schema in listed:
        shown = show_schema(schema.name, None, schema.database, schema.operations)
        text = (SHIPPED_FOLDER / shown.file).read_text(encoding="utf-8")
        file = tomllib.loads(text)
        if "{field}" in text:
            file = repeated(file, "field", ["field0"])
        parts = {name: len(found) if isinstance(found, list) else 1 for name, found in file.get("operation", {}).items()}
        assert Counter(statement.operation for statement in shown.statements) == parts
        assert len(shown.load_queries) >= len(file.get("load_query", {}))


def test_every_operation_is_shown_and_says_why_a_database_does_not_express_it() -> None:
    for operation in list_operations(None, None):
        shown = show_operation(operation.name, None, operation.operations)
        assert shown.expressed
        assert not shown.expressed.keys() & shown.not_expressed.keys()
        assert all(shown.not_expressed.values())


def test_a_schema_is_shown_plainly_when_piped(cli: Cli) -> None:
    outcome = cli("schema", "show", "keyed", "--operations", "patterns", "--database", "sqlite")
    assert outcome.exit_code == 0
    assert "\x1b" not in outcome.out
    assert "for key = integer:\nCREATE TABLE readings (\n    id INTEGER NOT NULL," in outcome.out
    assert "key        integer, name (2)  integer" in outcome.out
    assert "SELECT time, value FROM readings WHERE id = :id AND time >= :from AND time < :to" in outcome.out


def test_an_operation_is_shown_with_the_rows_of_a_dataset(cli: Cli) -> None:
    outcome = cli("operations", "show", "hourly_means", "--dataset", "beijing-air-quality")
    assert outcome.exit_code == 0
    assert "returns: hour (timestamp), mean (double, computed)" in outcome.out
    assert "parameter source series (88 rows in this dataset): Any sensor, each equally often." in outcome.out
    assert "not in fjall: a key-value store has no aggregates" in outcome.out
    as_json = cli("operations", "show", "hourly_means", "--dataset", "beijing-air-quality", "--json").json
    assert as_json["sources"][0]["rows"] == 88
    assert as_json["expressed"]["sqlite"] == ["by_sensor", "by_time"]


def test_lists_are_of_a_dataset_and_a_database(cli: Cli) -> None:
    rows = cli("schema", "list", "--dataset", "azure-vm-noise", "--database", "mariadb", "--json").json
    assert [(row["name"], row["database"], row["operations"]) for row in rows] == [("relational", "mysql", "logs")]
    assert {row["operations"] for row in cli("operations", "list", "--dataset", "azure-vm-noise", "--json").json} == {"logs"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("schema", "show", "nope", "--database", "fjall"), "there is no schema 'nope' here; expected one of"),
        (
            ("schema", "show", "natural"),
            "5 schemas are called natural; choose one of them by --operations sensors --database clickhouse",
        ),
        (("schema", "list", "--database", "oracle"), "--database oracle: expected one of"),
        (("schema", "list", "--operations", "nope"), "--operations nope: expected one of"),
        (("operations", "show", "get_range"), "2 operation sets have an operation get_range; choose one of them by --operations"),
        (("operations", "show", "nope"), "there is no operation 'nope' here; expected one of"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(arguments: tuple[str, ...], expected: str, cli: Cli) -> None:
    outcome = cli(*arguments)
    assert outcome.exit_code == 2
    assert expected in outcome.err


def test_a_dataset_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no dataset"):
        list_schemas(str(tmp_path / "nothing"), None, None)
