"""What `sensorbench recommend` prints for people: tables and explanations."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from sensorbench.advisor import Basis, Entry, Recommendation, Source, basis_of
from sensorbench.advisor.caveats import caveats_of_recommendation, caveats_of_use_cases
from sensorbench.advisor.relational import capacity_of
from sensorbench.analysis.candidate import Measured
from sensorbench.analysis.intervals import Interval
from sensorbench.analysis.sizing import Sizing, described_assumptions
from sensorbench.analysis.use_cases import Outcome
from sensorbench.benchmarks.comparison import Gathered, by_reason
from sensorbench.cli.printing import new_table
from sensorbench.progress import console, print_labelled
from sensorbench.report import formatting
from sensorbench.wording import counted

# More rows are in --json.
MAX_SHOWN = 10
MAX_EXPLAINED = 3

_COUNTS = {
    "written": "readings written per second",
    "read": "answers per second",
    "size": "bytes per reading, the fewer the better",
}


def print_recommendation(recommendation: Recommendation, *, explain: bool) -> None:
    """Prints the ranking, what a load takes, and what to know of both."""
    screen = console()
    needs = recommendation.options.needs
    _print_basis(screen, recommendation.basis)
    for distance in recommendation.distances:
        screen.print(distance.text, style="yellow", highlight=False)
    newest = "newest readings at once" if needs.fresh else "newest readings may wait"
    screen.print(f"writes {needs.writes}, reads {needs.reads}, {newest}", style="bold")
    screen.print(_described_counts(recommendation), highlight=False)
    screen.print(_table(recommendation))
    hidden = len(recommendation.entries) - MAX_SHOWN
    if hidden > 0:
        screen.print(f"{hidden} more with --json", highlight=False)
    smallest = _smallest_of_level(recommendation)
    if smallest:
        screen.print(smallest, highlight=False)
    screen.print(_described_relational(recommendation), highlight=False)
    if recommendation.entries[0].sizing is not None:
        _print_sizing(screen, recommendation, recommendation.entries[0].sizing)
    if explain:
        _print_explanation(screen, recommendation)
    if recommendation.check is not None:
        screen.print(recommendation.check.text, highlight=False)
    _print_caveats(screen, caveats_of_recommendation(recommendation))


def print_use_cases(source: Source, outcomes: Sequence[Outcome]) -> None:
    """Prints the six use cases with the source's advice and ours."""
    screen = console()
    _print_basis(screen, basis_of(source))
    table = new_table("use case", "the paper advises", "its place here", "best at the same target", "best of all", "confidence")
    for outcome in outcomes:
        best = formatting.variant(outcome.best.candidate.name) if outcome.best else "nothing that was measured fits"
        confidence = outcome.best.confidence if outcome.best else ""
        table.add_row(outcome.use_case.text, outcome.use_case.advice, *_described_advised(outcome.at_target), best, confidence)
    screen.print(table)
    screen.print(
        "M1: a sensor's rows are listed in the same table, M2: in a table of its own; MB: the width of a row. "
        "For one of them: sensorbench recommend --writes high --reads high --fresh yes",
        highlight=False,
    )
    _print_caveats(screen, caveats_of_use_cases(source, outcomes))


def _print_basis(screen: Console, basis: Basis) -> None:
    """The first lines: nobody should take the answer for more than it stands on."""
    for line in basis.lines:
        screen.print(line, highlight=False)


def _described_advised(at_target: Outcome | None) -> tuple[str, str]:
    """Where the layout that the source recommends stands among those at its target, and how many times its score the best
    has.
    """
    if at_target is None or at_target.best is None or at_target.advised is None or at_target.over_advised is None:
        return "not measured", ""
    place = f"{at_target.advised_place} of {len(at_target.ranking.places)} at {at_target.advised.candidate.target}"
    if at_target.best is at_target.advised:
        return place, "the same"
    return place, f"{formatting.variant(at_target.best.candidate.name)}, {_factor(at_target.over_advised)}"


def _described_counts(recommendation: Recommendation) -> str:
    """What the score is made of."""
    counts = " × ".join(_COUNTS[kind] for kind in recommendation.options.needs.counts)
    entries = [entry.place.candidate for entry in recommendation.entries]
    lengths = {
        measurement.operation: measurement.rows
        for candidate in entries
        for measurement in candidate.measured(recommendation.ranking.questions)
    }
    questions = ", ".join(f"{name} ({length or 0.0:,.0f} rows each)" for name, length in lengths.items())
    reading = f"; reading is {questions}" if questions else ""
    return f"what counts: {counts}{reading}"


def _table(recommendation: Recommendation) -> Table:
    sized = ("nodes", "disk") if recommendation.entries[0].sizing is not None else ()
    cost = "cost" if recommendation.options.prices is not None else "relative cost"
    columns = ("", "layout", "readings written/s", "p50 / p99", "reads/s", "p50 / p99", "bytes per reading")
    table = new_table(*columns, *sized, cost, "over the next, confidence", wide=True)
    for number, entry in enumerate(recommendation.entries[:MAX_SHOWN], 1):
        candidate = entry.place.candidate
        sizing = [str(entry.sizing.nodes), formatting.size(entry.sizing.disk_bytes)] if entry.sizing else []
        table.add_row(
            str(number),
            formatting.variant(candidate.name),
            _rate(entry.written_per_s),
            _latencies(candidate.writes),
            _rate(entry.read_per_s),
            _latencies(candidate.measured(recommendation.ranking.questions)),
            formatting.significant(candidate.bytes_a_reading) if candidate.bytes_a_reading else "–",
            *sizing,
            formatting.count(entry.money) if entry.money is not None else formatting.times(entry.cost),
            _over_next(entry),
        )
    return table


def _rate(of: Interval | None) -> str:
    if of is None:
        return "not measured"
    if of.low is None or of.high is None:
        return _count(of.value)
    return f"{_count(of.value)} ({_count(of.low)} – {_count(of.high)})"


def _count(number: float) -> str:
    """A rate, with three digits: more would say nothing."""
    return formatting.count(float(f"{number:.3g}"))


def _latencies(measured: Sequence[Measured]) -> str:
    """Median and 99th percentile, of several operations those of the slowest."""
    known = [
        measurement.latency_s for measurement in measured if "median" in measurement.latency_s and "p99" in measurement.latency_s
    ]
    if not known:
        return "–"
    slowest = max(known, key=lambda entry: entry["p99"].value)
    return f"{formatting.duration(slowest['median'].value)} / {formatting.duration(slowest['p99'].value)}"


def _factor(of: Interval) -> str:
    interval = (
        f" ({formatting.significant(of.low)} – {formatting.significant(of.high)})"
        if of.low is not None and of.high is not None
        else ""
    )
    return f"× {formatting.significant(of.value)}{interval}"


def _over_next(entry: Entry) -> str:
    place = entry.place
    if place.over_next is None:
        return place.confidence
    beside = "" if place.is_beside_next else " (measured at different times)"
    return f"{_factor(place.over_next)}: {place.confidence}{beside}"


def _smallest_of_level(recommendation: Recommendation) -> str | None:
    """Of those that are not distinguished from the first, the one that takes the least room, where that is another one."""
    level = [entry.place.candidate for entry in recommendation.entries if entry.place.is_level]
    sized = [candidate for candidate in level if candidate.bytes_a_reading]
    smallest = min(sized, key=lambda candidate: candidate.bytes_a_reading or 0.0, default=None)
    if smallest is None or smallest is level[0]:
        return None
    size = formatting.significant(smallest.bytes_a_reading or 0.0)
    return f"not distinguished from the first, and smaller: {formatting.variant(smallest.name)} ({size} bytes per reading)"


def _described_relational(recommendation: Recommendation) -> str:
    found = recommendation.relational
    name = f" ({formatting.variant(found.name)})" if found.name else ""
    return f"a relational database {found.verdict}{name}: {found.why}"


def _print_sizing(screen: Console, recommendation: Recommendation, sizing: Sizing) -> None:
    """Nodes, disk and memory of the best layout, step by step."""
    best = recommendation.entries[0].place.candidate
    memory = f", {formatting.size(sizing.memory_a_node_bytes)} of memory each" if sizing.memory_a_node_bytes else ""
    disk = f", {formatting.size(sizing.disk_bytes)} of disk together" if sizing.disk_bytes else ""
    screen.print()
    screen.print(
        f"{formatting.variant(best.name)} for this load: {counted(sizing.nodes, 'node')} by {sizing.nodes_by}{disk}{memory}",
        style="bold",
    )
    table = Table(box=None, padding=(0, 2, 0, 2), show_header=False)
    for step in sizing.steps:
        table.add_row(step.what, formatting.size(step.value) if step.unit == "bytes" else f"{step.value:,.0f}", step.formula)
    screen.print(table)
    for reason in sizing.not_known:
        screen.print(f"  not known – {reason}", highlight=False)
    screen.print("assumed:", highlight=False)
    for assumption in described_assumptions(recommendation.options.assumed, capacity_of(best, recommendation.ranking.questions)):
        screen.print(f"  {assumption}", highlight=False)


def _print_explanation(screen: Console, recommendation: Recommendation) -> None:
    """How the first places come about, and why others have none."""
    ranking = recommendation.ranking
    screen.print()
    screen.print("how places come about", style="bold")
    screen.print(
        "The score is the geometric mean of a layout's shares of the best figure in each that counts. Rates are geometric "
        "means over runs; intervals are of the runs (95%). If several kinds of operation shared the time, a rate is "
        "what it would be for this kind alone.",
        highlight=False,
    )
    for number, entry in enumerate(recommendation.entries[:MAX_EXPLAINED], 1):
        candidate = entry.place.candidate
        shares = " and ".join(f"{share:.3g} of the best at {kind}" for kind, share in _described_shares(entry))
        mean = f", geometric mean {entry.place.score:.3g}" if len(entry.place.shares) > 1 else ""
        screen.print(
            f"{number}. {formatting.variant(candidate.name)} ({candidate.version or candidate.database}): {shares}{mean}",
            highlight=False,
        )
        for measurement in (*candidate.writes, *candidate.measured(ranking.questions)):
            _print_runs(screen, measurement, recommendation.gathered)
    for reason, names in by_reason([*ranking.left_out, *recommendation.gathered.left_out]).items():
        named = ", ".join(formatting.variant(name) for name in names)
        screen.print(f"left out, because {reason}: {named}", highlight=False)


def _described_shares(entry: Entry) -> list[tuple[str, float]]:
    names = {"written": "writing", "read": "reading", "size": "size"}
    return [(names[kind], share) for kind, share in entry.place.shares.items()]


def _print_runs(screen: Console, measurement: Measured, gathered: Gathered) -> None:
    """The runs behind a figure."""
    readings = f" × {measurement.readings} readings" if measurement.readings > 1 else ""
    rows = f", {measurement.rows:,.0f} rows each" if measurement.rows else ""
    origin = gathered.origins[measurement.comparison]
    screen.print(f"   {measurement.operation}{readings}{rows}, {origin.load}, on {origin.machine}:", highlight=False)
    for run in measurement.runs:
        screen.print(f"     {run.id}, {run.date}: {run.per_s:,.4g} operations/s", highlight=False)


def _print_caveats(screen: Console, found: Sequence[str]) -> None:
    for caveat in found:
        print_labelled(screen, "note", caveat)
