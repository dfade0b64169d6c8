"""The directions of dependency that ARCHITECTURE.md states, and what the sources may name.

Each guard is a function of the sources that it reads, so that a test beside it shows that it finds a planted violation.
"""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from sensorbench.lab import LAB_DATABASES
from sensorbench.results import json_schemas  # noqa: F401 - it imports every manifest
from sensorbench.results.manifest import ManifestHead
from tests.planted import planted

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "sensorbench"
CRATES = ROOT / "crates"

COMMON = {"errors", "interrupts", "options", "paths", "progress", "terminal", "toml_file", "wording", "_engine", "__version__"}
# What measures one workload on one target, and what that needs.
_BASE = {"dataset", "schemas", "hosts", "lab", "results", "analysis"} | COMMON
_RUNNER = {"runner"} | _BASE
_VERIFICATION = {"verification"} | _RUNNER
_LIFECYCLE = {"lifecycle"} | _VERIFICATION
_COMPAT = {"compat"} | _LIFECYCLE
_STRESS = {"benchmarks.stress"} | _COMPAT
_BENCHMARKS = {
    "spark",
    "benchmarks.comparison",
    "benchmarks.tune",
    "benchmarks.factors",
    "benchmarks.elasticity",
    "benchmarks.mapreduce",
} | _STRESS
# Each benchmark is a part of its own.
MAY_IMPORT = {
    "analysis": set(),
    "results": {"errors", "interrupts", "paths", "_engine", "__version__"},
    "dataset": COMMON,
    "schemas": COMMON,
    "hosts": COMMON,
    "lab": {"hosts"} | COMMON,
    "spark": {"lab", "dataset"} | COMMON,
    "report": {"analysis", "results", "paths", "wording"},
    "traffic": _RUNNER,
    "runner": {"hosts"} | _BASE,
    "verification": _RUNNER,
    "lifecycle": _VERIFICATION,
    "compat": _LIFECYCLE,
    "benchmarks": {"benchmarks.doctor"},
    "benchmarks.doctor": _RUNNER,
    "benchmarks.comparison": _COMPAT,
    "benchmarks.stress": _COMPAT,
    "benchmarks.replay": {"traffic"} | _COMPAT,
    "benchmarks.tune": _STRESS,
    "benchmarks.factors": {"benchmarks.tune"} | _STRESS,
    "benchmarks.elasticity": _STRESS,
    "benchmarks.mapreduce": {"spark"} | _COMPAT,
    "claims": _BENCHMARKS,
    "studies": {"claims"} | _BENCHMARKS,
    "advisor": {"benchmarks.comparison"} | _RUNNER,
    "catalog": {"advisor", "claims", "benchmarks.comparison", "benchmarks.elasticity"} | _RUNNER,
    "history": {"benchmarks.comparison"} | _BASE,
    "bundles": {"benchmarks.comparison", "benchmarks.elasticity"} | _RUNNER,
    "app": {"benchmarks.replay", "bundles", "history", "advisor", "catalog", "claims", "studies", "report", "benchmarks.doctor"}
    | _BENCHMARKS,
    "api": {"app", "history", "studies", "report", "benchmarks.factors", "lifecycle", "runner"} | _BASE,
    "cli": {
        "benchmarks.replay",
        "history",
        "traffic",
        "app",
        "claims",
        "studies",
        "advisor",
        "catalog",
        "report",
        "benchmarks.doctor",
    }
    | _BENCHMARKS,
}

# Modules beside the parts import no part; the command line alone is started by `python -m`.
MODULES_MAY_IMPORT = {"__main__": {"cli"}}

OF_A_STUDY = "one published study's claims and tables, which name what it measured"
OF_A_LOG = "the log of one database, and its dialect"
URLS = "one example of a URL of each form, for help and messages: drivers do not say theirs"
OF_TSBS = "a measurement of TSBS is called like the server that it is of"
KIND_OF_A_TOOL = "the kind of results that the tool of one database has"
# Modules outside of lab/databases whose texts name databases, and why. An entry that no longer applies fails the test.
MAY_NAME_DATABASES = {
    "cli/quickstart.py": "the embedded variant that the first minute stalls",
    "analysis/promises.py": "citations of the documents that make a promise",
    "dataset/dataset.py": OF_TSBS,
    "dataset/tsbs_devops.py": OF_TSBS,
    "app/reports.py": KIND_OF_A_TOOL,
    "history/one_target.py": KIND_OF_A_TOOL,
    "app/validation.py": "files of the tool of one database",
    "results/planned.py": KIND_OF_A_TOOL,
    "results/summary/tools.py": KIND_OF_A_TOOL,
    "bundles/make.py": KIND_OF_A_TOOL,
    "cli/cassandra_stress.py": "the tool of one database",
    "cli/validate.py": "files of the tool of one database",
    "cli/main.py": "the command that is that tool's",
    "cli/help_groups.py": "the command that is that tool's",
    "runner/variants.py": URLS,
    "traffic/formats.py": OF_A_LOG,
    "traffic/lexer.py": OF_A_LOG,
    "traffic/fit/statements.py": OF_A_LOG,
    "traffic/anonymise.py": OF_A_LOG,
    "traffic/record.py": OF_A_LOG,
    "traffic/cassandra_log.py": OF_A_LOG,
    "traffic/record_mysql.py": OF_A_LOG,
    "traffic/record_postgresql.py": OF_A_LOG,
    "traffic/record_postgresql_at.py": OF_A_LOG,
    "traffic/redis_log.py": OF_A_LOG,
    "cli/traffic.py": OF_A_LOG,
    "lab/odbc.py": "the lab's ODBC drivers, which are one for each database",
    "paths.py": "the name of a file that the tool of one database writes",
    "compat/cassandra_stress/estimate.py": "the tool of one database",
    "compat/cassandra_stress/plan.py": "the tool of one database",
    "compat/cassandra_stress/run.py": "the tool of one database",
    "studies/iot/sections.py": OF_A_STUDY,
    "studies/layouts/sections.py": OF_A_STUDY,
    "studies/log_analytics/systems.py": OF_A_STUDY,
    "studies/log_analytics/claims.py": OF_A_STUDY,
    "studies/log_analytics/sections.py": OF_A_STUDY,
    "studies/mapreduce/claims.py": OF_A_STUDY,
    "studies/sensor_schemas/sections.py": OF_A_STUDY,
}


# Directions of imports.


def imports_in(file: Path) -> list[ast.Import | ast.ImportFrom]:
    """All imports of a file, wherever they stand in it."""
    return _imports_in(file.read_text(encoding="utf-8"))


@cache
def _imports_in(source: str) -> list[ast.Import | ast.ImportFrom]:
    """Many guards ask this of the same sources."""
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]


def imported_parts(file: Path, package: Path = PACKAGE) -> set[str]:
    """The parts of the package that a file imports, in any way of writing it."""
    within = [package.name, *file.relative_to(package).parent.parts]
    found = set()
    for node in imports_in(file):
        if isinstance(node, ast.Import):
            found |= {_part(name.name) for name in node.names}
        else:
            base = [*within[: len(within) - node.level + 1], *filter(None, [node.module])] if node.level else [str(node.module)]
            found |= {_part(".".join([*base, name.name])) for name in node.names}
    return found - {""}


def _part(module: str) -> str:
    """`lab` of `sensorbench.lab.registry`, `benchmarks.stress` of what lies in that; empty for what is not of the package."""
    package, *inside = module.split(".")
    if package != "sensorbench":
        return ""
    return ".".join(inside[: 2 if inside[:1] == ["benchmarks"] else 1])


def wrong_imports(part: str, may_import: set[str], package: Path = PACKAGE) -> dict[str, set[str]]:
    """The files of a part that import what it may not, and what that is."""
    folder = package.joinpath(*part.split("."))
    files = [file for file in folder.rglob("*.py") if _part_of(file, package) == part] or [folder.with_suffix(".py")]
    wrong = {str(file.relative_to(package)): imported_parts(file, package) - {part} - may_import for file in files}
    assert wrong
    return {file: parts for file, parts in wrong.items() if parts}


def _part_of(file: Path, package: Path) -> str:
    """The part that a file is of."""
    return _part(".".join([package.name, *file.relative_to(package).with_suffix("").parts]).removesuffix(".__init__"))


def parts_of(package: Path) -> set[str]:
    """The parts of a package: its folders of Python, and each benchmark."""
    return {_part_of(file, package) for file in package.rglob("*.py") if file.parent != package}


@pytest.mark.parametrize("part", sorted(MAY_IMPORT))
def test_parts_import_in_one_direction(part: str) -> None:
    assert wrong_imports(part, MAY_IMPORT[part]) == {}


@pytest.mark.parametrize("module", sorted(file.stem for file in PACKAGE.glob("*.py")))
def test_modules_beside_the_parts_import_none(module: str) -> None:
    assert wrong_imports(module, COMMON | MODULES_MAY_IMPORT.get(module, set())) == {}


def test_every_part_has_its_place() -> None:
    assert parts_of(PACKAGE) == set(MAY_IMPORT)


@pytest.mark.parametrize(
    "statement",
    [
        "import sensorbench.cli",
        "from sensorbench import cli",
        "from sensorbench.cli import main",
        "from sensorbench.cli.main import app",
        "from .. import cli",
        "from ..cli import main",
        "def late() -> None:\n    from sensorbench.cli import main",
        "note = '#'; from sensorbench.cli import main",
    ],
)
def test_an_import_against_the_direction_is_found(tmp_path: Path, statement: str) -> None:
    package = planted(tmp_path / "sensorbench", {"analysis/__init__.py": "", "analysis/sample.py": f"import math\n{statement}\n"})
    assert wrong_imports("analysis", {"errors"}, package) == {"analysis/sample.py": {"cli"}}


def test_a_benchmark_that_imports_another_is_found(tmp_path: Path) -> None:
    new = {
        "benchmarks/stress/run.py": "from sensorbench.benchmarks import tune\nfrom sensorbench.benchmarks.factors.run import x"
    }
    package = planted(tmp_path / "sensorbench", new)
    assert wrong_imports("benchmarks.stress", _COMPAT, package) == {
        "benchmarks/stress/run.py": {"benchmarks.tune", "benchmarks.factors"}
    }


def test_an_import_of_a_module_beside_the_parts_is_found(tmp_path: Path) -> None:
    package = planted(tmp_path / "sensorbench", {"paths.py": "from sensorbench.lab import up\n"})
    assert wrong_imports("paths", COMMON, package) == {"paths.py": {"lab"}}


def test_a_new_part_without_a_place_is_found(tmp_path: Path) -> None:
    new = {"lab/__init__.py": "", "magic/__init__.py": "", "benchmarks/new/run.py": "", "data/words.toml": ""}
    assert parts_of(planted(tmp_path / "sensorbench", new)) == {"lab", "magic", "benchmarks.new"}


# Public interfaces: what others may use of a package is listed in its `__init__.pyi`.


def packages_with_interface(package: Path) -> set[str]:
    """The packages inside the layers from `runner` to `claims`, each of which lists what others may use."""
    layers = ("runner", "verification", "lifecycle", "compat", "benchmarks", "claims")
    files = (file for layer in layers for file in (package / layer).rglob("__init__.pyi"))
    return {".".join(file.parent.relative_to(package).parts) for file in files}


def imports_past_interfaces(package: Path) -> dict[str, set[str]]:
    """The files that import from a module of a package which has an interface, instead of from the package; and which modules."""
    guarded = packages_with_interface(package)
    found: dict[str, set[str]] = {}
    for file in package.rglob("*.py"):
        inside = ".".join(file.relative_to(package).with_suffix("").parts)
        for node in imports_in(file):
            module = (node.module or "").removeprefix(f"{package.name}.") if isinstance(node, ast.ImportFrom) else ""
            past = {of for of in guarded if module.startswith(f"{of}.") and not inside.startswith(f"{of}.")}
            if past:
                found.setdefault(str(file.relative_to(package)), set()).add(module)
    return found


def test_packages_are_used_by_their_interfaces() -> None:
    assert {"runner", "verification", "lifecycle", "benchmarks.stress"} <= packages_with_interface(PACKAGE)
    assert imports_past_interfaces(PACKAGE) == {}


def unused_of_interfaces(package: Path) -> dict[str, set[str]]:
    """The names that packages list for others, and no module of another package uses."""
    unused: dict[str, set[str]] = {}
    imports = {file: imports_in(file) for file in package.rglob("*.py")}
    for guarded in sorted(packages_with_interface(package)):
        folder, dotted = package.joinpath(*guarded.split(".")), f"{package.name}.{guarded}"
        outside = [node for file, nodes in imports.items() if folder not in file.parents for node in nodes]
        used = {
            name.name for node in outside if isinstance(node, ast.ImportFrom) and node.module == dotted for name in node.names
        }
        listed = ast.parse((folder / "__init__.pyi").read_text(encoding="utf-8")).body
        names = {name.name for node in listed if isinstance(node, ast.ImportFrom) for name in node.names}
        if names - used:
            unused[guarded] = names - used
    return unused


def test_interfaces_list_what_others_use() -> None:
    assert unused_of_interfaces(PACKAGE) == {}


def test_a_name_that_nobody_uses_is_found(tmp_path: Path) -> None:
    files = {
        "runner/__init__.pyi": "from .load import load, unload",
        "runner/run.py": "from sensorbench.runner import unload",
        "app/run.py": "from sensorbench.runner import load",
    }
    assert unused_of_interfaces(planted(tmp_path / "sensorbench", files)) == {"runner": {"unload"}}


def test_an_import_past_an_interface_is_found(tmp_path: Path) -> None:
    files = {
        "runner/__init__.pyi": "",
        "runner/run.py": "from sensorbench.runner.load import load",
        "app/right.py": "from sensorbench.runner import load",
        "app/wrong.py": "def late() -> None:\n    from sensorbench.runner.load import load",
    }
    assert imports_past_interfaces(planted(tmp_path / "sensorbench", files)) == {"app/wrong.py": {"runner.load"}}


# Names of databases.


def database_names() -> set[str]:
    """What databases are called: by drivers, and by what the lab starts."""
    drivers = {crate.name.removeprefix("sensorbench-driver-") for crate in CRATES.glob("sensorbench-driver-*")}
    # The crate of what speaks HTTP has the name of no database; those that the lab starts are named by the lab. DuckDB is not only a target: it is
    # where datasets are made and answers are computed, and texts of the whole package name it as that.
    return (drivers - {"http", "duckdb"}) | set(LAB_DATABASES) | {database.partition("+")[0] for database in LAB_DATABASES}


def texts(source: str) -> Iterator[str]:
    """The string literals of a source, f-strings and parts that are written one after the other among them; no docstrings, no comments.

    Python's parser finds them: what a pattern takes for a comment may begin within a string.
    """
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def named_databases(source: str, names: set[str]) -> set[str]:
    """The databases that a source names in its texts, as words of their own, in capitals or not."""
    word = re.compile(rf"(?<![a-z])({'|'.join(map(re.escape, sorted(names)))})(?![a-z])", re.IGNORECASE)
    return {name.lower() for text in texts(source) for name in word.findall(text)}


def files_that_name_databases(package: Path, names: set[str]) -> dict[str, set[str]]:
    """The modules of a package, lab/databases left out, whose texts name databases."""
    files = sorted(set(package.rglob("*.py")) - set((package / "lab" / "databases").rglob("*.py")))
    named = {str(file.relative_to(package)): named_databases(file.read_text(encoding="utf-8"), names) for file in files}
    return {file: found for file, found in named.items() if found}


def test_only_the_registration_and_the_schemas_know_the_names_of_databases() -> None:
    found = files_that_name_databases(PACKAGE, database_names())
    unexpected = {file: names for file, names in found.items() if file not in MAY_NAME_DATABASES}
    assert not unexpected, f"move these names into data, the lab, the registry or the catalog: {unexpected}"
    assert not set(MAY_NAME_DATABASES) - set(found), "these name no database any more: take them off the list"


@pytest.mark.parametrize(
    "source",
    [
        "NAME = 'cassandra'",
        "NAME = 'a # in a string'\nOTHER = 'cassandra'",
        "NAME = 'a # in a string', 'cassandra'",
        "# a comment with a ' in it\nOTHER = 'cassandra'",
        "def f(x: str) -> str:\n    return f'{x} of cassandra://{x}'",
        "def f(x: str) -> str:\n    return f\"{'cassandra' if x else ''}\"",
        "NAME = 'cassan' 'dra'",
        "NAME = {'key': r'to Cassandra, for example'}",
        'NAME = """over lines\n# cassandra\n"""',
        "NAME = 'cassandra_nodes'",
    ],
)
def test_a_name_of_a_database_in_a_text_is_found(tmp_path: Path, source: str) -> None:
    package = planted(tmp_path, {"report/page.py": source, "lab/databases/cassandra.py": source, "lab/lab.py": "NAME = 'lab'"})
    assert files_that_name_databases(package, {"cassandra", "redis"}) == {"report/page.py": {"cassandra"}}


@pytest.mark.parametrize(
    "source",
    [
        "# cassandra",
        '"""As cassandra does."""',
        'def f() -> None:\n    """As cassandra does."""',
        "class C:\n    x: int\n    'What cassandra has.'",
        "cassandra = 1",
        "NAME = 'cassandras'",
    ],
)
def test_comments_docstrings_and_other_words_name_no_database(source: str) -> None:
    assert named_databases(source, {"cassandra"}) == set()


# Docstrings.


def undocumented(source: str) -> list[str]:
    """The public classes, functions and methods of a source that do not say what they are."""
    return [name for name, node in _public(ast.parse(source).body) if not ast.get_docstring(node)]


Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _public(body: Iterable[ast.AST], within: str = "") -> Iterator[tuple[str, Documented]]:
    """What others can call by name, wherever a condition defines it; not what is local to a function."""
    for node in body:
        if isinstance(node, Documented):
            if node.name.startswith("_"):
                continue
            yield within + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from _public(node.body, f"{within}{node.name}.")
        else:
            yield from _public(ast.iter_child_nodes(node), within)


def test_public_functions_and_classes_say_what_they_are() -> None:
    found = {str(file.relative_to(PACKAGE)): undocumented(file.read_text(encoding="utf-8")) for file in PACKAGE.rglob("*.py")}
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("class Planted:\n    x = 1", "Planted"),
        ("def planted(): pass", "planted"),
        ("async def planted(): pass", "planted"),
        ("class A:\n    'Says what it is.'\n    def planted(self): pass", "A.planted"),
        ("class A:\n    'Says what it is.'\n    @property\n    def planted(self): pass", "A.planted"),
        ("class A:\n    'Says what it is.'\n    class Planted: pass", "A.Planted"),
        ("if 1:\n    def planted(): pass", "planted"),
        ("X = '#'\ndef planted():\n    # a comment is not a docstring\n    pass", "planted"),
    ],
)
def test_what_does_not_say_what_it_is_is_found(source: str, name: str) -> None:
    assert undocumented(source) == [name]


def test_what_is_private_or_local_need_not_say_what_it_is() -> None:
    assert (
        undocumented("def _private(): pass\nclass _P:\n    def m(self): pass\ndef f():\n    'Says.'\n    def local(): pass") == []
    )


# Documents.


def missing_links(document: Path) -> list[str]:
    """The files and anchors that a document links to and that are not there."""
    found = re.findall(r"\]\(([^)\s]+)[^)]*\)", document.read_text(encoding="utf-8"))
    return [link for link in found if not _leads_somewhere(document, link)]


def _leads_somewhere(document: Path, link: str) -> bool:
    if re.match(r"https?://", link):
        return True
    path, _, anchor = link.partition("#")
    file = document.parent / path if path else document
    return file.exists() and (not anchor or anchor in anchors(file.read_text(encoding="utf-8")))


def anchors(text: str) -> set[str]:
    """What headings of a document are called in links, as GitHub makes it of them."""
    headings = re.findall(r"^#+ +(.*?) *$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def documents() -> list[Path]:
    """The documents of the project."""
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def test_documents_name_files_that_there_are() -> None:
    assert len(documents()) >= 8
    missing = {str(document.relative_to(ROOT)): missing_links(document) for document in documents()}
    assert {document: links for document, links in missing.items() if links} == {}


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    text = (
        "[a](there.md) [b](missing.md) [c](there.md#a-heading) [d](there.md#no-heading) [e](#here) [f](#nowhere) "
        '![g](missing.png "title") [h](https://example.org/x)\n\n# Here\n'
    )
    folder = planted(tmp_path, {"page.md": text, "there.md": "## A heading\n\n```\n# no heading\n```\n"})
    assert missing_links(folder / "page.md") == ["missing.md", "there.md#no-heading", "#nowhere", "missing.png"]


def test_printed_files_are_those_of_the_example() -> None:
    example = ROOT / "docs" / "example"
    for document, file in [("how-to/experiments.md", "experiment.toml"), ("how-to/own-data.md", "water.toml")]:
        printed = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / document).read_text(encoding="utf-8"), flags=re.DOTALL)[0]
        assert tomllib.loads(printed) == tomllib.loads((example / file).read_text(encoding="utf-8")), document


def manifests_with_a_process(of: type = ManifestHead) -> set[str]:
    """The names of all manifests that say who writes them."""
    below = {name for each in of.__subclasses__() for name in manifests_with_a_process(each)}
    return below | {of.__name__.partition("[")[0]}


def files_that_begin_results(package: Path = PACKAGE) -> set[str]:
    """The files that make a manifest by the name of its class, or ask for the process that writes results, under whatever name."""
    classes = manifests_with_a_process()
    return {
        file.relative_to(package).as_posix()
        for file in package.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        # The lab has a process of its own kind, of a server; a pilot names the one that works in its folder, and what a cluster of a user's was
        # before the one that has it: neither is a result.
        if (
            isinstance(node, ast.Attribute)
            and node.attr == "this"
            and file.parent != package / "lab"
            and file not in {package / "runner" / "pilots.py", package / "runner" / "user_cluster" / "saved.py"}
        )
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in classes)
    }


def test_manifests_begin_at_one_place_each() -> None:
    """Those of benchmarks in their lifecycle, those of runs where runs are."""
    assert {"RunManifest", "ComparisonManifest", "YcsbManifest", "SeriesManifest"} <= manifests_with_a_process()
    assert files_that_begin_results() == {"lifecycle/benchmark.py", "runner/run.py"}


@pytest.mark.parametrize(
    "source",
    [
        "manifest = RunManifest(process=Process.this())",
        "this = Process.this\nmanifest = make(process=this())",
        "from sensorbench.results.manifest import Process as P\nkeys = {'process': P.this()}",
        "manifest = SeriesManifest(**keys)",
    ],
)
def test_another_place_that_begins_a_manifest_is_found(tmp_path: Path, source: str) -> None:
    planted(tmp_path, {"sensorbench/compat/run.py": source, "sensorbench/a.py": "manifest: RunManifest = read()"})
    assert files_that_begin_results(tmp_path / "sensorbench") == {"compat/run.py"}
