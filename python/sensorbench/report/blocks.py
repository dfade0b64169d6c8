"""How variants were measured one at a time: the blocks in their order, and where data lay between them."""

from sensorbench.report import formatting
from sensorbench.results.page import Columns, Line, Section, Table, Text
from sensorbench.results.summary.comparison import Block, ComparisonFigures

_SERVERS = {"started": "its own", "embedded": "embedded", "kept up": "yours, kept up"}


def how_interleaved(result: ComparisonFigures) -> str:
    """How repetitions of variants follow each other, in a few words."""
    return "interleaved" if result.one_at_a_time is None else "one variant's server up at a time, in interleaved blocks"


def one_at_a_time(result: ComparisonFigures) -> Section | None:
    """The blocks; nothing if all servers were up."""
    if result.one_at_a_time is None or not result.blocks:
        return None
    columns: Columns = [
        ("Block", "whole"),
        ("Variant", "name"),
        ("server", "text"),
        ("repetitions", "text"),
        ("start", "duration_s"),
        ("load", "duration_s"),
        ("settle", "duration_s"),
        ("measured", "duration_s"),
        ("in the process table", "text"),
    ]
    text = (
        "Each variant was measured while its server alone was up. A block is a start of the server, a warm-up before each repetition, and the repetitions. "
        "Blocks are in the order A B B A. Intervals resample blocks, because repetitions of one block share a start."
    )
    table = Table(columns, [_row(block) for block in result.blocks])
    return Section("blocks", "One at a time", [Text(text), Text(_data(result)), table])


def _row(block: Block) -> list[Line]:
    repeats = ", ".join(map(str, block.repeats)) or "only loaded"
    seen = ", ".join(
        f"{name} ({len(pids)} {'process' if len(pids) == 1 else 'processes'})" for name, pids in block.processes.items()
    )
    load: list[Line] = [block.load_s, block.settle_s] if block.loaded else ["on disk", ""]
    server = _SERVERS[block.server]
    return [
        block.number,
        formatting.variant(block.variant),
        server,
        repeats,
        block.start_s,
        *load,
        block.measured_s,
        seen or "none",
    ]


def _data(result: ComparisonFigures) -> str:
    """Where data lay between blocks, and why."""
    data = result.data_between_blocks
    if data is None:
        return ""
    arithmetic = (
        f"all variants together need about {formatting.size(data.needed_bytes)} of disk (known by {data.sizes_by}); {formatting.size(data.free_bytes)} were "
        f"free, of which {formatting.size(data.reserve_bytes)} were to stay so"
    )
    if data.choice == "on disk":
        return f"Data stayed on disk between blocks, where the database keeps them there; others were loaded again: {arithmetic}."
    return f"Each block loaded again, and removed its data: {arithmetic}."
