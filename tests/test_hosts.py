"""Hosts: what their file and the option may say, and their fence, clocks and agent without a host."""

import asyncio
import os
import pickle
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest

from sensorbench.analysis.guarantees import check, widened
from sensorbench.errors import UsageError
from sensorbench.hosts.agent import Agent
from sensorbench.hosts.build import Build, this_build
from sensorbench.hosts.chosen import INSTALL, choose_hosts
from sensorbench.hosts.clocks import ClockReading, ClockSample, sampled, span_of
from sensorbench.hosts.fence import Fence, FencedError, Ticket
from sensorbench.hosts.hosts_file import load_hosts_file
from sensorbench.hosts.outcomes import value_of
from tests.conftest import Cli

ENDS_WITHIN_S = 120.0

# The file and the option.

HOST = '[[host]]\nname = "a"\nreach = "local"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "there is no host"),
        ('[[host]]\nname = "a"\n', "line 1, host[0]: reach is missing"),
        (HOST + HOST, "line 5, host[1].name: there are two hosts of the name a"),
        ('[[host]]\nname = "a"\nreach = "http://a"\n', "expected local or ssh://USER@HOST:PORT"),
        ('[[host]]\nname = "a"\nreach = "ssh://-oProxyCommand=x"\n', "expected local or ssh://USER@HOST:PORT"),
        ('[[host]]\nname = "a b"\nreach = "local"\n', "line 2, host[0].name"),
        (HOST + 'roles = ["server"]\n', "line 4, host[0].roles"),
        (HOST + "cpus = []\n", "line 4, host[0].cpus"),
        (HOST + 'identity_file = "key"\n', 'identity_file and ssh_options are for reach = "ssh://…"'),
        ('[[host]]\nname = "a"\nreach = "ssh://a"\nssh_options = ["-v"]\n', "expected KEY=VALUE"),
        (HOST + "colour = 1\n", "line 4, host[0].colour: unknown key"),
        ('[scheduler]\nurl = "http://a:1"\n', "expected tls://HOST:PORT or tcp://HOST:PORT"),
        ('[scheduler]\nurl = "tls://a:1"\nca_file = "ca.pem"\n', "give all three, or none"),
        ('[scheduler]\nurl = "tls://a:1"\n' + HOST, "line 5, host[0].reach: workers of [scheduler] are already running"),
    ],
)
def test_a_file_that_cannot_be_is_refused_by_its_key(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "hosts.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        load_hosts_file(file)
    assert str(file) in str(refused.value)
    assert expected in str(refused.value)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("local:2", ["local-1", "local-2"]),
        ("ssh://a,ssh://me@b:2222", ["a", "b"]),
        ("ssh://me@a:1,ssh://me@a:2", ["a", "a.2"]),
        ("tls://scheduler:8786", []),
    ],
)
def test_hosts_are_named_in_one_word(text: str, names: list[str]) -> None:
    assert [entry.name for entry in choose_hosts(text).file.host] == names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("local:0", "expected local:N"),
        ("local:many", "expected local:N"),
        ("http://a", "expected a file"),
        ("ssh://a,ssh://a", "named twice"),
        ("ssh://a,b", "expected local or ssh://USER@HOST:PORT"),
        ("nowhere.toml", "nowhere.toml: no such file"),
    ],
)
def test_what_names_no_hosts_is_refused_before_anything_is_written(cli: Cli, tmp_path: Path, text: str, expected: str) -> None:
    ended = cli("stress", "--target", "null:", "--rates", "10", "--hosts", text, "--no-open", "--out", tmp_path / "out")
    assert (ended.exit_code, (tmp_path / "out").exists()) == (2, False)
    assert expected in " ".join(ended.err.split())


def test_without_dask_the_command_that_installs_it_is_said(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sensorbench.hosts.chosen.find_spec", lambda name: None if name == "distributed" else find_spec(name))
    ended = cli("hosts", "check", "local:2")
    assert ended.exit_code == 2
    assert INSTALL in " ".join(ended.err.split())


@pytest.mark.parametrize(
    ("hosts", "arguments", "expected"),
    [
        ("tls://127.0.0.1:1", (), "say with --generators how many"),
        ("local:3", ("--concurrency", "2"), "each load generator needs one"),
        ("ssh://127.0.0.1", ("--target", "sqlite"), "a server that all hosts reach"),
        ("local:2", ("--target", "duckdb"), "no other may use its data meanwhile"),
    ],
)
def test_what_hosts_cannot_do_is_refused(cli: Cli, tmp_path: Path, hosts: str, arguments: tuple[str, ...], expected: str) -> None:
    out = tmp_path / "out"
    ended = cli("stress", "--target", "null:", "--rates", "10", *arguments, "--hosts", hosts, "--no-open", "--out", out)
    assert (ended.exit_code, out.exists()) == (2, False), ended.err
    assert expected in " ".join(ended.err.split())


# The fence, the clocks and the agent, without a host.


def test_a_call_is_made_once_by_the_process_that_it_is_for() -> None:
    fence = Fence()
    for number in (2, 1, 3, 5):
        fence.admit(Ticket(fence.epoch, number))
    for number in (1, 2, 3, 5):
        with pytest.raises(FencedError, match="made before"):
            fence.admit(Ticket(fence.epoch, number))
    fence.admit(Ticket(fence.epoch, 4))
    with pytest.raises(FencedError, match="a process of this host that is gone"):
        fence.admit(Ticket(Fence().epoch, 6))


def test_an_agent_does_nothing_twice() -> None:
    async def twice() -> tuple[bytes, bytes]:
        agent = Agent()
        ticket = Ticket(pickle.loads(await agent.about()).epoch, 1)
        work = pickle.dumps(partial(os.getpid))
        first, second = await agent.call(ticket, work), await agent.call(ticket, work)
        await agent.end()
        return first, second

    first, second = asyncio.run(twice())
    assert value_of(first) == os.getpid()
    with pytest.raises(FencedError):
        value_of(second)


class Waiting:
    """An object that waits to be closed."""

    def __init__(self) -> None:
        self._closed = Event()

    def is_closed(self) -> bool:
        return self._closed.wait(ENDS_WITHIN_S)

    def close(self) -> None:
        self._closed.set()


def test_what_an_agent_keeps_is_closed_while_it_does_something() -> None:
    async def close_while_it_waits() -> bytes:
        agent = Agent()
        epoch = pickle.loads(await agent.about()).epoch
        await agent.keep(Ticket(epoch, 1), pickle.dumps(Waiting))
        no_arguments = pickle.dumps(((), {}))
        waiting = asyncio.create_task(agent.ask(Ticket(epoch, 2), 1, "is_closed", no_arguments))
        # It has begun to wait.
        await asyncio.sleep(0)
        await agent.ask(Ticket(epoch, 3), 1, "close", no_arguments)
        await agent.end()
        return await waiting

    assert value_of(asyncio.run(close_while_it_waits())) is True


class Closing:
    """An object that writes down that it was closed."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def close(self) -> None:
        self._file.write_text("closed", encoding="utf-8")


def test_an_agent_that_hears_nothing_ends_what_it_keeps(tmp_path: Path) -> None:
    file = tmp_path / "closed"

    async def keep() -> bytes:
        agent = Agent(abandoned_s=0.2)
        epoch = pickle.loads(await agent.about()).epoch
        await agent.keep(Ticket(epoch, 1), pickle.dumps(partial(Closing, file)))
        until_s = time.monotonic() + ENDS_WITHIN_S
        while not file.exists() and time.monotonic() < until_s:
            await asyncio.sleep(0.05)
        return await agent.call(Ticket(epoch, 2), pickle.dumps(partial(os.getpid)))

    with pytest.raises(FencedError, match="heard nothing"):
        value_of(asyncio.run(keep()))
    assert file.read_text(encoding="utf-8") == "closed"


@pytest.mark.parametrize("late_ns", [0, 3_000_000])
def test_an_offset_is_known_to_within_half_of_the_round_trip(late_ns: int) -> None:
    """`late_ns`: how long the answer takes, all of it after the host has read its clock."""
    ahead_ns = 80_000_000

    def ask() -> ClockReading:
        reading = ClockReading(time.monotonic_ns() + ahead_ns, time.time_ns() - ahead_ns)
        time.sleep(late_ns / 1e9)
        return reading

    sample = sampled(ask, 3)
    assert abs(sample.offset_ns - ahead_ns) <= sample.bound_ns
    assert sample.bound_ns >= late_ns // 2
    assert abs(sample.wall_offset_ns + ahead_ns) <= sample.bound_ns + 1_000_000


def test_the_bound_of_a_run_has_the_drift_of_the_clock() -> None:
    samples = [ClockSample(number, 1000 + 10 * number, 0, 50 - number) for number in range(4)]
    assert span_of(samples, 1000) == (1000, 0, 30, 77, 4)


def test_what_clocks_could_explain_is_no_finding() -> None:
    """A read that ends before a write that it does not see was invoked, by clocks that are known to within 5 ns."""
    rows = [
        ("write", 1, 1, 0, 10),
        ("write", 1, 2, 20, 30),
        ("read", 2, 1, 34, 40),
    ]
    history = pa.table(
        {
            "process": pa.array([process for _, process, *_ in rows], pa.int64()),
            "f": pa.array([f for f, *_ in rows]).dictionary_encode(),
            "key": pa.array([7] * len(rows), pa.int64()),
            "value": pa.array([value for _, _, value, *_ in rows], pa.int64()),
            "outcome": pa.array(["ok"] * len(rows)).dictionary_encode(),
            "invoked_ns": pa.array([invoked for *_, invoked, _ in rows], pa.int64()),
            "ended_ns": pa.array([ended for *_, ended in rows], pa.int64()),
        }
    )
    assert check(history).findings["stale_reads"].count == 1
    assert check(widened(history, 1)).findings["stale_reads"].count == 1
    assert check(widened(history, 5)).findings["stale_reads"].count == 0


def test_another_build_is_described() -> None:
    build = this_build()
    assert build.difference_from(build) is None
    assert (
        build.difference_from(Build("0.0.1", build.engine)) == f"it has sensorbench {build.version}, and this machine has 0.0.1"
    )
    assert "another build" in str(build.difference_from(Build(build.version, "0" * 64)))
