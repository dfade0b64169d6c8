"""The answer of a comparison: by how much, within which interval, and where nothing can be said."""

from typing import Any

import pytest

from sensorbench.cli.output import print_outcome
from sensorbench.report import answer
from sensorbench.report.slowdowns import slowdowns
from sensorbench.results.page import Piece, Table
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.comparison import (
    ComparisonSummary,
    RankedVariant,
    Ranking,
    RankingVerdict,
    StallFigures,
    StallLoop,
)

OPERATIONS = ["get_sensor_data", "get_peak_data", "get_available_data", "get_floor_zone_data"]


def place(variant: str, value_s: float, word: str = "", low: float = 0.0, high: float = 0.0) -> RankedVariant:
    ratio = MeasuredFigure(value=(low + high) / 2, low=low, high=high, confidence=0.95)
    return RankedVariant(
        variant=variant, value_s=value_s, against_best=RankingVerdict(word=word, reason="", ratio=ratio) if word else None
    )


def ranked(operation: str, *places: RankedVariant) -> Ranking:
    return Ranking(operation=operation, metric="median", excluded=None, places=list(places))


def summary_of(content: dict[str, Any], *rankings: Ranking, stall: StallFigures | None = None) -> ComparisonSummary:
    found = ComparisonSummary.model_validate(content)
    update = {"rankings": list(rankings), "metric": "median", "stall": stall}
    return found.model_copy(update={"result": found.result.model_copy(update=update)})


CLEAR = [
    place("fjall-by_sensor_day", 1e-4),
    place("sqlite-natural", 5e-4, "slower", 4.2, 6.6),
    place("sqlite-star", 2e-2, "slower", 150, 250),
]
OPEN = [
    place("sqlite-natural", 1e-4),
    place("fjall-by_sensor", 1.1e-4, "no significant difference", 0.9, 1.3),
    place("sqlite-star", 1e-3, "slower", 8, 12),
]


def test_the_headline_says_by_how_much(summary: dict[str, Any]) -> None:
    headline = answer.headline(summary_of(summary, ranked(OPERATIONS[0], *CLEAR), ranked(OPERATIONS[1], *OPEN)))
    assert headline == (
        "fjall · by_sensor_day is 4.2–6.6× faster than the next variant for Readings of one sensor; no significant difference between the "
        "fastest at 1 of 2 operations (median response time, 95% confidence intervals)"
    )


def test_the_headline_of_many_operations_has_the_outermost_ends(summary: dict[str, Any]) -> None:
    last = [place("fjall-by_sensor_day", 1e-4), place("sqlite-natural", 5e-4, "slower", 2.1, 9.0)]
    rankings = [*(ranked(name, *CLEAR) for name in OPERATIONS[:3]), ranked(OPERATIONS[3], *last)]
    assert answer.headline(summary_of(summary, *rankings)).startswith(
        "fjall · by_sensor_day is 2.1–9.0× faster than the next variant at 4 operations"
    )


@pytest.mark.parametrize("word", ["no significant difference", "inconclusive", "equivalent"])
def test_what_is_not_significant_has_no_magnitude(summary: dict[str, Any], word: str) -> None:
    places = [place("sqlite-natural", 1e-4), place("fjall-by_sensor", 9e-4, word, 0.5, 20.0)]
    headline = answer.headline(summary_of(summary, ranked(OPERATIONS[0], *places)))
    assert headline.startswith("No significant difference between the fastest variants (")
    assert "×" not in headline


def test_slowdowns_are_ratios_to_the_fastest(summary: dict[str, Any]) -> None:
    section = slowdowns(summary_of(summary, ranked(OPERATIONS[0], *CLEAR), ranked(OPERATIONS[1], *OPEN)))
    assert section is not None
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    titles = [title for title, _ in table.columns]
    by_operation = {row[0]: dict(zip(titles[1:], row[1:], strict=True)) for row in table.rows}
    of_first, of_second = by_operation["Readings of one sensor"], by_operation["Peak of one sensor"]
    assert {name: (next(iter(cell.text)), cell.style) for name, cell in of_first.items() if isinstance(cell, Piece)} == {
        "sqlite · star": (pytest.approx(200), "heat heat-5"),
        "sqlite · natural": (pytest.approx(5), "heat heat-3"),
        "fjall · by_sensor_day": (1.0, "heat heat-0"),
    }
    assert of_first["fjall · by_sensor"] is None
    level = of_second["fjall · by_sensor"]
    assert isinstance(level, Piece)
    assert list(level.text)[1] == " n.\N{NO-BREAK SPACE}s."
    assert "no significant difference" in level.hint
    mean = by_operation["All, geometric mean"]["sqlite · natural"]
    assert isinstance(mean, Piece)
    assert next(iter(mean.text)) == pytest.approx(5**0.5)
    assert by_operation["All, geometric mean"]["fjall · by_sensor"] is None


def test_one_variant_is_compared_with_nothing(summary: dict[str, Any]) -> None:
    assert slowdowns(summary_of(summary, ranked(OPERATIONS[0], CLEAR[0]))) is None


def test_the_printed_answer_names_statistic_and_unit(
    summary: dict[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    loops = {
        "closed": StallLoop(stall_s=0.4, operations=9000, p50_s=2e-5, p99_s=5e-5, p999_s=1e-4, max_s=0.4),
        "open": StallLoop(stall_s=0.4, operations=1500, p50_s=2e-5, p99_s=0.38, p999_s=0.4, max_s=0.4),
    }
    stall = StallFigures(variant="sqlite-natural", operation="insert_reading", title="New reading", rate_per_s=500, loops=loops)
    print_outcome(
        summary_of(summary, ranked(OPERATIONS[0], *CLEAR), ranked(OPERATIONS[1], *OPEN), stall=stall), tmp_path / "report.html"
    )
    printed = capsys.readouterr().out
    assert "median response time, 95% confidence interval; * fastest, or no significant difference from it" in printed
    (line,) = [line for line in printed.splitlines() if line.startswith("Readings of one sensor") and "*" in line]
    assert line.split("*")[1].split()[:2] == ["100", "µs"]
    assert line.count("*") == 1
    assert "no significant difference at Peak of one sensor: sqlite · natural, fjall · by_sensor\n" in printed
    assert "p99 response time" in printed
    assert (
        "Coordinated omission: of a stall of 400 ms, the closed loop shows a p99 of 50.0 µs, the open loop one of 380 ms."
        in printed
    )


def test_a_verdict_of_an_earlier_version_has_the_words_of_today() -> None:
    ratio = MeasuredFigure(value=1.0, low=0.9, high=1.1, confidence=0.95)
    assert RankingVerdict(word="no difference seen", reason="", ratio=ratio).word == "no significant difference"
