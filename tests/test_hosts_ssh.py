"""Hosts that are reached by SSH: a server of the test's own on loopback addresses, with keys that were made for it."""

import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

import sensorbench
from sensorbench.results import read_run
from tests.conftest import Cli
from tests.programs import have_ssh, unpacked

ENDS_WITHIN_S = 120.0
ADDRESSES = ("127.0.0.1", "127.0.0.2")
# As root, sshd wants a user of its own and a folder, which this machine need not have: it gets both in a mount namespace, and the machine stays as it is.
AS_ROOT = """
set -e
mount --bind "$1/passwd" /etc/passwd
mount --bind "$1/shadow" /etc/shadow
mount -t tmpfs none /run
mkdir -m 755 /run/sshd
shift
exec "$@"
"""


@dataclass(frozen=True)
class SshServer:
    """A server of SSH: its port, the key that it lets in, and where its own key is known."""

    port: int
    key: Path
    known_hosts: Path
    process: psutil.Process


@pytest.fixture(scope="module")
def ssh_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with running_ssh_server(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@contextmanager
def running_ssh_server(folder: Path) -> Iterator[SshServer]:
    """A server with its files in a folder. Fails where it cannot be started: no test goes without."""
    with pytest.MonkeyPatch.context() as patch:
        have_ssh(patch)
        folder.chmod(0o700)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        port = free_port()
        host_key = (folder / "host.pub").read_text(encoding="utf-8")
        (folder / "known_hosts").write_text("".join(f"[{address}]:{port} {host_key}" for address in ADDRESSES), encoding="utf-8")
        program, environment = sshd()
        config = folder / "sshd_config"
        config.write_text(sshd_config(folder, port), encoding="utf-8")
        command = [program, "-D", "-e", "-f", str(config)]
        log = folder / "log"
        with (
            log.open("wb") as written,
            subprocess.Popen(in_own_mounts(command, folder), stderr=written, env=environment) as process,
        ):
            try:
                wait_for(port, process, log)
                yield SshServer(port, folder / "user", folder / "known_hosts", psutil.Process(process.pid))
            finally:
                process.terminate()


def sshd() -> tuple[str, dict[str, str]]:
    """The program, which must be called by its whole path, and its environment."""
    found = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
    return (found, dict(os.environ)) if found else unpacked("openssh-server", "usr/sbin/sshd")


def sshd_config(folder: Path, port: int) -> str:
    lines = [
        *(f"ListenAddress {address}:{port}" for address in ADDRESSES),
        f"HostKey {folder / 'host'}",
        f"AuthorizedKeysFile {folder / 'user.pub'}",
        "PidFile none",
        "UsePAM no",
        "StrictModes no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin prohibit-password",
        f"SetEnv PYTHONPATH={Path(sensorbench.__file__).parent.parent} SENSORBENCH_CACHE={os.environ['SENSORBENCH_CACHE']}",
    ]
    return "\n".join([*lines, ""])


def in_own_mounts(command: list[str], folder: Path) -> list[str]:
    if os.geteuid() != 0:
        return command
    users = Path("/etc/passwd").read_text(encoding="utf-8").splitlines()
    kept = [line for line in users if line.partition(":")[0] != "sshd"]
    (folder / "passwd").write_text("\n".join([*kept, "sshd:x:65533:65533::/run/sshd:/usr/sbin/nologin", ""]), encoding="utf-8")
    # No password, and not locked, which sshd would refuse.
    (folder / "shadow").write_text("root:*:19000:0:99999:7:::\n", encoding="utf-8")
    return ["unshare", "--mount", "--", "sh", "-c", AS_ROOT, "sh", str(folder), *command]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((ADDRESSES[0], 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until_s = time.monotonic() + ENDS_WITHIN_S
    while time.monotonic() < until_s:
        assert process.poll() is None, log.read_text(encoding="utf-8")
        try:
            socket.create_connection((ADDRESSES[0], port), timeout=1.0).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(log.read_text(encoding="utf-8"))


def hosts_file(folder: Path, server: SshServer, *, key: Path | None = None) -> Path:
    entries = [
        f"""
[[host]]
name = "{name}"
reach = "ssh://{getpass.getuser()}@{address}:{server.port}"
identity_file = "{key or server.key}"
ssh_options = ["UserKnownHostsFile={server.known_hosts}", "GlobalKnownHostsFile=none"]
python = "{sys.executable}"
"""
        for name, address in zip(("a", "b"), ADDRESSES, strict=True)
    ]
    file = folder / "hosts.toml"
    file.write_text("".join(entries), encoding="utf-8")
    return file


def test_two_hosts_by_ssh_share_a_run_and_nothing_of_it_is_left(
    cli: Cli, tmp_path: Path, ssh_server: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_ssh(monkeypatch)
    file, out = hosts_file(tmp_path, ssh_server), tmp_path / "out"
    words = ("--records", 20, "--rates", 300, "--step-duration", "1s", "--ramp", "0", "--warmup", "0")
    ended = cli("stress", "--target", "null:", *words, "--hosts", file, "--no-open", "--json", "--out", out)
    assert ended.exit_code == 0, ended.err
    assert [figure["host"] for figure in ended.json["result"]["load_generators"]] == ["a", "b"]
    totals = read_run(out / "runs" / "001").manifest.totals
    assert totals is not None
    assert [generator.lost for generator in totals.generators] == [None, None]
    # Each listens where it was reached.
    assert all(f"({address})" in ended.err for address in ADDRESSES)
    assert "BEGIN" not in json.dumps(ended.json) + ended.err
    sessions = ssh_server.process.children(recursive=True)
    _, alive = psutil.wait_procs(sessions, timeout=ENDS_WITHIN_S)
    assert alive == []


def test_hosts_that_cannot_be_reached_are_named(
    cli: Cli, tmp_path: Path, ssh_server: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_ssh(monkeypatch)
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
    file = hosts_file(tmp_path, ssh_server, key=other)
    ended = cli("hosts", "check", file, "--json")
    assert ended.exit_code == 1
    assert "host a: it ended with exit code 255" in ended.err
    assert "Permission denied" in ended.err
    assert [host["address"] for host in ended.json["hosts"]] == [None, None]
    out = tmp_path / "out"
    refused = cli("stress", "--target", "null:", "--rates", 10, "--hosts", file, "--no-open", "--out", out)
    assert (refused.exit_code, out.exists()) == (1, False), refused.err


def test_hosts_by_ssh_end_by_themselves_when_nobody_controls_them(
    tmp_path: Path, ssh_server: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_ssh(monkeypatch)
    file, out = hosts_file(tmp_path, ssh_server), tmp_path / "out"
    words = (
        "stress",
        "--target",
        "null:",
        "--records",
        "20",
        "--rates",
        "200",
        "--step-duration",
        "1m",
        "--ramp",
        "0",
        "--warmup",
        "0",
    )
    command = [sys.executable, "-m", "sensorbench", *words, "--hosts", str(file), "--no-open", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while not list(out.glob("runs/001/segments/*.hlog")):
                assert process.poll() is None
                time.sleep(0.05)
            sessions = ssh_server.process.children(recursive=True)
            assert len([each for each in sessions if "sensorbench.runner.generators.worker" in " ".join(each.cmdline())]) == 2
        finally:
            process.kill()
    _, alive = psutil.wait_procs(sessions, timeout=ENDS_WITHIN_S)
    assert alive == []
