"""Variants of different consistency levels and durability classes: each is ranked within its own, and nobody wins over another class."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sensorbench.analysis.promises import levels_of, promises_of_quorums
from sensorbench.benchmarks.comparison.classes import class_caveats, consistency_levels, durability_classes
from sensorbench.cli import output
from sensorbench.report import answer
from sensorbench.report.slowdowns import slowdowns
from sensorbench.results import ComparisonResult
from sensorbench.results.durability import durability_of, durability_rules
from sensorbench.results.page import Table
from sensorbench.results.summary.comparison import LoadFigures, RankedVariant, Ranking
from sensorbench.verification.guarantees import promised
from tests.test_answers import OPEN, OPERATIONS, place, ranked, summary_of

WEAK, STRONG = "1 of 3 answer a read", "2 of 3 answer a read"


def result_of(
    settings: dict[str, dict[str, str]], statements: dict[str, Any] | None = None, operations: tuple[str, ...] = ("read", "write")
) -> ComparisonResult:
    """A comparison of variants whose databases describe themselves so."""
    variants = [SimpleNamespace(id=name, statements=(statements or {}).get(name, {})) for name in settings]
    plan = SimpleNamespace(operations={name: SimpleNamespace(writes=name == "write") for name in operations})
    loads = {
        name: cast("LoadFigures", SimpleNamespace(description=SimpleNamespace(settings=of_variant)))
        for name, of_variant in settings.items()
    }
    return ComparisonResult(Path(), cast("Any", SimpleNamespace(variants=variants, plan=plan)), loads=loads)


def ring(**settings: str) -> dict[str, str]:
    return {"replication": "3", "consistency": "local_quorum", **settings}


def test_levels_are_replicas_by_kind_of_operation() -> None:
    found = consistency_levels(
        result_of({"a": ring(), "b": ring(read_consistency="one", write_consistency="quorum"), "c": {}}), ["read", "write"]
    )
    assert found == {
        "a": "2 of 3 acknowledge a write, 2 of 3 answer a read",
        "b": "2 of 3 acknowledge a write, 1 of 3 answer a read",
        "c": "",
    }


def test_only_levels_of_what_is_executed_count() -> None:
    of_both = result_of({"a": ring(), "b": ring(read_consistency="one")})
    assert consistency_levels(of_both, ["write"]) == {}
    assert consistency_levels(of_both, ["read"]) == {"a": STRONG, "b": WEAK}


def test_levels_that_are_the_same_replicas_are_the_same() -> None:
    alone = [{"replication": "1", "consistency": level} for level in ("one", "quorum", "all")]
    assert consistency_levels(result_of(dict(zip("abc", alone, strict=True))), ["read", "write"]) == {}
    assert consistency_levels(result_of({"a": ring(consistency="quorum"), "b": ring()}), ["read"]) == {}


def test_one_copy_is_ranked_with_databases_that_have_no_levels() -> None:
    of_one_node = {"replication": "1", "consistency": "local_quorum"}
    assert consistency_levels(result_of({"a": of_one_node, "b": {}}), ["read", "write"]) == {}


def test_a_statement_may_have_its_own_level_unless_the_target_says_it() -> None:
    own = {
        "b": {"read": {"statement": "SELECT", "consistency": "one"}},
        "c": {"read": {"statement": "SELECT", "consistency": "one"}},
    }
    found = consistency_levels(result_of({"a": ring(), "b": ring(), "c": ring(read_consistency="quorum")}, own), ["read"])
    assert found == {"a": STRONG, "b": WEAK, "c": STRONG}


def test_levels_that_are_no_number_of_replicas_are_named() -> None:
    found = consistency_levels(result_of({"a": ring(), "b": ring(read_consistency="serial")}), ["read"])
    assert found["b"] == "serial of 3 answer a read"


def at(level: str, *places: RankedVariant) -> list[RankedVariant]:
    return [of_level.model_copy(update={"consistency": level}) for of_level in places]


WEAK_ONES = at(WEAK, place("fjall-by_sensor_day", 1e-4), place("sqlite-natural", 5e-4, "slower", 4.2, 6.6))
STRONG_ONES = at(STRONG, place("sqlite-star", 4e-4), place("fjall-by_sensor", 8e-4, "slower", 1.9, 2.1))


def mixed(*places: RankedVariant) -> Ranking:
    return ranked(OPERATIONS[0], *sorted(places, key=lambda of: of.value_s))


def test_each_level_has_a_fastest_variant(summary: dict[str, Any]) -> None:
    ranking = mixed(*WEAK_ONES, *STRONG_ONES)
    assert answer.winners(ranking) == f"fjall · by_sensor_day ({WEAK}); sqlite · star ({STRONG})"
    headline = answer.headline(summary_of(summary, ranking))
    assert f"fjall · by_sensor_day is 4.2–6.6× faster than the next variant for Readings of one sensor ({WEAK})" in headline
    assert "sqlite · star is 1.90–2.1× faster than the next variant" in headline
    assert headline.count(f"for Readings of one sensor ({STRONG})") == 1
    assert "no significant difference" not in headline


def test_nobody_wins_over_another_level(summary: dict[str, Any]) -> None:
    ranking = mixed(WEAK_ONES[0], STRONG_ONES[0])
    headline = answer.headline(summary_of(summary, ranking))
    assert headline == "Variants differ in consistency level or durability, so none is ranked the fastest."


def test_what_differs_in_class_is_not_level(summary: dict[str, Any]) -> None:
    apart = mixed(WEAK_ONES[0], STRONG_ONES[0])
    level = ranked(OPERATIONS[1], *at(WEAK, *OPEN), *at(STRONG, place("sqlite-star", 5e-4)))
    compared = summary_of(summary, apart, level, ranked(OPERATIONS[2], WEAK_ONES[0]))
    assert answer.headline(compared).startswith(
        "No significant difference between the fastest at 1 of 3 operations; variants differ in consistency level or durability at 1 of 3 "
        "operations; one variant alone answered 1 of 3 operations ("
    )
    title = compared.result.operations[OPERATIONS[1]].title
    assert output.open_operations(compared) == [
        f"no significant difference at {title} ({WEAK}): sqlite · natural, fjall · by_sensor"
    ]


def test_slowdowns_are_those_within_a_level(summary: dict[str, Any]) -> None:
    section = slowdowns(summary_of(summary, mixed(*WEAK_ONES, *STRONG_ONES)))
    assert section is not None
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    ratios = [cell.text[0] for cell in table.rows[0][1:] if cell is not None]  # type: ignore[union-attr, index]
    assert sorted(ratios) == pytest.approx([1.0, 1.0, 2.0, 5.0])  # type: ignore[type-var]


def test_promises_are_of_both_levels() -> None:
    assert levels_of(ring(read_consistency="one")) == ("one", "local_quorum")
    assert levels_of({"consistency": "one"}) is None
    weak = promised("quorums", ring(read_consistency="one", write_consistency="quorum"))
    assert weak == promises_of_quorums(3, "quorum", "one")
    assert weak is not None
    assert not weak["stale_reads"].is_made
    strong = promised("quorums", ring(read_consistency="one", write_consistency="all"))
    assert strong is not None
    assert strong["stale_reads"].is_made


@pytest.mark.parametrize(
    ("database", "settings", "durability"),
    [
        ("Redis", {"appendonly": "no", "appendfsync": "everysec"}, "memory"),
        ("Redis", {"appendonly": "yes", "appendfsync": "everysec"}, "cache"),
        ("Redis", {"appendonly": "yes", "appendfsync": "always"}, "disk"),
        ("PostgreSQL", {"fsync": "on", "synchronous_commit": "on"}, "disk"),
        ("PostgreSQL", {"fsync": "off", "synchronous_commit": "on"}, "cache"),
        ("PostgreSQL", {"fsync": "on", "synchronous_commit": "off"}, "memory"),
        ("MariaDB", {"innodb_flush_log_at_trx_commit": "2"}, "cache"),
        ("Apache Cassandra", {"commitlog_sync": "periodic", "durable_writes": "true"}, "cache"),
        ("Apache Cassandra", {"commitlog_sync": "BATCH", "durable_writes": "true"}, "disk"),
        ("Apache Cassandra", {"commitlog_sync": "batch", "durable_writes": "false"}, "memory"),
        ("SQLite", {"synchronous": "1", "journal_mode": "wal"}, "cache"),
        ("SQLite", {"synchronous": "2", "journal_mode": "wal"}, "disk"),
        # A server that reports nothing, and one that nobody knows.
        ("PostgreSQL", {}, None),
        ("Papyrus", {"fsync": "on"}, None),
    ],
)
def test_a_durability_class_follows_from_settings(database: str, settings: dict[str, str], durability: str | None) -> None:
    assert durability_of(database, settings) == durability


def test_every_database_with_rules_has_a_source() -> None:
    assert all(rules.source and rules.rules for rules in durability_rules().values())


def durable(**databases: str) -> ComparisonResult:
    """Variants of databases that acknowledge in their own default way."""
    settings = {"SQLite": {"synchronous": "2"}, "Redis": {"appendonly": "no"}, "Papyrus": {}}
    result = result_of({variant: settings[database] for variant, database in databases.items()})
    for variant, database in databases.items():
        cast("Any", result.loads[variant].description).database = database
    return result


def test_writes_of_other_durability_are_told_apart() -> None:
    classes = durability_classes(durable(a="SQLite", b="Redis", c="Papyrus"))
    assert classes == {
        "a": "acknowledged on disk",
        "b": "acknowledged in the server's memory",
        "c": "durability not known",
    }
    assert durability_classes(durable(a="SQLite", b="SQLite")) == {}
    (caveat,) = class_caveats({}, classes)
    assert caveat.kind == "durability"
    assert "At operations that write, each is ranked within its own class" in caveat.text


def test_a_class_of_durability_has_a_fastest_variant() -> None:
    on_disk = place("sqlite-star", 4e-4).model_copy(update={"durability": "acknowledged on disk"})
    in_memory = place("redis-by_sensor", 1e-4).model_copy(update={"durability": "acknowledged in the server's memory"})
    ranking = mixed(on_disk, in_memory)
    assert answer.winners(ranking) == (
        "redis · by_sensor (acknowledged in the server's memory); sqlite · star (acknowledged on disk)"
    )
    assert [ranking.best_for(of).variant for of in ranking.places] == ["redis-by_sensor", "sqlite-star"]
