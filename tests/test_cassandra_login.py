"""A Cassandra that asks for passwords and can encrypt: who may log in, and what certificates are taken."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sensorbench import lab
from sensorbench._engine import Target
from sensorbench.errors import EngineError
from sensorbench.lab import jvm

PASSWORD = "for-this-test"


@pytest.fixture(scope="module")
def certificate(lab_home: Path) -> Path:
    """A certificate for any address that the lab may lease, and the key store with its key beside it."""
    keytool, store = jvm.require_java((17, 11)).home / "bin" / "keytool", lab_home / "keystore.p12"
    names = ",".join(f"ip:127.77.{cluster}.1" for cluster in range(1, 255))
    key = ["-genkeypair", "-alias", "node", "-keyalg", "EC", "-dname", "CN=node", "-ext", f"SAN={names}"]
    at = ["-keystore", str(store), "-storepass", PASSWORD]
    subprocess.run([keytool, *key, *at], check=True, capture_output=True)
    exported = subprocess.run([keytool, "-exportcert", "-rfc", "-alias", "node", *at], check=True, capture_output=True)
    store.chmod(0o644)
    file = lab_home / "certificate.pem"
    file.write_bytes(exported.stdout)
    return file


@pytest.fixture(scope="module")
def guarded(certificate: Path) -> Iterator[lab.Instance]:
    store = certificate.with_name("keystore.p12")
    encryption = f"{{enabled: true, optional: true, keystore: {store}, keystore_password: {PASSWORD}}}"
    settings = {"authenticator": "PasswordAuthenticator", "client_encryption_options": encryption, "jvm.heap": "400M"}
    with lab.borrowed(lab.ServerSpec("cassandra", name="guarded", settings=settings)) as instance:
        yield instance


def test_the_right_password_over_tls_is_let_in(guarded: lab.Instance, certificate: Path) -> None:
    described = json.loads(Target(f"{lab.url_of(guarded)}&tls=on&ca={certificate}").describe())
    assert described["database"] == "Apache Cassandra"
    assert json.loads(Target(f"{lab.url_of(guarded)}&tls=unverified").describe())["version"] == described["version"]


@pytest.mark.parametrize(
    ("user_info", "options", "expected"),
    [
        ("cassandra:wr0ng", "", "check user and password"),
        ("", "", "check user and password"),
        ("cassandra:cassandra", "?tls=on", "UnknownIssuer"),
    ],
)
def test_others_are_told_what_to_do(guarded: lab.Instance, user_info: str, options: str, expected: str) -> None:
    node = guarded.nodes[0]
    with pytest.raises(EngineError) as refused:
        Target(f"cassandra://{user_info}@{node.host}:{node.port}{options}").describe()
    assert expected in str(refused.value)
    assert "wr0ng" not in str(refused.value)


def test_passwords_among_the_settings_are_not_shown(guarded: lab.Instance) -> None:
    shown = json.dumps(lab.status(guarded))
    assert "client_encryption_options" in shown
    assert PASSWORD not in shown
