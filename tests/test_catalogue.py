"""The catalog of databases: every fact has a source, and what this project can do is what its parts can do."""

import json
import re
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.main import get_command

from sensorbench import _engine, lab
from sensorbench._engine import SchemaError, Target
from sensorbench.benchmarks.elasticity.changes import KINDS
from sensorbench.catalog import capabilities, entries, read_entry
from sensorbench.catalog.axes import axes
from sensorbench.catalog.entry import ENTRIES
from sensorbench.catalog.serialize import catalog_claims
from sensorbench.cli.main import app
from sensorbench.errors import UsageError
from sensorbench.results.sources import own_sources_of
from tests.conftest import TEST_OWNER, Cli, server_url

DRIVERS = {driver["name"]: driver for driver in json.loads(_engine.databases())}
# It answers nothing, and is not a database that anybody would choose.
NO_DATABASE = {"null"}
NAMED_BY_THE_STUDIES = {
    "cassandra", "hbase", "mongodb", "riak", "scalaris", "voldemort", "redis", "redis-cluster", "mysql", "mariadb", "postgresql", "odbc",
}  # fmt: skip


def test_every_target_is_of_one_entry() -> None:
    targets = [target for entry in entries().values() for target in entry.targets]
    assert sorted(targets) == sorted(DRIVERS.keys() - NO_DATABASE)
    assert entries().keys() >= NAMED_BY_THE_STUDIES
    assert set(lab.LAB_DATABASES) <= set(targets)


@pytest.mark.parametrize("name", sorted(entries()))
def test_capabilities_are_those_of_drivers_and_labs(name: str) -> None:
    entry = entries()[name]
    drivers, found = [DRIVERS[target] for target in entry.targets], capabilities(entry)
    assert found["driver"].described.keys() == set(entry.targets)
    assert found["lab"].described.keys() == {driver["name"] for driver in drivers if driver["name"] in lab.LAB_DATABASES}
    assert found["bulk_load"].described == {driver["name"]: driver["bulk_load"] for driver in drivers if driver["bulk_load"]}
    assert found["metrics"].can == any(target in lab.LAB_DATABASES or own_sources_of(target).quantity for target in entry.targets)
    changed_by_lab = {target for target, told in found["elasticity"].described.items() if told == ", ".join(KINDS)}
    assert changed_by_lab == set(entry.targets) & set(lab.clusters())
    if not entry.targets:
        assert not any(capability.can for capability in found.values())


def test_what_is_not_registered_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = next(entry for entry in entries().values() if set(entry.targets) & set(lab.clusters()))
    monkeypatch.setattr("sensorbench.catalog.capability.databases", dict)
    assert not any(capability.can for capability in capabilities(entry).values())


def test_every_fact_has_a_source(cli: Cli) -> None:
    catalog = cli("databases", "--json").json
    assert catalog["axes"].keys() == axes().keys()
    for database in catalog["databases"]:
        for axis, facts in database["facts"].items():
            assert facts["today"], (database["name"], axis)
            for fact in filter(None, facts.values()):
                assert fact["source"], (database["name"], axis)
                assert fact["value"] or fact["note"]
        assert bool(database["versions"]["studied"]) == any(facts["studied"] for facts in database["facts"].values())


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('value = "availability"', 'value = "always"', "facts.partition.studied.value: 'always' is not a word of this axis; expected one of availability"),
        ('value = "availability"', 'value = ["availability", "consistency"]', "facts.partition.studied.value: expected one word, not 2"),
        ('source = "elasticity: combined table"', 'source = "hearsay"', "facts.partition.studied.source: 'hearsay' is not a source of facts as of studied"),
        ('source = "elasticity: combined table"', 'source = ""', "facts.partition.studied.source: String should have at least 1 character"),
        ('value = "permissive", source = "licence", note = "Apache-2.0"', 'value = [], source = "licence"', "facts.licence.today.note: expected a note that says why"),
        ("[facts.maintenance]", "[facts.weather]", "facts.maintenance: this key is missing: say what is true today"),
        ('title = "Apache Cassandra"', 'titel = "Apache Cassandra"', "title: this key is missing"),
        ('elasticity = "0.7.2"', 'astrology = "0.7.2"', "studied.astrology: there is no such study"),
        ('value = "one-entity"', 'value = "several"', "facts.transactions.today.value: transactional consistency and transactions"),
        ("[today]\n", "[today\n", "line 11: unclosed table"),
    ],
)  # fmt: skip
def test_an_entry_that_cannot_be_used(tmp_path: Path, old: str, new: str, expected: str) -> None:
    file = tmp_path / "cassandra.toml"
    shutil.copy(ENTRIES / "cassandra.toml", file)
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UsageError) as error:
        read_entry(file)
    assert str(error.value).startswith(str(file))
    assert expected in str(error.value)


def test_listing(cli: Cli) -> None:
    listed = cli("databases")
    assert all(name in listed.out for name in entries())
    studied = cli("databases", "--as-studied").out
    assert "key-value-links" in studied
    assert "key-value-links" not in listed.out
    riak = cli("databases", "riak").out
    assert "Riak KV documentation" in riak
    assert "driver: no" in riak
    assert cli("databases", "oracle").exit_code == 2


def test_page(cli: Cli, tmp_path: Path) -> None:
    page = tmp_path / "databases.html"
    assert cli("databases", "--html", page, "--no-open").exit_code == 0
    text = unescape(page.read_text(encoding="utf-8"))
    for entry in entries().values():
        assert f'<details class="card" id="{entry.name}"' in text
        for facts in entry.facts.values():
            assert entry.described_source(facts.today) in text
    assert "http" not in re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL), "nothing is fetched from elsewhere"


def test_what_spark_can_read_is_what_its_connectors_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = next(entry for entry in entries().values() if entry.targets)
    monkeypatch.setattr("sensorbench.catalog.capability._CONNECTORS", tmp_path)
    assert not capabilities(entry)["mapreduce"].can
    (tmp_path / "one.toml").write_text(f'title = "A connector"\ndatabases = ["{entry.targets[0]}"]\n', encoding="utf-8")
    assert capabilities(entry)["mapreduce"].described == {entry.targets[0]: "A connector"}


def test_claims_name_commands_and_tests_that_there_are() -> None:
    commands = set(get_command(app).commands)
    claims = catalog_claims()
    assert [claim.id for claim in claims] == [f"CLS-{number}" for number in range(1, 21)]
    named = {name for claim in claims for name in re.findall(r"sensorbench (\S+)", claim.command)}
    assert {"run", "elasticity", "study"} <= named <= commands
    files = {name for claim in claims for name in re.findall(r"\w+\.py", claim.test)}
    assert "test_registers_faults.py" in files
    assert not [name for name in files if not (Path(__file__).parent / name).exists()]


READINGS = "CREATE TABLE readings (sensor int, site int, time timestamp, value double, PRIMARY KEY (sensor, site, time))"


def test_cassandra_refuses_what_its_keys_do_not_serve(lab_servers: dict[str, lab.Instance]) -> None:
    """CLS-17."""
    target = Target(server_url("cassandra", "keys"))
    target.create(
        json.dumps({"create": {"statements": [READINGS]}, "operations": []}), "{}", intent="create", owner=TEST_OWNER.to_json()
    )

    def ask(where: str) -> Any:
        statement = {"statement": f"SELECT value FROM readings WHERE {where}"}
        operation = {"name": "ask", "columns": [{"name": "value", "type": "double"}], "statement": statement}
        return json.loads(target.execute_once(json.dumps(operation), pa.table({}).to_reader()))

    with pytest.raises(SchemaError, match='preceding column "site" is not restricted'):
        ask("sensor = 1 AND time > 0")
    with pytest.raises(SchemaError, match="use ALLOW FILTERING"):
        ask("value = 1.0")
    assert ask("sensor = 1 AND site = 1 AND time > 0") == ask("value = 1.0 ALLOW FILTERING") == []
    target.remove(owner=TEST_OWNER.to_json())
