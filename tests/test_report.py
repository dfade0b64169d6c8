"""The report: one file that needs nothing else, with everything in it."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from sensorbench.app.reports import COMPARISON
from sensorbench.benchmarks.comparison.summary import summarise
from sensorbench.report import answer, parts
from sensorbench.report.build import write_page
from sensorbench.report.comparison import comparison_page
from sensorbench.results import read_comparison
from sensorbench.results.summary.comparison import ComparisonSummary, Ranking
from sensorbench.results.summary.envelope import Caveat
from tests.conftest import EMBEDDED, SMALL, Cli, commands_on, forget_checksums


class Page(HTMLParser):
    """What a browser would load from elsewhere, where charts go, which parts there are."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.charts: list[str] = []
        self.parts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag in {"script", "link", "img", "iframe"}:
            self.loaded += [value for key, value in attrs if key in {"src", "href"} and value]
        if chart := attributes.get("data-chart"):
            self.charts.append(chart)
        if tag == "section" and attributes.get("id"):
            self.parts.append(str(attributes["id"]))


@pytest.fixture(scope="module")
def text(study_folder: Path) -> str:
    return (study_folder / "report.html").read_text(encoding="utf-8")


def specifications(text: str) -> dict[str, Any]:
    start = text.index("const specifications = ") + len("const specifications = ")
    return json.JSONDecoder().raw_decode(text[start:])[0]


def test_the_report_loads_nothing_from_elsewhere(text: str) -> None:
    assert Page('<link href="https://a/b.css"><script src="c.js"></script><img src="d.png">').loaded == [
        "https://a/b.css", "c.js", "d.png",
    ]  # fmt: skip
    assert Page(text).loaded == []
    assert not re.search(r"@import|url\(\s*['\"]?https?:", text[: text.index("<script>")])


def test_every_chart_has_data_and_a_file(text: str, study_folder: Path) -> None:
    page, drawn = Page(text), specifications(text)
    assert set(page.charts) == set(drawn)
    assert {
        f"{kind}-{name}" for kind in ("figures", "distribution", "over-run", "throughput") for name in _questions(study_folder)
    } <= set(drawn)
    for name in drawn:
        assert (study_folder / "charts" / f"{name}.svg").read_text(encoding="utf-8").startswith("<svg")
        assert (study_folder / "charts" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def _questions(folder: Path) -> list[str]:
    return list(json.loads((folder / "summary.json").read_text(encoding="utf-8"))["result"]["operations"])


def test_the_answer_comes_first(text: str, summary: dict[str, Any]) -> None:
    parts = Page(text).parts
    assert parts[0] == "answer"
    assert parts.index("answers") < parts.index("health") < parts.index("environment")
    headline = answer.headline(ComparisonSummary.model_validate(summary))
    assert "response time" in headline
    assert f'<p class="headline">{headline}</p>' in text


def test_the_answer_is_shown_before_the_page_is_drawn_which_comes_in_any_case(study_folder: Path, tmp_path: Path) -> None:
    """Whoever waits for a run has its answer first. A terminal that is gone (`| head`) costs nobody the page."""
    folder = Path(
        shutil.copytree(study_folder, tmp_path / "copy", ignore=shutil.ignore_patterns("data", "charts", "report.html"))
    )
    seen: list[bool] = []

    def show(summary: ComparisonSummary, page: Path) -> None:
        seen.append(page.exists())
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        COMPARISON.write(folder, show)
    assert seen == [False]
    assert (folder / "report.html").exists()


def test_every_claim_and_every_warning_is_shown(text: str, summary: dict[str, Any]) -> None:
    assert len(summary["claims"]) == 22
    for claim in summary["claims"]:
        assert f">{claim['id']}<" in text
    assert "embedded" in [warning["kind"] for warning in summary["warnings"]]
    for warning in summary["warnings"]:
        assert warning["action"] in text


def test_the_report_says_the_command_that_was_given(study_folder: Path) -> None:
    given = ["sensorbench", "study", "run", "iot", *EMBEDDED, *SMALL, "--out", str(study_folder)]
    assert json.loads((study_folder / "summary.json").read_text(encoding="utf-8"))["command"] == given
    assert commands_on(study_folder / "report.html") == [given]


def test_the_pages_of_all_kinds_say_the_command() -> None:
    modules = [file.read_text(encoding="utf-8") for file in Path(parts.__file__).parent.glob("*.py")]
    pages = {
        found[1]: text for text in modules for found in re.finditer(r"^def (\w+_page)\(.*-> Page:$", text, flags=re.MULTILINE)
    }
    assert len(pages) >= 8
    # A history is of results that have commands of their own, and a trace, and what is fitted to it, of what others sent.
    assert {name for name, text in pages.items() if "parts.reproduce(" not in text} == {
        "history_page",
        "traffic_page",
        "traffic_fit_page",
    }


def warning(variant: str, kind: str) -> Caveat:
    return Caveat(kind=kind, text=f"{variant or 'It'} was {kind}.", action=f"Fix what is {kind}.", variant=variant)


def test_warnings_are_at_the_top_and_those_of_a_kind_together(study_folder: Path, tmp_path: Path) -> None:
    result = read_comparison(study_folder)
    summary = summarise(result)
    of_variants = [warning(variant.id, "client-bound") for variant in summary.variants]
    busy, embedded = warning("", "busy"), warning("", "embedded")
    summary = summary.model_copy(update={"warnings": [*of_variants, busy, embedded]})
    page = write_page(comparison_page(summary, result), tmp_path, with_files=False).read_text(encoding="utf-8")
    header = page[page.index("<header>") : page.index("</header>")]
    for of_variant in [*of_variants, busy]:
        assert page.count(of_variant.text) == header.count(of_variant.text) == 1
        assert page.count(of_variant.action) == header.count(of_variant.action) == 1
    assert header.count('class="banner"') == 2
    assert embedded.text not in header
    assert embedded.text in page


def test_text_from_outside_stays_text(cli: Cli, study_folder: Path, tmp_path: Path) -> None:
    manifest = json.loads((study_folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["title"] = "<script>alert(1)</script>"
    manifest["plan"]["operations"]["get_peak_data"]["title"] = "</script><script>alert(2)</script>"
    copy = tmp_path / "copy"
    _copy(study_folder, copy)
    forget_checksums(copy)
    (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert cli("report", copy).exit_code == 0
    page = (copy / "report.html").read_text(encoding="utf-8")
    assert "<script>alert(" not in page
    assert "<h1>&lt;script&gt;alert(1)&lt;/script&gt;</h1>" in page
    assert "alert(2)" in page


def _copy(folder: Path, to: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file() and file.suffix != ".db" and "data" not in file.relative_to(folder).parts[:1]:
            place = to / file.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(file.read_bytes())


def unranked(operation: str, excluded: str) -> Ranking:
    return Ranking(operation=operation, metric="mean", excluded=excluded, places=[])


@pytest.mark.parametrize(
    ("answers_equal", "rankings", "expected"),
    [
        (False, [unranked("ask", "different")], "different answers: 1 of 1"),
        (True, [], "Nothing was measured"),
        (None, [unranked("ask", "it was interrupted")], "Nothing is ranked: it was interrupted"),
    ],
)
def test_the_headline_says_what_stands_in_the_way(
    summary: dict[str, Any], answers_equal: bool | None, rankings: list[Ranking], expected: str
) -> None:
    found = ComparisonSummary.model_validate(summary)
    changed = found.model_copy(
        update={"answers_equal": answers_equal, "result": found.result.model_copy(update={"rankings": rankings})}
    )
    assert expected in answer.headline(changed)
