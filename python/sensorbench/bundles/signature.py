"""Signatures of bundles by SSH keys: `ssh-keygen -Y` signs the index, which has the SHA-256 of all else."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from sensorbench.errors import FailedError, UsageError

NAMESPACE = "sensorbench-bundle"
_PROGRAM = "ssh-keygen"


def sign(index: bytes, key: Path) -> bytes:
    """The signature of an index by a private key, or by the key of an agent whose public part the file has.

    Raises:
        UsageError: the key is not there, or ssh-keygen refuses it.

    """
    if not key.is_file():
        raise UsageError(f"--sign {key}: there is no such file; expected an SSH key")
    ended = _run("-Y", "sign", "-f", str(key), "-n", NAMESPACE, content=index)
    if ended.returncode:
        raise UsageError(f"--sign {key}: ssh-keygen does not sign with it: {_said(ended)}")
    return ended.stdout


def signer_of(index: bytes, signature: bytes, allowed: Path) -> str:
    """Who of the allowed signers signed an index.

    Args:
        index: as it lies in the bundle.
        signature: of it.
        allowed: a file of allowed signers, as ssh-keygen(1) has it.

    Raises:
        UsageError: the file is not there.
        FailedError: nobody of them signed it, or it was changed since.

    """
    if not allowed.is_file():
        raise UsageError(f"--allowed-signers {allowed}: there is no such file; expected one as ssh-keygen(1) describes it")
    with tempfile.TemporaryDirectory(prefix="sensorbench-signature-") as folder:
        file = Path(folder) / "signature"
        file.write_bytes(signature)
        found = _run("-Y", "find-principals", "-s", str(file), "-f", str(allowed))
        signer = found.stdout.decode(errors="replace").split("\n")[0].strip()
        if found.returncode or not signer:
            raise FailedError(f"the signature is of none of the signers in {allowed}")
        checked = _run("-Y", "verify", "-f", str(allowed), "-I", signer, "-n", NAMESPACE, "-s", str(file), content=index)
    if checked.returncode:
        raise FailedError(f"the signature by {signer} is wrong: {_said(checked)}")
    return signer


def _run(*arguments: str, content: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    if shutil.which(_PROGRAM) is None:
        raise UsageError(f"{_PROGRAM} is not installed; it signs bundles and checks their signatures (Debian: openssh-client)")
    return subprocess.run([_PROGRAM, *arguments], input=content, capture_output=True, check=False)


def _said(ended: subprocess.CompletedProcess[bytes]) -> str:
    lines = ended.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {ended.returncode}"
