"""What commands print, and where results go."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import typer
from rich.table import Table
from rich.text import Text

from sensorbench.app.comparison import fail_if_wrong
from sensorbench.app.run import Show
from sensorbench.claims import Claim
from sensorbench.cli.printing import new_table, open_page, print_json
from sensorbench.progress import ProgressReporter, console, print_labelled
from sensorbench.report import answer, formatting, parts
from sensorbench.report.accounting import described_rollup, failed_actions, retained_accounts
from sensorbench.report.load_generators import clock_lines, loaded_lines
from sensorbench.results.summary.claims import JudgedClaim, MeasuredFigure, verdict_counts
from sensorbench.results.summary.comparison import ComparisonSummary, RankedVariant
from sensorbench.results.summary.envelope import Caveat

Shown = TypeVar("Shown")

RESULTS_FOLDER = Path("results")
# More variants do not fit beside one another.
MAX_COLUMNS = 6
# Of more variants the same is not said of each.
MAX_ALIKE = 3


def printer(show: Show[Shown], *, as_json: bool) -> Show[Shown]:
    """What says what a summary and its page say: as JSON, or by `show`."""
    return (lambda summary, _: print_json(summary)) if as_json else show


def tool_printer(as_text: Callable[[Shown], str], reporter: ProgressReporter, *, as_json: bool) -> Show[Shown]:
    """What says what a run by another tool's files came to: as JSON, or in the words of that tool."""

    def show(summary: Shown, page: Path) -> None:
        typer.echo(as_text(summary), nl=False)
        reporter.say(f"results: {page.parent}, report: {page}")

    return printer(show, as_json=as_json)


def end_comparison(written: tuple[ComparisonSummary, Path], *, no_open: bool) -> None:
    """Opens the page of a comparison that was shown. Raises FailedError when something that must be right was not."""
    summary, page = written
    open_page(page, no_open=no_open)
    fail_if_wrong(summary)


def print_outcome(summary: ComparisonSummary, page: Path) -> None:
    """Prints who won what."""
    screen = console()
    screen.print()
    screen.print(answer.headline(summary), style="bold")
    screen.print(
        f"{formatting.metric(summary.result.metric)} response time, 95% confidence interval; * fastest, or no significant difference from it"
    )
    screen.print(_figures(summary) if len(summary.variants) <= MAX_COLUMNS else _winners(summary))
    for line in open_operations(summary):
        screen.print(line, highlight=False)
    if summary.result.metric != "p99" and len(summary.variants) <= MAX_COLUMNS:
        screen.print("p99 response time")
        screen.print(_p99(summary))
    if summary.result.stall:
        screen.print(f"{formatting.described_stall(summary.result.stall)}.", highlight=False)
    of_streams = (*_accounts(summary), *_retention(summary), *_freshness(summary))
    of_generators = (*loaded_lines(summary.result.load), *clock_lines(summary.result.load_generators))
    for line in (*of_generators, *of_streams):
        screen.print(line, highlight=False)
    equal = {True: "all answers were equal", False: "ANSWERS DIFFER", None: "answers were not compared"}[summary.answers_equal]
    screen.print(f"{equal}; report: {page}", highlight=False)
    for note in notes_of(caveat for caveat in summary.warnings if caveat.kind != "embedded"):
        print_labelled(screen, "note", note)


def _accounts(summary: ComparisonSummary) -> Iterator[str]:
    """What became of the readings that were delivered, of each variant."""
    for variant, checks in summary.result.contents.items():
        for of_write in checks.accounting:
            found = ", ".join(
                f"{count:,} {name}"
                for name, count in (
                    ("lost", of_write.lost),
                    ("with the wrong winner of a duplicate", of_write.wrong_winners),
                    ("too many", of_write.extra),
                    ("with another value", of_write.other_values),
                    ("that should have expired", of_write.retention.not_expired if of_write.retention else 0),
                    ("ranges that were not answered", of_write.unanswered),
                    ("ranges that differ besides", of_write.unexamined + of_write.unstable),
                )
                if count
            )
            yield f"{formatting.variant(variant)}: {of_write.readings:,} acknowledged readings, {found or 'each as it must be'}"


def _retention(summary: ComparisonSummary) -> Iterator[str]:
    """What expired and what is left of it, of each variant; and which actions failed."""
    for variant, of_write, retention in retained_accounts(summary.result):
        still = f", {retention.not_expired:,} of them still there" if retention.not_expired else ""
        lost = f", {of_write.lost:,} of them lost" if of_write.lost else ""
        yield (
            f"{formatting.variant(variant)}: {retention.kept:,} readings kept{lost}; {retention.expired:,} expired{still}; "
            f"{described_rollup(retention)}"
        )
    yield from failed_actions(summary.result)


def _freshness(summary: ComparisonSummary) -> Iterator[str]:
    """How soon markers were visible, of each variant."""
    for variant, found in summary.result.freshness.items():
        quantiles = found.whole.quantiles_s
        shown = ", ".join(
            f"{name} {formatting.bounds(quantiles[name].low_s, quantiles[name].high_s)}"
            for name in ("p50", "p99", "max")
            if quantiles
        )
        yield f"{formatting.variant(variant)}: visible after its acknowledgement, {shown or 'nothing was acknowledged'}"


def notes_of(caveats: Iterable[Caveat]) -> list[str]:
    """Warnings as lines. Of many variants, those of a kind are one line, and the report has all of them."""
    return [line for kind, alike in parts.warnings_by_kind(caveats).items() for line in _lines(kind, alike)]


def _lines(kind: str, alike: Sequence[Caveat]) -> list[str]:
    if len(alike) > MAX_ALIKE:
        about_all, actions = parts.of_many_variants(kind, alike)
        return [f"{about_all}; the report has the details. {actions}"]
    about = [f"{formatting.variant(caveat.variant)}: " if caveat.variant else "" for caveat in alike]
    return [f"{whose}{caveat.text} {caveat.action}" for whose, caveat in zip(about, alike, strict=True)]


def _figures(summary: ComparisonSummary) -> Table:
    """Each variant's figure at each question."""
    table = new_table("", *(formatting.variant(variant.id) for variant in summary.variants), texts={""}, wide=True)
    for ranking in summary.result.rankings:
        values = {place.variant: place for place in ranking.places}
        intervals = {
            figure.variant: figure.latency_s.get(summary.result.metric)
            for figure in summary.result.figures
            if figure.operation == ranking.operation
        }
        cells = [_cell(values.get(variant.id), intervals.get(variant.id)) for variant in summary.variants]
        table.add_row(
            summary.result.operations[ranking.operation].title,
            *(cells if not ranking.excluded else ["not ranked"] * len(cells)),
        )
    return table


def _winners(summary: ComparisonSummary) -> Table:
    """The fastest at each question, and the slowest, where there are too many variants for a line."""
    texts = ("fastest, or not known to be slower", "slowest")
    table = new_table("", texts[0], "", texts[1], "", texts=texts, wide=True)
    for ranking in summary.result.rankings:
        title = summary.result.operations[ranking.operation].title
        if ranking.excluded:
            table.add_row(title, f"not ranked: {ranking.excluded}")
            continue
        best, worst = ranking.places[0], ranking.places[-1]
        fastest, slowest = (formatting.duration(place.value_s) for place in (best, worst))
        table.add_row(title, answer.winners(ranking), Text(fastest, style="green"), formatting.variant(worst.variant), slowest)
    return table


def _p99(summary: ComparisonSummary) -> Table:
    """Each variant's p99 at each operation."""
    table = new_table("", *(formatting.variant(variant.id) for variant in summary.variants), texts={""}, wide=True)
    for name, operation in summary.result.operations.items():
        found = {figure.variant: figure.latency_s.get("p99") for figure in summary.result.figures if figure.operation == name}
        values = [found.get(variant.id) for variant in summary.variants]
        table.add_row(operation.title, *(formatting.duration(value.value if value else None) for value in values))
    return table


def open_operations(summary: ComparisonSummary) -> list[str]:
    """The operations at which several variants may be the fastest, by class where there are several."""
    lines = []
    for ranking in summary.result.rankings:
        if ranking.excluded:
            continue
        title = summary.result.operations[ranking.operation].title
        for places in ranking.classes:
            names = [formatting.variant(place.variant) for place in places if answer.is_level(place)]
            if len(names) > 1:
                within = f" ({places[0].ranked_within})" if places[0].ranked_within else ""
                lines.append(f"no significant difference at {title}{within}: {', '.join(names)}")
    return lines


def _cell(place: RankedVariant | None, figure: MeasuredFigure | None) -> str | Text:
    """A variant's figure, and its interval below it."""
    if place is None:
        return "–"
    is_level = answer.is_level(place)
    value = Text(f"{'* ' if is_level else ''}{formatting.duration(place.value_s)}", style="green" if is_level else "")
    if figure is None or figure.low is None:
        return value
    return value.append(f"\n{formatting.duration(figure.low)} – {formatting.duration(figure.high)}", style="dim")


def published_claims(claims: Sequence[Claim], *, with_parts: bool = False) -> Table:
    """Claims as their source has them, without verdicts; with the parts of the study that they are about, where it has parts."""
    table = new_table("claim", "finding", "form", "published", *(["parts"] if with_parts else []))
    for claim in claims:
        table.add_row(claim.id, claim.text, claim.form, claim.published, *([", ".join(claim.parts)] if with_parts else []))
    return table


def published_claims_as_json(claims: Sequence[Claim], *, with_parts: bool = False) -> list[dict[str, Any]]:
    """The same, with what each lacks here."""
    keys = ("id", "text", "form", "published", *(["parts"] if with_parts else []), "blocked_by")
    return [{key: getattr(claim, key) for key in keys} for claim in claims]


def print_claims(claims: Sequence[JudgedClaim]) -> None:
    """Prints claims with their verdicts."""
    table = new_table("claim", "finding", "published", "verdict", "measured", "why")
    for claim in claims:
        measured = claim.measured.value if claim.measured else None
        table.add_row(
            claim.id,
            claim.text,
            claim.published,
            claim.verdict,
            formatting.significant(measured) if measured else "",
            claim.reason,
        )
    console().print(table)
    if claims:
        console().print(f"Of {len(claims)} claims: {verdict_counts(claims)}.", highlight=False)
    if any(claim.rules == "format 1" for claim in claims):
        console().print("Judged by the rules of format 1, which could not distinguish every finding from its contrary.")
