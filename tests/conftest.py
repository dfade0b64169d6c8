"""What tests share: a cache of their own, the command line, and one small study."""

import gc
import html
import json
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from sensorbench import lab
from sensorbench.cli import main
from sensorbench.lab.locks import locked
from sensorbench.results.ownership import Owner
from tests.pictures import drawn_once
from tests.servers import (
    ByServers,
    LabServers,
    allow_all,
    have_quick_java,
    make_no_lab,
    make_quick_java,
    mark_by_fixtures,
    needs_servers,
    refuse_unmarked,
    share_addresses,
)
from tests.times import times_of

# No test asserts a time: on a busy machine an example may take long.
hypothesis.settings.register_profile("sensorbench", deadline=None)
hypothesis.settings.load_profile("sensorbench")


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Outcome]

# The results folder in whose name tests themselves create namespaces.
TEST_OWNER = Owner("tests", "the tests' own")

# Whoever starts the tests in the background of a shell has them ignore Ctrl-C, and so all that they start, which some of them interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# With the default, the garbage collector took a tenth of the time of all tests.
gc.set_threshold(50_000)


_QUICK_JAVA = pytest.StashKey[Path | None]()
_NO_LAB = pytest.StashKey[Path]()
_LAB_HOME = pytest.StashKey[Path | None]()


def pytest_configure(config: pytest.Config) -> None:
    folder = Path(tempfile.mkdtemp(prefix="sensorbench-test-", dir="/var/tmp"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    # The servers' user starts Java here.
    folder.chmod(0o755)
    config.stash[_QUICK_JAVA] = make_quick_java(folder)
    config.stash[_NO_LAB] = make_no_lab(folder)
    config.stash[_LAB_HOME] = None
    worker = getattr(config, "workerinput", {"workerid": "gw0", "workercount": 1})
    share_addresses(int(worker["workerid"].removeprefix("gw")), worker["workercount"])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_by_fixtures(items)


def pytest_collection_finish() -> None:
    # The tests stay to the end: the garbage collector leaves them out.
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    # DuckDB says at the end of a process what was never freed.
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [
        report for reports in terminalreporter.stats.values() for report in reports if isinstance(report, pytest.TestReport)
    ]
    for line in times_of(reports).lines():
        terminalreporter.write_line(line)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return ByServers(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if home := item.config.stash[_LAB_HOME]:
        # A test that patched the variable has put back what it found, which was that of a test without servers.
        os.environ["SENSORBENCH_LAB"] = str(home)
    if _servers is not None and not needs_servers(item):
        _servers.stop()
    refuse_unmarked(item, item.config.stash[_NO_LAB])
    if item.get_closest_marker("cluster") or item.get_closest_marker("server"):
        have_quick_java(item, item.config.stash[_QUICK_JAVA])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    allow_all(item)


@pytest.fixture(scope="session", autouse=True)
def _own_places(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Any:
    """A cache of the tests' own, no lab but theirs (`lab_home`), and a picture for each kind of chart.

    What the client can do is measured for a moment only: most tests measure it, and no test says what comes out.
    """
    with pytest.MonkeyPatch.context() as patch, drawn_once():
        patch.setattr("sensorbench.runner.ceiling.SHORT_S", 0.02)
        patch.setenv("SENSORBENCH_LAB", str(pytestconfig.stash[_NO_LAB]))
        patch.setenv("SENSORBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def forget_checksums(folder: Path) -> None:
    """Makes results that a test has changed pass for those of an earlier version, which had no checksums."""
    for file in folder.rglob("checksums.txt"):
        file.unlink()


def run_main(arguments: tuple[object, ...]) -> int:
    """Runs the command line in this process; returns the exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["sensorbench", *map(str, arguments)])
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0)
    return 0


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        exit_code = run_main(arguments)
        captured = capsys.readouterr()
        return Outcome(exit_code, captured.out, captured.err)

    return run


def commands_on(page: Path) -> list[list[str]]:
    """The command lines that a report shows, each as the words that a shell makes of it."""
    shown = re.findall(r'<pre class="command"><code>(.*?)</code></pre>', page.read_text(encoding="utf-8"))
    return [shlex.split(html.unescape(command)) for command in shown]


# The real sample, cut to a month: four schemas load and answer in seconds.
# What needs no server: the study's own targets are the paper's.
EMBEDDED = ("--target", "sqlite", "--target", "fjall")
SMALL = ("--dataset", "beijing-air-quality", "--scale", "0.02", "--operations", "120", "--no-open")


def made_once(factory: pytest.TempPathFactory, name: str, *command: object) -> Path:
    """The results of a command that ends with 0, in a folder of this name that lies in one of its own.

    The first worker that needs them runs the command; the others wait for it. Tests that change results copy them before.
    """
    base = factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"shared-{name}"
    place.mkdir(exist_ok=True)
    out, done = place / name, place.with_suffix(".done")
    with locked(place.with_suffix(".lock")):
        if not done.exists():
            shutil.rmtree(out, ignore_errors=True)
            assert run_main((*command, "--out", out)) == 0
            done.touch()
    return out


@pytest.fixture(scope="session")
def study_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the study `iot` on two embedded databases."""
    return made_once(tmp_path_factory, "iot", "study", "run", "iot", *EMBEDDED, *SMALL)


@pytest.fixture(scope="session")
def sensor_schemas_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the sensor-schema study on the embedded database, 1,200 readings a sensor."""
    small = ("--scale", "0.001", "--operations", "40", "--warmup", "10ms", "--no-open")
    return made_once(tmp_path_factory, "sensor-schemas", "study", "run", "sensor-schemas", "--target", "fjall", *small)


@pytest.fixture(scope="session")
def summary(study_folder: Path) -> dict[str, Any]:
    return json.loads((study_folder / "summary.json").read_text(encoding="utf-8"))


@contextmanager
def new_lab_home() -> Iterator[Path]:
    """A place for instances that servers of another user can reach, which pytest's own folders are not."""
    home = Path(tempfile.mkdtemp(prefix="sensorbench-test-lab-", dir="/var/tmp"))
    home.chmod(0o755)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def lab_home(pytestconfig: pytest.Config) -> Iterator[Path]:
    """A lab of the tests' own; at the end nothing of it runs and nothing of it is left."""
    with new_lab_home() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SENSORBENCH_LAB", str(home))
        pytestconfig.stash[_LAB_HOME] = home
        yield home
        pytestconfig.stash[_LAB_HOME] = None
        os.environ["SENSORBENCH_LAB"] = str(home)
        lab.down_all()
        assert list((home / "instances").glob("*/")) == []


@pytest.fixture(scope="session")
def lab_servers(lab_home: Path, pytestconfig: pytest.Config) -> Iterator[LabServers]:
    """Servers that tests share, one of each kind."""
    global _servers
    _servers = LabServers(pytestconfig.stash[_QUICK_JAVA])
    yield _servers
    _servers = None


# Tests name namespaces of servers where no fixture reaches.
_servers: LabServers | None = None


def server_url(database: str, namespace: str) -> str:
    """A namespace of a server of the lab. Without nodetool Cassandra is not flushed, which takes longer than all questions."""
    assert _servers is not None, "a test that uses servers of the lab has the fixture lab_servers"
    name = database.replace("+", "-")
    _servers.start(name)
    url = lab.url_of(lab.find_instance(name))
    address, _, options = url.partition("?")
    kept = [option for option in options.split("&") if option.startswith("credentials=")]
    return f"{address}?{'&'.join([*kept, f'namespace={namespace}'])}"
