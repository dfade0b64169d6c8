"""Which tests start servers, and the servers that they share; and which tests are long without them.

A test that uses the tests' lab gets the marker `server` by that alone; rings, Spark, faults and several nodes are marked `cluster` in their
modules. No other test can start a server: in this process it fails at once, and in those that it starts the lock of the lab cannot be taken.
A test without servers that would no longer test the same if it were short is marked `long("why")`; these are few.

Cassandra, HBase and OpenTSDB, which lies over an HBase, take many seconds and gigabytes each to start: of several workers one alone has them (`--dist loadgroup`), which gets all
tests whose names say one of them, or `all_servers`, in module, function or parameter. Other tests cannot take them, but for a few of clusters whose rings are their own.
"""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

from sensorbench import lab
from sensorbench.lab import addresses
from sensorbench.lab import lab as starting
from sensorbench.lab.database import LabDatabase
from sensorbench.lab.jvm import find_java, write_launcher
from tests.times import is_long, rank_of

# A test that is left out while one works finds nothing while one works.
MAX_LONG = 20
# Who has this fixture, or one that has it, starts servers.
LAB_FIXTURE = "lab_home"
TOO_LONG_TO_BUILD = frozenset({"influxdb2"})
_LARGE = ("cassandra", "hbase", "opentsdb")
_LARGE_GROUP = "large servers"
# Tests of rings that they start themselves, at the other worker: with all others, one worker would be twice as long as the other. They take no server
# that is shared, and memory for two rings is there.
_OTHER_RINGS = "rings of another worker"
OF_OTHER_RINGS = (
    "test_factors_of_cassandra_are_measured_on_fresh_clusters_of_three_nodes",
    "test_a_ring_grows_and_shrinks_and_a_dead_node_comes_back",
)
# They do little, so that the optimizer takes them more time than it saves: 40 s of CPU instead of 25 s for a start and one test.
_QUICK = frozenset({"iotdb"})
# QuestDB's threads look for work every millisecond, and less often only after 7 s without any, which a server with tables never has. Two idle servers
# took 5% of the CPU time of all tests with servers.
_SETTINGS = {"questdb": {"shared.worker.nap.threshold": "100", "shared.worker.sleep.threshold": "200"}}
_JAVA_OF_SERVERS = (17, 11)
# Where Java is, before a test has the quick one.
_USUAL_JAVA = os.environ.get("JAVA_HOME")
_REFUSAL = pytest.StashKey[pytest.MonkeyPatch]()


class LabServers(Mapping[str, lab.Instance]):
    """One server of each kind, by its name in the lab: each is started when a test first takes it, and stays. One that takes many minutes to
    build is not among them.
    """

    _databases = {database.replace("+", "-"): database for database in lab.LAB_DATABASES if database not in TOO_LONG_TO_BUILD}

    def __init__(self, quick_java: Path | None = None) -> None:
        self._started: dict[str, lab.Instance] = {}
        self._quick_java = quick_java

    def __getitem__(self, name: str) -> lab.Instance:
        if _current is not None:
            _refuse_large(_current, name)
        if name not in self._started:
            with pytest.MonkeyPatch.context() as patch:
                home = self._quick_java if name in _QUICK else _USUAL_JAVA
                if home is None:
                    patch.delenv("JAVA_HOME", raising=False)
                else:
                    patch.setenv("JAVA_HOME", str(home))
                self._started[name] = lab.up(lab.ServerSpec(self._databases[name], settings=dict(_SETTINGS.get(name, {}))))
        return self._started[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._databases)

    def __len__(self) -> int:
        return len(self._databases)

    def __contains__(self, name: object) -> bool:
        return name in self._databases

    def start(self, *names: str) -> None:
        """Starts those of these servers that are not running yet, for tests that name them only in URLs."""
        for name in names:
            self[name]

    def started(self) -> list[lab.Instance]:
        """Those that run."""
        return list(self._started.values())

    def stop(self) -> None:
        """Stops those that run; a test that takes one again starts it again."""
        with ThreadPoolExecutor() as at_once:
            list(at_once.map(lab.down, [instance.name for instance in self._started.values()]))
        self._started.clear()


# The test that is carried out.
_current: pytest.Item | None = None
# The modules that have tests with servers.
_with_servers: set[Path] = set()


def mark_by_fixtures(items: list[pytest.Item]) -> None:
    """Marks the tests that use servers, and puts their modules in the order in which they are begun: with several workers, short ones are left for
    the end.
    """
    for item in items:
        if LAB_FIXTURE in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.server)
    check_long([item for item in items if item.get_closest_marker("long")])
    _with_servers.update(item.path for item in items if item.get_closest_marker("server"))
    with_long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: (_begins(item, with_long), rank_of(item.path.name), item.path not in with_long))


def _begins(item: pytest.Item, with_long: set[Path]) -> int:
    """When a test's module is begun, as a place in an order: long ones without servers, of which workers have one each; those of large servers, which
    are the longest group of their phase; others with servers; and all that is short.
    """
    if not needs_servers(item) and (item.path in with_long or is_long(item.path.name)):
        return 0
    if group_of(item.nodeid) in {_LARGE_GROUP, _OTHER_RINGS}:
        return 1
    return 2 if needs_servers(item) else 3


def needs_servers(item: pytest.Item) -> bool:
    """Whether this test or another one of its module needs servers. All together they take half a processor while nobody asks them anything, so
    that they are stopped where none does.
    """
    return item.path in _with_servers


def group_of(nodeid: str) -> str:
    """The tests with which one worker must have this test: those that may take Cassandra or HBase, or those of its module."""
    if nodeid.endswith(OF_OTHER_RINGS):
        return _OTHER_RINGS
    return _LARGE_GROUP if any(name in nodeid for name in (*_LARGE, "all_servers")) else nodeid.partition("::")[0]


class ByServers(LoadScopeScheduling):
    """Gives each group of tests to one worker, which pytest-xdist's own `loadgroup` does not with pytest 9.2."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def check_long(items: list[pytest.Item]) -> None:
    """Refuses the marker `long` without a reason, where it says nothing, and in great numbers."""
    for item in items:
        marker = item.get_closest_marker("long")
        if not marker or not marker.args:
            raise pytest.UsageError(f"{item.nodeid}: say why: long('...')")
        if any(item.get_closest_marker(name) for name in ("server", "cluster")):
            raise pytest.UsageError(f"{item.nodeid}: with servers it is left out already; long is for tests without")
    # The pages of the documentation are cases of one test.
    tests = {item.nodeid.partition("[")[0] for item in items}
    if len(tests) > MAX_LONG:
        raise pytest.UsageError(f"{len(tests)} tests are marked long, and at most {MAX_LONG} may be: shorten one")


def refuse_unmarked(item: pytest.Item, no_lab: Path) -> None:
    """Makes a test without a marker unable to start a server, one without `cluster` unable to start several nodes or Spark, and one whose name
    does not say so unable to start Cassandra or HBase, so that no two workers ever have them at the same time.
    """
    global _current
    _current = item
    patch = item.stash[_REFUSAL] = pytest.MonkeyPatch()
    is_cluster = item.get_closest_marker("cluster") is not None
    is_single = item.get_closest_marker("server") is not None
    check = starting._check

    def check_and_refuse(spec: lab.ServerSpec, database: LabDatabase) -> None:
        check(spec, database)
        if not is_single and not is_cluster:
            pytest.fail(f"{item.nodeid} starts {spec.database} and does not use {LAB_FIXTURE}, which would mark it as `server`")
        _refuse_large(item, spec.database)
        if not is_cluster:
            _refuse_nodes(item, (spec.nodes or 1) + spec.replicas)

    patch.setattr(starting, "_check", check_and_refuse)
    if is_cluster:
        return
    patch.setenv("SPARK_HOME", str(no_lab / "spark"))
    if not is_single:
        patch.setenv("SENSORBENCH_LAB", str(no_lab))
    patch.setattr(starting, "_next_nodes", lambda *_: _refuse_nodes(item, 2))


def _refuse_large(item: pytest.Item, database: str) -> None:
    has_own = group_of(item.nodeid) == _OTHER_RINGS and item.get_closest_marker("cluster") is not None
    if database.startswith(_LARGE) and group_of(item.nodeid) != _LARGE_GROUP and not has_own:
        pytest.fail(f"{item.nodeid} takes {database}, and its name does not say so")


def _refuse_nodes(item: pytest.Item, nodes: int) -> None:
    if nodes > 1:
        pytest.fail(f"{item.nodeid} starts several nodes and is not marked `cluster`")


def allow_all(item: pytest.Item) -> None:
    """Ends what `refuse_unmarked` began, before fixtures end: those of a module may have servers that other tests of it used."""
    if patch := item.stash.get(_REFUSAL, None):
        patch.undo()


def make_no_lab(folder: Path) -> Path:
    """A lab without instances in which none can be started, as its lock leads nowhere. Processes of tests that start no server have it."""
    home = folder / "lab-of-tests-that-start-no-server"
    (home / "instances").mkdir(parents=True)
    (home / "instances" / "lock").symlink_to(home / "nowhere" / "lock")
    return home


def make_quick_java(folder: Path) -> Path | None:
    """A home of Java whose virtual machines compile without the optimizer; none where there is no Java that servers run on. It is the first that
    the lab itself would take.
    """
    java = find_java(_JAVA_OF_SERVERS)
    if java is None:
        return None
    tools = folder / "java" / "bin"
    tools.mkdir(parents=True)
    for tool in java.java.parent.iterdir():
        (tools / tool.name).symlink_to(tool)
    (tools / "java").unlink()
    write_launcher(tools / "java", [java.java, "-XX:TieredStopAtLevel=1"])
    return tools.parent


def have_quick_java(item: pytest.Item, home: Path | None) -> None:
    """Has a test start servers of its own with that Java. The optimizer takes half of the CPU time of those that live for seconds, as most do; what
    serves one test after the other is slower without it, and has the usual one.
    """
    if home is not None:
        item.stash[_REFUSAL].setenv("JAVA_HOME", str(home))


def share_addresses(worker: int, workers: int) -> None:
    """Gives each worker addresses of its own: two labs that look for free ones at the same moment could choose the same."""
    addresses._CLUSTERS = range(1 + worker, 255, workers)
