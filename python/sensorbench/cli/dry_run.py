"""What --dry-run prints: what would be done, and what it would take. What a budget was turned into is said before a study begins."""

import shlex

from rich.console import Console

from sensorbench.cli.printing import new_table, print_json
from sensorbench.progress import console, error_console
from sensorbench.report import formatting
from sensorbench.results.estimate import Budget, Estimate, PartEstimate, Room, VariantEstimate
from sensorbench.terminal import WIDTH_ELSEWHERE


def show_dry_run(planned: Budget | Estimate, *, as_json: bool) -> None:
    """Prints what a dry run found."""
    if as_json:
        print_json(planned)
    elif isinstance(planned, Budget):
        _print_budget(planned, console())
    else:
        _print_estimate(planned, console())


def show_budget(budget: Budget) -> None:
    """Says on standard error what a budget was turned into, since the answer of the study comes later."""
    screen = error_console()
    if not screen.is_terminal:
        screen.width = WIDTH_ELSEWHERE
    _print_budget(budget, screen)


def _print_budget(budget: Budget, screen: Console) -> None:
    _print_estimate(budget.estimate, screen)
    default = " (the default; --budget or --scale changes it)" if budget.is_default else ""
    if budget.left_out:
        left_out = f"left out, because they do not fit into the budget: {', '.join(budget.left_out)}"
        screen.print(f"{left_out}. Claims about them are not tested", style="bold", highlight=False)
    screen.print(f"budget: {length(budget.budget_s)}{default}; the same without a pilot:", highlight=False)
    screen.print(f"  {shlex.join(budget.command)}", highlight=False)
    screen.print("Results at another scale are not comparable with these.", highlight=False)


def _print_estimate(planned: Estimate, screen: Console) -> None:
    scale = "" if planned.scale is None else f", scale {planned.scale:g}"
    screen.print(f"{planned.title}{scale}", style="bold", highlight=False)
    for part in planned.parts:
        _print_part(part, screen)
    for number, step in enumerate(planned.steps, start=1):
        screen.print(f"  {number}. {step}", highlight=False)
    if planned.start_s:
        screen.print(f"starting servers: about {length(planned.start_s)}", highlight=False)
    screen.print(f"disk: {_room(planned.disk)}; memory: {_room(planned.memory)}", highlight=False)
    pilot = "" if planned.pilot_s is None else f" (by a pilot of {length(planned.pilot_s)})"
    took = "not known" if planned.time_s is None else f"about {length(planned.time_s)}"
    screen.print(f"time: {took}{pilot}", style="bold", highlight=False)
    for command in planned.commands:
        screen.print(command, highlight=False, markup=False, soft_wrap=True)
    for note in planned.notes:
        screen.print(f"note: {note}", highlight=False)


def _print_part(part: PartEstimate, screen: Console) -> None:
    name = f"{part.name}: " if part.name and part.name != part.data else ""
    rows = "" if part.readings is None else f", about {part.readings:,} rows"
    took = "" if part.time_s is None else f"; about {length(part.time_s)}"
    screen.print(f"{name}{part.data}{rows}{took}", highlight=False)
    names = ("variant", "rows", "operations per run", "runs", "load", "per run", "disk", "memory", "")
    table = new_table(*names, texts={"variant", ""}, wide=True)
    for variant in part.variants:
        table.add_row(*_cells(variant))
    if part.variants:
        screen.print(table)
    if len(part.order) > 1:
        orders = " · ".join(f"{number}. {_order(order)}" for number, order in enumerate(part.order, start=1))
        what = "order of blocks, by round" if part.data_between_blocks is not None else "order of runs"
        screen.print(f"{what}: {orders}", highlight=False)
    if part.prepare_s is not None:
        reference = "" if part.reference_s is None else f"; reference answers: about {length(part.reference_s)}"
        screen.print(f"generating and preparing data: about {length(part.prepare_s)}{reference}", highlight=False)


def _order(variants: list[str]) -> str:
    """The first and the last of many: the order is that of the table, forwards or backwards."""
    return ", ".join(variants) if len(variants) <= 4 else f"{variants[0]} … {variants[-1]}"


def _cells(variant: VariantEstimate) -> list[str]:
    operations = "–" if variant.operations is None else f"{variant.operations:,}"
    if variant.expected is not None:
        operations = f"first {variant.expected:,} of {operations}"
    said = [variant.refused or "", "your server: not touched" if variant.place == "yours" and variant.load_s is None else ""]
    said.append(f"as {variant.measured_as}" if variant.measured_as else "")
    return [
        variant.variant,
        "?" if variant.rows is None else f"{variant.rows:,}",
        operations,
        str(variant.repetitions),
        *("?" if time_s is None else length(time_s) for time_s in (variant.load_s, variant.run_s)),
        *("–" if size is None else formatting.size(size) for size in (variant.disk_bytes, variant.memory_bytes)),
        "; ".join(filter(None, said)),
    ]


def _room(room: Room) -> str:
    needed = "not known what is needed" if room.needed is None else f"about {formatting.size(room.needed)} needed"
    return f"{needed}, {formatting.size(room.free)} free"


def length(time_s: float) -> str:
    """A length of time as people say it: 40 s, 12 min, 3.5 h."""
    if time_s < 1.0:
        return f"{time_s:.1f} s"
    if time_s < 120.0:
        return f"{time_s:.0f} s"
    return f"{time_s / 60:.0f} min" if time_s < 7200.0 else f"{time_s / 3600:.1f} h"
