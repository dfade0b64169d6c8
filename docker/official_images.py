"""Tries vendors' images on any Docker host: the driver contract and the study `iot` at a tiny scale against each.

    python -m docker.official_images [NAME…]
    SENSORBENCH_IMAGE_URL_VALKEY=redis://:secret@127.77.1.1:6379 python -m docker.official_images valkey

A server that runs already is named by a variable; then no container is started, so that the script can be executed where there is no Docker. What was
found is kept in docker/tried.json, of which the support matrix is made. Containers listen on loopback, and are removed again.
"""

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, RootModel

from sensorbench import toml_file
from sensorbench.errors import UsageError

ROOT = Path(__file__).parent.parent
IMAGES, TRIED = ROOT / "docker/images.toml", ROOT / "docker/tried.json"
START_S, EVERY_S = 300.0, 2.0
STUDY = (
    "--dataset",
    "beijing-air-quality",
    "--scale",
    "0.002",
    "--operations",
    "40",
    "--repetitions",
    "3",
    "--drop-after",
    "--no-open",
)
Step = Literal["passed", "failed", "not tried"]


class Image(toml_file.FileModel):
    """An image, and how its server is reached and tried."""

    image: str = Field(description="Name and tag.")
    crate: str = Field(default="", description="The driver's crate, whose contract suite is run; none if empty.")
    contract: list[str] = Field(default=[], description="Arguments that choose some of its tests.")
    contract_scheme: str = Field(default="", description="Scheme of the URL that the suite takes, where it is another.")
    port: int
    url: str
    environment: dict[str, str] = {}
    arguments: list[str] = []


class Tried(BaseModel):
    """What was found of one image, or of a server in its place."""

    model_config = ConfigDict(extra="forbid")

    place: Literal["image", "another server"]
    server: str = Field(description="What the server says that it is.")
    date: str
    reached: Step
    contract: Step
    study: Step
    note: str = ""


class AllTried(RootModel[dict[str, Tried]]):
    """By name of the image."""


def images() -> dict[str, Image]:
    """The images that are known. Raises UsageError for a file that makes no sense."""
    content, lines = toml_file.load_keys(IMAGES)
    return {name: toml_file.validate(entry, Image, IMAGES, lines) for name, entry in content.items()}


def tried() -> dict[str, Tried]:
    """What was found until now."""
    return AllTried.model_validate_json(TRIED.read_text(encoding="utf-8")).root if TRIED.exists() else {}


def variable_of(name: str) -> str:
    """The variable that names a server in the place of an image."""
    return f"SENSORBENCH_IMAGE_URL_{name.upper().replace('-', '_')}"


@contextmanager
def server(name: str, image: Image) -> Iterator[tuple[str, Literal["image", "another server"]]]:
    """The URL of a server that is up: the one that the environment names, else a container's."""
    if given := os.environ.get(variable_of(name)):
        yield given, "another server"
        return
    password, container = secrets.token_hex(12), f"sensorbench-image-{name}"
    odbc = os.environ.get("SENSORBENCH_ORACLE_ODBC", "libsqora.so")
    words = {"password": password, "port": str(image.port), "oracle_odbc": odbc}
    environment = {key: _filled(value, words) for key, value in image.environment.items()}
    command = ["docker", "run", "--detach", "--rm", "--name", container, "--publish", f"127.0.0.1:{image.port}:{image.port}"]
    # Values come from the environment: a command line is there for all to read.
    command += [word for key in environment for word in ("--env", key)]
    arguments = [_filled(argument, words) for argument in image.arguments]
    subprocess.run([*command, image.image, *arguments], env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL)
    try:
        yield _filled(image.url, words), "image"
    finally:
        subprocess.run(["docker", "rm", "--force", container], check=False, stdout=subprocess.DEVNULL)


def _filled(text: str, words: Mapping[str, str]) -> str:
    for key, value in words.items():
        text = text.replace(f"{{{key}}}", value)
    return text


def without_login(url: str) -> tuple[str, dict[str, str]]:
    """A URL without user and password, and the variables of the environment that have them."""
    parts = urlsplit(url)
    if not parts.hostname or "@" not in parts.netloc:
        return url, {}
    prefix = f"SENSORBENCH_{parts.scheme.upper().replace('+', '_')}"
    login = {f"{prefix}_USER": parts.username, f"{prefix}_PASSWORD": parts.password}
    plain = url.replace(f"{parts.netloc.rpartition('@')[0]}@", "", 1)
    return plain, {name: unquote(value) for name, value in login.items() if value}


def try_image(name: str, image: Image, out: Path, *, with_contract: bool = True) -> Tried:
    """Starts a server, and tries it step by step. What a step prints goes to standard error."""
    with server(name, image) as (url, place):
        found = Tried(
            place=place,
            server=image.image if place == "image" else "",
            date=f"{datetime.now(UTC):%Y-%m-%d}",
            reached="failed",
            contract="not tried",
            study="not tried",
        )
        plain, login = without_login(url)
        if not _is_reached(plain, login):
            return found.model_copy(update={"note": "nobody answered at its address"})
        found.reached = "passed"
        if image.crate:
            found.contract = _contract(url, image) if with_contract else "not tried"
            folder = out / name
            ended = _sensorbench(["study", "run", "iot", "--target", plain, *STUDY, "--out", str(folder)], login)
            found.study = "passed" if ended == 0 else "failed"
            found.server = _version(folder) or found.server
        return found


def _is_reached(url: str, login: Mapping[str, str]) -> bool:
    end_s = time.monotonic() + START_S
    while time.monotonic() < end_s:
        if _sensorbench(["target", "list", url, "--json"], login, quiet=True) == 0:
            return True
        time.sleep(EVERY_S)
    return False


def _contract(url: str, image: Image) -> Step:
    # It belongs to the tests, and builds all suites.
    from tests.contract import keeps_the_contract

    scheme = url.partition(":")[0]
    try:
        keeps_the_contract(
            image.crate, {"SENSORBENCH_TEST_URL": url.replace(scheme, image.contract_scheme or scheme, 1)}, *image.contract
        )
    except AssertionError as error:
        print(error, file=sys.stderr)
        return "failed"
    return "passed"


def _sensorbench(words: list[str], environment: Mapping[str, str], *, quiet: bool = False) -> int:
    kept = subprocess.DEVNULL if quiet else sys.stderr
    command = [sys.executable, "-m", "sensorbench", *words]
    return subprocess.run(command, env={**os.environ, **environment}, stdout=kept, stderr=kept, check=False).returncode


def _version(folder: Path) -> str:
    """What the server said of itself when the study loaded it."""
    for file in sorted(folder.glob("experiments/*/load.json")):
        described = json.loads(file.read_text(encoding="utf-8"))["description"]
        return f"{described['database']} {described['version']}"
    return ""


def main() -> None:
    """Tries images, and keeps what was found. Ends with 1 where a step failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = images()
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(known)}; all if not given")
    parser.add_argument("--no-contract", action="store_true", help="run no contract suite, which needs Rust")
    arguments = parser.parse_args()
    names = arguments.names or list(known)
    if unknown := set(names) - known.keys():
        raise UsageError(f"{min(unknown)}: expected some of {', '.join(known)}")
    failed = False
    with tempfile.TemporaryDirectory(prefix="sensorbench-images-") as out:
        for name in names:
            found = try_image(name, known[name], Path(out), with_contract=not arguments.no_contract)
            print(
                f"{name}: reached {found.reached}, contract {found.contract}, study {found.study}: {found.server} {found.note}",
                flush=True,
            )
            failed |= "failed" in {found.reached, found.contract, found.study}
            ordered = AllTried(dict(sorted({**tried(), name: found}.items())))
            TRIED.write_text(ordered.model_dump_json(indent=1) + "\n", encoding="utf-8")
    sys.exit(failed)


if __name__ == "__main__":
    main()
