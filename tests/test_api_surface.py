"""The public surface of the API, pinned in a file that people read: who changes it sees it, and says so in the changelog.

`python -m tests.test_api_surface` writes the file again.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sensorbench as sb

FILE = Path(__file__).parent / "api_surface.txt"


def surface(values: dict[str, Any]) -> str:
    """Functions, and classes with their fields and methods, a line for each; types as the source has them, defaults as values."""
    return "".join(f"{line}\n" for name, value in values.items() for line in _lines(name, value))


def _lines(name: str, value: Any) -> Iterator[str]:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(value))).body
    if isinstance(node, ast.FunctionDef):
        yield _signature(node, value)
    elif isinstance(node, ast.ClassDef):
        yield f"class {name}({', '.join(map(ast.unparse, node.bases))})"
        # What an error does is Python's own.
        if not issubclass(value, Exception):
            yield from (f"    {line}" for member in node.body for line in _member(member, value))


def _member(node: ast.stmt, of: type) -> Iterator[str]:
    match node:
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if not name.startswith("_"):
            yield f"{name}: {ast.unparse(annotation)}"
        case ast.FunctionDef(name="__init__"):
            targets = (
                target for each in ast.walk(node) if isinstance(each, ast.Assign | ast.AnnAssign) for target in _targets(each)
            )
            yield from sorted({target.attr for target in targets if isinstance(target, ast.Attribute) and target.attr[0] != "_"})
        case ast.FunctionDef(name=name, decorator_list=decorators) if not name.startswith("_"):
            kinds = [ast.unparse(decorator) for decorator in decorators]
            if {"property", "cached_property"} & set(kinds):
                yield f"{name}: {ast.unparse(node.returns) if node.returns else ''}"
            else:
                yield "".join(f"@{kind} " for kind in kinds) + _signature(node, getattr(of, name))


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _signature(node: ast.FunctionDef, function: Callable[..., Any]) -> str:
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    for argument in [*node.args.args, *node.args.kwonlyargs]:
        if argument.arg in defaults and argument.annotation is not None:
            argument.annotation = ast.Name(f"{ast.unparse(argument.annotation)} = {defaults[argument.arg]!r}")
    node.args.defaults, node.args.kw_defaults = [], [None] * len(node.args.kwonlyargs)
    return f"{node.name}({ast.unparse(node.args)}) -> {ast.unparse(node.returns) if node.returns else ''}"


PUBLIC = {name: getattr(sb, name) for name in sb.__all__}


def test_the_surface_is_the_pinned_one() -> None:
    found = surface(PUBLIC)
    assert found == FILE.read_text(encoding="utf-8"), (
        "the public API changed: write tests/api_surface.txt again (python -m tests.test_api_surface), and say in CHANGELOG.md what changed"
    )


class Planted:
    """A class with a method, as it was."""

    def read(self, folder: str) -> int:
        """Reads."""
        return len(folder)


class Changed:
    """The same with another argument."""

    def read(self, folder: str, *, rows: int = 3) -> int:
        """Reads."""
        return len(folder) + rows


def test_another_argument_changes_the_surface() -> None:
    assert surface({"Planted": Planted}) == "class Planted()\n    read(self, folder: str) -> int\n"
    assert surface({"Planted": Changed}) == "class Planted()\n    read(self, folder: str, *, rows: int = 3) -> int\n"


# A default that is an object of a class, which Python shows as it is on this system: PosixPath('file'), or by its place in memory.
OBJECT = re.compile(r" = (?:[A-Za-z_.]+\(|<)")


def planted_read(store: str | Path = Path("file")) -> int:
    """Reads."""
    return len(str(store))


def test_defaults_are_values_that_look_alike_on_every_system() -> None:
    assert [line for line in surface(PUBLIC).splitlines() if OBJECT.search(line)] == []
    assert OBJECT.search(surface({"planted_read": planted_read}))


if __name__ == "__main__":
    FILE.write_text(surface(PUBLIC), encoding="utf-8")
