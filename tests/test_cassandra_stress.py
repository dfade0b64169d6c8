"""Profiles of cassandra-stress: what the file says is what is written and asked, or it is refused."""

import json
import math
import re
import struct
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy

from sensorbench import _engine, lab
from sensorbench.compat.cassandra_stress.distributions import Distribution, parse_distribution, parse_ratio
from sensorbench.compat.cassandra_stress.options import parse_operations
from sensorbench.compat.cassandra_stress.plan import (
    Mix,
    PlannedOperation,
    ProfileSchema,
    driver_schema,
    operations_of_mix,
    plan_of,
)
from sensorbench.compat.cassandra_stress.population import Population
from sensorbench.compat.cassandra_stress.profile import Profile, read_profile
from sensorbench.compat.cassandra_stress.queries import parse_query
from sensorbench.compat.cassandra_stress.streams import split, stream_of
from sensorbench.compat.cassandra_stress.table import parse_table
from sensorbench.compat.cassandra_stress.values import binary_values
from sensorbench.compat.cassandra_stress.visits import arguments, insertions, parse_partitions
from sensorbench.errors import UsageError
from sensorbench.options import DEFAULT_SEED
from tests.conftest import TEST_OWNER, Cli, server_url

FIXTURES = Path(__file__).parent / "fixtures" / "cassandra-stress"
READINGS, EVENTS, COUNTERS, TYPES = (FIXTURES / f"{name}.yaml" for name in ("readings", "events", "counters", "types"))
DRAWN = 40_000
# A goodness of fit as bad as this is seen once in a thousand times, and equal seeds give equal numbers.
RARE = 0.001


def profile(path: Path, *changes: tuple[str, str], to: Path | None = None) -> Profile:
    """A profile of the fixtures, with some texts replaced in a copy."""
    if not changes:
        return read_profile(path)[0]
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    assert to is not None
    changed = to / path.name
    changed.write_text(text, encoding="utf-8")
    return read_profile(changed)[0]


def drawn(text: str, count: int = DRAWN) -> np.ndarray:
    streams = split(stream_of(7), np.arange(count, dtype=np.uint64))
    return parse_distribution(text).whole(streams, np.arange(count))


def fits(values: np.ndarray, below: Any) -> float:
    """How likely whole numbers are so far from a distribution, `below(x)` being the share below x. Rare ones are put together."""
    found = Counter(values.tolist())
    edges, expected = [min(found)], []
    for value in range(min(found), max(found) + 2):
        share = below(value) - below(edges[-1]) if expected or value > edges[-1] else 0.0
        if share * len(values) >= 20:
            expected.append(share)
            edges.append(value)
    edges[0], edges[-1] = -(10**12), 10**12
    expected[-1] += 1.0 - sum(expected)
    counts, _ = np.histogram(values, edges)
    return float(scipy.stats.chisquare(counts, np.array(expected) * len(values)).pvalue)


# By their own formulas: the most is reached with the probability 1/√width, and what lies behind it is there.
def below_exponential(least: int, most: int, shape: float = 1.0) -> Any:
    scale = (most - least) / (0.5 * math.log(most - least)) ** (1 / shape)
    return lambda value: float(scipy.stats.weibull_min.cdf(value - least, shape, scale=scale)) if value <= most else 1.0


def below_gaussian(least: int, most: int, mean: float, deviation: float) -> Any:
    return lambda value: 0.0 if value <= least else float(scipy.stats.norm.cdf(value, mean, deviation)) if value <= most else 1.0


@pytest.mark.parametrize(
    ("text", "below"),
    [
        ("UNIFORM(1..10)", lambda value: (value - 1) / 10),
        ("uniform(3...1K)", lambda value: (value - 3) / 998),
        ("EXP(1..100)", below_exponential(1, 100)),
        ("EXTREME(1..100,2)", below_exponential(1, 100, 2.0)),
        ("weibull(11..40,0.7)", below_exponential(11, 40, 0.7)),
        ("GAUSSIAN(1..10)", below_gaussian(1, 10, 5.5, 1.5)),
        ("gauss(1..101,5)", below_gaussian(1, 101, 51.0, 10.0)),
        ("normal(1..100,20,30)", below_gaussian(1, 100, 20.0, 30.0)),
    ],
)
def test_a_distribution_is_what_it_says(text: str, below: Any) -> None:
    values = drawn(text)
    assert fits(values, below) > RARE
    # Inverted, the least is as likely as the most was.
    found = parse_distribution(text)
    assert np.array_equal(drawn(f"~{text}"), found.max + found.min - values)
    assert abs(found.average() - values.mean()) < 4 * values.std() / math.sqrt(DRAWN)


def test_quantas_are_equally_likely_and_even_within() -> None:
    values = drawn("QEXTREME(1..10K,2,4)")
    whole = parse_distribution("EXTREME(1..10K,2)")
    bounds = [1, *(int(whole._quantile(np.array([share]))[0]) for share in (0.25, 0.5, 0.75)), 10_001]
    counts, _ = np.histogram(values, bounds)
    assert scipy.stats.chisquare(counts).pvalue > RARE
    of_first = values[values < bounds[1]]
    halves = np.histogram(of_first, [1, (1 + bounds[1]) / 2, bounds[1]])[0]
    assert scipy.stats.chisquare(halves).pvalue > RARE


def test_what_is_fixed_or_in_sequence() -> None:
    assert set(drawn("FIXED(3K)")) == {3000}
    assert drawn("seq(5..7)")[:5].tolist() == [5, 6, 7, 5, 6]
    assert parse_ratio("uniform(1..10)/10").shares(split(stream_of(1), np.arange(9, dtype=np.uint64))).max() <= 1.0
    assert parse_ratio("fixed(1)/1").is_all
    assert not parse_ratio("fixed(1)/2").is_all


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zipf(1..10)", "is not a distribution; expected one of EXP(min..max)"),
        ("uniform(1-10)", "expected UNIFORM(min..max)"),
        ("exp(10..1)", "10 is above 1"),
        ("extreme(1..10)", "expected EXTREME(min..max,shape)"),
        ("extreme(1..10,0)", "the shape must be above 0"),
        ("qextreme(1..10,1,2.5)", "quantas are a whole number"),
        ("gaussian(1..10,0)", "expected GAUSSIAN(min..max[,stdvrng])"),
        ("gaussian(1..10,5,0)", "the standard deviation must be above 0"),
        ("fixed(x)", "expected FIXED(value) ('x' is not a whole number)"),
    ],
)
def test_what_is_no_distribution_is_refused(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        parse_distribution(text)


@pytest.mark.parametrize("text", ["fixed(1)", "fixed(2)/1", "uniform(1..10)/0", "fixed(-1)/2"])
def test_what_is_no_ratio_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"ratio|share"):
        parse_ratio(text)


def test_a_table_is_known_by_its_definition() -> None:
    table = parse_table(
        """create table if not exists ks."Odd" (b text, a int, -- c text
        "C" blob, t timestamp, s bigint static, primary key ((b, a), t)) with clustering order by (t desc) and comment = 'x, (y'"""
    )
    assert table.name == "Odd"
    assert [column.name for column in table.partition_key] == ["b", "a"]
    assert [column.name for column in table.columns] == ["b", "a", "t", "s", "C"]
    assert [column.name for column in parse_table("CREATE TABLE t (k bigint PRIMARY KEY, v double)").key] == ["k"]


@pytest.mark.parametrize(
    ("cql", "statement", "arguments", "answer"),
    [
        ("select * from t where k = ? limit 5", "select * from t where k = :argument0_k limit 5", ["k"], ["integer", "timestamp", "counter", "text"]),
        ("SELECT v AS x, count(*), max(c) FROM t WHERE k=? AND c >= ?;", "SELECT v AS x, count(*), max(c) FROM t WHERE k=:argument0_k AND c >= :argument1_c", ["k", "c"], ["text", "integer", "timestamp"]),
        ("SELECT DISTINCT k FROM t WHERE k = 1 -- really?", "SELECT DISTINCT k FROM t WHERE k = 1 -- really?", [], ["integer"]),
        ("INSERT INTO t (v, k, c) VALUES ('?', ?, ?)", "INSERT INTO t (v, k, c) VALUES ('?', :argument0_k, :argument1_c)", ["k", "c"], []),
        ("UPDATE t SET n = n + ? WHERE k = ? AND c = ?", "UPDATE t SET n = n + :argument0_n WHERE k = :argument1_k AND c = :argument2_c", ["n", "k", "c"], []),
        ("DELETE FROM t WHERE k = ?", "DELETE FROM t WHERE k = :argument0_k", ["k"], []),
    ],
)  # fmt: skip
def test_placeholders_stand_for_columns(cql: str, statement: str, arguments: list[str], answer: list[str]) -> None:
    table = parse_table("CREATE TABLE t (k int, c timestamp, v text, n counter, PRIMARY KEY (k, c))")
    query = parse_query(cql, table, "samerow")
    assert query.statement == statement
    assert [column.name for column in query.arguments.values()] == arguments
    assert [of_type for _, of_type in query.answer] == [name.replace("counter", "integer") for name in answer]


@pytest.mark.parametrize(
    ("old", "new", "place", "expected"),
    [
        ("keyspace: sensors", "keyspaces: sensors", "line 2, keyspaces", "this key is not supported; expected one of keyspace, keyspace_definition"),
        ("table: readings", "table: writings", "line 6, table", "'writings' is not the table of table_definition, readings"),
        ("table: readings", "table: [readings", "line 7", "expected ',' or ']'"),
        ("table_definition: |", "definition: |", "line 7, definition", "this key is not supported"),
        ("day int", "day duration", "line 7, table_definition", "the column day is duration, whose values cannot be made here; types that can: ascii, text"),
        ("day int", "day list<int>", "line 7, table_definition", "the column day is list<int>"),
        ("day int", "day frozen<tuple<int, text>>", "line 7, table_definition", "the column day is frozen<tuple<int,text>>"),
        ("day int", "day point", "line 7, table_definition", "the column day is point"),
        ("PRIMARY KEY ((sensor, day), time)", "PRIMARY KEY ((sensor, days), time)", "table_definition", "the column days of the PRIMARY KEY is not there"),
        ("- name: time", "- name: times", "columnspec[2].name", "there is no column times; expected one of sensor, day, time"),
        ("cluster: uniform(2..6)", "cluster: uniform(0..6)", "line 27, columnspec[2].cluster", "expected at least 1"),
        ("cluster: uniform(2..6)", "clusters: uniform(2..6)", "line 27, columnspec[2].clusters", "expected one of name, size, population, cluster"),
        ("size: fixed(12)", "size: 12", "line 22, columnspec[0].size", "is not a distribution"),
        ("size: fixed(12)", "size: fixed(12)\n    size: fixed(3)", "line 23, columnspec[0].size", "this key appears twice"),
        ("partitions: fixed(1)", "partitions: uniform(0..1)", "insert.partitions", "expected at least 1"),
        ("partitions: fixed(1)", "condition: IF note = NULL", "insert.condition", "this key is not supported; expected one of partitions, batchtype"),
        ("partitions: fixed(1)", "row-population: fixed(1)/2", "insert.row-population", "expected fixed(1)/1"),
        ("batchtype: UNLOGGED", "batchtype: FAST", "insert.batchtype", "expected one of LOGGED, UNLOGGED, COUNTER"),
        ("batchtype: UNLOGGED", "batchtype: COUNTER", "insert.batchtype", "a table without counters"),
        ("select: fixed(1)/1", "select: fixed(2)/1", "insert.select", "expected a share"),
        ("queries:", "token_range_queries:\n  all:\n    columns: time\nqueries:", "token_range_queries", "queries of token ranges are not supported"),
        ("fields: multirow", "fields: anyrow", "queries.since.fields", "expected one of samerow, multirow"),
        ("  one:", "  insert:", "queries.insert", "a word other than insert"),
        ("and day = ? and time = ?", "and day = ? and time IN ?", "queries.one.cql", "a placeholder must be compared with a column"),
        ("and day = ? and time = ?", "and day = ? and token(sensor) > ?", "queries.one.cql", "a placeholder must be compared"),
        ("and day = ? and time = ?", "and days = ?", "queries.one.cql", "there is no column days"),
        ("select value, note", "select value, avg(value)", "queries.one.cql", "the type of avg(value) is not known"),
        ("select value, note from readings", "select value, note from others", "queries.one.cql", "expected the table of the profile, readings"),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_refused_with_its_place(tmp_path: Path, old: str, new: str, place: str, expected: str) -> None:
    with pytest.raises(UsageError) as raised:
        profile(READINGS, (old, new), to=tmp_path)
    assert f"{tmp_path}/readings.yaml, " in str(raised.value)
    assert place in str(raised.value)
    assert expected in str(raised.value)


def test_a_keyspace_says_copies_and_durability(tmp_path: Path) -> None:
    old = "{'class': 'SimpleStrategy', 'replication_factor': 1};"
    copies = profile(
        READINGS, (old, "{'class': 'NetworkTopologyStrategy', 'east': 3, 'west': '3'} AND durable_writes = false"), to=tmp_path
    )
    assert (copies.keyspace.copies, copies.keyspace.durable_writes) == (3, False)
    differ = profile(READINGS, (old, "{'class': 'NetworkTopologyStrategy', 'east': 3, 'west': 2}"), to=tmp_path)
    assert (differ.keyspace.copies, differ.keyspace.durable_writes) == (None, None)
    index = "extra_definitions:\n  - CREATE INDEX by_day ON sensors.readings (day);\ncolumnspec:"
    indexed = profile(READINGS, ("columnspec:", index), to=tmp_path)
    assert [statement for statement, _ in indexed.create][1:] == ["CREATE INDEX by_day ON readings (day)"]
    # What stands in the profile's keyspace stands in sensorbench's own.
    assert "sensors" not in copies.create[0][0]
    assert "sensors" not in copies.queries["latest"].statement


def everything(path: Profile, partitions: np.ndarray, seed: int = 1) -> tuple[pa.Table, np.ndarray]:
    """All rows of some partitions, and how many each has."""
    population = Population(path, seed)
    rows = population.rows_of(partitions)
    picked = np.arange(len(rows))
    return pa.table({column.name: population.values(rows, column, picked) for column in path.table.columns}), rows.counts


def test_rows_have_the_sizes_populations_and_counts_of_the_profile() -> None:
    table, counts = everything(profile(READINGS), np.arange(1, 20_001))
    assert scipy.stats.chisquare(np.bincount(counts)[2:]).pvalue > RARE
    assert (counts.min(), counts.max()) == (2, 6)
    assert {len(text) for text in table["sensor"].to_pylist()} == {12}
    sizes = np.array([len(text) for text in table["note"].to_pylist()])
    assert fits(sizes, lambda size: (size - 4) / 5) > RARE
    assert fits(np.array([len(of_raw) for of_raw in table["raw"].to_pylist()]), below_gaussian(10, 30, 20.0, 10 / 3)) > RARE
    exponential = below_exponential(1, 5)
    assert fits(np.array(table["quality"]), lambda value: 1.0 - exponential(7 - value) if value > 1 else 0.0) > RARE
    value = np.array(table["value"])
    inner = value[(value > -20) & (value < 40)]
    assert scipy.stats.kstest(inner, scipy.stats.truncnorm(-3, 3, 10, 10).cdf).pvalue > RARE
    days = np.array(table["day"])[np.cumsum(counts) - 1]
    assert scipy.stats.chisquare(np.bincount(days, minlength=366)[1:]).pvalue > RARE
    # Fifty years from 1970 on, all times alike.
    times = np.array(table["time"].cast(pa.int64())) / 1e6 / (50 * 365 * 24 * 3600)
    assert scipy.stats.kstest(times, scipy.stats.uniform.cdf).pvalue > RARE
    # Of 1,000,000 names 20,000 partitions have as many as birthdays would.
    names = len(set(table["sensor"].to_pylist()))
    expected = 1e6 * (1 - (1 - 1e-6) ** 20_000)
    assert abs(names - expected) < 4 * math.sqrt(20_000**2 / 2e6)


def test_which_rows_there_are_depends_on_seed_and_partition_alone() -> None:
    table, counts = everything(profile(EVENTS), np.arange(1, 2001))
    firsts = np.cumsum(counts) - counts
    for order in ([17, 4, 4, 1999], [4], [1999, 17]):
        some, of_each = everything(profile(EVENTS), np.array(order))
        wanted = [row for number in order for row in range(firsts[number - 1], firsts[number - 1] + counts[number - 1])]
        assert some.equals(table.take(pa.array(wanted)))
        assert of_each.tolist() == [counts[number - 1] for number in order]
    assert not everything(profile(EVENTS), np.arange(1, 2001), seed=2)[0].equals(table)


def test_equal_keys_are_one_partition(tmp_path: Path) -> None:
    few = profile(
        READINGS, ("population: uniform(1..1M)", "population: uniform(1..3)"), ("uniform(1..365)", "fixed(1)"), to=tmp_path
    )
    table, counts = everything(few, np.arange(1, 101))
    of_key: dict[str, set[tuple[Any, ...]]] = {}
    for first, count in zip(np.cumsum(counts) - counts, counts, strict=True):
        rows = [tuple(row.values()) for row in table.slice(int(first), int(count)).to_pylist()]
        assert of_key.setdefault(rows[0][0], set(rows)) == set(rows)
    assert len(of_key) == 3


def test_levels_of_clustering_lie_in_one_another() -> None:
    table, counts = everything(profile(EVENTS), np.arange(1, 3001))
    assert table["machine"].to_pylist() == np.repeat(np.arange(1, 3001), counts).tolist()
    kinds = Counter((row["machine"], row["kind"]) for row in table.select(["machine", "kind"]).to_pylist())
    assert set(kinds.values()) == {2, 3, 4}
    assert scipy.stats.chisquare(list(Counter(kinds.values()).values())).pvalue > RARE
    # Two of fifty kinds, drawn one after the other, are the same one in fifty times.
    alone = 3000 - (len(kinds) - 3000)
    assert abs(alone - 60) < 4 * math.sqrt(60)
    opened = np.array(table["is_open"]).mean()
    assert abs(opened - 0.5) < 4 * 0.5 / math.sqrt(table.num_rows)
    # What is static is the same in all of a partition.
    sites = {(row["machine"], row["site"]) for row in table.select(["machine", "site"]).to_pylist()}
    assert len(sites) == 3000


def test_values_in_binary_form_are_those_that_the_numbers_stand_for() -> None:
    numbers = np.array([1, 255, 256, -1, -129, 1_234_567_890_123])

    def of(cql_type: str) -> list[bytes]:
        return binary_values(cql_type, numbers).to_pylist()

    for value, number in zip(of("timeuuid"), numbers.tolist(), strict=True):
        found = uuid.UUID(bytes=value)
        assert (found.version, found.variant, found.time) == (1, uuid.RFC_4122, number * 10_000 + 0x01B21DD213814000)
    assert {uuid.UUID(bytes=value).version for value in of("uuid")} == {4}
    assert len(set(of("uuid"))) == len(numbers)
    assert of("varint") == [b"\x01", b"\x00\xff", b"\x01\x00", b"\xff", b"\xff\x7f", (1_234_567_890_123).to_bytes(6, "big")]
    assert of("decimal") == [bytes(4) + value for value in of("varint")]
    assert binary_values("date", np.array([0, 1])).to_pylist() == [b"\x80\0\0\0", b"\x80\0\0\x01"]
    assert binary_values("inet", np.array([2**31 - 1, -1])).to_pylist() == [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"]
    assert binary_values("time", np.array([24 * 3600 * 10**9 + 5])).to_pylist() == [(5).to_bytes(8, "big")]
    assert binary_values("float", np.array([0.5, -2.0])).to_pylist() == [struct.pack(">f", 0.5), struct.pack(">f", -2.0)]


def test_insertions_write_shares_of_partitions() -> None:
    path, partitions = profile(EVENTS), parse_partitions("1..100000")
    visits = insertions(Population(path, 1), partitions, 6000, seed=1)
    assert scipy.stats.chisquare(np.bincount(visits.partitions)[1:]).pvalue > RARE
    machines = visits.rows["machine"].to_pylist()
    # Partitions come one after the other, none is left out or comes twice.
    assert list(dict.fromkeys(machines)) == list(range(1, int(visits.partitions.sum()) + 1))
    _, there = everything(path, np.arange(1, int(visits.partitions.sum()) + 1))
    written = np.bincount(machines)[1:]
    # A fourth of a partition's rows, but one at least: then as many as are there by chance.
    for rows in (4, 6, 8):
        own = written[there == rows]
        chances = scipy.stats.binom.pmf(np.arange(rows + 1), rows, 0.25)
        chances[1] += chances[0]
        expected = np.append(chances[1:4], chances[4:].sum()) * len(own)
        found = np.bincount(np.minimum(own, 4), minlength=5)[1:]
        assert scipy.stats.chisquare(found, expected).pvalue > RARE


def test_an_insertion_writes_to_a_partition_once() -> None:
    visits = insertions(Population(profile(EVENTS), 1), parse_partitions("uniform(1..2)"), 500, seed=1)
    machines = np.array(visits.rows["machine"])
    starts = np.cumsum(visits.sizes) - visits.sizes
    found = [len(set(machines[start : start + size])) for start, size in zip(starts, visits.sizes, strict=True)]
    assert found == visits.partitions.tolist()
    assert set(found) == {1, 2}


@pytest.mark.parametrize("population", ["gaussian(1..1000)", "dist=uniform(1..50)"])
def test_partitions_are_chosen_by_the_population(population: str) -> None:
    path, partitions = profile(EVENTS), parse_partitions(population)
    chosen = np.array(arguments(Population(path, 1), partitions, path.queries["first"], "first", DRAWN, 1)["argument0_machine"])
    below = below_gaussian(1, 1000, 500.5, 499.5 / 3) if "gaussian" in population else lambda value: (value - 1) / 50
    assert fits(chosen, below) > RARE


def test_arguments_are_of_one_row_or_of_several(tmp_path: Path) -> None:
    path = profile(EVENTS)
    table, counts = everything(path, np.arange(1, 201))
    rows = {(row["machine"], row["kind"], row["at"]) for row in table.to_pylist()}
    keys = [(machine, kind, at) for machine, kind, at in rows]
    drawn = {}
    for name in ("first", "between"):
        found = arguments(Population(path, 1), parse_partitions("1..200"), path.queries[name], name, DRAWN, 1)
        drawn[name] = list(zip(*(column.to_pylist() for column in found.columns), strict=True))
        # The k-th operation is about the k-th partition.
        assert [machine for machine, _, _ in drawn[name]] == (np.arange(DRAWN) % 200 + 1).tolist()
    assert set(drawn["first"]) == rows
    # Each row of a partition is as likely as the others.
    of_one = Counter(row for row in drawn["first"] if row[0] == 5)
    assert len(of_one) == counts[4]
    assert scipy.stats.chisquare(list(of_one.values())).pvalue > RARE
    mixed = set(drawn["between"])
    assert not mixed <= rows
    assert {(machine, kind) for machine, kind, _ in mixed} == {(machine, kind) for machine, kind, _ in keys}
    assert {(machine, at) for machine, _, at in mixed} == {(machine, at) for machine, _, at in keys}


def planned(
    path: Profile, ops: str, operations: int, population: str, concurrency: int = 4
) -> tuple[dict[str, Any], list[PlannedOperation]]:
    mix = Mix(parse_operations(ops, path), operations, None, parse_partitions(population))
    planned, notes = operations_of_mix(path, mix, 1)
    assert notes == []
    schema = ProfileSchema(path, "cassandra", planned, "one")
    driver_schema(schema, planned)
    return plan_of(planned, schema, mix, rate_per_s=None, concurrency=concurrency, seed=1, timeout_s=1.0), planned


def parameters(plan: dict[str, Any], planned: list[PlannedOperation], number: int) -> pa.Table:
    """The parameters of all operations of a kind, as the engine has them."""
    readers = [operation.parameters.to_reader() for operation in planned]
    found = _engine.parameters(json.dumps(plan), readers, 0, number, None, plan["phases"][0]["operations"])
    return pa.table(found)


@pytest.mark.parametrize("path", [READINGS, EVENTS, COUNTERS])
def test_insertions_in_turn_write_every_row_that_they_should(path: Path) -> None:
    read = profile(path)
    plan, planned_operations = planned(read, "insert=1", 700, "1..100000")
    wanted = insertions(Population(read, 1), parse_partitions("1..100000"), 700, seed=1)
    columns = [column.name for column in read.table.columns]
    expected = Counter(tuple(row.values()) for row in wanted.rows.to_pylist())
    found: Counter[tuple[Any, ...]] = Counter()
    for number, operation in enumerate(planned_operations):
        of_kind = parameters(plan, planned_operations, number)
        assert of_kind.column_names == [f"row{row}_{name}" for row in range(operation.rows or 0) for name in columns]
        for row in range(operation.rows or 0):
            found.update(zip(*(of_kind[f"row{row}_{name}"].to_pylist() for name in columns), strict=True))
    assert found.keys() == expected.keys()
    operations = plan["phases"][0]["operations"]
    assert 700 <= operations <= 707 + len(planned_operations)
    # Every size as often as it comes, but for what the rounds add.
    assert sum(found.values()) - sum(expected.values()) <= (operations - 700) * max(
        operation.rows or 0 for operation in planned_operations
    )


def test_a_mix_has_its_proportions_and_sizes() -> None:
    plan, operations = planned(profile(READINGS), "ops(insert=1,one=3)", 20_000, "gaussian(1..5000)")
    counts = {operation.name: parameters(plan, operations, number).num_rows for number, operation in enumerate(operations)}
    assert list(counts) == [*(f"insert_{rows}_rows" for rows in range(2, 7)), "one"]
    shares = [0.05] * 5 + [0.75]
    # Sizes are those of the partitions that were drawn, which differ a little from the profile's.
    assert scipy.stats.chisquare(list(counts.values()), np.array(shares) * 20_000).statistic < 60
    assert abs(counts["one"] - 15_000) < 4 * math.sqrt(20_000 * 0.75 * 0.25)


def test_batches_are_of_the_profiles_type() -> None:
    statements = {
        path: planned(profile(path), "insert=1", 50, "1..1000")[1][-1].statement for path in (READINGS, EVENTS, COUNTERS)
    }
    assert statements[READINGS].startswith(
        "BEGIN UNLOGGED BATCH UPDATE readings SET note = :row0_note, quality = :row0_quality, "
    )
    assert statements[EVENTS].startswith("BEGIN BATCH UPDATE events SET ")
    assert statements[COUNTERS] == (
        "BEGIN COUNTER BATCH "
        "UPDATE messages SET lost = lost + :row0_lost, received = received + :row0_received WHERE sensor = :row0_sensor; "
        "UPDATE messages SET lost = lost + :row1_lost, received = received + :row1_received WHERE sensor = :row1_sensor; APPLY BATCH"
    )


def test_more_than_servers_hold_is_refused_with_what_to_change(tmp_path: Path) -> None:
    wide = profile(READINGS, ("cluster: uniform(2..6)", "cluster: uniform(1..1000)"), to=tmp_path)
    with pytest.raises(UsageError, match=r"insert: an insertion writes \d+ to [\d,]+ rows as one batch"):
        planned(wide, "insert=1", 500, "1..1000")
    endless = profile(READINGS, ("cluster: uniform(2..6)", "cluster: fixed(1B)"), to=tmp_path)
    for ops in ("insert=1", "one=1"):
        with pytest.raises(UsageError, match=r"columnspec: a partition has 1,000,000,000 rows on average"):
            planned(endless, ops, 500, "1..1000")
    with pytest.raises(UsageError, match=r"--operations 100000000: at most [\d,]+ insertions can be made in one run"):
        planned(profile(READINGS), "insert=1", 100_000_000, "1..100M")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1..5", Distribution("seq", 1, 5)),
        ("seq=10..2K", Distribution("seq", 10, 2000)),
        ("uniform(1..9)", Distribution("uniform", 1, 9)),
        ("dist=fixed(4)", Distribution("fixed", 4, 4)),
    ],
)
def test_a_population_has_several_forms(text: str, expected: Distribution) -> None:
    assert parse_partitions(text).distribution == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["{readings}", "--target", "sqlite:{tmp}/x.db", "-n", "5"], "expected a server of Cassandra's kind that stays"),
        (["{readings}", "--target", "cassandra", "-n", "5"], "expected a server of Cassandra's kind that stays"),
        (["{readings}", "--target", "cassandra://h"], "expected --operations or --duration"),
        (["{readings}", "--target", "cassandra://h", "-n", "5", "--ops", "insert"], "--ops insert: expected NAME=WEIGHT"),
        (["{readings}", "--target", "cassandra://h", "-n", "5", "--ops", "two=1"], "the profile has no operation 'two'; expected some of insert, latest, one"),
        (["{readings}", "--target", "cassandra://h", "-n", "5", "--ops", "one=0"], "no operation has a weight above 0"),
        (["{readings}", "--target", "cassandra://h", "-n", "5", "--population", "5"], "--population 5: expected FIRST..LAST"),
        (["{readings}", "--target", "cassandra://h", "-n", "5", "--population", "0..5"], "partitions are numbered from 1 on"),
        (["{readings}", "--target", "cassandra://h", "-n", "5", "--rate", "fast"], "--rate fast: expected operations per second above 0"),
        (["{readings}", "--target", "cassandra://h", "-n", "5", "--duration", "soon"], "--duration 'soon'"),
        (["{readings}", "--target", "cassandra://h", "-n", "5", "--cl", "most"], "--cl most: expected one of any, one"),
        (["{tmp}/none.yaml", "--target", "cassandra://h", "-n", "5"], "none.yaml: No such file"),
    ],
)  # fmt: skip
def test_wrong_usage_says_what_was_expected(cli: Cli, tmp_path: Path, arguments: list[str], expected: str) -> None:
    ended = cli(
        "cassandra-stress",
        *(argument.format(readings=READINGS, tmp=tmp_path) for argument in arguments),
        "--out",
        tmp_path / "out",
    )
    assert (ended.exit_code, expected in ended.err) == (2, True), ended.err
    assert list(tmp_path.iterdir()) == []


def printed(text: str) -> dict[str, dict[str, float]]:
    """What was printed: of each line the figure of all operations, under "", and those of each kind."""
    found = {}
    for line in text.splitlines()[1:-1]:
        name, _, rest = line.partition(" : ")
        whole, _, each = rest.rstrip("]").partition(" [")
        pairs = [("", whole), *(part.split(": ") for part in each.split(", "))]
        found[name.strip()] = {kind: float(figure.split()[0].replace(",", "")) for kind, figure in pairs}
    return found


def test_a_profile_runs_on_cassandra(cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path) -> None:
    """Queries find what insertions wrote, in this run and in those after it."""
    target = server_url("cassandra", "sensorbench_cassandra_stress")
    run = ("cassandra-stress", READINGS, "--target", target)
    refused = cli(*run, "--ops", "one=1", "-n", 10, "--out", tmp_path / "refused")
    assert (refused.exit_code, "insert first: --ops insert=1" in refused.err) == (2, True), refused.err
    assert not (tmp_path / "refused").exists()
    first = cli(*run, "-n", 300, "--concurrency", 8, "--out", tmp_path / "load")
    assert first.exit_code == 0, first.err
    assert "the keyspace sensors of the profile is sensorbench's own here" in first.err
    assert first.out == (tmp_path / "load" / "cassandra-stress.txt").read_text(encoding="utf-8")
    again = cli(*run, "-n", 300, "--out", tmp_path / "again")
    assert (again.exit_code, "give --replace" in again.err) == (2, True), again.err
    more = cli(*run, "-n", 200, "--population", "301..500", "--out", tmp_path / "more", "--json")
    assert more.exit_code == 0, more.err
    assert more.json["kind"] == "cassandra-stress"
    _, counts = everything(profile(READINGS), np.arange(1, 501), DEFAULT_SEED)
    written = _engine.Target(target)
    columns = [{"name": column.name, "type": column.value_type} for column in profile(READINGS).table.key]
    written.attach(json.dumps({"tables": {"readings": columns}}), intent="attach", owner=TEST_OWNER.to_json())
    assert written.count("readings") == counts.sum()
    mixed = cli(
        *run, "--ops", "insert=1,latest=1,one=2,since=1,correct=1", "-n", 1200, "--rate", "600/s", "--out", tmp_path / "mix"
    )
    assert mixed.exit_code == 0, mixed.err
    figures = printed(mixed.out)
    assert set(figures["Total errors"].values()) == {0}
    # Each `one` finds its row, each `latest` all rows of its partition.
    assert figures["Row rate"]["one"] == figures["Op rate"]["one"] > 0
    assert 3.0 < figures["Row rate"]["latest"] / figures["Op rate"]["latest"] < 5.0
    assert 3.0 < figures["Row rate"]["insert"] / figures["Op rate"]["insert"] < 5.0
    assert figures["Partition rate"]["latest"] == figures["Op rate"]["latest"]
    assert figures["Latency median"][""] <= figures["Latency 99th percentile"][""] <= figures["Latency max"][""]
    assert written.count("readings") == counts.sum()
    assert cli("bundle", tmp_path / "mix", "--out", tmp_path / "mix.sbz").exit_code == 0
    verified = cli("verify", tmp_path / "mix.sbz", "--json")
    assert (verified.exit_code, verified.json["figures"] > 10) == (0, True), verified.err
    assert "rows that answers had" in verified.json["unverified"]
    other = cli(*run, "--ops", "one=1", "-n", 10, "--seed", 2, "--out", tmp_path / "other")
    assert (other.exit_code, f"was inserted with --seed {DEFAULT_SEED}" in other.err) == (2, True), other.err


def test_what_the_server_refuses_is_told_with_its_place(cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path) -> None:
    target = server_url("cassandra", "sensorbench_cassandra_stress_wrong")
    run = ("cassandra-stress", tmp_path / "readings.yaml", "--target", target, "-n", 10)
    profile(READINGS, ("'LeveledCompactionStrategy'", "'NoSuchStrategy'"), to=tmp_path)
    table = cli(*run, "--out", tmp_path / "table")
    assert (table.exit_code, "readings.yaml, line 7, table_definition: " in table.err) == (2, True), table.err
    assert not (tmp_path / "table").exists()
    profile(READINGS, ("day = ? LIMIT 10", "day = ? LIMITED 10"), to=tmp_path)
    assert cli(*run, "--replace", "--out", tmp_path / "load").exit_code == 0
    query = cli(*run, "--ops", "latest=1", "--out", tmp_path / "query")
    assert (query.exit_code, "readings.yaml, line 42, queries.latest.cql: " in query.err) == (2, True), query.err


def test_all_types_are_written_and_found(cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path) -> None:
    run = ("cassandra-stress", TYPES, "--target", server_url("cassandra", "sensorbench_cassandra_stress_types"))
    assert cli(*run, "-n", 100, "--out", tmp_path / "load").exit_code == 0
    ended = cli(*run, "--ops", "row=1,from=1", "-n", 300, "--out", tmp_path / "queries")
    assert ended.exit_code == 0, ended.err
    figures = printed(ended.out)
    assert figures["Total errors"][""] == 0
    assert figures["Row rate"]["row"] == figures["Op rate"]["row"] > 0
    assert figures["Partition rate"]["from"] == figures["Op rate"]["from"] > 0


def test_counters_are_raised_each_time(cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path) -> None:
    target = server_url("cassandra", "sensorbench_cassandra_stress_counters")
    run = ("cassandra-stress", COUNTERS, "--target", target)
    for number in range(2):
        more = ("--population", "uniform(1..100)") if number else ()
        ended = cli(*run, "-n", 50, *more, "--out", tmp_path / str(number))
        assert ended.exit_code == 0, ended.err
    ended = cli(*run, "--ops", "count=1", "-n", 100, "--population", "1..100", "--out", tmp_path / "count")
    assert ended.exit_code == 0, ended.err
    figures = printed(ended.out)
    assert figures["Total partitions"]["count"] == 100
