"""What is known of data when it is handed on: signatures name types, and not dictionaries of anything.

Each guard is a function of the sources that it reads, so that a test beside it shows that it finds a planted violation.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.planted import planted

PACKAGE = Path(__file__).parent.parent / "python" / "sensorbench"

FREE = "keys of what it holds are a user's or a database's own"
PARSES = "reads JSON, of which it finds out what it is"
# Modules that may have dictionaries of anything in public signatures, and why. An entry that no longer applies fails the test.
MAY_BE_UNTYPED = {
    "catalog/serialize.py": "what `--json` prints of the catalog",
    "cli/output.py": "what `--json` prints of claims",
    "dataset/parquet.py": "options of a library's function",
    "lab/databases/hbase_admin.py": PARSES,
    "toml_file.py": PARSES,
    "report/catalog.py": "hands on what `--json` prints of the catalog to the template of its page",
    "report/findings.py": "shows examples of histories, of which each kind of finding has others",
    "results/format_1.py": "reads manifests of format 1, in which each kind had keys of its own",
    "results/json_schemas.py": "JSON Schemas, as pydantic makes them",
    "results/manifest.py": FREE,
    "results/page.py": "a Vega-Lite specification, as altair makes it",
    "results/stored.py": PARSES,
    "results/summary/comparison.py": FREE,
    "results/summary/envelope.py": "the first keys of a model, which are given to it together",
    "results/summary/guarantees.py": "examples of histories, of which each kind of finding has others",
    "verification/answers.py": FREE,
}


def untyped(source: str) -> list[str]:
    """The public functions and methods of a source that take or return dictionaries of anything, its public fields and aliases that are some."""
    return list(_untyped(ast.parse(source).body, ""))


def _untyped(body: list[ast.stmt], within: str) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not _is_private(node.name):
                arguments = ast.walk(node.args)
                annotations = [node.returns, *(each.annotation for each in arguments if isinstance(each, ast.arg))]
                if any(map(_is_untyped, annotations)):
                    yield within + node.name
            case ast.ClassDef() if not _is_private(node.name):
                yield from _untyped(node.body, f"{within}{node.name}.")
            case ast.AnnAssign(target=ast.Name(id=name)) if not _is_private(name):
                if _is_untyped(node.annotation) or _names_untyped(node.value):
                    yield within + name
            case ast.Assign(targets=[ast.Name(id=name)]) if not _is_private(name) and _names_untyped(node.value):
                yield within + name


def _is_private(name: str) -> bool:
    return name.startswith("_")


def _is_untyped(annotation: ast.expr | None) -> bool:
    """Whether an annotation names a dictionary of anything, also within another type, or as text."""
    texts = [node.value for node in ast.walk(annotation) if isinstance(node, ast.Constant)] if annotation else []
    quoted = [ast.parse(text, mode="eval").body for text in texts if isinstance(text, str) and "dict[" in text]
    return any(map(_names_untyped, [annotation, *quoted]))


def _names_untyped(expression: ast.expr | None) -> bool:
    subscripts = [node for node in ast.walk(expression) if isinstance(node, ast.Subscript)] if expression else []
    return any(ast.unparse(node) == "dict[str, Any]" for node in subscripts)


def untyped_modules(package: Path = PACKAGE) -> dict[str, list[str]]:
    """The modules of the package with what is untyped in them."""
    files = sorted(package.rglob("*.py"))
    assert files
    found = {file.relative_to(package).as_posix(): untyped(file.read_text(encoding="utf-8")) for file in files}
    return {file: names for file, names in found.items() if names}


def test_signatures_name_types() -> None:
    found = untyped_modules()
    assert {file: names for file, names in found.items() if file not in MAY_BE_UNTYPED} == {}
    assert sorted(MAY_BE_UNTYPED.keys() - found.keys()) == [], "these need no exception any more"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("def planted(x: dict[str, Any]): pass", "planted"),
        ("def planted(*, x: list[dict[str, Any]] | None = None): pass", "planted"),
        ("def planted(*x: dict[str, Any]): pass", "planted"),
        ("async def planted() -> dict[str, dict[str, Any]]: pass", "planted"),
        ("def planted() -> 'dict[str, Any]': pass", "planted"),
        ("class A:\n    def planted(self, x: Callable[[int], dict[str, Any]]): pass", "A.planted"),
        ("class A:\n    planted: dict[str, Any] = {}", "A.planted"),
        ("Planted: TypeAlias = dict[str, Any]", "Planted"),
        ("Planted = list[dict[str, Any]]", "Planted"),
    ],
)
def test_a_dictionary_of_anything_is_found(source: str, name: str) -> None:
    assert untyped(source) == [name]


@pytest.mark.parametrize(
    "source",
    [
        "def _private(x: dict[str, Any]): pass",
        "class _Private:\n    x: dict[str, Any]",
        "def f(x: dict[str, int], y: Any): z: dict[str, Any] = {}",
        "x = 'dict[str, Any] in a text is not a type'",
    ],
)
def test_what_is_private_local_or_typed_is_none(source: str) -> None:
    assert untyped(source) == []


def test_a_planted_module_is_found(tmp_path: Path) -> None:
    package = planted(tmp_path, {"runner/planted.py": "def planted(x: dict[str, Any]): pass", "results/sound.py": "x: int = 1"})
    assert untyped_modules(package) == {"runner/planted.py": ["planted"]}
