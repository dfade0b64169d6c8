"""The directions of dependency that ARCHITECTURE.md states."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "sensorbench"
CRATES = ROOT / "crates"

COMMON = {"errors", "interrupts", "places", "progress", "toml_file", "_engine", "__version__"}
MAY_IMPORT = {
    "analysis": set(),
    "results": {"errors", "interrupts", "places", "_engine", "__version__"},
    "dataset": COMMON,
    "schemas": COMMON,
    "lab": COMMON,
    "spark": {"lab", "dataset"} | COMMON,
    "report": {"analysis", "results", "places"},
    "experiment": {"lab", "dataset", "schemas", "results", "analysis"} | COMMON,
    "mapreduce": {"spark", "lab", "experiment", "dataset", "schemas", "results", "analysis"} | COMMON,
    "study": {"mapreduce", "tuning", "experiment", "dataset", "schemas", "results", "analysis"} | COMMON,
    "advisor": {"experiment", "results", "analysis"} | COMMON,
    "stress": {"experiment", "dataset", "schemas", "results", "analysis"} | COMMON,
    "elasticity": {"stress", "lab", "experiment", "dataset", "schemas", "results", "analysis"} | COMMON,
    "tuning": {"stress", "lab", "experiment", "results", "analysis"} | COMMON,
    "catalog": {"advisor", "elasticity", "lab", "experiment", "schemas", "results", "analysis"} | COMMON,
    "cli": {
        "lab",
        "catalog",
        "spark",
        "mapreduce",
        "study",
        "advisor",
        "stress",
        "elasticity",
        "tuning",
        "experiment",
        "dataset",
        "results",
        "analysis",
        "report",
    }
    | COMMON,
}
MAY_DEPEND = {
    "histogram": set(),
    "workload": set(),
    "dataset": {"workload"},
    "driver": {"dataset", "histogram"},
    "engine": {"driver", "workload", "histogram", "dataset"},
}


def imported_parts(file: Path) -> set[str]:
    """The parts of the package that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "sensorbench":
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sensorbench."):
            found.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {name.name.split(".")[1] for name in node.names if name.name.startswith("sensorbench.")}
    return found


@pytest.mark.parametrize("part", sorted(MAY_IMPORT))
def test_parts_import_in_one_direction(part: str) -> None:
    files = list((PACKAGE / part).rglob("*.py"))
    assert files
    for file in files:
        assert imported_parts(file) - {part} <= MAY_IMPORT[part], file


def test_every_part_has_its_place() -> None:
    assert {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()} == set(MAY_IMPORT)


@pytest.mark.parametrize("name", sorted(MAY_DEPEND))
def test_crates_depend_in_one_direction(name: str) -> None:
    assert own_dependencies(CRATES / f"sensorbench-{name}") <= MAY_DEPEND[name]


def test_drivers_depend_on_the_driver_interface_alone() -> None:
    drivers = list(CRATES.glob("sensorbench-driver-*"))
    assert len(drivers) >= 2
    for crate in drivers:
        assert own_dependencies(crate) <= {"driver", "dataset"}, crate


def own_dependencies(crate: Path) -> set[str]:
    manifest = tomllib.loads((crate / "Cargo.toml").read_text(encoding="utf-8"))
    return {name.removeprefix("sensorbench-") for name in manifest.get("dependencies", {}) if name.startswith("sensorbench-")}


def test_only_the_registration_and_the_schemas_know_the_names_of_databases() -> None:
    drivers = {crate.name.removeprefix("sensorbench-driver-") for crate in CRATES.glob("sensorbench-driver-*")}
    for file in set(PACKAGE.rglob("*.py")) - set((PACKAGE / "lab" / "databases").glob("*.py")):
        text = file.read_text(encoding="utf-8")
        code = re.sub(r'""".*?"""|#.*', "", text, flags=re.DOTALL)
        quoted = {name for name in drivers if re.search(rf"['\"]{name}['\"]", code)}
        assert not quoted, f"{file} names {quoted}"


def test_public_functions_and_classes_say_what_they_are() -> None:
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{file}:{node.lineno} {node.name}"


def test_documents_name_files_that_there_are() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert len(documents) >= 8
    for document in documents:
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text(encoding="utf-8")):
            assert (document.parent / link).exists(), f"{document.name}: {link}"


def test_printed_files_are_those_of_the_example() -> None:
    example = ROOT / "docs" / "example"
    for document, file in [("experiments.md", "experiment.toml"), ("own-data.md", "water.toml")]:
        printed = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / document).read_text(encoding="utf-8"), flags=re.DOTALL)[0]
        assert tomllib.loads(printed) == tomllib.loads((example / file).read_text(encoding="utf-8")), document
