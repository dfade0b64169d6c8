"""Every driver of a server keeps the driver contract, against a real server of the lab."""

from urllib.parse import quote

import pytest

from sensorbench import lab
from tests.contract import keeps_the_contract

# Dialects of one protocol share a program of tests, and each has some for itself.
CHOSEN = {"postgresql": ("--skip", "questdb::", "--skip", "by_url::"), "questdb": ("questdb::",)}


def url_with_password(instance: lab.Instance, scheme: str) -> str:
    # Cassandra has no passwords unless configured, HBase none, and their URLs name the tools that loading and settling need.
    if not instance.credentials.exists():
        return lab.url_of(instance)
    user = {"redis": "", "redis+cluster": "", "iotdb": "root"}.get(scheme, "sensorbench")
    hosts = ",".join(f"{node.host}:{node.port}" for node in instance.nodes)
    path = "/postgres" if scheme == "postgresql" else ""
    return f"{scheme}://{user}:{quote(instance.password(), safe='')}@{hosts}{path}"


@pytest.mark.parametrize(
    ("crate", "server"),
    [
        ("cassandra", "cassandra"),
        ("hbase", "hbase"),
        ("http", "influxdb"),
        ("http", "victoriametrics"),
        ("http", "prometheus"),
        ("http", "opentsdb"),
        ("http", "clickhouse"),
        ("http", "iotdb"),
        ("mongodb", "ferretdb"),
        ("mongodb", "ferretdb-postgresql"),
        ("mysql", "mariadb"),
        ("postgresql", "postgresql"),
        ("postgresql", "questdb"),
        ("redis", "redis"),
    ],
)
def test_the_driver_keeps_the_contract(crate: str, server: str, lab_servers: dict[str, lab.Instance]) -> None:
    instance = lab_servers[server]
    # MariaDB stands in for MySQL.
    scheme = crate if crate == "mysql" else instance.database
    environment = {"SENSORBENCH_TEST_URL": url_with_password(instance, scheme)}
    if crate == "redis":
        environment["SENSORBENCH_TEST_CLUSTER_URL"] = url_with_password(lab_servers["redis-cluster"], "redis+cluster")
    keeps_the_contract(crate, environment, *CHOSEN.get(server, ()))
