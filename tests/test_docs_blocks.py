"""Every shell block of the documentation is executed, or says what it needs; outputs that pages show are what is printed."""

from pathlib import Path

import pytest
from docsite.outputs import PAGES
from docsite.shell_blocks import ROOT, Block, Printed, blocks_of, executed, matched, problem, refreshed, shape

WITH_BLOCKS = [page for page in PAGES if any(not block.needs for block in blocks_of(page.read_text(encoding="utf-8")))]


def problems(text: str, folder: Path) -> list[str]:
    """What is wrong with the blocks of a page that need nothing."""
    found = [wrong for block, printed in executed(blocks_of(text), folder) if (wrong := problem(block, printed))]
    return found


@pytest.mark.long("commands run as pages print them, with their durations")
@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_of_a_page_do_what_it_shows(page: Path, tmp_path: Path) -> None:
    assert problems(page.read_text(encoding="utf-8"), tmp_path) == []


PAGE = """# A page

```sh
echo one > file
```

```console
$ cat file
one
$ echo 17 ms \\
    and more
12.5 ms and more
```

<!-- needs: a mainframe -->
```sh
this-program-is-nowhere
```

<!-- exits: 3 -->
```sh
echo 'lines: 4'; echo 'rows: 5'; exit 3
```

```text
…
rows: 9
```

```python
no shell
```
"""


def test_blocks_are_found_with_needs_exit_codes_and_outputs() -> None:
    script, session, needing, failing = blocks_of(PAGE)
    assert [len(block.commands) for block in (script, session, needing, failing)] == [1, 2, 1, 1]
    assert session.commands[1].script == "echo 17 ms \\\n    and more"
    assert (needing.needs, failing.exit_code) == ({"a mainframe"}, 3)
    assert failing.commands[0].shown == ("…", "rows: 9")


def test_a_page_that_says_what_is_true_has_no_problem(tmp_path: Path) -> None:
    assert problems(PAGE, tmp_path) == []


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [
        ("one\n$ echo", "two\n$ echo", "'two'"),
        ("<!-- needs: a mainframe -->\n", "", "exit code 127"),
        ("<!-- exits: 3 -->\n", "", "exit code 3"),
        ("rows: 9", "columns: 9", "'columns: 9'"),
        ("12.5 ms and more", "12.5 ms", "'12.5 ms'"),
    ],
)
def test_a_page_that_is_wrong_is_found(tmp_path: Path, right: str, wrong: str, expected: str) -> None:
    assert right in PAGE
    (found,) = problems(PAGE.replace(right, wrong, 1), tmp_path)
    assert expected in found


def test_outputs_are_written_again_with_the_numbers_of_today(tmp_path: Path) -> None:
    printed = [each for _, each in executed(blocks_of(PAGE), tmp_path)]
    assert refreshed(PAGE, printed) == PAGE.replace("12.5 ms and more", "17 ms and more").replace("rows: 9", "rows: 5")
    stale = PAGE.replace("…\nrows: 9", "something else")
    (tmp_path / "again").mkdir()
    printed = [each for _, each in executed(blocks_of(stale), tmp_path / "again")]
    assert "```text\nlines: 4\nrows: 5\n```" in refreshed(stale, printed)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("p99   4.1 ms  [4.0, 4.3]", "p99  12.25 s  [9, 11.5]"),
        ("2026-11-25 01:02:03  1,024 rows", "2026-11-26 11:22:33  9 rows"),
        ("──── 3%", "──────── 12%"),
    ],
)
def test_numbers_units_and_distances_do_not_matter(first: str, second: str) -> None:
    assert shape(first) == shape(second)


def test_words_and_signs_matter() -> None:
    assert len({shape(text) for text in ("a 1", "b 1", "a 1 faster", "(a 1)")}) == 4


def test_shown_lines_come_in_the_order_of_the_printed_ones() -> None:
    (block,) = blocks_of("```sh\nx\n```\n```text\nb 1\na 2\n```\n")
    assert isinstance(block, Block)
    assert matched(Printed(block.commands[0], "a 5\nb 6\n", 0)) == ["b 6", None]
