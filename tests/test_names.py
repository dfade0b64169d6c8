"""Names in Rust and Python are those of the glossary: words that were replaced do not come back."""

import io
import re
import tokenize
from pathlib import Path

import pytest

from tests.test_crates import without_texts

ROOT = Path(__file__).parent.parent
CRATES = ROOT / "crates"
PACKAGE = ROOT / "python" / "sensorbench"

# Words that identifiers no longer have, and what stands in their place (a word is a part between underscores or capitals).
OLD_WORDS = {
    "asked": "requested, or what it is",
    "due": "intended start",
    "hopeless": "pruner",
    "least": "min",
    "lifeline": "lost server",
    "misfit": "conversion error",
    "most": "max",
    "stepping": "multi-statement",
    "stretch": "time bucket",
    "stretches": "time buckets",
    "sure": "confidence",
    "surely": "significantly",
    "teller": "progress reporter",
    "told": "described, or what it is",
    "unfit": "conversion error",
    "unstarted": "dropped",
    "usual": "default",
}
# What only one of the languages uses in another sense: Python draws pictures, and asks databases by their tools.
OLD_IN_RUST = OLD_WORDS | {"draw": "parameter source", "draws": "parameter sources"}
OLD_IN_PYTHON = OLD_WORDS | {"draws": "parameter sources", "wish": "options", "troubles": "faults"}
# Phrases that mean what they say.
PHRASES = re.compile(r"(?i)at_?(least|most)")
# Names of tests are sentences, and a word may be meant as a word there.
A_TEST = re.compile(r"#\[test\]\s*(?:async )?fn \w+")
# The option --wish of the command line.
EXEMPT = {"wish": {"cli/choose.py"}}


def old_words(name: str, old: dict[str, str]) -> list[str]:
    """What stands in place of each old word of an identifier."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z]+", PHRASES.sub("", name))
    return [old[word.lower()] for word in words if word.lower() in old]


def old_names_in_rust(source: str) -> dict[str, str]:
    """Identifiers of a Rust source that have an old word, and what would be a better one."""
    names = set(re.findall(r"(?<!')\b[A-Za-z_]\w*", A_TEST.sub("", without_texts(source))))
    return {name: better[0] for name in names if (better := old_words(name, OLD_IN_RUST))}


def old_names_in_python(source: str) -> dict[str, str]:
    """Identifiers of a Python source that have an old word, or are the word `one`, and what would be a better one."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    names = {token.string for token in tokens if token.type == tokenize.NAME}
    found = {name: better[0] for name in names if (better := old_words(name, OLD_IN_PYTHON))}
    return found | ({"one": "the element's own name"} if "one" in names else {})


@pytest.mark.parametrize("crate", sorted(crate.name for crate in CRATES.glob("sensorbench-*")))
def test_names_in_rust_are_those_of_the_field(crate: str) -> None:
    sources = [file for file in (CRATES / crate).rglob("*.rs") if "bindings" not in file.parts]
    found = {str(file.relative_to(CRATES)): old_names_in_rust(file.read_text(encoding="utf-8")) for file in sources}
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize("package", sorted({file.relative_to(PACKAGE).parts[0] for file in PACKAGE.rglob("*.py")}))
def test_names_in_python_are_those_of_the_field(package: str) -> None:
    place = PACKAGE / package
    files = [place] if place.is_file() else [*place.rglob("*.py"), *place.rglob("*.pyi")]
    found = {
        (name := file.relative_to(PACKAGE).as_posix()): {
            identifier: better
            for identifier, better in old_names_in_python(file.read_text(encoding="utf-8")).items()
            if name not in EXEMPT.get(identifier, ())
        }
        for file in files
    }
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
    assert set(old_names_in_rust(source)) == {name}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("due_ns = 1", "due_ns"),
        ("class WhatWasAsked: ...", "WhatWasAsked"),
        ("LEAST_RUNS = 3", "LEAST_RUNS"),
        ("[one for one in range(3)]", "one"),
        ("def rate(*, most): ...", "most"),
    ],
)
def test_an_old_name_in_python_is_found(source: str, name: str) -> None:
    assert set(old_names_in_python(source)) == {name}


def test_texts_comments_and_other_words_have_no_old_names() -> None:
    source = '// the most\nlet mostly = "due"; json!({"draw": 0, "unstarted": overdue}); #[test]\nfn wrong_urls_are_told() {}'
    assert old_names_in_rust(source) == {}
    assert old_names_in_python('# the most\nat_most = "one is told"; draw(at_least_one, due_date := None)') == {
        "due_date": "intended start"
    }
