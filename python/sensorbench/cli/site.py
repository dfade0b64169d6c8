"""`sensorbench site`: a static site of bundles."""

from pathlib import Path
from typing import Annotated

import typer

from sensorbench.app.site import make_site
from sensorbench.cli.options import Json
from sensorbench.cli.printing import print_json
from sensorbench.progress import ProgressReporter, console
from sensorbench.wording import counted


def site(
    bundles: Annotated[list[Path], typer.Argument(help="Bundles, files of `sensorbench bundle`.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the site.", show_default=False)],
    price_per_hour: Annotated[
        float | None,
        typer.Option(
            "--price-per-hour",
            min=0.0,
            help="Price of an hour of the machine; shows the cost of a million readings written and of 1,000 queries.",
            show_default=False,
        ),
    ] = None,
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Do not verify the bundles; none is labelled audited.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite an existing site (only one that sensorbench made).")
    ] = False,
    json: Json = False,
) -> None:
    """Build a static site from bundles, to filter and compare: no server, no external requests."""
    made = make_site(bundles, out, ProgressReporter(), price_per_hour=price_per_hour, verifies=not no_verify, replace=replace)
    if json:
        print_json(made)
        return
    labels = ", ".join(f"{count} {label}" for label, count in made.trust.items())
    console().print(
        f"site: {made.page} ({counted(made.bundles, 'bundle')}, {counted(made.variants, 'variant')}; {labels})",
        highlight=False,
    )
