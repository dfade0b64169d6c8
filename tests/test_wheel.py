"""The wheel: it has all that the package reads, and works where there is neither a checkout nor Rust."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "sensorbench"
TOOLS = os.pathsep.join([str(Path(sys.executable).parent), str(ROOT / ".uv" / "bin"), os.environ["PATH"]])


def run(*command: object, **options: object) -> str:
    """What a command prints."""
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return str(ended.stdout)


@pytest.mark.long("builds the wheel, and installs it with all that it needs")
def test_the_wheel_works_without_a_checkout_and_without_rust(tmp_path: Path) -> None:
    maturin, uv = (shutil.which(tool, path=TOOLS) for tool in ("maturin", "uv"))
    run(maturin, "build", "--release", "--quiet", "--out", tmp_path / "dist", cwd=ROOT, env={**os.environ, "PATH": TOOLS})
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert re.fullmatch(r"sensorbench-[\d.]+-cp311-abi3-\w+\.whl", wheel.name)
    assert files_in(wheel) == files_of_the_package()

    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home"), "SENSORBENCH_CACHE": str(tmp_path / "cache")}
    (tmp_path / "home").mkdir()
    assert shutil.which("cargo", path=environment["PATH"]) is None
    run(uv, "venv", "--python", sys.executable, tmp_path / "venv")
    run(uv, "pip", "install", "--python", tmp_path / "venv" / "bin" / "python", wheel)
    place = run(
        tmp_path / "venv/bin/python", "-c", "import sensorbench; print(sensorbench.__file__)", env=environment, cwd=tmp_path
    )
    assert str(tmp_path / "venv") in place
    printed = run(tmp_path / "venv/bin/sensorbench", "quickstart", "--no-open", "--out", "mine", env=environment, cwd=tmp_path)
    assert "all answers were equal" in printed
    read = "import sensorbench as sb; results = sb.read('mine'); print(results.status, results.operations().num_rows > 0)"
    assert run(tmp_path / "venv/bin/python", "-c", read, env=environment, cwd=tmp_path).split() == ["complete", "True"]


def files_in(wheel: Path) -> set[str]:
    """The files of the package that a wheel has, but the engine, which lies in no repository."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name.removeprefix("sensorbench/") for name in archive.namelist() if name.startswith("sensorbench/")}
    assert "_engine.abi3.so" in names
    return names - {"_engine.abi3.so"}


def files_of_the_package() -> set[str]:
    """The files that the repository has of the package."""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", ".", cwd=PACKAGE)
    return {name for name in listed.splitlines() if (PACKAGE / name).exists()}


def test_the_workflow_builds_for_two_processors_and_publishes_nothing() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    assert {entry["target"] for entry in job["strategy"]["matrix"]["include"]} == {"x86_64", "aarch64"}
    assert workflow["permissions"] == {"contents": "read"}
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+\.\d+\.\d+", action) for action in used), "actions are pinned by version"
    assert "secrets." not in str(workflow)
    assert "publish" not in str(workflow["jobs"])
