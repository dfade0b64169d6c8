"""The lint of the language that users read finds what it is for. `make lint` runs it over all texts."""

import re

import pytest
from docsite.language import (
    BANNED,
    GOAL_WORDS,
    MAX_WORDS,
    Text,
    definitions,
    documents,
    findings,
    help_texts,
    is_prose,
    messages,
    paragraphs_of,
    sentences,
    strings_of,
    templates,
    too_long,
    words,
)

LONG = " ".join(["word"] * (MAX_WORDS + 1)) + "."


def wrong(markdown: str) -> list[str]:
    return [finding.what for finding in findings(list(paragraphs_of(markdown, "page.md")))]


@pytest.mark.parametrize(
    "phrase",
    [
        "1,000 operations a second",
        "latencies that do not lie",
        "How sure that is",
        "Variants take turns.",
        "the nodes were asked each second",
        "what nobody knows",
        "The file is no bundle.",
    ],
)
def test_banned_words_are_found_in_text_tables_and_lists(phrase: str) -> None:
    for markdown in (f"A text: {phrase}", f"- {phrase}", f"| a | {phrase} |", f"> {phrase}"):
        assert len(wrong(markdown)) == 1, markdown


def test_what_is_not_there_may_be_no_bundle() -> None:
    assert wrong("There is no bundle, in which is no file.") == []


def test_every_banned_word_has_a_better_one_that_is_not_banned() -> None:
    for pattern, better in BANNED.items():
        assert not any(re.search(other, better) for other in BANNED), pattern


def test_a_long_sentence_is_found_where_it_is() -> None:
    (found,) = findings(list(paragraphs_of(f"# Title\n\nShort.\n{LONG}\n", "page.md")))
    assert found.place == "page.md, line 3"
    assert f"{MAX_WORDS + 1} words" in found.what
    assert wrong(LONG.replace("word word.", "word.")) == []


def test_too_many_long_sentences_are_found_together() -> None:
    long, short = Text("page.md, line 7", " ".join(["word"] * (GOAL_WORDS + 1)) + "."), Text("page.md, line 9", "Short.")
    assert too_long("documents", [long, *[short] * 49]) == []
    (found,) = too_long("documents", [long, *[short] * 48])
    assert "page.md, line 7" in found.what
    assert "line 9" not in found.what


def test_a_hash_is_found_and_a_number_or_word_is_not() -> None:
    assert len(wrong("The paper (`3f2a9bc41d5e6f708192`).")) == 1
    assert wrong("The numbers 12345678901234567890 and effaceddecade, 0x1f.") == []


def test_code_comments_and_addresses_are_no_text() -> None:
    assert wrong(f"```sh\necho {LONG} operations a second\n```\n\n<!-- {LONG} -->\nSee `operations a second`.\n") == []
    assert words(sentences("See [the page](https://x.example/a-b-c-d) of `a b c` and IOT-14.")[0]) == 6


def test_the_texts_of_users_are_all_looked_at() -> None:
    assert {text.place.partition(",")[0] for text in documents()} >= {"README.md", "docs/index.md", "docs/reference/results.md"}
    assert any(isinstance(text, Text) and "sensorbench run" in text.place for text in help_texts())
    assert len(help_texts()) > 300
    assert len(templates()) > 10
    assert len(messages()) > 1500
    assert len(definitions()) > 500


def test_strings_of_a_source_are_looked_at_and_docstrings_are_not() -> None:
    source = (
        '"""What a module is for."""\n'
        'TITLE = "what the report is called"\n'
        "def check(count):\n"
        '    """Raises ValueError for too few."""\n'
        '    raise ValueError(f"{count} rows: expected at least {count + 1} operations a second")\n'
    )
    found = dict(strings_of(source))
    assert found == {2: "what the report is called", 5: "VALUE rows: expected at least VALUE operations a second"}
    assert len(findings([Text("file.py, line 5", found[5])])) == 1


@pytest.mark.parametrize(
    "code",
    [
        "SELECT the rows of a table",
        "CREATE TABLE rows AS a b c",
        "(?:this|that) is not a text",
        "GET SET MGET DEL EXISTS",
        "<p>a b c d</p>",
        "too few words",
    ],
)
def test_code_in_strings_is_no_prose(code: str) -> None:
    assert not is_prose(code)
    assert is_prose("--scale: expected at least 0.1 of the rows")
