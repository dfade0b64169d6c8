"""Hosts of this machine: what they do for the controller, load generators on them, and that nothing of them is left."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hdrh.histogram import HdrHistogram

from sensorbench import _engine
from sensorbench.benchmarks.stress.steering import RATE_FILE
from sensorbench.errors import EngineUsageError, FailedError, LostGeneratorError, UsageError
from sensorbench.hosts.build import this_build
from sensorbench.hosts.chosen import choose_hosts
from sensorbench.hosts.dask_host import HEARTBEAT_S
from sensorbench.hosts.dask_parts import new_credentials
from sensorbench.hosts.host import HURRIED_S
from sensorbench.hosts.launched import Launched, local_command
from sensorbench.hosts.messages import BeHost, BeScheduler
from sensorbench.hosts.pool import HostPool
from sensorbench.interrupts import held_back
from sensorbench.progress import ProgressReporter
from sensorbench.results import read_comparison, read_run
from sensorbench.results.engine_plan import EnginePlan
from sensorbench.results.json_schemas import json_schemas
from sensorbench.results.manifest import RunTotals
from sensorbench.runner.generators.hosted import HostedGenerator
from sensorbench.runner.generators.load_generator import ShareWork
from sensorbench.runner.generators.shared_run import SharedRun, shared_run
from sensorbench.runner.plan import as_json
from tests.conftest import Cli
from tests.on_hosts import Tally, text_of
from tests.slow_connects import interrupted_while_they_connect
from tests.test_generators import PLAN, SCHEMA, TABLE, identities, null_target
from tests.test_hosts import ENDS_WITHIN_S, HOST
from tests.test_stress import check_accounts

OWN_CLOCK = Path(__file__).parent / "own_clock.py"
AHEAD_MS = 80
HOSTS = 4

# Hosts of this machine.


@pytest.fixture(scope="module")
def hosts_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Local hosts, of which the second has a clock that is ahead."""
    folder = tmp_path_factory.mktemp("hosts")
    script = folder / "python-ahead"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {OWN_CLOCK} {AHEAD_MS} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    entries = [f'[[host]]\nname = "host-{number}"\nreach = "local"\n' for number in range(1, HOSTS + 1)]
    entries[1] += f'python = "{script}"\nlabels = {{ rack = "2" }}\n'
    entries[3] += 'roles = ["load generator"]\ncpus = [0]\n'
    file = folder / "hosts.toml"
    file.write_text("".join(entries), encoding="utf-8")
    return file


@contextmanager
def importable_in_children() -> Iterator[None]:
    """Has processes that are started find the tests, wherever pytest was called from."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent.parent), prepend=os.pathsep)
        yield


@pytest.fixture(scope="module")
def pool(hosts_file: Path) -> Iterator[HostPool]:
    before = set(psutil.Process().children(recursive=True))
    with (
        # Hosts call functions of these tests, too.
        importable_in_children(),
        HostPool(choose_hosts(str(hosts_file)), ProgressReporter(quiet=True)) as pool,
    ):
        started = set(psutil.Process().children(recursive=True)) - before
        assert len(started) > HOSTS
        yield pool
    _, alive = psutil.wait_procs(started, timeout=ENDS_WITHIN_S)
    assert alive == []


def test_a_host_calls_functions_and_keeps_objects(pool: HostPool, tmp_path: Path) -> None:
    first, second, _, fourth = pool.hosts
    file = tmp_path / "text"
    file.write_text("here", encoding="utf-8")
    assert first.call(text_of, file) == "here"
    with pytest.raises(FileNotFoundError):
        first.call(text_of, tmp_path / "nothing")
    tally = second.keep(Tally, 3)
    assert [tally.add(2), tally.double, tally.count] == [5, 10, 5]
    with pytest.raises(EngineUsageError, match="no such thing"):
        tally.fail()
    assert len({host.call(os.getpid) for host in pool.hosts}) == HOSTS
    assert second.call(os.getpid) == second.about.pid
    assert len({host.call(Path.home) for host in pool.hosts}) == HOSTS
    assert fourth.call(os.sched_getaffinity, 0) == {0}
    assert [host.name for host in pool.of_role("node")] == ["host-1", "host-2", "host-3"]
    assert second.entry.labels == {"rack": "2"}


def processes_of(pool: HostPool) -> list[psutil.Process]:
    """The processes of hosts and of their scheduler."""
    children = psutil.Process().children(recursive=True)
    return [child for child in children if "sensorbench.hosts.process" in " ".join(child.cmdline())]


def listening(processes: list[psutil.Process]) -> dict[tuple[str, int], int]:
    """Where processes listen, with who it is."""
    return {
        (connection.laddr.ip, connection.laddr.port): process.pid
        for process in processes
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }


def test_hosts_listen_at_their_addresses_alone_for_those_who_have_their_certificate(pool: HostPool) -> None:
    places = listening(processes_of(pool))
    assert len(places) == HOSTS + 1
    addresses = {host.address for host in pool.hosts}
    net = pool.hosts[0].address.rpartition(".")[0]
    assert {address for address, _ in places} == {*addresses, f"{net}.254"}
    for place in places:
        with socket.create_connection(place, timeout=ENDS_WITHIN_S) as connection:
            connection.settimeout(ENDS_WITHIN_S)
            # No handshake, no answer but an alert of TLS, or the end.
            with suppress(ConnectionResetError):
                connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
                assert connection.recv(100)[:1] in {b"", b"\x15"}


def test_no_secret_is_in_a_command_line(pool: HostPool) -> None:
    words = [word for process in processes_of(pool) for word in process.cmdline()]
    assert not any("BEGIN" in word or "tls" in word for word in words)
    assert "BEGIN" not in repr(new_credentials())


def test_load_generators_on_hosts_do_what_one_does(pool: HostPool) -> None:
    alone = null_target().run(as_json(PLAN), [TABLE.to_reader()])
    assert alone.wait(ENDS_WITHIN_S)
    segment, whole = alone.end()
    expected = identities(pa.Table.from_batches([segment["operations"]]), RunTotals.model_validate_json(whole))
    segments = []
    with shared_run(null_target(), PLAN, [TABLE], HOSTS, pool.hosts) as run:
        while not run.wait(0.3):
            segments.append(run.take())
        last, whole = run.end()
        usages = run.usages()
    segments.append(last)
    totals = RunTotals.model_validate_json(whole)
    operations = pa.Table.from_batches([segment["operations"] for segment in segments])
    found = identities(operations, totals)
    # What a busy machine dropped at the very end of a phase did not start.
    started = {identity[:2] for identity in expected} & {identity[:2] for identity in found}
    assert len(started) > 200
    assert {each for each in expected if each[:2] in started} == {each for each in found if each[:2] in started}
    assert [generator.host for generator in totals.generators] == [host.name for host in pool.hosts]
    assert {(generator.unknown, generator.lost) for generator in totals.generators} == {(0, None)}
    assert sum(generator.started for generator in totals.generators) == operations.num_rows
    assert set(usages) == {f"generator {number}" for number in range(1, HOSTS + 1)}
    assert all(usage is not None and usage.memory_bytes > 0 for usage in usages.values())
    check_histograms(operations, totals, segments)


def check_histograms(operations: pa.Table, totals: RunTotals, segments: list[Any]) -> None:
    """The merged histogram is that of the union, bucket for bucket: the log has the latency of each operation."""
    buckets = HdrHistogram(1, 3_600_000_000_000, 3)
    rows = [row for segment in segments if (log := segment["histograms"]) for row in _engine.read_interval_log(log).to_pylist()]
    for number, phase in enumerate(totals.phases):
        for kind, name in enumerate(phase.operations):
            of_kind = operations.filter(pc.and_(pc.equal(operations["phase"], number), pc.equal(operations["operation"], kind)))
            response = pc.subtract(of_kind["end_ns"].cast(pa.int64()), of_kind["intended_start_ns"].cast(pa.int64()))
            expected = Counter(buckets.get_lowest_equivalent_value(value) for value in response.to_pylist())
            merged: Counter[int] = Counter()
            for row in rows:
                if row["tag"] == f"{phase.name}.{name}.response":
                    for value, count in zip(row["value_ns"], row["count"], strict=True):
                        merged[buckets.get_lowest_equivalent_value(value)] += count
            assert merged == expected


def test_a_clock_that_is_ahead_is_found_and_corrected_and_changes_no_latency(pool: HostPool) -> None:
    delay_ms = 2
    plan: EnginePlan = {**PLAN, "phases": [{"name": "measure", "duration_s": 0.8, "pace": {"segments": [{"from_per_s": 400.0}]}}]}
    with shared_run(null_target(f"null:?delay_ms={delay_ms}"), plan, [TABLE], HOSTS, pool.hosts) as run:
        spread_ns = time_spreads_ns(run)
        while not run.wait(0.3):
            pass
        segment, whole = run.end()
        rows = run.take_clock_rows()
    totals = RunTotals.model_validate_json(whole)
    clocks = {generator.number: generator.clock for generator in totals.generators if generator.clock is not None}
    assert set(clocks) == set(range(1, HOSTS + 1))
    ahead_ns = AHEAD_MS * 1_000_000
    for number, clock in clocks.items():
        assert abs(clock.offset_ns - (ahead_ns if number == 2 else 0)) <= clock.bound_ns
        assert clock.bound_ns < ahead_ns / 2, "the machine is too busy to tell"
        assert clock.samples >= 2
    assert {row.name.rpartition(".")[0] for row in rows} == {f"host.{host.name}" for host in pool.hosts}
    # On the time axis, the clock of each is that of the run.
    assert max(spread_ns.values()) < ahead_ns / 2, spread_ns
    operations = pa.Table.from_batches([segment["operations"]])
    for number in clocks:
        own = operations.filter(pc.equal(operations["generator"], number))
        service = pc.subtract(own["end_ns"].cast(pa.int64()), own["start_ns"].cast(pa.int64()))
        assert delay_ms * 1_000_000 <= pc.quantile(service, 0.5)[0].as_py() < ahead_ns / 2


def time_spreads_ns(run: SharedRun) -> dict[int, int]:
    """How far the clock of each load generator is outside of the time in which it was asked, on the run's clock."""
    spreads = {}
    for generator in run._generators:
        before_ns = run.now_ns()
        _, snapshot = generator.poll(0.0)
        after_ns = run.now_ns()
        there_ns = json.loads(snapshot)["now_ns"]
        spreads[generator.number] = max(0, before_ns - there_ns, there_ns - after_ns)
    return spreads


def test_what_a_host_refuses_is_said_by_its_name(pool: HostPool) -> None:
    generator = HostedGenerator(2, pool.hosts[2])
    try:
        with pytest.raises(EngineUsageError, match=r"host host-3: load generator 2 .*unknown database"):
            generator.prepare(ShareWork("nothing://me:secret@host", SCHEMA, as_json(PLAN), [TABLE]))
    finally:
        generator.close()
    assert not psutil.pid_exists(generator.pid)


def test_a_load_generator_that_is_killed_on_its_host_is_named(pool: HostPool) -> None:
    generator = HostedGenerator(1, pool.hosts[0])
    os.kill(generator.pid, signal.SIGKILL)
    with pytest.raises(LostGeneratorError, match=r"host host-1: load generator 1 .* was ended by SIGKILL"):
        generator.stop(cancels=False)
    generator.close()


def test_an_interruption_while_load_generators_of_hosts_connect_is_not_kept_waiting(
    pool: HostPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        interrupted_while_they_connect(monkeypatch, HostedGenerator, 2),
        pytest.raises(KeyboardInterrupt),
        # As where a run begins.
        held_back(),
        shared_run(null_target(), PLAN, [TABLE], 2, pool.hosts),
    ):
        pytest.fail("nobody answers them")
    assert pool.hosts[0].call(os.getpid) == pool.hosts[0].about.pid


def test_a_cluster_that_runs_already_is_used_and_left(tmp_path: Path) -> None:
    credentials = new_credentials()
    names = ("ca.pem", "cert.pem", "key.pem")
    for name, content in zip(names, (credentials.certificate, credentials.certificate, credentials.key), strict=True):
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_text(content, encoding="utf-8")
    with ExitStack() as stack:
        scheduler, worker = (Launched(name, local_command()) for name in ("scheduler", "worker"))
        stack.callback(scheduler.close)
        stack.callback(worker.close)
        scheduler.hello()
        scheduler.order(
            BeScheduler(folder=str(tmp_path / "of-scheduler"), address="127.78.253.1", port=0, credentials=credentials)
        )
        url = scheduler.listening()
        worker.hello()
        worker.order(
            BeHost(
                folder=None,
                scheduler=url,
                name="pod-1",
                address="127.78.253.2",
                port=0,
                cpus=None,
                environment={},
                credentials=credentials,
            )
        )
        worker.listening()
        file = tmp_path / "hosts.toml"
        keys = "".join(
            f'{key} = "{tmp_path / name}"\n' for key, name in zip(("ca_file", "cert_file", "key_file"), names, strict=True)
        )
        file.write_text(f'[scheduler]\nurl = "{url}"\n{keys}', encoding="utf-8")
        with HostPool(choose_hosts(str(file)), ProgressReporter(quiet=True)) as pool:
            (host,) = pool.hosts
            assert (host.name, host.address, host.call(os.getpid)) == ("pod-1", "127.78.253.2", worker.pid)
            with shared_run(null_target(), PLAN, [TABLE], 2, pool.hosts) as run:
                pids = [generator.pid for generator in run._generators]
                while not run.wait(0.3):
                    pass
                _, whole = run.end()
            assert sum(phase.started for phase in RunTotals.model_validate_json(whole).phases) > 200
        assert not any(map(psutil.pid_exists, pids))
        assert not worker.has_ended
        file.write_text(file.read_text(encoding="utf-8") + '[[host]]\nname = "pod-2"\n', encoding="utf-8")
        with (
            pytest.raises(UsageError, match="has no worker pod-2; it has pod-1"),
            HostPool(choose_hosts(str(file)), ProgressReporter(quiet=True)),
        ):
            pass


def test_a_host_that_cannot_be_as_the_file_says_is_named(tmp_path: Path) -> None:
    file = tmp_path / "hosts.toml"
    file.write_text(f"{HOST}cpus = [4095]\n", encoding="utf-8")
    before = set(psutil.Process().children())
    with (
        pytest.raises(FailedError, match=r"host a: cpus = \[4095\]: this host may use the CPUs 0"),
        HostPool(choose_hosts(str(file)), ProgressReporter(quiet=True)),
    ):
        pass
    assert set(psutil.Process().children()) <= before


# From the command line.


def stress(folder: Path, hosts: str | Path, *more: object) -> list[str]:
    words = ("stress", "--target", "null:", "--records", "20", "--mix", "read=3,write=1", "--hosts", hosts)
    return [*map(str, (*words, "--ramp", "100ms", "--warmup", "0", "--no-open", *more, "--out", folder))]


def test_a_run_on_four_hosts_looks_as_from_one_process(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = cli(
        *stress(out, f"local:{HOSTS}", "--rates", "400:800:400", "--step-duration", "1200ms", "--arrival", "constant", "--json")
    )
    assert ended.exit_code == 0, ended.err
    jsonschema.validate(ended.json, json_schemas()["stress-summary"])
    names = [f"local-{number}" for number in range(1, HOSTS + 1)]
    assert (ended.json["result"]["workload"]["generators"], ended.json["result"]["workload"]["hosts"]) == (HOSTS, names)
    for step in ended.json["result"]["steps"]:
        check_accounts(step)
        assert step["counts"]["offered"] == pytest.approx(step["rate_per_s"] * 1.2, abs=1)
    figures = ended.json["result"]["load_generators"]
    assert [figure["host"] for figure in figures] == names
    assert all(abs(figure["corrected_by_s"]) <= figure["bound_s"] for figure in figures)
    run = read_run(out / "runs" / "001")
    assert run.manifest.plan["hosts"] == names
    resources, status = run.table("resources"), run.table("status")
    assert resources is not None
    assert status is not None
    assert {f"generator {number}" for number in range(1, HOSTS + 1)} <= set(resources["process"].to_pylist())
    assert {f"host.{name}.clock_bound_ns" for name in names} <= set(status["name"].to_pylist())
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "times corrected by" in page
    assert run.manifest.totals is not None
    assert not any(psutil.pid_exists(generator.pid) for generator in run.manifest.totals.generators)


SENSORBENCH = ("-m", "sensorbench")
# The same, with less patience for hosts that do not answer: nobody has to wait for 30 s.
IMPATIENT_S = 8
IMPATIENT = (
    "-c",
    f"from sensorbench.cli import start; from sensorbench.hosts import dask_host; dask_host.HEARTBEAT_S = {IMPATIENT_S}; start()",
)


@contextmanager
def long_run(
    folder: Path, program: Sequence[str] = SENSORBENCH, words: Sequence[str] | None = None, run: str = "runs/001"
) -> Iterator[tuple["subprocess.Popen[str]", dict[str, psutil.Process]]]:
    """A run on two local hosts, of which a part is written: of a command, or one that would continue for a minute; and the processes of hosts, of their
    load generators and of the scheduler, by name. When it ends, none of them is left, no file of theirs, and nobody listens where they did.
    """
    hosts = 2
    words = words or stress(folder, f"local:{hosts}", "--rates", "200", "--step-duration", "1m")
    command = (sys.executable, *program, *words)
    temporary = folder.with_name("temporary")
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment) as process:
        children: list[psutil.Process] = []
        places: dict[tuple[str, int], int] = {}
        try:
            while not list(folder.glob(f"{run}/segments/*.hlog")):
                assert process.poll() is None, process.stderr.read() if process.stderr else ""
                time.sleep(0.05)
            children = psutil.Process(process.pid).children(recursive=True)
            places = listening(children)
            yield process, named(process.pid, places)
        finally:
            process.kill()
    _, alive = psutil.wait_procs(children, timeout=ENDS_WITHIN_S)
    assert alive == []
    assert list(temporary.iterdir()) == []
    assert len(places) == hosts + 1
    for place in places:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(place)


def named(controller: int, places: dict[tuple[str, int], int]) -> dict[str, psutil.Process]:
    """Processes by name: `scheduler`, `host N`, `generator N`."""
    found = {}
    for (address, _), pid in places.items():
        number = int(address.rpartition(".")[2])
        found["scheduler" if number == 254 else f"host {number}"] = psutil.Process(pid)
        for child in psutil.Process(pid).children():
            found[f"generator {number}"] = child
    assert controller not in places.values()
    return found


def totals_of(folder: Path, run: str = "runs/001") -> RunTotals:
    manifest = read_run(folder / run).manifest
    assert manifest.status == "interrupted"
    assert manifest.totals is not None
    return manifest.totals


def test_a_rate_that_is_set_is_that_of_all_of_them(cli: Cli, tmp_path: Path) -> None:
    out, rate_per_s = tmp_path / "out", 4000.0
    with long_run(out) as (process, _):
        assert cli("set-rate", out, rate_per_s).exit_code == 0
        while (out / RATE_FILE).exists():
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=ENDS_WITHIN_S)
    events = read_run(out / "runs" / "001").table("events")
    assert events is not None
    assert "rate set to 4000/s" in events["name"].to_pylist()
    generators = totals_of(out).generators
    assert len(generators) == 2
    for generator in generators:
        # At the rate before, each would have had a hundred per second.
        assert generator.started > 200 * generator.duration_ns / 1e9
    # Each has its half.
    assert generators[0].started == pytest.approx(generators[1].started, rel=0.1)


@pytest.mark.parametrize(
    ("name", "by", "expected", "lost_numbers"),
    [
        ("generator 2", signal.SIGKILL, "host local-2: load generator 2 (process {pid}): it was ended by SIGKILL", {2}),
        ("scheduler", signal.SIGKILL, "the scheduler of the hosts (process {pid}) is gone: it was ended by SIGKILL", {1, 2}),
        # It is there, and so is its load generator, but nobody hears of them.
        ("host 2", signal.SIGSTOP, f"load generator 2 is gone: host local-2: it did not answer for {IMPATIENT_S} s", {2}),
    ],
)
def test_what_is_killed_or_hangs_ends_the_run_and_is_named(
    tmp_path: Path, name: str, by: signal.Signals, expected: str, lost_numbers: set[int]
) -> None:
    with long_run(tmp_path / "out", IMPATIENT if by is signal.SIGSTOP else SENSORBENCH) as (process, processes):
        pid = processes[name].pid
        processes[name].send_signal(by)
        _, printed = process.communicate(timeout=ENDS_WITHIN_S)
    assert process.returncode == 1, printed
    assert expected.format(pid=pid) in " ".join(printed.split())
    assert "Traceback" not in printed
    check_lost(tmp_path / "out", totals_of(tmp_path / "out"), lost_numbers)


def check_lost(out: Path, totals: RunTotals, lost_numbers: set[int]) -> None:
    """Whatever was lost is accounted for, and the results say why they were cut short."""
    lost = [generator for generator in totals.generators if generator.lost is not None]
    assert {generator.number for generator in lost} == lost_numbers
    # What the lost ones had started, and did not hand over, is counted nowhere else.
    started = sum(phase.started for phase in totals.phases)
    known = [generator for generator in totals.generators if generator.lost is None]
    assert started == sum(generator.started for generator in known) + sum(each.started - each.unknown for each in lost)
    assert started == sum(sum(report["counts"].values()) for phase in totals.phases for report in phase.operations.values())
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["status"] == "interrupted"
    assert "operations that it had started are unknown" in manifest["reason"]


EXPERIMENT = """
dataset = "beijing-air-quality"
scale = 0.002
[[target]]
url = "sqlite"
schema = "natural"
[workload]
mix = { get_sensor_data = 1 }
schedule = { rate = 100, concurrency = 4 }
duration = "4s"
warmup = "100ms"
repetitions = 2
"""


def test_what_was_cut_short_by_a_host_that_was_killed_is_gone_on_with(cli: Cli, tmp_path: Path) -> None:
    experiment, out = tmp_path / "experiment.toml", tmp_path / "out"
    experiment.write_text(EXPERIMENT, encoding="utf-8")
    words = ["run", str(experiment), "--hosts", "local:2", "--no-open", "--out", str(out)]
    cut_short = "experiments/sqlite-natural/run-2"
    with long_run(out, words=words, run=cut_short) as (process, processes):
        host = processes["host 2"]
        host.kill()
        _, printed = process.communicate(timeout=ENDS_WITHIN_S)
    assert process.returncode == 1, printed
    said = f"load generator 2 is gone: host local-2: its process {host.pid} is gone: it was ended by SIGKILL"
    assert said in " ".join(printed.split())
    assert "; --resume continues" in " ".join(printed.split())
    check_lost(out, totals_of(out, cut_short), {2})
    (before,) = read_comparison(out).runs.values()
    # On the same hosts, which are other processes.
    resumed = cli(*words, "--resume")
    assert resumed.exit_code == 0, resumed.err
    assert "sqlite-natural: already loaded" in " ".join(resumed.err.split())
    (after,) = read_comparison(out).runs.values()
    assert [run.state for run in before] == ["complete", "interrupted"]
    assert [run.state for run in after] == ["complete", "complete"]
    assert before[0].manifest == after[0].manifest
    assert before[1].manifest.created < after[1].manifest.created
    assert after[1].manifest.totals is not None
    assert [generator.lost for generator in after[1].manifest.totals.generators] == [None, None]


def test_ctrl_c_is_not_kept_waiting_by_a_host_that_hangs(tmp_path: Path) -> None:
    with long_run(tmp_path / "out") as (process, processes):
        processes["host 2"].send_signal(signal.SIGSTOP)
        # Somebody waits for its answers by then.
        time.sleep(1.0)
        interrupted_s = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate(timeout=ENDS_WITHIN_S)
        took_s = time.monotonic() - interrupted_s
    assert process.returncode == 130, printed
    assert took_s < HEARTBEAT_S - 5.0
    said = f"interrupted; load generator 2 is gone: host local-2: it did not answer for {HURRIED_S:g} s; at least"
    assert said in " ".join(printed.split())
    assert "Traceback" not in printed
    check_lost(tmp_path / "out", totals_of(tmp_path / "out"), {2})


@pytest.mark.parametrize(("end", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_whatever_ends_the_controller_ends_the_hosts(tmp_path: Path, end: signal.Signals, code: int) -> None:
    # Leaving the context checks it.
    with long_run(tmp_path / "out") as (process, processes):
        assert len(processes) == 5
        process.send_signal(end)
        process.communicate(timeout=ENDS_WITHIN_S)
    assert process.returncode == code
    if end is signal.SIGINT:
        totals = totals_of(tmp_path / "out")
        assert {(generator.lost, generator.unknown) for generator in totals.generators} == {(None, 0)}


def test_hosts_are_checked(cli: Cli) -> None:
    ended = cli("hosts", "check", "local:2", "--json")
    found = ended.json
    assert [host["name"] for host in found["hosts"]] == ["local-1", "local-2"]
    for host in found["hosts"]:
        assert host["version"] == this_build().version
        assert abs(host["corrected_by_s"]) <= host["bound_s"]
        assert min(host["free_disk_bytes"], host["free_memory_bytes"]) > 0
        assert host["diagnosis"]["quick"] is True
    links = {(link["source"], link["to"]) for link in found["links"]}
    assert links == {
        ("controller", "local-1"),
        ("controller", "local-2"),
        ("local-1", "local-2"),
        ("local-2", "local-1"),
    }
    assert all(link["round_trip_s"] > 0 and link["bytes_per_s"] > 0 for link in found["links"])
    problems = [problem for host in found["hosts"] for problem in host["problems"]]
    # A machine that is not fit to measure is said to be that.
    assert ended.exit_code == (1 if problems else 0), ended.err
    assert all(problem in " ".join(ended.err.split()) for problem in problems)
