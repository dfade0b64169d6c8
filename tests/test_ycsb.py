"""YCSB: its properties as Java reads them, and its core workloads, whose records, mixes and choices are those of its definitions."""

import itertools
import json
import math
import shutil
import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from sensorbench import _engine
from sensorbench.analysis.equality import Answer
from sensorbench.compat.ycsb import CoreWorkload, overridden
from sensorbench.compat.ycsb.core_workload import parse_core_workload
from sensorbench.compat.ycsb.plan import PlannedOperation, operation_of, operations_of_phase, plan_of, tables_of
from sensorbench.compat.ycsb.properties import Properties, read_properties
from sensorbench.errors import UsageError
from sensorbench.options import DEFAULT_SEED
from sensorbench.runner.variants import parse_target
from sensorbench.schemas import Operations, Schema, load_schema
from sensorbench.schemas.operations import Order
from sensorbench.schemas.shipped import SHIPPED_FOLDER
from sensorbench.verification.answers import answers_by_operation
from sensorbench.verification.ask_each import ask_each
from tests.conftest import TEST_OWNER, Cli, run_main, server_url


def properties(tmp_path: Path, text: str, *options: str) -> Properties:
    file = tmp_path / "workload"
    file.write_bytes(text.encode("latin-1"))
    return overridden(read_properties(file), options)


# As java.util.Properties documents its format.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb = 2\nc:3\nd : 4\ne 5\nf\n", {"a": "1", "b": "2", "c": "3", "d": "4", "e": "5", "f": ""}),
        ("# no\n  ! no\n\n \t\na=1 # no comment\n", {"a": "1 # no comment"}),
        ("fruits  apple, \\\n    banana, \\\n    pear\nb=1", {"fruits": "apple, banana, pear", "b": "1"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a\\ b\\:c\\=d=1\\=2", {"a b:c=d": "1=2"}),
        ("a=\\u0041\\t\\n\\q", {"a": "A\t\nq"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a==1", {"a": "=1"}),
        ("a=1\\\n# continues", {"a": "1# continues"}),
        ("a=\xe4", {"a": "\xe4"}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_properties_are_read_as_java_does(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    assert {key: property_.value for key, property_ in properties(tmp_path, text).items()} == expected


def test_a_value_knows_its_place(tmp_path: Path) -> None:
    found = properties(tmp_path, "# first\na=1\nb=\\\n2\nc=3\n", "c= 4 ", "d=5=6")
    file = tmp_path / "workload"
    assert {key: (entry.value, entry.place) for key, entry in found.items()} == {
        "a": ("1", f"{file}, line 2"),
        "b": ("2", f"{file}, line 3"),
        "c": ("4", "-p c"),
        "d": ("5=6", "-p d"),
    }


@pytest.mark.parametrize("option", ["recordcount", "=3", " =3"])
def test_an_option_is_a_key_and_a_value(option: str) -> None:
    with pytest.raises(UsageError, match="expected key=value"):
        overridden({}, [option])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing: No such file"):
        read_properties(tmp_path / "nothing")


def test_what_nobody_says_is_as_in_ycsb(tmp_path: Path) -> None:
    workload, notes = parse_core_workload(properties(tmp_path, "recordcount=1000\noperationcount=2000\n"))
    assert workload == CoreWorkload(recordcount=1000, operationcount=2000)
    assert (workload.loaded, workload.proportions, notes) == (1000, {"READ": 0.95, "UPDATE": 0.05}, [])
    assert workload.field_names == tuple(f"field{number}" for number in range(10))


def test_what_is_said_counts_and_what_does_not_is_told(tmp_path: Path) -> None:
    text = """
    workload=com.yahoo.ycsb.workloads.CoreWorkload
    recordcount=500
    insertstart=100
    insertcount=200
    readallfields=FALSE
    readproportion=0.5
    updateproportion=0
    scanproportion=0.45
    insertproportion=0.05
    requestdistribution=exponential
    exponential.percentile=90
    exponential.frac=0.5
    fieldnameprefix=f
    fieldcount=2
    measurementtype=hdrhistogram
    cassandra.readconsistencylevel=ONE
    table=records
    """
    workload, notes = parse_core_workload(properties(tmp_path, text))
    assert (workload.loaded, workload.insertstart, workload.readallfields) == (200, 100, False)
    assert workload.proportions == {"READ": 0.5, "INSERT": 0.05, "SCAN": 0.45}
    assert (workload.requestdistribution, workload.exponential_percentile, workload.exponential_frac) == (
        "exponential",
        90.0,
        0.5,
    )
    assert workload.field_names == ("f0", "f1")
    assert notes == [
        "measurementtype: about YCSB's own output or client, without meaning here",
        "table: not used; records are in the table usertable of the target's namespace",
        "cassandra.readconsistencylevel: no keys of the core workload, not used",
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("recordcount=many", "line 1, recordcount: 'many': expected a whole number"),
        ("recordcount=-1", "line 1, recordcount: '-1': expected at least 0"),
        ("readproportion=half", "readproportion: 'half': expected a number"),
        ("readproportion=nan", "readproportion: 'nan': expected at least 0"),
        ("readallfields=yes", "readallfields: 'yes': expected true or false"),
        ("requestdistribution=zipf", "expected one of uniform, zipfian, latest, hotspot, sequential, exponential"),
        ("fieldlengthdistribution=histogram", "expected one of constant, uniform, zipfian"),
        ("insertorder=random", "expected one of hashed, ordered"),
        ("fieldcount=0", "expected at least 1"),
        ("fieldnameprefix=a b", "fieldnameprefix: 'a b': expected a word"),
        ("hotspotdatafraction=1.5", "expected a share, from 0 to 1"),
        ("exponential.percentile=100", "expected above 0 and below 100"),
        ("workload=site.ycsb.workloads.TimeSeriesWorkload", "expected site.ycsb.workloads.CoreWorkload"),
        ("readproportion=0\nupdateproportion=0", "no operation has a proportion above 0"),
        ("minscanlength=5\nmaxscanlength=4", "minscanlength 5 is above maxscanlength 4"),
        ("fieldlengthdistribution=uniform\nminfieldlength=5\nfieldlength=4", "minfieldlength 5 is above fieldlength 4"),
        ("recordcount=10\ninsertstart=5\ninsertcount=6", "insertstart 5 + insertcount 6 is above recordcount 10"),
    ],
)
def test_a_wrong_value_is_told_with_its_place(tmp_path: Path, line: str, expected: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_core_workload(properties(tmp_path, line))
    assert expected in str(raised.value)


def workload_of(*options: str) -> CoreWorkload:
    return parse_core_workload(overridden({}, options))[0]


def test_records_from_the_first_on_are_those_that_are_loaded() -> None:
    assert workload_of("recordcount=500", "insertstart=100").loaded == 400
    assert workload_of("recordcount=500", "insertstart=100", "insertcount=30").loaded == 30
    assert workload_of("recordcount=500").loaded == 500


@pytest.mark.parametrize("prefix", ["read_", "update_", "read_modify_write_", "f"])
def test_a_field_is_known_by_its_own_name(prefix: str) -> None:
    mix = ["readproportion=1", "updateproportion=1", "readmodifywriteproportion=1", "readallfields=false", "writeallfields=false"]
    planned = operations_of_phase(workload_of(f"fieldnameprefix={prefix}", "fieldcount=2", *mix), "run")
    fields = [f"{prefix}0", f"{prefix}1"]
    reads, writes = planned[:2], planned[2:]
    assert [[column.name for column in operation_of(operation).columns] for operation in reads] == [[field] for field in fields]
    assert [list(operation_of(operation).parameters) for operation in writes] == [["ycsb_key", field] for field in fields] * 2


# YCSB's core workloads (workloads/workloada to workloadf), by what distinguishes them.
CORE = {
    "a": ({"READ": 0.5, "UPDATE": 0.5}, "zipfian"),
    "b": ({"READ": 0.95, "UPDATE": 0.05}, "zipfian"),
    "c": ({"READ": 1.0}, "zipfian"),
    "d": ({"READ": 0.95, "INSERT": 0.05}, "latest"),
    "e": ({"SCAN": 0.95, "INSERT": 0.05}, "zipfian"),
    "f": ({"READ": 0.5, "READ-MODIFY-WRITE": 0.5}, "zipfian"),
}
RECORDS, OPERATIONS = 300, 2000


def options_of(letter: str, *more: str) -> list[str]:
    """A core workload as properties, of which those that come later count."""
    proportions, distribution = CORE[letter]
    kinds = ("READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE")
    keys = [f"{kind.replace('-', '').lower()}proportion={proportions.get(kind, 0)}" for kind in kinds]
    return [*keys, f"requestdistribution={distribution}", f"recordcount={RECORDS}", "maxscanlength=20", "fieldlength=10", *more]


def as_arguments(options: list[str]) -> list[str]:
    return [argument for option in options for argument in ("-p", option)]


def printed(text: str) -> dict[tuple[str, str], float]:
    """What YCSB's output says, by group and figure."""
    lines = [line[1:].split(", ") for line in text.splitlines() if line.startswith("[")]
    return {(group.rstrip("]"), what): float(value) for group, what, value in lines}


def carry_out(phase: str, target: str, options: list[str], out: Path, *more: str) -> dict[tuple[str, str], float]:
    """A phase that ends well; what it printed."""
    replace = ["--replace"] if phase == "load" else []
    assert run_main(("ycsb", phase, "--target", target, *as_arguments(options), *replace, *more, "--out", out)) == 0
    return printed((out / "ycsb.txt").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the records of the core workloads. Nothing is forced to the disk: that is not what is tested."""
    folder = tmp_path_factory.mktemp("ycsb")
    carry_out("load", target_at(folder / "y.db"), options_of("a"), folder / "load")
    return folder / "y.db"


def target_at(path: Path) -> str:
    return f"sqlite:{path}?synchronous=off"


def records_in(path: Path) -> dict[str, tuple[str, ...]]:
    with sqlite3.connect(path) as database:
        return {row[0]: row[1:] for row in database.execute("SELECT * FROM usertable")}


def test_what_is_loaded_are_the_records_of_ycsb(loaded: Path) -> None:
    records = records_in(loaded)
    assert len(records) == RECORDS
    # The first three records that YCSB itself loads.
    assert {"user6284781860667377211", "user8517097267634966620", "user1820151046732198393"} <= records.keys()
    assert {len(fields) for fields in records.values()} == {10}
    assert {len(field) for fields in records.values() for field in fields} == {10}


def counts_by_kind(figures: dict[tuple[str, str], float], letter: str, operations: int) -> dict[str, float]:
    """How many operations of each kind were answered: all of them, in the mix of the workload."""
    proportions = CORE[letter][0]
    counts = {kind: figures[kind, "Operations"] for kind in proportions}
    assert sum(counts.values()) == operations == sum(figures[kind, "Return=OK"] for kind in proportions)
    for kind, share in proportions.items():
        # Four standard deviations: exceeded once in 16,000 times, and equal seeds give equal counts.
        assert abs(counts[kind] - share * operations) <= 4.0 * math.sqrt(operations * share * (1.0 - share)), counts
    return counts


@pytest.mark.parametrize("letter", CORE)
def test_a_core_workload_has_its_mix_and_its_records(cli: Cli, loaded: Path, tmp_path: Path, letter: str) -> None:
    copy = tmp_path / "y.db"
    shutil.copy(loaded, copy)
    before = records_in(copy)
    options = options_of(letter, f"operationcount={OPERATIONS}")
    ended = cli("ycsb", "run", "--target", target_at(copy), *as_arguments(options), "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.err
    assert ended.out == (tmp_path / "out" / "ycsb.txt").read_text(encoding="utf-8")
    counts = counts_by_kind(printed(ended.out), letter, OPERATIONS)
    after = records_in(copy)
    assert len(after) == RECORDS + counts.get("INSERT", 0)
    # What the database got are the keys that the tests of distributions look at.
    asked = keys_by_kind(options, OPERATIONS)
    assert {kind: len(keys) for kind, keys in asked.items()} == counts
    assert set(after) - set(before) == set(asked.get("INSERT", []))
    written = {*asked.get("UPDATE", []), *asked.get("READ-MODIFY-WRITE", [])}
    assert {key for key, fields in before.items() if fields != after[key]} == written & before.keys()


def keys_by_kind(options: list[str], count: int, *, seed: int = DEFAULT_SEED, ycsb_zipfian: bool = False) -> dict[str, list[str]]:
    """The keys of the first operations of a workload, by the kind of operation."""
    workload = workload_of(*options, f"operationcount={count}")
    schema = load_schema("usertable", operations="ycsb", database="sqlite", fields=workload.field_names)
    plan = plan_of(workload, "run", schema, concurrency=1, threads=1, seed=seed, timeout_s=1.0, ycsb_zipfian=ycsb_zipfian)
    found: dict[str, list[str]] = {}
    for number, operation in enumerate(operations_of_phase(workload, "run")):
        readers = [table.to_reader() for table in tables_of(workload, "run")]
        keys = pa.table(_engine.parameters(json.dumps(plan), readers, 0, number, None, count))["ycsb_key"].to_pylist()
        found.setdefault(operation.kind, []).extend(keys)
    return found


def keys_of(letter: str, count: int, *options: str, ycsb_zipfian: bool = False) -> list[str]:
    """The keys of the first reads of a core workload."""
    asked = keys_by_kind(options_of(letter, *options), count, seed=3, ycsb_zipfian=ycsb_zipfian)
    return asked["READ"] if "READ" in asked else asked["SCAN"]


def numbers_of(keys: list[str]) -> Counter[int]:
    """How often each record was chosen, by its number."""
    names = keys_of("c", RECORDS, "requestdistribution=sequential")
    return Counter(names.index(key) for key in keys)


def chi_square(counts: list[int], shares: list[float]) -> float:
    total = sum(counts)
    return sum((count - total * share) ** 2 / (total * share) for count, share in zip(counts, shares, strict=True))


def zipf_shares(ranks: int) -> list[float]:
    weights = [rank**-0.99 for rank in range(1, ranks + 1)]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("letter", ["a", "b", "c", "e", "f"])
def test_zipfian_records_are_as_frequent_as_zipf_says(letter: str) -> None:
    # Without insertions, so that there are the same records all the time.
    counts = sorted(Counter(keys_of(letter, 40_000, "insertproportion=0")).values(), reverse=True)
    assert len(counts) == RECORDS
    # Ranks by count are nearer to the expectation than ranks by right: the first 60 are distinguished well enough.
    ends = [1, 2, 4, 8, 15, 30, 60, RECORDS]
    shares, pairs = zipf_shares(RECORDS), list(itertools.pairwise([0, *ends]))
    of_groups = chi_square([sum(counts[a:b]) for a, b in pairs], [sum(shares[a:b]) for a, b in pairs])
    # 7 degrees of freedom: 24.3 is exceeded once in a thousand times.
    assert of_groups < 24.3


def test_uniform_records_are_equally_frequent() -> None:
    counts = Counter(keys_of("a", 60_000, "requestdistribution=uniform"))
    assert len(counts) == RECORDS
    # 299 degrees of freedom: 380 is exceeded once in a thousand times.
    assert chi_square(list(counts.values()), [1 / RECORDS] * RECORDS) < 380.0


def exponential_shares(percentile: float, frac: float) -> list[float]:
    """Of records from the newest back, where `percentile` of the choices fall on the share `frac` of them; those beyond are made again."""
    rate = -math.log(1.0 - percentile / 100.0) / (frac * RECORDS)
    weights = [math.exp(-rate * back) - math.exp(-rate * (back + 1)) for back in range(RECORDS)]
    return [weight / sum(weights) for weight in weights]


# Shares of the records, from the oldest on.
HOT = RECORDS // 5
SHARES = {
    "hotspot": [0.8 / HOT] * HOT + [0.2 / (RECORDS - HOT)] * (RECORDS - HOT),
    "latest": zipf_shares(RECORDS)[::-1],
    "exponential": exponential_shares(95.0, 0.8571428571)[::-1],
}


@pytest.mark.parametrize("distribution", SHARES)
def test_records_are_as_frequent_as_their_age_says(distribution: str) -> None:
    counts = numbers_of(keys_of("c", 60_000, f"requestdistribution={distribution}"))
    # 299 degrees of freedom, as above.
    assert chi_square([counts[number] for number in range(RECORDS)], SHARES[distribution]) < 380.0


def test_the_latest_records_are_read_most() -> None:
    names = {
        key: number
        for number, key in enumerate(keys_of("d", 4000, "insertproportion=0", "requestdistribution=sequential")[:RECORDS])
    }
    keys = keys_of("d", 4000)
    added = [key for key in keys if key not in names]
    # After 4,000 operations some 200 of 500 records are new, and on average the newest 100 of 400 are.
    assert 0.6 < len(added) / len(keys) < 0.95
    old = Counter(names[key] for key in keys if key in names)
    assert sum(old[number] for number in range(RECORDS - 50, RECORDS)) > 3 * sum(old[number] for number in range(50))


def test_ycsbs_own_zipfian_is_another_one() -> None:
    exact, own = (Counter(keys_of("c", 20_000, ycsb_zipfian=ycsb)) for ycsb in (False, True))
    # It draws among ten billion, so that its most frequent record has less than a sixth of the share that is right.
    assert max(exact.values()) / 20_000 > 0.13
    assert max(own.values()) / 20_000 < 0.06


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("ycsb", "run", "--target", "sqlite", "-p", "recordcount=1"), "what is loaded must still be there afterwards; expected sqlite:PATH"),
        (("ycsb", "load", "--target", "redis", "-p", "recordcount=1"), "lab:NAME (sensorbench lab up redis) or a URL"),
        (("ycsb", "run", "--target", "sqlite:{tmp}/none.db", "-p", "recordcount=1", "-p", "operationcount=1"), "load them first: sensorbench ycsb load"),
        (("ycsb", "run", "--target", "sqlite:{tmp}/none.db", "-p", "operationcount=1"), "recordcount is 0"),
        (("ycsb", "run", "--target", "sqlite:{tmp}/none.db", "-p", "recordcount=1"), "the run has no end: expected -p operationcount=…"),
        (("ycsb", "load", "--target", "sqlite:{tmp}/none.db", "--replace"), "there are no records (recordcount is 0"),
        (("ycsb", "load", "--target", "fjall:{tmp}/none", "-p", "recordcount=1", "-p", "fieldcount=16"), "at most 16 columns; there are 17"),
        (("ycsb", "run", "--target", "sqlite:{tmp}/none.db", "-P", "{tmp}/nothing"), "nothing: No such file"),
    ],
)  # fmt: skip
def test_wrong_usage_says_what_was_expected(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], expected: str) -> None:
    ended = cli(*(argument.format(tmp=tmp_path) for argument in arguments), "--out", tmp_path / "out")
    assert (ended.exit_code, expected in ended.err) == (2, True), ended.err
    assert not (tmp_path / "out").exists()


def test_what_was_loaded_with_other_fields_is_not_used(cli: Cli, loaded: Path, tmp_path: Path) -> None:
    arguments = as_arguments(options_of("a", "operationcount=10", "fieldcount=3"))
    ended = cli("ycsb", "run", "--target", target_at(loaded), *arguments, "--out", tmp_path / "out")
    assert ended.exit_code == 2
    assert "the records there have 10 fields from field0 on, those of this workload 3 fields from field0 on" in ended.err
    assert not (tmp_path / "out").exists()


def test_parts_of_the_records_are_loaded_one_after_the_other(loaded: Path, tmp_path: Path) -> None:
    target = target_at(tmp_path / "y.db")
    first = carry_out("load", target, options_of("a", "insertcount=120"), tmp_path / "first")
    rest = carry_out("load", target, options_of("a", "insertstart=120"), tmp_path / "rest")
    assert (first["INSERT", "Return=OK"], rest["INSERT", "Return=OK"]) == (120, RECORDS - 120)
    assert records_in(tmp_path / "y.db").keys() == records_in(loaded).keys()


def test_load_generators_add_the_records_that_one_adds(cli: Cli, loaded: Path, tmp_path: Path) -> None:
    options = options_of("a", "threadcount=4")
    added = carry_out("load", target_at(tmp_path / "y.db"), options, tmp_path / "load", "--generators", "2")
    assert added["INSERT", "Return=OK"] == RECORDS
    assert records_in(tmp_path / "y.db") == records_in(loaded)
    words = as_arguments([*options_of("d", "threadcount=4"), "operationcount=9"])
    target = target_at(tmp_path / "y.db")
    refused = cli("ycsb", "run", "--target", target, *words, "--generators", "2", "--out", tmp_path / "run")
    assert (refused.exit_code, "what the run itself writes" in refused.err) == (2, True), refused.err


def test_new_records_follow_all_that_there_are_to_be(tmp_path: Path) -> None:
    target = target_at(tmp_path / "y.db")
    # This client has loaded records 100 to 149; others load the other ones.
    part = ["insertorder=ordered", "insertstart=100", "insertcount=50", "operationcount=200"]
    carry_out("load", target, options_of("d", "insertorder=ordered", "insertcount=150"), tmp_path / "load")
    figures = carry_out("run", target, options_of("d", *part), tmp_path / "run")
    numbers = {int(key.removeprefix("user")) for key in records_in(tmp_path / "y.db")}
    added = numbers - set(range(150))
    assert (len(added), added <= set(range(RECORDS, RECORDS + 200))) == (figures["INSERT", "Operations"], True)
    asked = {int(key.removeprefix("user")) for key in keys_by_kind(options_of("d", *part), 200)["READ"]}
    assert asked <= {*range(100, 150), *added}
    assert asked & added


@pytest.mark.parametrize("prefix", ["read_", "update_"])
def test_an_update_of_one_field_leaves_the_others(tmp_path: Path, prefix: str) -> None:
    target, fields = target_at(tmp_path / "y.db"), [f"fieldnameprefix={prefix}", "readallfields=false", "writeallfields=false"]
    carry_out("load", target, options_of("a", *fields), tmp_path / "load")
    before = records_in(tmp_path / "y.db")
    options = options_of("a", *fields, "readproportion=0", "updateproportion=1", "requestdistribution=uniform")
    carry_out("run", target, [*options, f"operationcount={RECORDS}"], tmp_path / "run")
    after, asked = records_in(tmp_path / "y.db"), Counter(keys_by_kind(options, RECORDS)["UPDATE"])
    changed = {key: [field for field in range(10) if before[key][field] != after[key][field]] for key in before}
    assert all(min(1, asked[key]) <= len(numbers) <= asked[key] for key, numbers in changed.items())
    assert len({number for numbers in changed.values() for number in numbers}) == 10
    read = carry_out("run", target, options_of("c", *fields, "operationcount=50"), tmp_path / "read")
    assert read["READ", "Return=OK"] == 50


FIELDS = CoreWorkload().field_names
INSERT, READ, SCAN = (
    PlannedOperation("insert", "INSERT", 1.0, FIELDS),
    PlannedOperation("read", "READ", 1.0, FIELDS),
    PlannedOperation("scan", "SCAN", 1.0, FIELDS),
)
READ_ONE = PlannedOperation("read_field3", "READ", 1.0, ("field3",))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('name = "found_key"\n', 'name = "found"\n', "for_each.name: there is no column 'found'; expected one of found_key"),
        ('name = "found_key"\n', 'name = "found_key"\nshards = 2\n', "a list is of stretches of time or of rows, not of shards"),
        ('table = "keys"\ncommand = ["ZR', 'start = "found_key"\ntable = "keys"\ncommand = ["ZR', "a list of stretches of time has a start, and goes with from"),
        ('name = "found_key"\n', 'name = "found_key"\nfrom = ":a"\nto = ":b"\nevery = "1 day"\n', "a list of stretches of time has a start"),
        ('name = "found_key"\n', 'name = "found_key"\nfrom = ":a"\n', "or a list alone (its rows)"),
    ],
)  # fmt: skip
def test_a_list_of_rows_is_told_apart_from_others(tmp_path: Path, old: str, new: str, expected: str) -> None:
    text = (SHIPPED_FOLDER / "ycsb" / "redis" / "usertable.toml").read_text(encoding="utf-8")
    assert old in text
    file = tmp_path / "usertable.toml"
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        load_schema(str(file), operations="ycsb", database="redis", fields=FIELDS).work("scan", operation_of(SCAN))
    assert expected in str(raised.value)


# In the order that YCSB recommends: what adds records comes last.
IN_TURN, EACH = "abcfde", 300
# Of what one client does after the other, all databases must have the same records in the end.
ON_SERVERS = ("hbase", "redis", "redis+cluster", "postgresql", "mariadb", "cassandra", "ferretdb")
OTHERS = ["fjall", *(pytest.param(database, marks=pytest.mark.server) for database in ON_SERVERS)]
OWN = "sensorbench_ycsb"


def schema_of(target: str) -> Schema:
    return load_schema("usertable", operations="ycsb", database=parse_target(target).database.dialect, fields=FIELDS)


def attached(target: str, planned: list[PlannedOperation]) -> _engine.Target:
    """A target whose records can be counted, and asked for."""
    found = _engine.Target(target)
    operations = Operations(operation={operation.name: operation_of(operation) for operation in planned})
    schema = schema_of(target).driver_schema(operations, [operation.name for operation in planned], {})
    found.attach(json.dumps(schema), intent="attach", owner=TEST_OWNER.to_json())
    return found


def count_at(target: str) -> int:
    return attached(target, []).count("usertable")


def carry_out_in_turn(target: str, folder: Path) -> None:
    """Loads the records and carries out all core workloads, and counts in between what is there."""
    # With A all fields are written, with F one of them; with B one is read. What D adds, E continues after.
    more = {
        "a": ["writeallfields=true"],
        "b": ["readallfields=false"],
        "e": [f"recordcount={RECORDS + EACH}", f"insertcount={RECORDS}"],
    }
    carry_out("load", target, options_of("a"), folder / "load")
    records = RECORDS
    assert count_at(target) == records
    for letter in IN_TURN:
        options = options_of(letter, f"operationcount={EACH}", *more.get(letter, []))
        counts = counts_by_kind(carry_out("run", target, options, folder / letter), letter, EACH)
        records += int(counts.get("INSERT", 0))
        assert count_at(target) == records


def answers(target: str, planned: PlannedOperation, rows: pa.Table, order: Sequence[Order] = ()) -> list[Answer]:
    """What an operation answers to each row of parameters."""
    operation = operation_of(planned).model_copy(update={"order": list(order)})
    found = ask_each(attached(target, [planned]), planned.name, operation, schema_of(target), rows, concurrency=4).answers
    by_operation = answers_by_operation(found)
    return [by_operation[0].at(place) for place in range(len(by_operation[0]))] if 0 in by_operation else []


def limits(keys: list[str]) -> list[int]:
    """Up to how many records scans go from keys on."""
    return [1 + number % 20 for number in range(len(keys))]


def answers_at(target: str, keys: list[str]) -> dict[str, list[Answer]]:
    """What reads of all fields and of one answer for each key, and scans from it on, some of them to the end."""
    rows = pa.table({"ycsb_key": keys, "records": limits(keys)})
    return {operation.name: answers(target, operation, rows) for operation in (READ, READ_ONE, SCAN)}


def scans_of_sorted(target: str) -> list[Answer]:
    """Scans of records that are before all others, whose fields are their keys."""
    keys = [f"key{number * 7 % 50:02}" for number in range(50)]
    answers(target, INSERT, pa.table(dict.fromkeys(("ycsb_key", *FIELDS), keys)))
    rows = pa.table({"ycsb_key": sorted(keys)[:30], "records": limits(keys[:30])})
    return answers(target, SCAN, rows, [Order(column="field0")])


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], dict[str, list[Answer]]]:
    """The keys of all records of SQLite in the end, and some that are not there; and its answers."""
    folder = tmp_path_factory.mktemp("expected")
    target = target_at(folder / "y.db")
    carry_out_in_turn(target, folder)
    keys = [*sorted(records_in(folder / "y.db")), "a", "user", "user5", "users"]
    return keys, answers_at(target, keys)


@pytest.fixture
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place at the database that the test is for."""
    if request.param == "fjall":
        return f"fjall:{tmp_path / 'y'}"
    request.getfixturevalue("lab_servers")
    return server_url(request.param, OWN)


@pytest.mark.parametrize("target", OTHERS, indirect=True)
def test_core_workloads_leave_the_same_records_everywhere(
    expected: tuple[list[str], dict[str, list[Answer]]], tmp_path: Path, target: str
) -> None:
    carry_out_in_turn(target, tmp_path)
    keys, of_sqlite = expected
    found = answers_at(target, keys)
    assert [found["read"], found["read_field3"]] == [of_sqlite["read"], of_sqlite["read_field3"]]
    if target.startswith("cassandra:"):
        # Its scans continue in the order of tokens.
        assert all(answer.rows <= most for answer, most in zip(found["scan"], limits(keys), strict=True))
        assert sum(answer.rows for answer in found["scan"]) > 0.9 * sum(limits(keys))
        return
    assert found["scan"] == of_sqlite["scan"]
    of_sorted = scans_of_sorted(target)
    assert [(answer.rows, answer.in_order) for answer in of_sorted] == [(most, True) for most in limits(keys[:30])]


@pytest.mark.parametrize("target", OTHERS, indirect=True)
def test_all_kinds_of_operations_run_beside_one_another(cli: Cli, tmp_path: Path, target: str) -> None:
    """In one mix, fields one by one, by the properties file that they are in."""
    file = tmp_path / "workload"
    file.write_text(
        "recordcount=200\noperationcount=400\nreadproportion=0.2\nupdateproportion=0.2\ninsertproportion=0.2\nscanproportion=0.2\n"
        "readmodifywriteproportion=0.2\nreadallfields=false\nmaxscanlength=10\nthreadcount=4\nfieldcount=3\n",
        encoding="utf-8",
    )
    for phase, more in (("load", ["--replace"]), ("run", [])):
        ended = cli("ycsb", phase, "-P", file, "--target", target, *more, "--out", tmp_path / phase)
        assert ended.exit_code == 0, ended.err
    figures = printed(ended.out)
    kinds = ("READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE")
    assert sum(figures[kind, "Return=OK"] for kind in kinds) == 400
    assert all(figures[kind, "Operations"] > 40 for kind in kinds)
