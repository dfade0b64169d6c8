"""Directions of dependency among crates and their modules.

Each guard is a function of the sources that it reads, so that a test beside it shows that it finds a planted violation.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.planted import planted

ROOT = Path(__file__).parent.parent
CRATES = ROOT / "crates"

MAY_DEPEND = {
    "histogram": set(),
    "workload": set(),
    "dataset": {"workload"},
    "driver": {"dataset", "histogram"},
    "engine": {"driver", "workload", "histogram", "dataset"},
}

# Drivers know the driver interface, and nothing else of the project.
DRIVERS_MAY_DEPEND = {"driver", "dataset"}
# Drivers of one database inside and outside of the process share its statements, types and rows.
SAME_DATABASE = {"sensorbench-driver-chdb": {"driver-http"}}


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
    # An entry that no longer applies fails, too.
    assert wrong_dependencies(drivers, DRIVERS_MAY_DEPEND) == SAME_DATABASE


@pytest.mark.parametrize("table", ["dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"])
def test_a_dependency_against_the_direction_is_found(tmp_path: Path, table: str) -> None:
    allowed = "" if table == "dependencies" else "[dependencies]\nsensorbench-driver.workspace = true\n"
    text = f'{allowed}[{table}]\nsensorbench-dataset.workspace = true\nsensorbench-engine.workspace = true\nserde = "1"\n'
    crates = planted(tmp_path, {"sensorbench-driver-new/Cargo.toml": text})
    assert wrong_dependencies(crates.iterdir(), DRIVERS_MAY_DEPEND) == {"sensorbench-driver-new": {"engine"}}


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
