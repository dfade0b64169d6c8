"""`sensorbench elasticity`: what it costs when a loaded cluster changes, and when it is stable again."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from sensorbench.analysis.elasticity import LEAST_SETS, Elasticity, Sets, Stability, elasticity, stability
from sensorbench.cli.options import Json
from sensorbench.cli.output import print_json
from sensorbench.errors import UsageError
from sensorbench.progress import console, error_console
from sensorbench.results.request_sets import read_sets

app = typer.Typer(help="What it costs when a loaded cluster changes, and when it is stable again.", no_args_is_help=True)

VARIANTS = {
    "above_ramp": "what is below the ramp counts as nothing",
    "excess_deviation": "only deviation beyond that of before counts",
    "above_level": "area A above the level before the bootstrap",
    "trapezoid": "straight lines between the sets, no splines",
    "minutes": "time in minutes, set times in seconds",
}


@app.callback()
def _group() -> None:
    pass


@app.command("analyse")
def analyse(
    file: Annotated[Path, typer.Argument(help="Request sets as CSV: time_s, duration_s, sd_s.")],
    bootstrap_at: Annotated[float, typer.Option("--bootstrap-at", help="When the cluster was changed, in s.")],
    requests_per_thread: Annotated[
        float, typer.Option("--requests-per-thread", help="How many requests of a set a thread issues, one after the other.")
    ],
    stable_at: Annotated[
        float | None,
        typer.Option("--stable-at", help="When it was stable again, in s; by the rule if not given.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Compute the elasticity of a series that was recorded. The definitions are in docs/elasticity.md."""
    if not requests_per_thread > 0.0:
        raise UsageError(f"--requests-per-thread {requests_per_thread:g}: expected a number above 0")
    sets = Sets(*read_sets(file))
    try:
        found = stability(sets, bootstrap_at)
        stable_at_s = _stable_at(found, stable_at, file)
        if stable_at_s <= bootstrap_at:
            raise UsageError(f"--stable-at {stable_at_s:g}: expected a time after the bootstrap at {bootstrap_at:g} s")
        score = elasticity(sets, bootstrap_at, stable_at_s, requests_per_thread)
    except ValueError as error:
        raise UsageError(f"{file}: {error}") from error
    warnings = _warnings(score)
    if json:
        print_json({**asdict(score), **_as_json(found), "warnings": warnings})
        return
    console().print(_table(sets, score, found))
    for warning in warnings:
        error_console().print(f"note: {warning}", highlight=False)


def _stable_at(found: Stability, given: float | None, file: Path) -> float:
    if given is not None:
        return given
    if found.at_s is None:
        raise UsageError(
            f"{file}: no five sets in a row after the bootstrap differ by less than {found.median_difference_s:g} s, the median "
            "difference before it; say with --stable-at when it was stable"
        )
    return found.at_s


def _as_json(found: Stability) -> dict[str, Any]:
    return {
        "stable_by_rule_at_s": found.at_s,
        "stable_in_band_at_s": found.in_band_at_s,
        "stable_by_band_at_s": found.by_band_at_s,
        "median_difference_s": found.median_difference_s,
    }


def _warnings(score: Elasticity) -> list[str]:
    few = f"{score.sets_between} sets began between bootstrap and stability: below {LEAST_SETS} a spline may overshoot; see trapezoid"
    return [few] if score.sets_between < LEAST_SETS else []


def _table(sets: Sets, score: Elasticity, found: Stability) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    by_rule, in_band, by_band = (
        "never" if at_s is None else f"{at_s:g} s" for at_s in (found.at_s, found.in_band_at_s, found.by_band_at_s)
    )
    table.add_row("elasticity", f"{score.elasticity:.4g}", "lower is better, 0 is perfect")
    for name, said in VARIANTS.items():
        table.add_row(f"  {name}", f"{score.variants[name]:.4g}", said)
    table.add_row(
        "stable again", f"{score.stable_at_s:g} s", f"{score.stable_at_s - score.bootstrap_at_s:g} s after the bootstrap"
    )
    table.add_row("  by the rule", by_rule, f"five sets in a row that differ by less than {found.median_difference_s:.3g} s")
    table.add_row("  in the band", in_band, "and are near the level at the end")
    table.add_row("  by the band", by_band, "from then on the median of five is near that level")
    table.add_row("set time before", f"{score.av1_s:.4g} s", f"{score.rt1_s:.4g} s a request")
    table.add_row("set time after", f"{score.av2_s:.4g} s", f"{score.rt2_s:.4g} s a request")
    table.add_row("area A, B", f"{score.area_a:.4g}, {score.area_b:.4g}", "s²")
    table.add_row("sets", f"{len(sets)}", f"{score.sets_between} between bootstrap and stability")
    return table
