"""The tests' own division: who starts no server cannot start one, and who has no cluster cannot have several nodes."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest

from sensorbench import lab
from sensorbench.lab import jvm
from tests.pictures import check_once_for_each_kind, once_for_each_kind
from tests.servers import (
    LAB_FIXTURE,
    MAX_LONG,
    OF_OTHER_RINGS,
    LabServers,
    allow_all,
    check_long,
    have_quick_java,
    make_quick_java,
)
from tests.times import LONGEST_FIRST, is_long, rank_of, times_of

ROOT = Path(__file__).parent.parent


def test_a_test_without_the_lab_cannot_start_a_server() -> None:
    with pytest.raises(pytest.fail.Exception, match=f"starts redis and does not use {LAB_FIXTURE}"):
        lab.up(lab.ServerSpec("redis"))
    with pytest.raises(pytest.fail.Exception, match=f"starts redis and does not use {LAB_FIXTURE}"):
        LabServers()["redis"]


def test_nor_can_the_processes_that_it_starts() -> None:
    command = [sys.executable, "-m", "sensorbench", "lab", "up", "redis", "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) != (0, "")
    assert "lab-of-tests-that-start-no-server" in re.sub(r"[\s│]", "", ended.stderr)
    assert not list((Path(os.environ["SENSORBENCH_LAB"]) / "instances").glob("*/"))


def test_a_test_with_the_lab_is_marked_by_that_and_cannot_start_several_nodes(
    request: pytest.FixtureRequest, lab_home: Path
) -> None:
    assert request.node.get_closest_marker("server")
    assert os.environ["SENSORBENCH_LAB"] == str(lab_home)
    # Other tests of this process may have started one of a single node.
    before = sorted((lab_home / "instances").glob("*/"))
    for spec in (lab.ServerSpec("redis+cluster", nodes=3), lab.ServerSpec("redis+cluster", replicas=1)):
        with pytest.raises(pytest.fail.Exception, match="starts several nodes and is not marked `cluster`"):
            lab.up(spec)
    assert sorted((lab_home / "instances").glob("*/")) == before


@pytest.mark.cluster
def test_large_clusters_are_started_only_by_tests_that_say_so_and_compile_quickly(lab_home: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="takes hbase, and its name does not say so"):
        lab.up(lab.ServerSpec("hbase", nodes=2))
    assert "-XX:TieredStopAtLevel=1" in jvm.require_java((17, 11)).java.read_text(encoding="utf-8")


def test_large_servers_are_started_only_by_tests_that_say_so(lab_home: Path) -> None:
    for name in ("cassandra", "hbase"):
        with pytest.raises(pytest.fail.Exception, match=f"takes {name}, and its name does not say so"):
            lab.up(lab.ServerSpec(name))


def test_large_servers_are_taken_only_by_tests_that_say_so() -> None:
    for name in ("cassandra", "hbase"):
        with pytest.raises(pytest.fail.Exception, match=f"takes {name}, and its name does not say so"):
            LabServers()[name]


SHOWN = """
from tests.conftest import *
from tests.servers import group_of

def pytest_collection_finish(session):
    for item in session.items:
        print(item.name, group_of(item.nodeid).replace(" ", "_"), *sorted({mark.name for mark in item.iter_markers()}))
"""
PLANTED = """
import pytest

def test_alone(): pass
@pytest.fixture
def a_server_of_its_own(lab_home): pass
def test_by_way_of_a_fixture(a_server_of_its_own): pass
@pytest.mark.cluster
def test_of_several_nodes(lab_home): pass
def test_of_cassandra(lab_home): pass
def test_of_all_servers(lab_home): pass
@pytest.mark.cluster
def test_a_ring_grows_and_shrinks_and_a_dead_node_comes_back(lab_home): pass
"""


PLANTED_LONG = """
import pytest

def test_beside_a_long_one(): pass
@pytest.mark.long("planted")
def test_long(): pass
"""


def test_fixtures_and_names_decide_on_marker_group_and_order(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(SHOWN, encoding="utf-8")
    (tmp_path / "test_planted.py").write_text(PLANTED, encoding="utf-8")
    (tmp_path / "test_quick.py").write_text("def test_quick(): pass\n", encoding="utf-8")
    (tmp_path / "test_with_long.py").write_text(PLANTED_LONG, encoding="utf-8")
    (tmp_path / LONGEST_FIRST[0]).write_text("def test_of_the_longest(): pass\n", encoding="utf-8")
    options = ("-c", ROOT / "pyproject.toml", "--rootdir", tmp_path, "-p", "no:cacheprovider", "--collect-only", "-qq", tmp_path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "pytest", *map(str, options)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = [line.split() for line in ended.stdout.splitlines() if re.match(r"test_\w+ [\w.]+( \w+)*$", line)]
    # Those of large servers come first of all with servers: they are the longest group.
    assert found == [
        ["test_of_the_longest", LONGEST_FIRST[0]],
        ["test_beside_a_long_one", "test_with_long.py"],
        ["test_long", "test_with_long.py", "long"],
        ["test_of_cassandra", "large_servers", "server"],
        ["test_of_all_servers", "large_servers", "server"],
        ["test_a_ring_grows_and_shrinks_and_a_dead_node_comes_back", "rings_of_another_worker", "cluster", "server"],
        ["test_alone", "test_planted.py"],
        ["test_by_way_of_a_fixture", "test_planted.py", "server"],
        ["test_of_several_nodes", "test_planted.py", "cluster", "server"],
        ["test_quick", "test_quick.py"],
    ]


def test_rings_of_another_worker_are_there() -> None:
    sources = [file.read_text(encoding="utf-8") for file in (ROOT / "tests").glob("test_*.py") if file != Path(__file__)]
    for name in OF_OTHER_RINGS:
        assert sum(f"@pytest.mark.cluster\ndef {name}(" in source for source in sources) == 1, name


class Marked(NamedTuple):
    """As much of a test as its marks are."""

    marks: tuple[pytest.Mark, ...]
    nodeid: str = "a test"

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next((mark for mark in self.marks if mark.name == name), None)


WITH_REASON = pytest.mark.long("fifty of them").mark


@pytest.mark.parametrize(
    ("marks", "number", "problem"),
    [
        ((pytest.mark.long.mark,), 1, "say why"),
        ((WITH_REASON, pytest.mark.server.mark), 1, "it is left out already"),
        ((WITH_REASON, pytest.mark.cluster.mark), 1, "it is left out already"),
        ((WITH_REASON,), MAX_LONG + 1, f"{MAX_LONG + 1} tests are marked long"),
    ],
)
def test_long_tests_have_a_reason_start_no_server_and_are_few(marks: tuple[pytest.Mark, ...], number: int, problem: str) -> None:
    check_long([cast("pytest.Item", Marked((WITH_REASON,), f"test_{test}[{case}]")) for test in range(MAX_LONG) for case in "ab"])
    with pytest.raises(pytest.UsageError, match=problem):
        check_long([cast("pytest.Item", Marked(marks, f"test_{test}")) for test in range(number)])


def test_charts_that_differ_in_data_and_words_alone_are_drawn_once() -> None:
    drawn: list[dict[str, Any]] = []

    def draw(specification: dict[str, Any]) -> tuple[str, bytes]:
        drawn.append(specification)
        return str(len(drawn)), b""

    def chart(mark: str, field: str, title: str, value: float) -> dict[str, Any]:
        x = {"field": field, "type": "quantitative", "title": title, "scale": {"domain": [title]}}
        return {"layer": [{"mark": {"type": mark}, "encoding": {"x": x}, "data": {"values": [{field: value}]}}]}

    drawer = once_for_each_kind(draw)
    kinds = [("line", "a"), ("point", "a"), ("line", "b")]
    assert [drawer(chart(*kind, title, value))[0] for kind in kinds for title, value in (("one", 1.0), ("two", 2.0))] == [
        *("1", "1", "2", "2", "3", "3")
    ]
    assert len(drawn) == len(kinds)


def test_charts_that_differ_in_data_and_what_is_said_of_them_are_checked_once() -> None:
    checked: list[dict[str, Any]] = []

    def check(specification: dict[str, Any], schema: dict[str, Any]) -> None:
        checked.append(specification)
        if specification["orient"] != "left":
            raise ValueError("no such place")

    def chart(orient: str, title: Any, value: float) -> dict[str, Any]:
        return {"orient": orient, "title": title, "scale": {"domain": [str(value)]}, "width": value, "data": {"values": [value]}}

    checker = check_once_for_each_kind(check)
    for orient, title in (("left", "one"), ("left", "two"), ("left", ["one"])):
        checker(chart(orient, title, 1.0), {"$ref": "a"})
    assert len(checked) == 2
    checker(chart("left", "one", 2.0), {"$ref": "b"})
    assert len(checked) == 3
    # What is wrong is wrong each time.
    for _ in range(2):
        with pytest.raises(ValueError, match="no such place"):
            checker(chart("lefft", "one", 1.0), {"$ref": "a"})
    assert len(checked) == 5


class Reported(NamedTuple):
    """As much of a report of pytest as its times are."""

    nodeid: str
    duration: float
    start: float
    stop: float
    node: object = None


def test_the_longest_modules_and_idle_workers_are_shown() -> None:
    first, second = (SimpleNamespace(gateway=SimpleNamespace(id=name)) for name in ("gw0", "gw1"))
    reports = [
        Reported("tests/test_a.py::test_x", 10.0, 0.0, 10.0, first),
        Reported("tests/test_b.py::test_x", 100.0, 1.0, 101.0, second),
        Reported("tests/test_a.py::test_y", 15.0, 10.0, 25.0, first),
    ]
    assert times_of(reports).lines() == [
        "[module]  100 s  tests/test_b.py",
        "[module]   25 s  tests/test_a.py",
        "[worker] gw0: 25 s, then idle for 76 s",
        "[worker] gw1: 100 s, then idle for 0 s",
    ]
    assert times_of(reports[:1]).lines() == times_of([]).lines() == []


def test_long_modules_are_there_once_and_are_begun_before_short_ones() -> None:
    assert len(set(LONGEST_FIRST)) == len(LONGEST_FIRST)
    assert [name for name in LONGEST_FIRST if not (Path(__file__).parent / name).exists()] == []
    assert rank_of(LONGEST_FIRST[0]) < rank_of(LONGEST_FIRST[-1]) < rank_of("test_of_something_else.py")
    assert (is_long(LONGEST_FIRST[-1]), is_long("test_of_something_else.py")) == (True, False)


def test_clusters_in_java_are_compiled_without_the_optimiser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = jvm.require_java((17, 11))
    home = make_quick_java(tmp_path)
    assert home is not None
    monkeypatch.setenv("JAVA_HOME", str(home))
    java = jvm.require_java((17, 11))
    assert (java.home, java.major) == (home.resolve(), usual.major)
    told = subprocess.run([java.java, "-XX:+PrintFlagsFinal", "-version"], capture_output=True, text=True, check=True).stdout
    assert re.search(r"intx TieredStopAtLevel += 1 ", told)


def test_only_a_test_that_is_given_the_quick_java_has_it(request: pytest.FixtureRequest) -> None:
    before = os.environ.get("JAVA_HOME")
    have_quick_java(request.node, None)
    assert os.environ.get("JAVA_HOME") == before
    have_quick_java(request.node, Path("/quick"))
    assert os.environ["JAVA_HOME"] == "/quick"
    # It ends with the test.
    allow_all(request.node)
    assert os.environ.get("JAVA_HOME") == before


def test_our_crates_are_tested_without_the_optimizer() -> None:
    """All of them: one that was forgotten would be compiled as for measurements, which takes several times as long."""
    profiles = tomllib.loads((ROOT / "crates" / "tests.toml").read_text(encoding="utf-8"))["profile"]["release"]["package"]
    crates = {manifest.parent.name for manifest in ROOT.glob("crates/*/Cargo.toml")}
    assert set(profiles) == crates - {"sensorbench-python"}
    assert {profile["opt-level"] for profile in profiles.values()} == {0}
