"""What every page has: contents, how to read each chart, what terms mean, tables that can be sorted and read on a phone, how to reproduce."""

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import altair as alt
import pytest
import vl_convert

from sensorbench.report import charts, formatting, parts
from sensorbench.report.build import write_page
from sensorbench.report.glossary import Glossary, terms
from sensorbench.results.page import Block, Card, Cards, Chart, Code, Columns, Grid, Line, Page, Section, Table, Text

_FILES = re.compile(r"[\w/-]+\.(?:json|md|parquet|svg|png|hlog|toml)\b|\b(?:docs|runs|charts)/")


class _Reader(HTMLParser):
    """The ids, inner links, visible text outside of code, and table cells of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.cells: list[dict[str, str | None]] = []
        self._hidden = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if identifier := attributes.get("id"):
            self.ids.append(identifier)
        if tag == "a":
            self.links.append(attributes.get("href") or "")
        if tag == "td" and "data-label" in attributes:
            self.cells.append(attributes)
        self._hidden += tag in {"script", "style", "pre", "code"}

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in {"script", "style", "pre", "code"}

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text += data


def drawn(how: str) -> Chart:
    chart = alt.Chart(alt.InlineData(values=[{"x": 1}])).mark_point().encode(x=alt.X("x:Q"))
    return Chart(f"chart-{how}", charts.sized(chart, f"How {how}."), f"Chart {how}")


def page_of(folder: Path, *blocks: Block, footer: str = "") -> str:
    page = Page("kind", "Title", [], [Section("", "First part", blocks), Section("second", "Second", [])], footer)
    return write_page(page, folder, with_files=False).read_text(encoding="utf-8")


def test_contents_lead_to_every_section(tmp_path: Path) -> None:
    page = _Reader(page_of(tmp_path))
    assert [link for link in page.links if link.startswith("#")] == ["#first-part", "#second"]
    assert {"first-part", "second"} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def dead_links(text: str) -> list[str]:
    page = _Reader(text)
    return [link for link in page.links if link.startswith("#") and link[1:] not in page.ids]


def test_no_inner_link_of_a_report_is_dead(study_folder: Path) -> None:
    assert dead_links('<a href="#there">a</a><p id="here">') == ["#there"]
    assert dead_links((study_folder / "report.html").read_text(encoding="utf-8")) == []


def test_each_chart_says_how_to_read_it_and_charts_that_are_read_alike_once(tmp_path: Path) -> None:
    card = Card("Card", "Question?", [drawn("a")])
    text = page_of(tmp_path, Cards([card, card]), Grid([drawn("b"), drawn("b")]), Grid([drawn("c"), drawn("d")]), drawn("e"))
    assert text.count("How to read this:") == 5
    for how in "abcde":
        assert text.count(f"</strong> How {how}.") == 1


def test_a_chart_without_a_sentence_makes_no_page(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        page_of(tmp_path, Chart("bare", {"mark": "point"}))


def test_cells_have_their_title_and_what_they_are_sorted_by(tmp_path: Path) -> None:
    columns: Columns = [("Question", "label"), ("Time\nspent", "duration_s"), ("Note", "text")]
    rows: Sequence[Sequence[Line]] = [["First", [0.02, parts.muted("1 – 2")], "b"], ["", 3.0, "a"], ["Second", None, ""]]
    cells = _Reader(page_of(tmp_path, Table(columns, rows, is_grouped=True))).cells
    assert [cell["data-label"] for cell in cells] == ["Question", "Time spent", "Note"] * 3
    assert [cell["data-value"] for cell in cells] == ["First", "0.02", "b", "First", "3.0", "a", "Second", "", ""]
    assert ["again" in (cell.get("class") or "") for cell in cells] == [False] * 3 + [True] + [False] * 5


def test_terms_are_explained_once_a_section_where_it_explains_itself() -> None:
    glossary = Glossary()
    section = '<p>response time</p><p class="note">Response time, response time, <code>p99</code></p><th class="x">p99</th>'
    marked = glossary.mark(section)
    assert marked.count("<abbr") == 2
    assert '<p>response time</p><p class="note"><abbr class="term" tabindex="0" title="End minus intended start' in marked
    assert "</abbr>, response time, <code>" in marked
    assert [term for term, _ in glossary.used] == ["p99", "response time"]


def test_terms_are_written_alike() -> None:
    for term, meaning in terms().items():
        assert term == term.lower()
        assert meaning.endswith(".")


def test_a_command_is_shown_as_a_shell_takes_it(tmp_path: Path) -> None:
    section = parts.reproduce(["sensorbench", "stress", "--target", "postgresql:…", "--out", "my results"], version="1.0")
    assert section is not None
    assert section.blocks[1] == Code("sensorbench stress --target 'postgresql:…' --out 'my results'", "command")
    (said, *_) = section.blocks
    assert isinstance(said, Text)
    assert "put yours where … stands" in str(said.line)
    other = parts.reproduce(["sensorbench", "quickstart"])
    assert other is not None
    assert "…" not in str(other.blocks)
    assert parts.reproduce([]) is None


def files_named(text: str) -> list[str]:
    return _FILES.findall(_Reader(text).text)


def test_a_report_names_no_file_that_its_reader_may_not_have(study_folder: Path, tmp_path: Path) -> None:
    assert files_named("<p>All numbers are in summary.json; see docs/insight.md.</p><code>a.json</code>") != []
    assert files_named((study_folder / "report.html").read_text(encoding="utf-8")) == []
    modules = Path(parts.__file__).parent.glob("*.py")
    footers = [line for file in modules for line in re.findall(r"footer\(.*\)", file.read_text(encoding="utf-8"))]
    assert len(footers) > 8
    assert [line for line in footers if _FILES.search(line)] == []


def test_factors_are_shown_as_a_range() -> None:
    assert formatting.factors(4.2, 6.6) == "4.2–6.6×"
    assert formatting.factors(2.0, 2.0) == "2.0×"


def test_long_names_get_room_for_their_lines() -> None:
    row = charts.FigureRow("a", 1.0, 0.9, 1.1)
    short, long = charts.figures([row], ["a"]), charts.figures([row], ["a-database-of-a-very-long-name"])
    assert short["height"] < long["height"]


def test_each_long_name_is_drawn_the_last_one_too() -> None:
    variants = [f"cassandra-typed-asynchronous_{number}" for number in (16, 102, 512)]
    chart = charts.figures([charts.FigureRow(variant, 1.0, 0.9, 1.1) for variant in variants], variants)
    # Not through `write_chart_files`: in tests, charts that differ in names alone get one picture.
    svg = vl_convert.vegalite_to_svg({**chart, "width": 600, "config": {"axis": {"labelOverlap": "greedy", "labelBound": True}}})
    # Vega keeps a name for which it has no room, and hides it.
    assert re.findall(r'opacity="1"><tspan>(?:(?!</text>).)*asynchronous_(\d+)<', svg) == ["16", "102", "512"]


def heads_with_late_warnings(source: str) -> list[str]:
    """The heads of pages that say something else than what they are about before their warnings."""
    heads = re.findall(r"head=\[\n(.*?)\n        \],", source, flags=re.DOTALL)
    return [head for head in heads if "headline" in head.partition("*parts.warnings(")[0]]


def test_warnings_come_before_the_answer() -> None:
    late = 'head=[\n            Text(headline(summary), "headline"),\n            *parts.warnings(summary.warnings),\n        ],'
    assert len(heads_with_late_warnings(late)) == 1
    sources = "\n".join(file.read_text(encoding="utf-8") for file in Path(parts.__file__).parent.glob("*.py"))
    assert sources.count("*parts.warnings(") >= 5
    assert heads_with_late_warnings(sources) == []


def test_a_legend_has_as_many_names_in_a_line_as_there_is_room_for() -> None:
    def columns(*names: str) -> int:
        return int(charts.names_legend(names).to_dict()["columns"])

    assert columns("reads", "writes", "others") == 4
    assert columns("x" * 50, "y") == 2
    assert columns("x" * 200) == 1
