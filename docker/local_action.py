"""Executes the steps of the composite action `.github/actions/gate` in a clean clone, without GitHub.

    python -m docker.local_action experiment=docs/example/gate.toml budget=5m

Inputs are words `name=value`; those that are not given are as the action has them. Prints outputs and summary, and ends as the action ends.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
ACTION = Path(".github/actions/gate/action.yml")
_EXPRESSION = re.compile(r"\$\{\{\s*inputs\.([a-z-]+)\s*\}\}")


@dataclass(frozen=True)
class ActionRun:
    """How an action ended."""

    exit_code: int
    outputs: dict[str, str]
    summary: str


def clone(source: Path, to: Path) -> Path:
    """A clean clone of a repository: what is committed, and nothing else."""
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(source), str(to)], check=True)
    return to


def run_action(checkout: Path, inputs: Mapping[str, str]) -> ActionRun:
    """Executes each step as GitHub does: in the checkout, its expressions put in, until one fails.

    Args:
        checkout: a clone that has the action.
        inputs: by name.

    Raises:
        ValueError: for inputs that the action does not have, those that are missing, and steps that are no scripts.

    """
    action: dict[str, Any] = yaml.safe_load((checkout / ACTION).read_text(encoding="utf-8"))
    values = _inputs(action, inputs)
    with tempfile.TemporaryDirectory(prefix="sensorbench-action-") as folder:
        output, summary = Path(folder) / "output", Path(folder) / "summary"
        output.touch()
        summary.touch()
        environment = {
            **os.environ,
            # The commands of the environment that runs this, which need not be active.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "GITHUB_ACTION_PATH": str((checkout / ACTION).parent),
            "GITHUB_WORKSPACE": str(checkout),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
        }
        exit_code = _run_steps(action["runs"]["steps"], values, checkout, environment)
        lines = output.read_text(encoding="utf-8").splitlines()
        return ActionRun(exit_code, dict(line.split("=", 1) for line in lines), summary.read_text(encoding="utf-8"))


def _inputs(action: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
    known = action["inputs"]
    if unknown := given.keys() - known.keys():
        raise ValueError(f"the action has no input {min(unknown)}; expected some of {', '.join(known)}")
    values = {name: given.get(name, of_input.get("default")) for name, of_input in known.items()}
    if missing := [name for name, value in values.items() if value is None]:
        raise ValueError(f"the action needs the input {missing[0]}")
    return values


def _run_steps(
    steps: Sequence[Mapping[str, Any]], values: Mapping[str, str], checkout: Path, environment: Mapping[str, str]
) -> int:
    for step in steps:
        if "run" not in step or step["shell"] != "bash":
            raise ValueError(f"{step.get('name')}: this runner executes scripts of bash alone")
        own = {name: _EXPRESSION.sub(lambda found: values[found[1]], text) for name, text in step.get("env", {}).items()}
        # As GitHub starts it: it ends with the first command that fails.
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        ended = subprocess.run(command, cwd=checkout, env={**environment, **own}, check=False)
        if ended.returncode:
            return ended.returncode
    return 0


def main() -> None:
    """Clones, executes and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", help="name=value")
    inputs = dict(word.split("=", 1) for word in parser.parse_args().inputs)
    with tempfile.TemporaryDirectory(prefix="sensorbench-clone-") as folder:
        ended = run_action(clone(ROOT, Path(folder) / "clone"), inputs)
    print(*(f"{name}: {value}" for name, value in ended.outputs.items()), "", ended.summary, sep="\n")
    sys.exit(ended.exit_code)


if __name__ == "__main__":
    main()
