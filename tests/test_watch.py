"""The live page: what it is sent during a load, the same of a run on disk, who may read it, and the page in a real browser."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sensorbench import lab
from sensorbench.app.watch import LOOPBACK, live_page, replayed
from sensorbench.errors import FailedError, UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.results.reader import read_run
from sensorbench.runner import FeedEnd, LiveFeed, live_jobs
from sensorbench.runner.jobs import LiveJobs
from sensorbench.runner.live import CpuPoint
from tests.browser import dom_of
from tests.conftest import Cli, run_main
from tests.programs import browser
from tests.test_replay import reads
from tests.test_tune import NULL, NULL_SPACE

STRESS = ("stress", "--target", "sqlite", "--rates", "200,400", "--records", "300", "--mix", "read=3,write=1", "--no-open")
SHORT = ("--warmup", "0", "--ramp", "0", "--step-duration", "2s")
PAGE_TIMEOUT_S = 300.0


def free_port() -> int:
    with socket.socket() as found:
        found.bind((LOOPBACK, 0))
        port: int = found.getsockname()[1]
        return port


def events_at(port: int, headers: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """All events of a page, from when somebody answers at its port until they are over."""
    ends = time.monotonic() + PAGE_TIMEOUT_S
    while True:
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=PAGE_TIMEOUT_S)
        try:
            connection.request("GET", "/events", headers=headers or {})
            break
        except ConnectionRefusedError:
            assert time.monotonic() < ends, "nobody serves the page"
            time.sleep(0.02)
    with connection.getresponse() as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        return [
            json.loads(line.removeprefix("data: ")) for line in answer.read().decode().splitlines() if line.startswith("data: ")
        ]


def of_kind(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["kind"] == kind]


def rows_of(events: list[dict[str, Any]], table: str, run: str) -> list[dict[str, Any]]:
    return [row for event in of_kind(events, "progress") if event["run"] == run for row in event[table]]


class Followed:
    """Who follows a page from another thread while a command runs in this one."""

    def __init__(self, profile: Path) -> None:
        self.port = free_port()
        self.events: list[dict[str, Any]] = []
        self.dom = ""
        self._profile = profile
        self._threads = [threading.Thread(target=follow) for follow in (self._read, self._show)]

    def __enter__(self) -> "Followed":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.join(timeout=2 * PAGE_TIMEOUT_S)

    def _read(self) -> None:
        self.events = events_at(self.port)

    def _show(self) -> None:
        # Once somebody answers, a browser may come.
        ends = time.monotonic() + PAGE_TIMEOUT_S
        while time.monotonic() < ends:
            with socket.socket() as probe:
                if probe.connect_ex((LOOPBACK, self.port)) == 0:
                    break
            time.sleep(0.02)
        self.dom = dom_of(f"http://{LOOPBACK}:{self.port}/", self._profile)


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Followed]:
    """Results of a stress run, and what those had who followed it: a reader of events, and a browser."""
    folder = tmp_path_factory.mktemp("watch")
    # Where it is missing, it is fetched for longer than the run takes.
    browser()
    with Followed(folder / "profile") as follower:
        assert run_main((*STRESS, *SHORT, "--live-port", follower.port, "--out", folder / "out")) == 0
    return folder / "out", follower


@pytest.mark.parametrize(
    ("command", "begun"),
    [
        (("ycsb", "load", "--target", "sqlite:{tmp}/y.db", "-p", "recordcount=3000"), ["runs"]),
        ((*NULL, "--goal", "p50@50", "--space", "{tmp}/null.toml", "--budget-runs", "3", "--no-open"), ["trials"]),
        (("traffic", "replay", "{tmp}/trace", "null:", "--no-open"), ["runs"]),
    ],
)
def test_other_benchmarks_are_followed_too(command: tuple[str, ...], begun: list[str], tmp_path: Path) -> None:
    (tmp_path / "null.toml").write_text(NULL_SPACE, encoding="utf-8")
    reads(2, 10, 0.5).write(tmp_path / "trace")
    port, events = free_port(), list[dict[str, Any]]()
    reader = threading.Thread(target=lambda: events.extend(events_at(port)))
    reader.start()
    arguments = [word.format(tmp=tmp_path) for word in command]
    assert run_main((*arguments, "--live-port", port, "--out", tmp_path / "out")) == 0
    reader.join(timeout=2 * PAGE_TIMEOUT_S)
    assert [event["run"].partition("/")[0] for event in of_kind(events, "begin")][:1] == begun
    assert events[-1] == {"kind": "over"}


def test_live_figures_are_those_of_the_results(followed: tuple[Path, Followed]) -> None:
    folder, follower = followed
    live = follower.events
    assert live[-1] == {"kind": "over"}
    begun = [event["run"] for event in of_kind(live, "begin")]
    assert begun == ["populate", "runs/001"]
    assert [(event["run"], event["status"]) for event in of_kind(live, "end")] == [(run, "complete") for run in begun]
    totals = read_run(folder / "runs/001").manifest.totals
    assert totals is not None
    counted = sum(report["counts"]["ok"] for phase in totals.phases for report in phase.operations.values())
    assert sum(row["ok"] for row in rows_of(live, "intervals", "runs/001")) == counted > 0
    assert len([event for event in of_kind(live, "progress") if event["run"] == "runs/001"]) > 1, "it comes during the run"
    assert {row["process"] for row in rows_of(live, "cpu", "runs/001")} == {"client"}
    with replayed(folder, 0) as address:
        again = events_at(int(address.rstrip("/").rpartition(":")[2]))
    assert [event["run"] for event in of_kind(again, "begin")] == begun
    for table in ("cpu", "events"):
        assert rows_of(again, table, "runs/001") == rows_of(live, table, "runs/001")
    without_length = [
        [{key: value for key, value in row.items() if key != "length_s"} for row in rows_of(events, "intervals", "runs/001")]
        for events in (live, again)
    ]
    assert without_length[0] == without_length[1]
    assert of_kind(again, "progress")[-1]["dropped"] == of_kind(live, "progress")[-1]["dropped"]


def test_the_page_in_a_browser_while_the_load_goes_on_and_afterwards(followed: tuple[Path, Followed], tmp_path: Path) -> None:
    folder, follower = followed
    with replayed(folder, 0) as address:
        replay = dom_of(address, tmp_path)
    for page in (follower.dom, replay):
        assert re.search(r"Run runs/001, repetition 1: complete, [0-9.]+ s\.", page), page
        assert len(re.findall(r'<path class="line c[0-4]" d="M[0-9.,L]+', page)) >= 6, "throughput, percentiles, late starts, CPU"
        for name in ("completed", "p50", "p95", "p99", "late", "client"):
            assert f">{name}</text>" in page, name
        assert "<dt>dropped arrivals</dt><dd>0</dd>" in page
    assert "The command has ended" in follower.dom
    assert "The command has ended" not in replay
    assert 'id="replay" hidden' not in replay


def test_a_page_answers_this_machine_alone_and_goes_on_where_it_was(followed: tuple[Path, Followed]) -> None:
    folder, _ = followed
    with replayed(folder, 0) as address:
        port = int(address.rstrip("/").rpartition(":")[2])
        assert address == f"http://127.0.0.1:{port}/"
        answers = {}
        for host, path in (
            (f"127.0.0.1:{port}", "/"),
            (f"rebound.example:{port}", "/"),
            (f"rebound.example:{port}", "/events"),
            (f"localhost:{port}", "/x"),
        ):
            connection = http.client.HTTPConnection(LOOPBACK, port, timeout=PAGE_TIMEOUT_S)
            connection.request("GET", path, headers={"Host": host})
            with connection.getresponse() as answer:
                answers[host, path] = answer.status, answer.read().decode(), answer.headers
        assert [status for status, _, _ in answers.values()] == [200, 403, 403, 404]
        _, page, headers = answers[f"127.0.0.1:{port}", "/"]
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; ")
        assert "connect-src 'self'" in policy
        assert not re.search(r"(?:src|href)=\"(?!data:,)", page), "it requests nothing but its events"
        assert str(folder) not in page
        every = events_at(port)
        assert events_at(port, {"Last-Event-ID": "0123abcd-2"}) == every, "a number of another feed"


def test_a_page_that_comes_back_goes_on_where_it_was(tmp_path: Path) -> None:
    feed = LiveFeed(tmp_path)
    feed.publish(FeedEnd())
    assert len(feed.messages_from(0)) == 1
    assert feed.messages_from(1) == [], "what is over makes nobody wait"


def test_jobs_that_no_load_generator_sends_are_operations_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the MapReduce study publishes its executions."""
    add_cpu, readings = LiveJobs.add_cpu, threading.Semaphore(0)

    def add_and_count(jobs: LiveJobs, points: list[CpuPoint]) -> None:
        add_cpu(jobs, points)
        readings.release()

    monkeypatch.setattr("sensorbench.runner.jobs.EVERY_S", 0.05)
    monkeypatch.setattr(LiveJobs, "add_cpu", add_and_count)
    port, found = free_port(), list[dict[str, Any]]()
    follower = threading.Thread(target=lambda: found.extend(events_at(port)))
    follower.start()
    with (
        live_page(tmp_path, port, ProgressReporter(quiet=True)),
        live_jobs("executions", "MapReduce", lambda: {"spark driver": lab.WatchedProcess.of(os.getpid())}) as jobs,
    ):
        jobs.happened("databases get 2 nodes")
        with jobs.job("files, 1 worker, 'the'", "1 worker") as outcome:
            # Two readings of the CPU say how much was used between them.
            for _ in range(2):
                assert readings.acquire(timeout=PAGE_TIMEOUT_S)
            outcome.is_ok = True
        with pytest.raises(FailedError), jobs.job("hbase, 1 worker, 'the'", "1 worker"):
            raise FailedError("lost")
    follower.join(timeout=PAGE_TIMEOUT_S)
    assert [event["variant"] for event in of_kind(found, "begin")] == ["MapReduce"]
    assert [event["status"] for event in of_kind(found, "end")] == ["complete"]
    done = {row["operation"]: row for row in rows_of(found, "intervals", "executions")}
    assert {name: (row["ok"], row["failed"]) for name, row in done.items()} == {
        "files, 1 worker, 'the'": (1, 0),
        "hbase, 1 worker, 'the'": (0, 1),
    }
    assert all(row["p50_s"] == row["length_s"] for row in done.values())
    assert rows_of(found, "events", "executions")[0]["name"] == "databases get 2 nodes"
    assert {row["process"] for row in rows_of(found, "cpu", "executions")} == {"client", "spark driver"}


def test_jobs_that_nobody_follows_are_carried_out_all_the_same() -> None:
    with live_jobs("executions", "MapReduce", lambda: {}) as jobs, jobs.job("files, 1 worker", "1 worker") as outcome:
        outcome.is_ok = True


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("watch", "{empty}"), "there are no results"),
        (("watch", "{empty}", "--port", "70000"), "--port"),
        (("stress", "--target", "sqlite", "--rates", "10", "--live-port", "70000"), "--live-port"),
    ],
)
def test_what_cannot_be_served_is_refused(cli: Cli, tmp_path: Path, words: tuple[str, ...], reason: str) -> None:
    ended = cli(*(word.format(empty=tmp_path) for word in words))
    assert (ended.exit_code, reason in ended.err) == (2, True), ended.err


def test_the_command_says_where_the_page_is_and_ends_by_an_interrupt(followed: tuple[Path, Followed]) -> None:
    folder, _ = followed
    command = [sys.executable, "-m", "sensorbench", "watch", str(folder), "--no-open", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
        assert said["folder"] == str(folder)
        assert of_kind(events_at(int(said["address"].rstrip("/").rpartition(":")[2])), "begin")
        process.send_signal(signal.SIGINT)
        assert process.wait(PAGE_TIMEOUT_S) == 0


def test_a_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = pytest.raises(UsageError, match=rf"--live-port {port}: .*expected a free port")
        with refused, live_page(tmp_path, port, ProgressReporter(quiet=True)):
            pass
