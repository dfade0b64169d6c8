"""Clusters that are changed under load."""

import json
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

import jsonschema
import numpy as np
import psutil
import pytest

from sensorbench import lab
from sensorbench.analysis.request_sets import Requests, request_sets
from sensorbench.app.bundle import verify
from sensorbench.benchmarks.elasticity import disk, network
from sensorbench.benchmarks.elasticity.changes import Annotate, Change, check_can, parse_change
from sensorbench.benchmarks.elasticity.clusters import ExternalCluster, LabNodes
from sensorbench.benchmarks.elasticity.faults import Kind, why_not
from sensorbench.benchmarks.elasticity.scenario import NEVER_STABLE, STABLE, Lengths, Scenario
from sensorbench.errors import FailedError, UsageError
from sensorbench.hosts.host import Host
from sensorbench.lab.state_dirs import instances_folder
from sensorbench.results.bundle import INDEX_FILE, read_index, unpack, write_bundle
from sensorbench.results.elasticity import read_elasticity
from sensorbench.results.json_schemas import json_schemas
from tests.conftest import Cli, commands_on, run_main
from tests.forging import edit_json, forged
from tests.test_bundle_kinds import has_summed_histograms

MS = 1_000_000


# Sets


def one_after_the_other(took_ms: list[int]) -> Requests:
    """Requests of one thread, each due when the one before has ended."""
    ends = np.cumsum(np.array(took_ms, dtype=np.int64)) * MS
    starts = np.concatenate([[0], ends[:-1]])
    return Requests(starts, starts, ends)


def test_a_set_takes_from_its_first_start_to_its_last_end() -> None:
    sets = request_sets(one_after_the_other([10] * 4 + [30] * 4 + [20] * 8 + [99]), per_set=4, executions=2)
    assert sets.times_s.tolist() == [0.0, 0.160]
    assert sets.durations_s == pytest.approx([0.080, 0.080])
    assert sets.deviations_s == pytest.approx([0.080 / np.sqrt(2.0), 0.0])


def test_sets_of_several_threads_overlap_by_what_is_in_flight() -> None:
    # Two threads: the third request begins when the first has ended, while the second is running.
    starts, ends = np.array([0, 0, 10, 30]) * MS, np.array([10, 30, 50, 60]) * MS
    sets = request_sets(Requests(starts, starts, ends), per_set=2, executions=1)
    assert sets.durations_s.tolist() == [0.030, 0.050]


def test_in_an_open_loop_a_set_takes_what_its_threads_would_wait() -> None:
    due, starts = np.arange(8) * 100 * MS, np.arange(8) * 100 * MS + 5 * MS
    sets = request_sets(Requests(due, starts, starts + 15 * MS), per_set=4, executions=2, threads=2)
    assert sets.durations_s == pytest.approx([2 * 0.020])


def test_what_fills_no_measurement_is_none() -> None:
    assert len(request_sets(one_after_the_other([10] * 7), per_set=4, executions=2)) == 0


# Changes


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("join", Change("join")),
        ("join:2", Change("join", count=2)),
        ("kill", Change("kill")),
        ("pause:500ms", Change("pause", away_s=0.5)),
        ("rolling-restart", Change("rolling-restart")),
        ("join:2@once", Change("join", count=2, how="once")),
        ("slow-network:5s@200kbit", Change("slow-network", away_s=5.0, how="200kbit")),
        ("slow-network:5s@20ms", Change("slow-network", away_s=5.0, how="20ms")),
        ("slow-network@2%", Change("slow-network", how="2%")),
        ("slow-disk", Change("slow-disk", how="1M")),
        ("slow-disk:5s@500K", Change("slow-disk", away_s=5.0, how="500K")),
    ],
)
def test_changes_are_read(text: str, change: Change) -> None:
    assert parse_change(text) == change


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("grow", "expected one of join, leave, kill"),
        ("join:0", "expected a number of nodes"),
        ("kill:soon", "--change kill:soon: "),
        ("rolling-restart:2", "expected nothing after rolling-restart"),
        ("slow-network:5s@fast", "expected a rate such as 1mbit or 200kbit, a delay such as 20ms, or a share such as 2% after @"),
        ("slow-disk:5s@1mbit", "expected bytes per second, such as 500K or 1M after @"),
        ("join:2@twice", "expected once after @"),
        ("partition:5s@1mbit", "expected nothing after @"),
        ("kill:5s@1mbit", "expected nothing after @"),
    ],
)
def test_what_is_no_change_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_change(text)


# The course of a run


class FakeRun:
    """A run on whose clock measurements of this many operations each come as they are told."""

    def __init__(self) -> None:
        self.time_s = 0.0
        self.marks: list[str] = []
        self.is_stopped = False

    def now_ns(self) -> int:
        return int(self.time_s * 1e9)

    def annotate(self, name: str) -> None:
        self.marks.append(name)

    def stop(self) -> None:
        self.is_stopped = True


def followed(scenario: Scenario, run: FakeRun, lengths_s: list[float]) -> int:
    """Carries on with measurements of these lengths, each seen when it ends, until the run is stopped; how many there were."""
    for number, length_s in enumerate(lengths_s, start=1):
        run.time_s += length_s
        scenario.on_snapshot(run, {"now_ns": run.now_ns(), "phases": [{"started": number * 100}]})  # type: ignore[arg-type]
        scenario.wait()
        if run.is_stopped:
            return number
    raise AssertionError("the run was never stopped")


def scenario_of(lengths: Lengths, problem: str = "") -> tuple[Scenario, list[str]]:
    done: list[str] = []

    def change(annotate: Annotate) -> None:
        done.append("changed")
        if problem:
            raise FailedError(problem)

    return Scenario(lengths, operations=100.0, executions=1, change=change, report=lambda _: None), done


# Measurements before and after that differ a little, as all do.
CALM = [1.0, 1.1] * 30


def test_a_run_goes_on_until_the_cluster_was_stable_long_enough() -> None:
    scenario, done = scenario_of(Lengths(warmup_s=2, before=6, after=10, max_s=1000.0))
    run = FakeRun()
    count = followed(scenario, run, [*CALM[:8], 9.0, 7.0, 8.0, 3.0, 5.0, 5.0, 5.0, 5.0, 5.0, 4.0, *CALM])
    assert done == ["changed"]
    assert run.marks == [STABLE]
    # Eight before and ten that were slow, five of them alike; then ten that are stable.
    assert 8 + 10 + 10 <= count <= 8 + 10 + 10 + 3


def test_what_is_not_stable_in_time_ends() -> None:
    scenario, _ = scenario_of(Lengths(warmup_s=0, before=6, after=10, max_s=500.0))
    run = FakeRun()
    followed(scenario, run, [*CALM[:6], *[2.0 + number for number in range(60)]])
    assert run.marks == [NEVER_STABLE]


def test_a_change_that_fails_is_told_and_ends_the_run() -> None:
    scenario, _ = scenario_of(Lengths(warmup_s=0, before=6, after=5, max_s=1000.0), problem="no disk")
    run = FakeRun()
    count = followed(scenario, run, CALM)
    assert scenario.problem == "no disk"
    assert run.marks == ["change failed: no disk", NEVER_STABLE]
    assert count <= 6 + 3


# On a cluster


SHORT = ("--requests", "40", "--executions", "2", "--warmup", "3s", "--before", "8", "--after", "10", "--at-most", "60s")


@pytest.fixture(scope="module")
def grown(lab_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is left of a region server that joined another one under load."""
    out = tmp_path_factory.mktemp("grown") / "out"
    assert run_main(("elasticity", "run", "--target", "hbase", "--change", "join", *SHORT, "--out", out, "--no-open")) == 0
    return out


def summary_in(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.cluster
def test_region_servers_of_hbase_that_join_under_load_serve_requests(cli: Cli, grown: Path) -> None:
    summary = summary_in(grown)
    jsonschema.validate(summary, json_schemas()["elasticity-summary"])
    (transition,) = summary["result"]["transitions"]
    assert transition["failed"] is None
    names = [event["name"] for event in transition["events"]]
    assert names[:3] == ["change begins", "node 2 joined", "change done"]
    assert transition["transfer_s"] > 0.0
    # Every operation is accounted for.
    counts = transition["counts"]
    assert counts["offered"] == counts["started"] == counts["ok"] + counts["error"] + counts["timeout"]
    # Registers were written meanwhile, and nothing that was acknowledged is gone.
    assert transition["guarantees"]["counts"]["acknowledged_writes"] > 100
    seen = transition["guarantees"]["seen"]
    assert seen["lost_writes"]["count"] == seen["stale_reads"]["count"] == 0
    assert seen["lost_writes"]["of"] > 0
    # The new node took its share of the requests, and nothing before it was there.
    new = next(node for node in transition["servers"] if node.endswith(".2"))
    assert transition["servers"][new]["requests"]["before"] == 0.0
    # Its CPU time is known, although it was not there when the run began.
    cpus = transition["servers"][new]["cpus"]
    assert cpus["before"] == 0.0 < cpus["during"]
    served_after = [served["requests"]["after"] for served in transition["servers"].values()]
    assert transition["servers"][new]["requests"]["after"] > 0.05 * sum(served_after)
    stable = transition["stability"]["by_band"]
    if stable["stable_at_s"] is not None:
        assert stable["total_s"] == pytest.approx(transition["transfer_s"] + stable["additional_s"])
        assert stable["score"]["elasticity"] > 0.0
    else:
        assert "not-stable" in {warning["kind"] for warning in summary["warnings"]}
    page = (grown / "report.html").read_text(encoding="utf-8")
    assert "Cluster of 1 node: a node joined" in page
    assert "promised not to occur" in page
    # It is written again from what is on disk.
    assert cli("report", grown, "--no-open", "--json").json["result"]["transitions"] == [transition]
    result = read_elasticity(grown)
    assert (result.manifest.plan.changes[0].kind, result.state) == ("join", "complete")
    bundle = grown.parent / "grown.sbz"
    assert cli("bundle", grown, "--out", bundle).exit_code == 0
    verified = cli("verify", bundle, "--json")
    assert verified.exit_code == 0, verified.err
    assert "where the data were" in verified.json["unverified"]
    # No log is in it, and every figure follows all the same.
    index = read_index(bundle)
    assert (index.with_operations, index.unverifiable) == (False, [])
    names = {file.path.rpartition("/")[2] for file in index.files}
    assert names >= {"request_sums.json", "history.parquet"}
    assert not names & {"operations.parquet", "answers.parquet", "history.jsonl"}
    has_summed_histograms(bundle, grown)
    with_logs = grown.parent / "with-logs.sbz"
    assert cli("bundle", grown, "--out", with_logs, "--with-operations").exit_code == 0
    assert cli("verify", with_logs).exit_code == 0
    assert not [instance for instance in lab.read_instances() if not instance.stays]


@pytest.mark.cluster
def test_operations_that_did_not_end_are_found_in_a_bundle_of_hbase(cli: Cli, grown: Path, tmp_path: Path) -> None:
    """The forger fills the second in which clients got least done, and computes the summary again."""
    bundle = tmp_path / "grown.sbz"
    assert cli("bundle", grown, "--out", bundle).exit_code == 0

    def fill(sums: dict[str, Any]) -> None:
        ended = sums["ended"]["ok"]
        ended[ended.index(min(ended))] = max(ended) * 3

    def forge(unpacked: Path) -> None:
        edit_json(next((unpacked / "results").rglob("request_sums.json")), fill)

    problems = verify(forged(bundle, tmp_path, forge)).problems
    assert {problem.check for problem in problems} == {"request sums"}
    assert "another number of operations (ok) than the series per second" in str(problems[0])


@pytest.mark.cluster
def test_histories_of_hbase_that_are_too_long_are_left_out_of_a_bundle_that_says_so(
    cli: Cli, grown: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sensorbench.bundles.contents.HISTORIES_OF_ALL", 0)
    bundle = tmp_path / "grown.sbz"
    assert cli("bundle", grown, "--out", bundle).exit_code == 0
    index = read_index(bundle)
    assert index.register_operations_left_out > 0
    assert not any(file.path.endswith("history.parquet") for file in index.files)
    found = verify(bundle)
    assert found.is_sound
    assert any(f"{index.register_operations_left_out:,} operations on registers" in text for text in found.unverified)

    # Who leaves them out without a word is found.
    unpack(bundle, tmp_path / "unpacked")
    entries = {file.path: tmp_path / "unpacked" / file.path for file in index.files}
    silent = index.model_copy(update={"register_operations_left_out": 0})
    write_bundle(tmp_path / "silent.sbz", {**entries, INDEX_FILE: silent.model_dump_json().encode()})
    problems = verify(tmp_path / "silent.sbz").problems
    assert {problem.check for problem in problems} == {"figures"}
    assert "guarantees" in str(problems[0])


@pytest.mark.cluster
def test_works_of_hbase_are_compared_beside_what_was_printed(cli: Cli, grown: Path, tmp_path: Path) -> None:
    out = tmp_path / "compared"
    ended = cli("elasticity", "compare", grown, grown, "--out", out, "--no-open", "--json")
    assert ended.exit_code == 0, ended.err
    jsonschema.validate(ended.json, json_schemas()["elasticitycomparison-summary"])
    found = {(figure["role"], figure["figure"]): figure for figure in ended.json["result"]["figures"]}
    assert found["HB", "transfer_s"]["runs"] == 2
    assert found["HB", "transfer_s"]["value"] == pytest.approx(summary_in(grown)["result"]["transitions"][0]["transfer_s"])
    assert ended.json == summary_in(out)
    # It is written again from the works.
    assert cli("report", out, "--no-open", "--json").json == ended.json
    assert cli("claims", out, "--json").json == ended.json["claims"]
    assert commands_on(out / "report.html") == [summary_in(grown)["command"]] * 2
    page = (out / "report.html").read_text(encoding="utf-8")
    # What was printed of the same transition stands beside it.
    assert "3.30 min" in page or "198 s" in page
    assert "HBase stabilizes faster than Cassandra" in page


@pytest.mark.cluster
def test_a_cluster_of_ones_own_grows_by_a_command(cli: Cli, lab_home: Path, tmp_path: Path) -> None:
    out, told = tmp_path / "out", tmp_path / "told"
    with lab.borrowed(lab.ServerSpec("redis+cluster", stays=False)) as instance:
        sensorbench = f"{sys.executable} -m sensorbench lab"
        # Data are moving the first time that it is asked.
        status = tmp_path / "status"
        status.write_text(f'#!/bin/sh\n[ -e "{told}" ] || {{ touch "{told}"; exit 1; }}\n', encoding="utf-8")
        status.chmod(0o755)
        ended = cli(
            "elasticity", "run", "--target", lab.url_of(instance), "--nodes", 3, "--change", "join",
            f"--add-node-command={sensorbench} add-node {instance.name}", "--status-command", status, *SHORT, "--out", out, "--no-open", "--json",
        )  # fmt: skip
        assert ended.exit_code == 0, ended.err
        assert told.exists()
        assert [node.number for node in lab.find_instance(instance.name).nodes] == [1, 2, 3, 4]
    assert instance.name not in " ".join(ended.json["command"])
    assert commands_on(out / "report.html") == [ended.json["command"]]
    (grown,) = ended.json["result"]["transitions"]
    assert [event["name"] for event in grown["events"]][:3] == ["change begins", "node 4 joined", "change done"]
    assert grown["nodes"] == 3
    assert grown["guarantees"]["seen"]["lost_writes"]["count"] == 0
    # Each master reports its requests, the new one too.
    assert len(grown["servers"]) == 4


def test_what_a_command_says_is_told_when_it_fails() -> None:
    nodes = ExternalCluster(2, "sh -c 'echo no such host >&2; exit 3'", "/nonexistent/remove", None, 5.0)
    with pytest.raises(FailedError, match=r"--add-node-command sh .* it ended with 3: no such host"):
        nodes.add_node()
    with pytest.raises(FailedError, match="--remove-node-command /nonexistent/remove: it cannot be run"):
        nodes.remove_node()
    with pytest.raises(FailedError, match=r"it did not end within 0\.2 s"):
        ExternalCluster(2, "sleep 5", None, None, 0.2).add_node()
    with pytest.raises(FailedError, match="--status-command false: it did not end with 0 within"):
        ExternalCluster(2, "true", None, "false", 0.2).add_node()
    assert nodes.nodes == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--target", "sqlite"], "sqlite has no nodes that join or leave"),
        (["--target", "postgresql"], "postgresql has no nodes that join or leave"),
        (["--target", "cassandra://me:secret@db.example"], "for a cluster of your own, give its number of nodes with --nodes"),
        (["--target", "cassandra://db.example", "--nodes", "3"], "--change join: for a cluster of your own, give the command"),
        (["--target", "cassandra://db.example", "--nodes", "3", "--change", "kill"], "expected join, leave, stay"),
        (["--target", "redis+cluster", "--status-command", "true"], "true: commands change a cluster of your own"),
        (["--target", "redis+cluster", "--change", "join:x"], "--change join:x: expected a number of nodes after join"),
        (["--target", "redis+cluster", "--change", "grow"], "--change grow: expected one of"),
        (["--target", "redis+cluster", "--schema", "none"], "none"),
        (["--target", "redis+cluster", "--server-setting", "maxmemory"], "--server-setting maxmemory: expected key=value"),
        (["--target", "redis+cluster", "--at-most", "long"], "--at-most 'long': expected a length of time"),
        (["--target", "redis+cluster", "--dataset", "beijing-air-quality"], "articles"),
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, tmp_path: Path, arguments: list[str], said: str) -> None:
    ended = cli("elasticity", "run", *arguments, "--out", tmp_path / "out", "--no-open")
    assert ended.exit_code == 2
    assert said in " ".join(ended.err.split())
    assert "secret" not in ended.err
    assert not (tmp_path / "out").exists()


def test_too_few_nodes_that_would_be_left_are_refused(cli: Cli, lab_home: Path, tmp_path: Path) -> None:
    """Its nodes are counted when it has started."""
    ended = cli("elasticity", "run", "--target", "redis+cluster", "--change", "leave", "--out", tmp_path / "out", "--no-open")
    assert ended.exit_code == 2
    assert "--change leave: 2 nodes would be left; the cluster needs 3 at least" in " ".join(ended.err.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--target", "sqlite"], "--target sqlite: sqlite has no nodes that join or leave"),
        (["--target", "cassandra://db.example"], "a cluster of your own grows by your command"),
        (["--schema", "by_id"], "No such option: --schema"),
    ],
)
def test_what_the_study_cannot_do_is_refused(cli: Cli, tmp_path: Path, arguments: list[str], said: str) -> None:
    ended = cli("study", "run", "elasticity", *arguments, "--out", tmp_path / "out", "--no-open")
    assert ended.exit_code == 2
    assert said in " ".join(ended.err.split())
    assert not (tmp_path / "out").exists()


# Troubles of a node


def reaches(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, timeout=1.0):
            return True
    except OSError:
        return False


class HereAlone(LabNodes):
    """A cluster on this machine that is never started."""

    @property
    def places(self) -> list[Host]:
        return [lab.HERE]


def is_said_to_be_unavailable(change: Change) -> bool:
    """Where a machine does not permit a trouble, users get a message, which is all that can be tested there."""
    if why_not(cast("Kind", change.kind), "", change.how) is None:
        check_can(change, HereAlone("any"))
        return False
    with pytest.raises(UsageError, match=f"--change {change.kind}: not available on this machine: "):
        check_can(change, HereAlone("any"))
    return True


@pytest.mark.cluster
def test_an_address_is_cut_off_for_a_while() -> None:
    if is_said_to_be_unavailable(Change("partition")):
        return
    with socket.socket() as server:
        server.bind(("127.77.0.2", 0))
        server.listen()
        address = server.getsockname()
        assert reaches(address)
        with network.cut_off(address[0]):
            assert not reaches(address)
        assert reaches(address)
        # What work that was killed has left is taken away.
        subprocess.run(["ip", "route", "add", "blackhole", "127.77.0.2/32", "table", "local"], check=True)
        assert not reaches(address)
        with pytest.raises(FailedError, match="File exists"), network.cut_off(address[0]):
            pass
        network.recover()
        assert reaches(address)


@pytest.mark.cluster
def test_what_goes_to_a_slow_address_goes_through_a_queue_of_its_own() -> None:
    def sent() -> int:
        told = subprocess.run(["tc", "-s", "class", "show", "dev", "lo"], capture_output=True, text=True, check=True).stdout
        found = re.search(r"class htb 7700:2 .*\n Sent (\d+) bytes", told)
        return int(found[1]) if found else -1

    if is_said_to_be_unavailable(Change("slow-network", how="10mbit")):
        return
    with socket.socket() as server:
        server.bind(("127.77.0.2", 0))
        server.listen()
        with network.slowed("127.77.0.2", "10mbit"):
            assert sent() == 0
            assert reaches(server.getsockname())
            assert sent() > 0
            with pytest.raises(FailedError, match="tc qdisc add"), network.slowed("127.77.0.3", "10mbit"):
                pass
        assert sent() == -1


@pytest.mark.parametrize(("how", "told"), [("20ms", "delay 20ms"), ("2%", "loss 2%")])
@pytest.mark.cluster
def test_packets_are_late_or_lost_where_the_kernel_can_do_that(how: str, told: str) -> None:
    def queues() -> str:
        return subprocess.run(["tc", "qdisc", "show", "dev", "lo"], capture_output=True, text=True, check=True).stdout

    if not is_said_to_be_unavailable(Change("slow-network", how=how)):
        with network.slowed("127.77.0.2", how):
            assert told in queues()
    # Whatever was begun is taken away, also where it failed half-way.
    assert "7700:" not in queues()


WRITES_FOR_A_SECOND = """
import os, sys, time
file, written = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_DSYNC), 0
sys.stdin.readline()
begun_s = time.monotonic()
while time.monotonic() - begun_s < 1.0:
    written += os.write(file, bytes(16384))
print(written, time.monotonic() - begun_s, flush=True)
sys.stdin.readline()
"""


@pytest.mark.cluster
def test_a_process_has_a_slow_disk_for_a_while() -> None:
    if is_said_to_be_unavailable(Change("slow-disk", how="64K")):
        return
    with (
        tempfile.TemporaryDirectory(dir=instances_folder().parent) as folder,
        subprocess.Popen(
            [sys.executable, "-c", WRITES_FOR_A_SECOND, f"{folder}/file"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as writer,
    ):
        assert writer.stdin
        assert writer.stdout

        def groups() -> str:
            return Path(f"/proc/{writer.pid}/cgroup").read_text()

        before = groups()
        with disk.slowed([psutil.Process(writer.pid)], Path(folder), 64 << 10):
            writer.stdin.write("\n")
            writer.stdin.flush()
            written, elapsed_s = map(float, writer.stdout.readline().split())
            assert "sensorbench-slow-disk" in groups()
            with pytest.raises(FailedError, match="File exists"), disk.slowed([], Path(folder), 64 << 10):
                pass
        assert groups() == before
        # The kernel lets a tenth of a second's worth go at first.
        assert 0 < written <= 1.2 * (elapsed_s + 0.5) * (64 << 10)
        writer.stdin.write("\n")


def test_where_nothing_can_be_cut_off_that_is_said_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = why_not("partition", "", "")
    assert reason is not None
    assert "the program ip (of iproute2) cannot be run" in reason
    with pytest.raises(UsageError, match="--change partition: not available on this machine: the program ip"):
        check_can(Change("partition"), HereAlone("any"))
