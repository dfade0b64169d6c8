"""Executes the shell blocks of pages and writes what they print into the pages: `make docs-outputs`.

Arguments are pages (all if none is given) and, after `--have`, names of what blocks need and this machine has.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from docsite.shell_blocks import ROOT, blocks_of, executed, problem, refreshed
from sensorbench.results.files import write_text

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))


def refresh(page: Path, available: frozenset[str]) -> list[str]:
    """Writes a page with new outputs. Returns what was wrong with its blocks, but for outputs, which are replaced."""
    text = page.read_text(encoding="utf-8")
    wrong, printed = [], []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for block, each in executed(blocks_of(text), Path(folder), available):
            printed.append(each)
            found = problem(block, each)
            if found and each.exit_code != (block.exit_code if each.command is block.commands[-1] else 0):
                wrong.append(found)
    after = refreshed(text, printed)
    if after != text and not wrong:
        write_text(page, after)
        print(page.relative_to(ROOT))
    return wrong


def main() -> int:
    """Refreshes the pages that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--have", action="append", default=[])
    given = parser.parse_args()
    pages = [page.resolve() for page in given.pages] or PAGES
    wrong = [problem for page in pages for problem in refresh(page, frozenset(given.have))]
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
