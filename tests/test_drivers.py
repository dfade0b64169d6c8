"""Every driver of a server keeps the driver contract, against a real server of the lab."""

import os
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

from sensorbench import lab

ROOT = Path(__file__).parent.parent


def url_with_password(instance: lab.Instance, scheme: str) -> str:
    user = "" if scheme.startswith("redis") else "sensorbench"
    hosts = ",".join(f"{node.host}:{node.port}" for node in instance.nodes)
    path = "/postgres" if scheme == "postgresql" else ""
    return f"{scheme}://{user}:{quote(instance.password(), safe='')}@{hosts}{path}"


@pytest.mark.parametrize("crate", ["cassandra", "mysql", "postgresql", "redis"])
def test_the_driver_keeps_the_contract(crate: str, lab_servers: dict[str, lab.Instance]) -> None:
    server = {"mysql": "mariadb"}.get(crate, crate)
    # Cassandra has no passwords unless it is told to, and its URL names the tools that loading and settling need.
    url = lab.url_of(lab_servers[server]) if crate == "cassandra" else url_with_password(lab_servers[server], crate)
    environment = {**os.environ, "SENSORBENCH_TEST_URL": url}
    if crate == "redis":
        environment["SENSORBENCH_TEST_CLUSTER_URL"] = url_with_password(lab_servers["redis-cluster"], "redis+cluster")
    command = [
        "cargo",
        "test",
        "--release",
        "--quiet",
        "--package",
        f"sensorbench-driver-{crate}",
        "--features",
        "server",
        "--test",
        "contract",
    ]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert " 0 failed" in ended.stdout
    assert " 0 passed" not in ended.stdout
