"""The driver contract of drivers of servers: its tests, built once, and run against servers of the lab."""

import json
import os
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

CRATES = Path(__file__).parent.parent / "crates"
OCCUPANTS = ("absent ", "ours, of this folder ", "ours, of another ", "foreign ")


def keeps_the_contract(driver: str, environment: Mapping[str, str], *chosen: str) -> None:
    """Asserts that a driver passes its contract tests, which find their servers in the environment; `chosen` are arguments that choose some of
    them. Prints the table of occupants and intents that they went through (pytest -s shows it).
    """
    ended = subprocess.run(
        [_programs()[driver], "--quiet", "--show-output", *chosen],
        cwd=CRATES / f"sensorbench-driver-{driver}",
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert " 0 failed" in ended.stdout
    assert " 0 passed" not in ended.stdout
    table = [line for line in ended.stdout.splitlines() if line.startswith(OCCUPANTS) or ": occupant" in line]
    assert len(table) >= 1 + len(OCCUPANTS)
    print("", *table, sep="\n")


@cache
def _programs() -> dict[str, str]:
    """The program of each driver's contract tests. All are built together, of the whole workspace, as for `make test-rust`: each by itself would
    have its dependencies built again, with fewer of their features.
    """
    workspace = ["--workspace", "--exclude", "sensorbench-python"]
    as_tests = ["--config", "crates/tests.toml"]
    command = ["cargo", *as_tests, "test", "--release", "--quiet", *workspace, "--test", "contract", "--no-run"]
    built = subprocess.run([*command, "--message-format", "json"], cwd=CRATES.parent, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    told = [json.loads(line) for line in built.stdout.splitlines()]
    tests = [entry for entry in told if entry["reason"] == "compiler-artifact" and entry["target"]["name"] == "contract"]
    return {_driver(test["manifest_path"]): test["executable"] for test in tests if test["executable"]}


def _driver(manifest: str) -> str:
    return Path(manifest).parent.name.removeprefix("sensorbench-driver-")
