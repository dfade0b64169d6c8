"""The section of a gate: whether head is slower than base, and what could have been seen."""

from sensorbench.report import formatting, parts
from sensorbench.results.page import Columns, Items, Line, Section, Table, Text
from sensorbench.results.summary.gate import GateResult


def gate_section(result: GateResult | None) -> Section | None:
    """The section; nothing if the comparison was made by no gate."""
    if result is None:
        return None
    columns: Columns = [
        ("operation", "name"),
        ("base", "duration_s"),
        ("head", "duration_s"),
        ("head / base", "ratio"),
        ("base / itself", "ratio"),
        ("detectable", "share"),
        ("repetitions", "whole"),
        ("verdict", "text"),
        ("why", "text"),
    ]
    rows: list[list[Line]] = [
        [
            each.operation,
            each.base_s,
            each.head_s,
            [each.ratio.value, " ", parts.between(each.ratio.low, each.ratio.high)],
            [each.control.value, " ", parts.between(each.control.low, each.control.high)],
            each.detectable,
            each.runs,
            each.verdict,
            each.reason,
        ]
        for each in result.operations
    ]
    budget = f"{formatting.duration(result.took_s)} of a budget of {formatting.duration(result.budget_s)}"
    note = (
        f"Head may be slower by {formatting.percent(result.margin)}. Base was measured twice, as the control: its difference from itself is the noise of "
        f"this session. {result.repetitions} of at most {result.max_repetitions} repetitions were made, in {budget}; they ended when the answer was known."
    )
    return Section(
        "gate",
        "Gate",
        [
            Text(f"Head is {result.verdict}: {result.reason}.", "headline"),
            Items(result.differences) if result.differences else None,
            Table(columns, rows),
            Text(note, "note"),
        ],
    )
