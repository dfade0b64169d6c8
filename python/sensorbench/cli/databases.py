"""`sensorbench databases`: what is known of databases, and what this project can do with each."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sensorbench.catalog import WHEN, Entry, Fact, When, capabilities, entries, require_entry, serialize_catalog, serialize_entry
from sensorbench.catalog.axes import axes
from sensorbench.cli.options import Json
from sensorbench.cli.printing import check_page, new_table, open_page, print_json
from sensorbench.progress import console

# What fits beside one another; all axes are shown of one database.
_SHOWN = ("model", "consistency", "distribution", "persistence", "queries", "transactions", "elasticity", "licence")
_TITLES: dict[When, str] = {"studied": "as studied", "today": "today"}


def databases(
    name: Annotated[
        str | None, typer.Argument(help="Show everything known about this database, with sources.", show_default=False)
    ] = None,
    as_studied: Annotated[
        bool, typer.Option("--as-studied", help="Show what the studies found, in their versions, instead of today's facts.")
    ] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write everything as an HTML page.", show_default=False)] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the page in a browser.")] = False,
    json: Json = False,
) -> None:
    """What is known of databases: consistency, distribution, model, queries, elasticity, licence, as studied and today, with
    sources; and what this project can do with each.
    """
    entry = require_entry(name) if name else None
    if html is not None:
        check_page(html)
        # The template library takes its time to import, which a listing should not wait for.
        from sensorbench.report.catalog import write_catalog

        page = write_catalog(html, serialize_catalog())
        console().print(f"page: {page}", highlight=False)
        open_page(page, no_open=no_open)
    elif json:
        print_json(serialize_entry(entry) if entry else serialize_catalog())
    elif entry:
        _print_entry(entry)
    else:
        _print_all("studied" if as_studied else "today")


def _print_all(when: When) -> None:
    """A table of the main axes, and one of what this project can do."""
    screen = console()
    facts = Table(box=None, padding=(0, 2, 0, 0), title=f"{_TITLES[when]}", title_justify="left", title_style="bold")
    for column in ("database", *(axes()[axis].title.lower() for axis in _SHOWN)):
        facts.add_column(column)
    can = Table(box=None, padding=(0, 2, 0, 0), title="what sensorbench can do with it", title_justify="left", title_style="bold")
    abilities = {entry.name: capabilities(entry) for entry in entries().values()}
    for column in ("database", *(ability.title.lower() for ability in next(iter(abilities.values())).values())):
        can.add_column(column)
    for entry in entries().values():
        facts.add_row(entry.name, *(_words(entry.fact(axis, when)) for axis in _SHOWN))
        can.add_row(entry.name, *(ability.short for ability in abilities[entry.name].values()))
    screen.print(facts)
    screen.print()
    screen.print(can)
    screen.print("one of them with sources: sensorbench databases NAME; all as a page: --html FILE", highlight=False)


def _words(fact: Fact | None) -> str:
    if fact is None:
        return "–"
    return ", ".join(fact.value) if fact.value else "?"


def _print_entry(entry: Entry) -> None:
    """All facts of a database with notes and sources, and what this project can do with it."""
    screen = console()
    screen.print(f"{entry.title}: {entry.summary}", style="bold", highlight=False)
    studied = ", ".join(f"{study} {version}" for study, version in entry.studied.items()) or "no study"
    screen.print(f"as studied: {studied}; today: {entry.today.version} ({entry.today.date})", highlight=False)
    table = new_table("axis", "", "what", "note", "source", wide=True)
    for axis, about in axes().items():
        for when in WHEN:
            if fact := entry.fact(axis, when):
                columns = (_words(fact), fact.note, entry.described_source(fact))
                table.add_row(about.title.lower(), _TITLES[when], *columns)
    screen.print(table)
    for capability in capabilities(entry).values():
        described_targets = "; ".join(f"{target}: {text}" for target, text in capability.described.items())
        screen.print(f"{capability.title.lower()}: {described_targets or 'no'}", highlight=False)
