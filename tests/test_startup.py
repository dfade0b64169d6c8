"""Commands that need no measurements start at once: they import nothing that is large."""

import ast
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

import sensorbench
from sensorbench.cli.help_texts import unbroken
from sensorbench.cli.lazy import LazyGroup
from sensorbench.cli.main import app
from tests.commands import commands

PACKAGE = Path(sensorbench.__file__).parent
LARGE = {"altair", "vl_convert", "scipy", "duckdb", "pyarrow", "numpy", "jinja2"}
GROUPS = {path: command for path, command in commands(get_command(app)) if isinstance(command, LazyGroup)}
LAZY_PACKAGES = [stub.parent for stub in sorted(PACKAGE.rglob("__init__.pyi"))]

_TELL_IMPORTED = """
import json, sys
from sensorbench.cli.main import start
try:
    start()
finally:
    sys.stderr.write(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def imported_by(*words: str) -> set[str]:
    """The packages that a command imports."""
    command = [sys.executable, "-c", _TELL_IMPORTED, *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "100"})
    assert ended.stdout.strip()
    return set(json.loads(ended.stderr))


@pytest.mark.parametrize("words", ["--help", "--version", "study --help", "study list", "study list --json", "databases"])
def test_nothing_large_is_imported_by(words: str) -> None:
    assert imported_by(*words.split()) & LARGE == set()


@pytest.mark.parametrize("options", sorted(PACKAGE.glob("benchmarks/*/options.py")), ids=lambda path: path.parent.name)
def test_options_of_benchmarks_import_nothing_large(options: Path) -> None:
    module = ".".join(["sensorbench", *options.relative_to(PACKAGE).with_suffix("").parts])
    command = [sys.executable, "-c", f"import sys, {module}; print(*sys.modules)"]
    assert set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()) & LARGE == set()


def test_a_large_import_is_seen() -> None:
    assert "duckdb" in imported_by("data", "list")


def test_commands_do_without_pandas_where_it_is_installed() -> None:
    assert importlib.util.find_spec("pandas")
    imported = imported_by("data", "checksum", "beijing-air-quality", "--scale", "0.02")
    assert "pyarrow" in imported
    assert "pandas" not in imported


@pytest.mark.parametrize("path", GROUPS, ids=lambda path: " ".join(path) or "sensorbench")
def test_lists_say_of_commands_what_their_own_help_begins_with(path: tuple[str, ...]) -> None:
    group = GROUPS[path]
    assert len(group.places) > 1
    for name, (_, line) in group.places.items():
        assert unbroken(group.load(name).help).startswith(line), name


def test_a_command_that_is_misspelt_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        get_command(app)(["quickstrat"])
    assert ended.value.code == 2
    assert "Did you mean 'quickstart'?" in capfd.readouterr().err


def exports(stub: Path) -> list[str]:
    """The names that an interface hands out."""
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    return [alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]


@pytest.mark.parametrize("package", LAZY_PACKAGES, ids=lambda package: package.name)
def test_interfaces_hand_out_what_they_list(package: Path) -> None:
    names = exports(package / "__init__.pyi")
    assert names
    module = importlib.import_module(".".join(["sensorbench", *package.relative_to(PACKAGE).parts]))
    assert sorted(module.__all__) == sorted(names)
    for name in names:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("package", LAZY_PACKAGES, ids=lambda package: package.name)
def test_what_an_interface_hands_out_has_not_the_name_of_a_module(package: Path) -> None:
    """Else it depends on what was imported before which of the two is had."""
    modules = {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert not modules & set(exports(package / "__init__.pyi"))
