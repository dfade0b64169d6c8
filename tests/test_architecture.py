"""The directions of dependency that ARCHITECTURE.md states, and what the sources may name.

Each guard is a function of the sources that it reads, so that a test beside it shows that it finds a planted violation.
"""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from sensorbench.lab import LAB_DATABASES

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "sensorbench"
CRATES = ROOT / "crates"

COMMON = {"errors", "interrupts", "options", "places", "progress", "toml_file", "_engine", "__version__"}
# What measures one workload on one target, and what that needs.
_BASE = {"dataset", "schemas", "lab", "results", "analysis"} | COMMON
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
    "results": {"errors", "interrupts", "places", "_engine", "__version__"},
    "dataset": COMMON,
    "schemas": COMMON,
    "lab": COMMON,
    "spark": {"lab", "dataset"} | COMMON,
    "report": {"analysis", "results", "places"},
    "runner": _BASE,
    "verification": _RUNNER,
    "lifecycle": _VERIFICATION,
    "compat": _LIFECYCLE,
    "benchmarks": {"benchmarks.selfbench"},
    "benchmarks.selfbench": _RUNNER,
    "benchmarks.comparison": _COMPAT,
    "benchmarks.stress": _COMPAT,
    "benchmarks.tune": _STRESS,
    "benchmarks.factors": {"benchmarks.tune"} | _STRESS,
    "benchmarks.elasticity": _STRESS,
    "benchmarks.mapreduce": {"spark"} | _COMPAT,
    "claims": _BENCHMARKS,
    "studies": {"claims"} | _BENCHMARKS,
    "advisor": {"benchmarks.comparison"} | _RUNNER,
    "catalog": {"advisor", "benchmarks.comparison", "benchmarks.elasticity"} | _RUNNER,
    "app": {"claims", "studies", "report"} | _BENCHMARKS,
    "cli": {"app", "claims", "studies", "advisor", "catalog", "report", "benchmarks.selfbench"} | _BENCHMARKS,
}
MAY_DEPEND = {
    "histogram": set(),
    "workload": set(),
    "dataset": {"workload"},
    "driver": {"dataset", "histogram"},
    "engine": {"driver", "workload", "histogram", "dataset"},
}


# Modules beside the parts import no part; the command line alone is started by `python -m`.
MODULES_MAY_IMPORT = {"__main__": {"cli"}}
# Drivers know the driver interface, and nothing else of the project.
DRIVERS_MAY_DEPEND = {"driver", "dataset"}

OF_A_STUDY = "one published study's claims and tables, which name what it measured"
URLS = "one example of a URL of each form, for help and messages: drivers do not say theirs"
# Modules outside of lab/databases whose texts name databases, and why. An entry that no longer applies fails the test.
MAY_NAME_DATABASES = {
    "analysis/promises.py": "citations of the documents that make a promise",
    "cli/cassandra_stress.py": "the tool of one database",
    "cli/main.py": "the command that is that tool's",
    "runner/settings.py": URLS,
    "lab/odbc.py": "the lab's ODBC drivers, which are one for each database",
    "places.py": "the name of a file that the tool of one database writes",
    "compat/cassandra_stress/plan.py": "the tool of one database",
    "compat/cassandra_stress/run.py": "the tool of one database",
    "studies/layouts/claims.py": OF_A_STUDY,
    "studies/layouts/sections.py": OF_A_STUDY,
    "studies/log_analytics/cells.py": OF_A_STUDY,
    "studies/log_analytics/claims.py": OF_A_STUDY,
    "studies/log_analytics/sections.py": OF_A_STUDY,
    "studies/mapreduce/claims.py": OF_A_STUDY,
    "studies/sensor_schemas/sections.py": OF_A_STUDY,
}


# Directions of imports.


def imported_parts(file: Path, package: Path = PACKAGE) -> set[str]:
    """The parts of the package that a file imports, in any way of writing it."""
    within = [package.name, *file.relative_to(package).parent.parts]
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {_part(name.name) for name in node.names}
        elif isinstance(node, ast.ImportFrom):
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
    package = planted(tmp_path / "sensorbench", {"places.py": "from sensorbench.lab import up\n"})
    assert wrong_imports("places", COMMON, package) == {"places.py": {"lab"}}


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
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            module = (node.module or "").removeprefix(f"{package.name}.") if isinstance(node, ast.ImportFrom) else ""
            past = {of for of in guarded if module.startswith(f"{of}.") and not inside.startswith(f"{of}.")}
            if past:
                found.setdefault(str(file.relative_to(package)), set()).add(module)
    return found


def test_packages_are_used_by_their_interfaces() -> None:
    assert {"runner", "verification", "lifecycle", "benchmarks.stress"} <= packages_with_interface(PACKAGE)
    assert imports_past_interfaces(PACKAGE) == {}


def test_an_import_past_an_interface_is_found(tmp_path: Path) -> None:
    files = {
        "runner/__init__.pyi": "",
        "runner/run.py": "from sensorbench.runner.load import load",
        "app/right.py": "from sensorbench.runner import load",
        "app/wrong.py": "def late() -> None:\n    from sensorbench.runner.load import load",
    }
    assert imports_past_interfaces(planted(tmp_path / "sensorbench", files)) == {"app/wrong.py": {"runner.load"}}


# Directions of crates.


def own_dependencies(crate: Path) -> set[str]:
    """The crates of the project that a crate is built with."""
    manifest = tomllib.loads((crate / "Cargo.toml").read_text(encoding="utf-8"))
    tables = [manifest, *manifest.get("target", {}).values()]
    names = {name for table in tables for key in ("dependencies", "build-dependencies") for name in table.get(key, {})}
    return {name.removeprefix("sensorbench-") for name in names if name.startswith("sensorbench-")}


def wrong_dependencies(crates: Iterable[Path], may_depend: set[str]) -> dict[str, set[str]]:
    """The crates that depend on what they may not, and what that is."""
    wrong = {crate.name: own_dependencies(crate) - may_depend for crate in crates}
    return {crate: names for crate, names in wrong.items() if names}


@pytest.mark.parametrize("name", sorted(MAY_DEPEND))
def test_crates_depend_in_one_direction(name: str) -> None:
    assert wrong_dependencies([CRATES / f"sensorbench-{name}"], MAY_DEPEND[name]) == {}


def test_every_crate_has_its_place() -> None:
    names = {crate.name.removeprefix("sensorbench-") for crate in CRATES.glob("sensorbench-*")}
    assert {name for name in names if not name.startswith("driver-")} == {*MAY_DEPEND, "python"}


def test_drivers_depend_on_the_driver_interface_alone() -> None:
    drivers = list(CRATES.glob("sensorbench-driver-*"))
    assert len(drivers) >= 2
    assert wrong_dependencies(drivers, DRIVERS_MAY_DEPEND) == {}


@pytest.mark.parametrize("table", ["dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"])
def test_a_dependency_against_the_direction_is_found(tmp_path: Path, table: str) -> None:
    allowed = "" if table == "dependencies" else "[dependencies]\nsensorbench-driver.workspace = true\n"
    text = f'{allowed}[{table}]\nsensorbench-dataset.workspace = true\nsensorbench-engine.workspace = true\nserde = "1"\n'
    crates = planted(tmp_path, {"sensorbench-driver-new/Cargo.toml": text})
    assert wrong_dependencies(crates.iterdir(), DRIVERS_MAY_DEPEND) == {"sensorbench-driver-new": {"engine"}}


# Names of databases.


def database_names() -> set[str]:
    """What databases are called: by drivers, and by what the lab starts."""
    drivers = {crate.name.removeprefix("sensorbench-driver-") for crate in CRATES.glob("sensorbench-driver-*")}
    return drivers | set(LAB_DATABASES) | {database.partition("+")[0] for database in LAB_DATABASES}


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
        ("X = '#'\ndef planted():\n    # a comment is no docstring\n    pass", "planted"),
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


def planted(folder: Path, files: dict[str, str]) -> Path:
    """A folder with these files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_printed_files_are_those_of_the_example() -> None:
    example = ROOT / "docs" / "example"
    for document, file in [("experiments.md", "experiment.toml"), ("own-data.md", "water.toml")]:
        printed = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / document).read_text(encoding="utf-8"), flags=re.DOTALL)[0]
        assert tomllib.loads(printed) == tomllib.loads((example / file).read_text(encoding="utf-8")), document


# Circles between the modules of a crate.


def rust_modules(crate: Path) -> dict[str, str]:
    """The sources of a crate's modules by their paths (`odbc::api`; empty for the crate's root), without comments, texts and unit tests."""
    src = crate / "src"
    found: dict[str, str] = {}
    tests: set[str] = set()
    for file in sorted(src.rglob("*.rs")):
        inside = file.relative_to(src).with_suffix("").parts
        path = inside[:-1] if inside[-1] in ("lib", "mod") else inside
        found["::".join(path)] = _code(file.read_text(encoding="utf-8"))
        tests |= {
            "::".join([*path, name]) for name in re.findall(r"#\[cfg\(test\)\]\s*mod (\w+);", file.read_text(encoding="utf-8"))
        }
    return {path: code for path, code in found.items() if not any(f"{path}::".startswith(f"{test}::") for test in tests)}


def _code(source: str) -> str:
    """Rust without its comments, texts and the module of its unit tests, which stands last."""
    return re.split(r"#\[cfg\(test\)\]\s*mod tests \{", without_texts(source))[0]


def without_texts(source: str) -> str:
    """Rust without its comments and texts."""
    raw, text, letter = r'r(#*)".*?"\1', r'"(?:\\.|[^"\\])*"', r"'(?:\\.|[^\\'])'"
    return re.sub(rf"//[^\n]*|{raw}|{text}|{letter}", "", source, flags=re.DOTALL)


def uses_of_modules(module: str, sources: Mapping[str, str]) -> set[str]:
    """The modules of the same crate that a module uses, other than by handing out their names (`pub use`).

    A name that another module hands out is counted for the module that has it.
    """
    handed_out = {path: dict(_handed_out(path, source, sources)) for path, source in sources.items()}
    paths = _paths(module, re.sub(r"\bpub(?:\([^)]*\))? use [^;]*;", "", sources[module]), sources)
    return {_home(path, sources, handed_out) for path in paths} - {module}


def _handed_out(module: str, source: str, sources: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for statement in re.findall(r"\bpub(?:\([^)]*\))? use ([^;]*);", source):
        for path in _paths(module, f"use {statement};", sources):
            yield path[-1], path


def _paths(module: str, code: str, sources: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """The paths within the crate that code names, from the crate's root on."""
    here = tuple(filter(None, module.split("::")))
    uses = r"\buse ([^;]*);"
    for tree in re.findall(uses, code):
        for path in _leaves(tree):
            if (inside := _from_root(path, here, sources)) is not None:
                yield inside
    for path in re.findall(r"(?<![\w:])(?:\w+::)+\w+", re.sub(uses, "", code)):
        if (inside := _from_root(tuple(path.split("::")), here, sources)) is not None:
            yield inside


def _leaves(tree: str) -> Iterator[tuple[str, ...]]:
    """The paths of a `use`, braces written out: `a::{b, c::D as E}` are a::b and a::c::D."""
    head, brace, rest = tree.partition("{")
    prefix = tuple(part for part in head.replace(" ", "").replace("\n", "").split("::") if part)
    if not brace:
        yield tuple(tree.strip().split(" as ")[0].replace(" ", "").split("::"))
        return
    depth, item = 0, ""
    for letter in rest.rpartition("}")[0] + ",":
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if item.strip():
                yield from ((*prefix, *leaf) for leaf in _leaves(item.strip()))
            item = ""
        else:
            item += letter


def _from_root(path: tuple[str, ...], here: tuple[str, ...], sources: Mapping[str, str]) -> tuple[str, ...] | None:
    """A path as it is from the crate's root; None for one that leads out of the crate."""
    if path[0] == "crate":
        return path[1:]
    if path[0] == "self":
        return here + path[1:]
    if path[0] == "super":
        return _from_root(("self", *path[1:]), here[:-1], sources)
    return here + path if "::".join((*here, path[0])) in sources else None


def _home(path: tuple[str, ...], sources: Mapping[str, str], handed_out: Mapping[str, Mapping[str, tuple[str, ...]]]) -> str:
    """The module that has what a path names."""
    deepest = next(depth for depth in range(len(path), -1, -1) if "::".join(path[:depth]) in sources)
    module = "::".join(path[:deepest])
    further = handed_out[module].get(path[deepest]) if deepest < len(path) else None
    return _home(further, sources, handed_out) if further else module


def module_circles(sources: Mapping[str, str]) -> list[set[str]]:
    """Modules of a crate that use one another, directly or by way of others: one set for each circle."""
    uses = {module: uses_of_modules(module, sources) for module in sources}
    reached = {module: _reached(module, uses) for module in sources}
    circles = {frozenset(other for other in reached[module] if module in reached[other]) for module in sources}
    return [set(circle) for circle in sorted(circles, key=sorted) if circle]


def _reached(module: str, uses: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    ahead = [module]
    while ahead:
        fresh = uses[ahead.pop()] - found
        found |= fresh
        ahead.extend(fresh)
    return found


@pytest.mark.parametrize("crate", sorted(crate.name for crate in CRATES.glob("sensorbench-*")))
def test_modules_of_a_crate_use_one_another_in_one_direction(crate: str) -> None:
    sources = rust_modules(CRATES / crate)
    assert sources
    assert module_circles(sources) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("use crate::b::B;", "use crate::a::A;"),
        ("use crate::{c::C, b::{self, B as Other}};", "use super::a::A;"),
        ("fn f() -> crate::b::B { crate::b::B }", "use crate::{\n    a::{A, X},\n};"),
        ("use crate::c::C;", "use crate::A;"),
    ],
)
def test_a_circle_between_modules_is_found(tmp_path: Path, first: str, second: str) -> None:
    files = {"lib.rs": "mod a;\nmod b;\nmod c;\npub use a::A;", "a.rs": first, "b.rs": second, "c.rs": "use crate::b::B;"}
    crate = planted(tmp_path, {f"src/{name}": text for name, text in files.items()})
    found = module_circles(rust_modules(crate))
    assert [circle & {"a", "b"} for circle in found] == [{"a", "b"}]


def test_a_circle_with_the_root_or_within_a_folder_is_found(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\nuse a::A;\npub struct Root(A);",
        "a.rs": "mod b;\nuse crate::Root;",
        "a/b.rs": "",
        "x/mod.rs": "use self::y::Y;",
    }
    files["x/y.rs"] = "use super::X;"
    crate = planted(tmp_path, {f"src/{name}": text for name, text in files.items()})
    assert module_circles(rust_modules(crate)) == [{"", "a"}, {"x", "x::y"}]


def test_handing_out_names_comments_texts_and_tests_make_no_circle(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\nmod b;\n#[cfg(test)]\nmod fake;\npub use a::A;\npub struct Error;",
        "a.rs": 'use crate::Error;\n// use crate::b::B;\nconst T: &str = "use crate::b::B;";\n#[cfg(test)]\nmod tests {\nuse crate::b::B;\n}',
        "b.rs": "use crate::A;\nuse std::a::A;",
        "fake.rs": "mod real;\nuse self::real::Real;",
        "fake/real.rs": "use super::Fake;",
    }
    crate = planted(tmp_path, {f"src/{name}": text for name, text in files.items()})
    assert module_circles(rust_modules(crate)) == []


# Names in Rust.

# Words that identifiers no longer have, and what stands in their place (a word is a part between underscores or capitals).
OLD_WORDS = {
    "asked": "requested, or what it is",
    "draw": "parameter source",
    "draws": "parameter sources",
    "due": "intended start",
    "least": "min",
    "misfit": "conversion error",
    "most": "max",
    "stepping": "multi-statement",
    "stretch": "time bucket",
    "stretches": "time buckets",
    "told": "described, or what it is",
    "unfit": "conversion error",
    "unstarted": "dropped",
    "usual": "default",
}
# Names of tests are sentences, and a word may be meant as a word there.
A_TEST = re.compile(r"#\[test\]\s*(?:async )?fn \w+")


def old_names(source: str) -> dict[str, str]:
    """Identifiers of a Rust source that have an old word, and what would be a better one."""
    code = A_TEST.sub("", without_texts(source))
    found = {}
    for name in set(re.findall(r"(?<!')\b[A-Za-z_]\w*", code)):
        words = {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z]+", name)}
        if old := sorted(words & OLD_WORDS.keys()):
            found[name] = OLD_WORDS[old[0]]
    return found


@pytest.mark.parametrize("crate", sorted(crate.name for crate in CRATES.glob("sensorbench-*")))
def test_names_in_rust_are_those_of_the_field(crate: str) -> None:
    sources = [file for file in (CRATES / crate).rglob("*.rs") if "bindings" not in file.parts]
    found = {str(file.relative_to(CRATES)): old_names(file.read_text(encoding="utf-8")) for file in sources}
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("let due_ns = 1;", "due_ns"),
        ("struct PlannedDraw;", "PlannedDraw"),
        ("const MOST_ROWS: usize = 1;", "MOST_ROWS"),
        ("fn what_was_asked() {}", "what_was_asked"),
        ("#[test]\nfn the_most_is_told() { let told = 1; }", "told"),
    ],
)
def test_an_old_name_in_rust_is_found(source: str, name: str) -> None:
    assert set(old_names(source)) == {name}


def test_texts_comments_and_other_words_have_no_old_names() -> None:
    source = '// the most\nlet mostly = "due"; json!({"draw": 0, "unstarted": overdue}); #[test]\nfn wrong_urls_are_told() {}'
    assert old_names(source) == {}
