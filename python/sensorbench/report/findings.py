"""What was found in histories of registers."""

from typing import Any

from sensorbench.report import formatting, parts
from sensorbench.results.page import Block, Columns, Details, Heading, Items, Line, Piece, Section, Table, Text
from sensorbench.results.summary.comparison import ComparisonFigures
from sensorbench.results.summary.guarantees import RegisterGuarantees

TITLES = {
    "lost_writes": "lost writes",
    "stale_reads": "stale reads",
    "non_monotonic_reads": "non-monotonic reads",
    "never_written": "values never written",
    "failed_writes_seen": "failed writes seen",
    "possibly_stale_reads": "possibly stale reads",
}


def guarantees(result: ComparisonFigures) -> Section | None:
    """The section of what was guaranteed and seen, where registers were used."""
    if not result.guarantees:
        return None
    text = (
        "Clients wrote numbered values to registers and read them back, and their history was checked: how much is what it costs worth? A "
        "stale read returned a value after a newer one had been acknowledged; its age is the time since then. At the end each register was "
        "read again. Operations of unknown outcome (errors, time-outs) raise no alarm."
    )
    columns: Columns = [
        ("Variant", "name"),
        ("median, p99, per second", "duration_s"),
        ("checked", "whole"),
        ("unknown", "whole"),
        *((title, "whole") for title in TITLES.values()),
    ]
    rows: list[list[Line]] = [
        [
            formatting.variant(variant),
            _latencies(result, variant),
            found.counts.operations,
            found.counts.unknown,
            *(_seen(found, name) for name in TITLES),
        ]
        for variant, found in result.guarantees.items()
    ]
    examples = (block for variant, found in result.guarantees.items() for block in _of_variant(variant, found))
    return Section("guarantees", "What was guaranteed, and what was seen", [Text(text), Table(columns, rows), *examples])


def _latencies(result: ComparisonFigures, variant: str) -> Line:
    figures = {figure.operation: figure for figure in result.figures if figure.variant == variant}
    line: list[Line] = []
    for name, operation in result.operations.items():
        of_metrics = (figures[name].latency_s.get(metric) for metric in ("median", "p99"))
        for found in of_metrics:
            line += [found.value if found else None, ", "]
        line += [f"{formatting.count(figures[name].throughput_per_s)}/s", parts.muted(operation.title)]
    return line


def _seen(found: RegisterGuarantees, name: str) -> Line:
    """How often a finding occurred, and whether it may."""
    seen = found.seen[name]
    aged: Line = ""
    if seen.age_ns:
        aged = parts.muted(f"aged {', '.join(ages(seen.age_ns))} (p50, p99, max)")
    of: Line = parts.muted(f"of {seen.of:,} {unit(name)}")
    return [
        Piece(seen.count, "bad") if name in found.broken else seen.count,
        of,
        aged,
        Piece(_promise(found, name), "muted wrapped"),
    ]


def unit(name: str) -> str:
    """What a finding is counted in."""
    return "keys" if name == "lost_writes" else "reads"


def ages(age_ns: dict[str, int] | None) -> list[str]:
    """Quantiles of ages: p50, p99 and max."""
    return [formatting.duration(age / 1e9) for age in (age_ns or {}).values()]


def _promise(of_variant: RegisterGuarantees, name: str) -> str:
    """Whether a variant promises that something does not occur, and whether that was broken."""
    if of_variant.promised is None:
        return "nothing known is promised"
    if name not in of_variant.promised:
        return ""
    if name in of_variant.broken:
        return "promised not to occur: broken"
    return "promised not to occur" if of_variant.promised[name].is_made else "not promised"


def _of_variant(variant: str, found: RegisterGuarantees) -> list[Block]:
    """Examples of what was seen at a variant, and what it promises."""
    examples = [
        Text(f"{title.capitalize()}, run {example['run']}, {described(name, example)}.", "bad" if name in found.broken else "")
        for name, title in TITLES.items()
        for example in found.seen[name].examples
    ]
    promises: Block = Text("Nothing is known of what it promises.")
    if found.promised:
        lines: list[Line] = [
            [
                f"{'No' if promise.is_made else 'Not that there are no'} {TITLES[name]}: {promise.why} ",
                parts.muted(promise.source),
            ]
            for name, promise in found.promised.items()
        ]
        promises = Details("What it promises, and why", [Items(lines)])
    return [Heading(formatting.variant(variant)), *examples, promises]


def described(name: str, example: dict[str, Any]) -> str:
    """An example in a sentence, with key, times and the operations involved."""
    where = f"key {example['key']!r}"
    if name == "lost_writes":
        return (
            f"{where}: {_operation(example['write'])}; older reads at the end: {example['stale_reads_at_end']:,}, "
            f"the last: {_operation(example['last_stale_read'])}, {example['behind']:,} behind"
        )
    read = f"{where}: {_operation(example['read'])}"
    if name in {"stale_reads", "possibly_stale_reads"}:
        age = formatting.duration(example["age_ns"] / 1e9)
        newer = _operation(example["first_newer_write"])
        return f"{read}, {age} after a newer value was acknowledged ({newer}), {example['behind']:,} behind"
    if name == "non_monotonic_reads":
        return f"{read}, after it had a newer one: {_operation(example['earlier_read'])}"
    if name == "failed_writes_seen":
        return f"{read}, of a write that failed: {_operation(example['write'])}"
    return f"{read}, which no client wrote"


def _operation(operation: dict[str, Any]) -> str:
    value = "null" if operation["value"] is None else operation["value"]
    until = "the end" if operation["ended_ns"] is None else operation["ended_ns"]
    return f"process {operation['process']} {operation['f']} {value} from {operation['invoked_ns']} to {until} ns"
