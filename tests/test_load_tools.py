"""Loading by a database's own tool: how it is called, how it ends, and that nothing of it stays."""

import re
import stat
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from sensorbench import lab
from sensorbench.errors import UsageError
from sensorbench.lab.databases.cassandra_copy import Copy
from sensorbench.lab.databases.prometheus_blocks import Blocks
from sensorbench.lab.databases.redis_pipe import Pipe
from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.load_tools import LoadFile, LoadTool, ToolCall, last_words
from sensorbench.lab.processes import ProcessId
from sensorbench.lab.software import Installed
from sensorbench.runner import parse_target, started_target
from tests.conftest import Cli

COPIED = "Processed: 39060 rows; Rate:   19811 rows/s; Avg. rate:   25077 rows/s\n39060 rows imported from 1 files in 0 day, 0 hour (0 skipped).\n"


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Instance:
    """A record of an instance that is not running."""
    monkeypatch.setenv("SENSORBENCH_LAB", str(tmp_path))
    made = Instance(
        name="planted",
        database="none",
        version="1",
        created=datetime.now(UTC),
        owner=ProcessId.this(),
        stays=False,
        cluster=1,
        nodes=[Node(number=1, host="127.77.1.1", port=9042)],
        server_user="nobody",
    )
    made.write()
    made.write_credentials("me", "a-secret")
    return made


@pytest.mark.parametrize("tool", [Copy(), Pipe()], ids=["copy", "pipe"])
def test_no_command_line_shows_the_password(tool: LoadTool, instance: Instance, tmp_path: Path) -> None:
    file = LoadFile("sensorbench", "log", ("machine", "value"), tmp_path / "rows")
    call = tool.call(instance, tmp_path, tmp_path, file, {"consistency": "one"})
    assert "a-secret" not in " ".join(map(str, call.command))
    in_files = [path for path in tmp_path.glob("credentials") if "a-secret" in path.read_text(encoding="utf-8")]
    assert in_files or "a-secret" in call.environment.values()
    assert [stat.S_IMODE(path.stat().st_mode) for path in in_files] in ([], [0o600])


def test_copy_is_asked_for_the_columns_of_the_file_and_the_consistency_of_the_target(instance: Instance, tmp_path: Path) -> None:
    file = LoadFile("sensorbench_a", "log", ("machine", "value"), tmp_path / "rows")
    Copy().call(instance, tmp_path, tmp_path, file, {"consistency": "one"})
    script = (tmp_path / "copy.cql").read_text(encoding="utf-8")
    assert "CONSISTENCY ONE;" in script
    assert f'COPY "sensorbench_a"."log" ("machine", "value") FROM \'{file.path}\' WITH HEADER = false;' in script


@pytest.mark.parametrize(
    ("tool", "exit_code", "output", "problem"),
    [
        (Copy(), 0, COPIED, None),
        (
            Copy(),
            2,
            f"/x/copy.cql:3:Failed to import 20 rows: WriteTimeout - timed out,  will retry later, attempt 1 of 5\n{COPIED}",
            None,
        ),
        (
            Copy(),
            2,
            f"/x/copy.cql:3:Failed to import 20 rows: WriteTimeout - timed out,  given up after 5 attempts\n{COPIED}",
            "WriteTimeout",
        ),
        (
            Copy(),
            2,
            f"/x/copy.cql:3:Failed to process 1 rows; failed rows written to import_k_log.err\n{COPIED}",
            "Failed to process 1 rows",
        ),
        (Copy(), 2, "/x/copy.cql:3:Column family nolog not found", "Column family nolog not found"),
        (Copy(), 1, "Connection error: ('Unable to connect to any servers')", "Unable to connect"),
        (Pipe(), 0, "All data transferred. Waiting for the last reply...\nerrors: 0, replies: 39060\n", None),
        (Pipe(), 1, "MOVED 866 127.77.1.2:6379\nerrors: 32551, replies: 39060\n", "errors: 32551, replies: 39060"),
        (Pipe(), 0, "", "it printed nothing"),
        (Copy(), 0, "", "it printed nothing"),
        (Blocks(), 0, "", None),
        (
            Blocks(),
            1,
            "block creation: process blocks: add sample: duplicate sample for timestamp\n",
            "duplicate sample for timestamp",
        ),
    ],
)
def test_what_a_tool_says_of_rows_that_did_not_go_in_is_seen(
    tool: LoadTool, exit_code: int, output: str, problem: str | None
) -> None:
    found = tool.problem(exit_code, output)
    assert found is None if problem is None else found is not None and problem in found


def test_rows_that_copy_shows_are_its_progress() -> None:
    shown = "Processed: 5000 rows; Rate: 1 rows/s\rProcessed: 10000 rows; Rate: 1 rows/s\r"
    assert Copy().rows_done(shown) == 10000
    assert Copy().rows_done("Starting copy") is None
    assert last_words(shown + "\nended\n") == "Processed: 10000 rows; Rate: 1 rows/s | ended"


class Planted(LoadTool):
    """A tool that is a script of Python."""

    name, program, summary = "planted", "planted", "a script"
    sources = (Installed("planted", "1", "sh", "none"),)

    def __init__(self, script: str) -> None:
        self.script = script

    def call(self, instance: Instance, software: Path, folder: Path, file: LoadFile, options: Mapping[str, str]) -> ToolCall:
        return ToolCall([sys.executable, "-c", self.script], standard_input=file.path)

    def problem(self, exit_code: int, output: str) -> str | None:
        return last_words(output) if exit_code else None


@pytest.fixture
def load(instance: Instance, tmp_path: Path) -> Callable[[LoadTool, Callable[[lab.ToolProgress], None]], str | None]:
    rows = tmp_path / "rows"
    rows.write_bytes(b"x" * 100_000)
    file = LoadFile("sensorbench", "log", ("machine",), rows)
    return lambda tool, watch: lab.run_load_tool(tool, instance, tmp_path, file, {}, watch)


Run = Callable[[LoadTool, Callable[[lab.ToolProgress], None]], str | None]


def test_exit_code_and_last_words_are_told(load: Run) -> None:
    problem = load(Planted("import sys; print('first'); print('the server refused 3 rows'); sys.exit(7)"), lambda _: None)
    assert problem is not None
    assert "planted ended with exit code 7: " in problem
    assert "the server refused 3 rows" in problem
    assert load(Planted("pass"), lambda _: None) is None


def test_how_much_of_its_input_a_silent_tool_has_read_is_its_progress(load: Run) -> None:
    seen: list[float | None] = []
    load(Planted("import os, time; os.read(0, 50_000); time.sleep(1)"), lambda progress: seen.append(progress.share))
    assert seen[-1] == 0.5


def test_an_interruption_leaves_no_process_of_the_tool(load: Run, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    child = "import time; time.sleep(600)"
    script = (
        "import os, subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        f"draft = {str(pids)!r} + '.new'\n"
        "open(draft, 'w').write(f'{os.getpid()} {child.pid}')\n"
        f"os.rename(draft, {str(pids)!r})\n"
        "time.sleep(600)\n"
    )

    def interrupt(_: lab.ToolProgress) -> None:
        if pids.exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(Planted(script), interrupt)
    started = [int(pid) for pid in pids.read_text(encoding="utf-8").split()]
    assert len(started) == 2
    assert [pid for pid in started if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE] == []


def test_a_tool_is_the_targets_and_never_an_option_of_the_driver() -> None:
    target = started_target("redis", "load=pipe&connections=2")
    assert (target.loader, target.options) == ("pipe", "connections=2")
    assert target.with_option("load", "pipe").loader == "pipe"
    assert started_target("cassandra").with_options("load=copy").loader == "copy"
    # SSTables are the driver's.
    assert (started_target("cassandra", "load=sstables").loader, started_target("cassandra", "load=sstables").options) == (
        "",
        "load=sstables",
    )


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("cassandra?load=paste", "writes or sstables or copy for load"),
        ("redis?load=paste", "pipe for load"),
        ("cassandra?compact=maybe", "on or off for compact"),
    ],
)
def test_a_way_of_loading_that_is_none_is_refused_before_a_server_starts(target: str, expected: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"--target {target}: expected {expected}")):
        parse_target(target)


def test_blocks_are_for_servers_whose_head_has_the_usual_length(instance: Instance) -> None:
    """One that keeps years in its head would lose at its next start what is older than its blocks."""
    target = started_target("prometheus", "load=blocks", server_settings={"query.max-concurrency": "4"})
    assert dict(target.server_settings) == {
        "storage.tsdb.min-block-duration": "2h",
        "out_of_order_time_window": "30d",
        "query.max-concurrency": "4",
    }
    assert dict(started_target("prometheus").with_options("load=blocks").server_settings)["out_of_order_time_window"] == "30d"
    with pytest.raises(UsageError, match="At its next start it would lose those that are older than its blocks"):
        started_target("prometheus", "load=blocks", server_settings={"storage.tsdb.min-block-duration": "1y"})
    instance.model_copy(update={"database": "prometheus"}).write()
    with pytest.raises(UsageError, match=r"load=blocks: the server keeps years.*sensorbench lab up prometheus --server-setting"):
        parse_target("lab:planted?load=blocks")
    usual = {"storage.tsdb.min-block-duration": "2h"}
    instance.model_copy(update={"database": "prometheus", "settings": usual}).write()
    assert parse_target("lab:planted?load=blocks").loader == "blocks"


@pytest.mark.parametrize(
    "target", ["redis://127.0.0.1:1?load=pipe", "prometheus://127.0.0.1:1?load=blocks", "cassandra://127.0.0.1:1?load=copy"]
)
def test_servers_of_users_are_not_loaded_by_a_tool(target: str) -> None:
    with pytest.raises(UsageError, match="loads servers of the lab alone"):
        parse_target(target)


def test_a_tool_that_cannot_be_had_ends_the_command_before_anything_is_written(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pipe, "sources", (Installed("redis", "installed", "no-such-program", "redis-tools"),))
    out = tmp_path / "none"
    outcome = cli(
        "study",
        "run",
        "log-analytics",
        "--target",
        "redis?load=pipe",
        "--dataset",
        "machine-log-1gb",
        "--scale",
        "0.0005",
        "--out",
        out,
    )
    assert outcome.exit_code == 2
    assert (
        "load=pipe: redis-cli --pipe is not available here: no-such-program is not installed (apt-get install redis-tools)"
        in outcome.err
    )
    assert not out.exists()
