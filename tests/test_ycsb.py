"""YCSB: its properties as Java reads them, and its core workloads, whose records, mixes and choices are those of its definitions."""

import itertools
import json
import math
import shutil
import sqlite3
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from sensorbench import _engine, lab
from sensorbench.errors import UsageError
from sensorbench.schemas import load_schema
from sensorbench.stress.ycsb import CoreWorkload, core_workload, overridden, read_properties
from sensorbench.stress.ycsb.plan import plan_of, tables_of
from sensorbench.stress.ycsb.properties import Properties
from tests.conftest import Cli, run_main, server_url


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
        ("a=1\\\n# goes on", {"a": "1# goes on"}),
        ("a=\xe4", {"a": "\xe4"}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_properties_are_read_as_java_does(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    assert {key: one.value for key, one in properties(tmp_path, text).items()} == expected


def test_a_value_knows_its_place(tmp_path: Path) -> None:
    found = properties(tmp_path, "# first\na=1\nb=\\\n2\nc=3\n", "c= 4 ", "d=5=6")
    file = tmp_path / "workload"
    assert {key: (one.value, one.place) for key, one in found.items()} == {
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
    workload, notes = core_workload(properties(tmp_path, "recordcount=1000\noperationcount=2000\n"))
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
    """
    workload, notes = core_workload(properties(tmp_path, text))
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
        core_workload(properties(tmp_path, line))
    assert expected in str(raised.value)


# YCSB's core workloads (workloads/workloada to workloadf), by what tells them apart.
CORE = {
    "a": ({"READ": 0.5, "UPDATE": 0.5}, "zipfian"),
    "b": ({"READ": 0.95, "UPDATE": 0.05}, "zipfian"),
    "c": ({"READ": 1.0}, "zipfian"),
    "d": ({"READ": 0.95, "INSERT": 0.05}, "latest"),
    "e": ({"SCAN": 0.95, "INSERT": 0.05}, "zipfian"),
    "f": ({"READ": 0.5, "READ-MODIFY-WRITE": 0.5}, "zipfian"),
}
RECORDS, OPERATIONS = 300, 2000


def options_of(letter: str) -> list[str]:
    """A core workload as properties."""
    proportions, distribution = CORE[letter]
    kinds = ("READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE")
    keys = [f"{kind.replace('-', '').lower()}proportion={proportions.get(kind, 0)}" for kind in kinds]
    return [*keys, f"requestdistribution={distribution}", f"recordcount={RECORDS}", "maxscanlength=20", "fieldlength=10"]


def as_arguments(options: list[str]) -> list[str]:
    return [argument for option in options for argument in ("-p", option)]


def printed(text: str) -> dict[tuple[str, str], float]:
    """What YCSB's output says, by group and figure."""
    lines = [line[1:].split(", ") for line in text.splitlines() if line.startswith("[")]
    return {(group.rstrip("]"), what): float(value) for group, what, value in lines}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the records of the core workloads. Nothing is forced to the disk: that is not what is tested."""
    folder = tmp_path_factory.mktemp("ycsb")
    arguments = [
        "ycsb",
        "load",
        "--target",
        target_at(folder / "y.db"),
        *as_arguments(options_of("a")),
        "--out",
        str(folder / "load"),
    ]
    assert run_main(tuple(arguments)) == 0
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


@pytest.mark.parametrize("letter", CORE)
def test_a_core_workload_has_its_mix_and_its_records(cli: Cli, loaded: Path, tmp_path: Path, letter: str) -> None:
    copy = tmp_path / "y.db"
    shutil.copy(loaded, copy)
    before = records_in(copy)
    arguments = as_arguments([*options_of(letter), f"operationcount={OPERATIONS}"])
    ended = cli("ycsb", "run", "--target", target_at(copy), *arguments, "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.err
    figures = printed(ended.out)
    assert ended.out == (tmp_path / "out" / "ycsb.txt").read_text(encoding="utf-8")
    proportions = CORE[letter][0]
    counts = {kind: figures[kind, "Operations"] for kind in proportions}
    assert sum(counts.values()) == OPERATIONS == sum(figures[kind, "Return=OK"] for kind in proportions)
    for kind, share in proportions.items():
        # Four standard deviations: exceeded once in 16,000 times, and equal seeds give equal counts.
        assert abs(counts[kind] - share * OPERATIONS) <= 4.0 * math.sqrt(OPERATIONS * share * (1.0 - share)), counts
    after = records_in(copy)
    assert len(after) == RECORDS + counts.get("INSERT", 0)
    changed = sum(fields != before[key] for key, fields in after.items() if key in before)
    writes = counts.get("UPDATE", 0) + counts.get("READ-MODIFY-WRITE", 0)
    assert (changed > 0) == (writes > 0)
    assert changed <= writes


def keys_of(letter: str, count: int, *options: str, ycsb_zipfian: bool = False) -> list[str]:
    """The keys of the first reads of a core workload."""
    properties = overridden({}, [*options_of(letter), f"operationcount={count}", *options])
    workload, _ = core_workload(properties)
    schema = load_schema("usertable", operations="ycsb", database="sqlite", fields=workload.field_names)
    plan = plan_of(workload, "run", schema, in_flight=4, threads=1, seed=3, timeout_s=1.0, ycsb_zipfian=ycsb_zipfian)
    readers = [table.to_reader() for table in tables_of(workload, "run")]
    number = next(number for number, one in enumerate(plan["operations"]) if one["operation"]["name"] in ("read", "scan"))
    found: list[str] = pa.table(_engine.parameters(json.dumps(plan), readers, 0, number, None, count))["ycsb_key"].to_pylist()
    return found


def chi_square(counts: list[int], shares: list[float]) -> float:
    total = sum(counts)
    return sum((count - total * share) ** 2 / (total * share) for count, share in zip(counts, shares, strict=True))


def zipf_shares(ranks: int) -> list[float]:
    weights = [rank**-0.99 for rank in range(1, ranks + 1)]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("letter", ["a", "c", "f"])
def test_zipfian_records_are_as_frequent_as_zipf_says(letter: str) -> None:
    counts = sorted(Counter(keys_of(letter, 40_000)).values(), reverse=True)
    assert len(counts) == RECORDS
    # Ranks by count are nearer to the expectation than ranks by right: the first 60 are told apart well enough.
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


def test_a_hotspot_has_its_share() -> None:
    counts = sorted(Counter(keys_of("a", 40_000, "requestdistribution=hotspot")).values(), reverse=True)
    assert abs(sum(counts[: RECORDS // 5]) / sum(counts) - 0.8) < 0.01


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
        (("ycsb", "run", "--target", "sqlite:{tmp}/none.db", "-P", "{tmp}/nothing"), "nothing: No such file"),
    ],
)  # fmt: skip
def test_wrong_usage_says_what_was_expected(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], expected: str) -> None:
    ended = cli(*(argument.format(tmp=tmp_path) for argument in arguments), "--out", tmp_path / "out")
    assert (ended.exit_code, expected in ended.err) == (2, True), ended.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("server", ["cassandra", "mariadb", "postgresql"])
def test_the_core_workloads_run_on_servers(cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path, server: str) -> None:
    """All kinds of operations in one mix, fields one by one, by the properties file that they are in."""
    file = tmp_path / "workload"
    file.write_text(
        "recordcount=200\noperationcount=400\nreadproportion=0.2\nupdateproportion=0.2\ninsertproportion=0.2\nscanproportion=0.2\n"
        "readmodifywriteproportion=0.2\nreadallfields=false\nmaxscanlength=10\nthreadcount=4\nfieldcount=3\n",
        encoding="utf-8",
    )
    target = server_url(server, "sensorbench_ycsb")
    for phase, more in (("load", ["--replace"]), ("run", [])):
        ended = cli("ycsb", phase, "-P", file, "--target", target, *more, "--out", tmp_path / phase)
        assert ended.exit_code == 0, ended.err
    figures = printed(ended.out)
    kinds = ("READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE")
    assert sum(figures[kind, "Return=OK"] for kind in kinds) == 400
    assert all(figures[kind, "Operations"] > 40 for kind in kinds)
