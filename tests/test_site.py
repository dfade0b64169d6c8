"""The documentation site: it loads nothing from other hosts, and its reference says all that the code has."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from docsite import command_line, file_keys, generated, lists, notebooks, url_options
from docsite.generated import filled
from mkdocs.commands.build import build
from mkdocs.config import load_config

from sensorbench.runner import databases

ROOT = Path(__file__).parent.parent

# What a browser fetches without being asked.
_FETCHED = {"script": ("src",), "img": ("src", "srcset"), "iframe": ("src",), "source": ("src", "srcset"), "video": ("src",),
            "audio": ("src",), "embed": ("src",), "object": ("data",), "use": ("href", "xlink:href"), "image": ("href", "xlink:href")}  # fmt: skip
# Kinds of links that only say where something is.
_NOT_FETCHED = {"canonical", "alternate", "author", "license", "next", "prev", "edit"}


class _Fetched(HTMLParser):
    """The addresses that a page has a browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._in_style = tag == "style"
        self.addresses += [given[name] or "" for name in _FETCHED.get(tag, ()) if name in given]
        if tag == "link" and not _NOT_FETCHED.intersection((given.get("rel") or "").split()):
            self.addresses.append(given.get("href") or "")
        self.addresses += in_styles(given.get("style") or "")

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.addresses += in_styles(data)


def in_styles(text: str) -> list[str]:
    """The addresses of fonts, images and further styles in a style sheet."""
    return [a or b for a, b in re.findall(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)", text)]


def from_elsewhere(file: Path) -> list[str]:
    """The addresses on other hosts that a page or style sheet has a browser fetch."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".css":
        found = in_styles(text)
    else:
        page = _Fetched()
        page.feed(text)
        found = page.addresses
    return [address for address in found if re.match(r"(https?:)?//", address)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


def test_the_site_loads_nothing_from_other_hosts(site: Path) -> None:
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(files) > 50
    assert {str(file.relative_to(site)): found for file in files if (found := from_elsewhere(file))} == {}


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/css">',
        '<link rel="preconnect" href="https://fonts.example">',
        '<img src="http://x.example/a.png">',
        "<style>@import 'https://x.example/a.css';</style>",
        '<p style="background: url(https://x.example/a.png)">',
    ],
)
def test_what_is_loaded_from_elsewhere_is_found(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.html"
    page.write_text(text, encoding="utf-8")
    assert len(from_elsewhere(page)) == 1
    page.write_text(
        '<a href="https://x.example">x</a><link rel="canonical" href="https://x.example"><img src="a.png">', encoding="utf-8"
    )
    assert from_elsewhere(page) == []


def test_the_site_has_search_both_palettes_and_the_schemas(site: Path) -> None:
    index = (site / "index.html").read_text(encoding="utf-8")
    assert 'data-md-color-media="(prefers-color-scheme: dark)"' in index
    assert (site / "search" / "search_index.json").stat().st_size > 100_000
    assert len(list((site / "reference" / "schemas").glob("*.schema.json"))) >= 20


# The reference.


def test_every_key_of_a_file_is_described() -> None:
    missing = {kind.title: [key.path for key in file_keys.keys_of(kind.model) if not key.about] for kind in file_keys.FILE_KINDS}
    assert {kind: keys for kind, keys in missing.items() if keys} == {}


def test_options_of_urls_are_described_as_far_as_drivers_know_them() -> None:
    known: dict[str, set[str]] = {url_options.SERVER: set()}
    for database in databases().values():
        options = set(url_options.options_of(database.name, embedded=database.embedded))
        common = set() if database.embedded else set(url_options.described()[url_options.SERVER])
        described_as = url_options.key(database.name, database.dialect, embedded=database.embedded)
        known.setdefault(described_as, set()).update(options - common)
        known[url_options.SERVER] |= options & common
    described = {dialect: set(options) for dialect, options in url_options.described().items()}
    assert described == {dialect: options for dialect, options in known.items() if options}


def test_variables_of_the_environment_are_those_that_the_code_reads() -> None:
    sources = [*(ROOT / "python").rglob("*.py"), *(ROOT / "python").rglob("*.java"), *(ROOT / "crates").glob("*/src/**/*.rs")]
    named = {name for file in sources for name in re.findall(r"\bSENSORBENCH_[A-Z_]*[A-Z]\b", file.read_text(encoding="utf-8"))}
    # What processes of the lab are recognised by, and what only tests of drivers read.
    internal = {name for name in named if name.startswith("SENSORBENCH_TEST") or name == "SENSORBENCH_LAB_INSTANCE"}
    # In text, one that stands for all of its kind.
    assert named - internal - set(lists.login_variables()) == set(lists.ENVIRONMENT)


def test_every_command_and_option_is_in_the_reference() -> None:
    from typer.main import get_command

    from sensorbench.cli.main import app

    text = command_line.reference()
    for path, command in command_line.commands(get_command(app)):
        section = text.partition(f"# `{' '.join(('sensorbench', *path))}`\n")[2].partition("\n## ")[0]
        assert section, path
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.name != "help":
                assert all(option in section for option in parameter.opts), (path, parameter.opts)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_markers_of_pages_are_those_of_parts_that_there_are(page: Path) -> None:
    assert "<!-- generated:" not in filled(page.read_text(encoding="utf-8"), page)


def test_a_marker_of_nothing_is_found() -> None:
    with pytest.raises(KeyError, match="nothing"):
        filled("<!-- generated: nothing -->", ROOT / "docs" / "index.md")


def test_a_document_of_the_project_keeps_its_links() -> None:
    text = filled("<!-- file: CONTRIBUTING.md -->", ROOT / "docs" / "contributing.md")
    assert "](explanation/claims.md)" in text
    assert "](docs/" not in text


def test_a_notebook_becomes_a_page(tmp_path: Path) -> None:
    notebook = tmp_path / "n.ipynb"
    notebook.write_text(
        '{"cells": [{"cell_type": "markdown", "source": ["# Title"]}, {"cell_type": "code", "source": ["1 + 1"], "outputs": ['
        '{"output_type": "execute_result", "data": {"text/plain": ["2"]}},'
        '{"output_type": "display_data", "data": {"text/html": ["<table>\\n\\n</table>"], "text/plain": ["x"]}}]}]}',
        encoding="utf-8",
    )
    assert notebooks.as_markdown(notebook) == (
        '# Title\n\n```python\n1 + 1\n```\n\n```text\n2\n```\n\n<div class="notebook-output">\n<table>\n</table>\n</div>\n'
    )


def test_every_part_is_on_a_page() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))
    assert {name for name in generated.PARTS if f"<!-- generated: {name} -->" not in pages} == set()
