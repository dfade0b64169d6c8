"""`sensorbench choose`: which databases meet which needs, why others fall out, and which needs stand in one another's way."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from sensorbench.advisor import bytes_of
from sensorbench.catalog import (
    YES,
    Chosen,
    Machine,
    Profile,
    When,
    choose_for,
    data_bytes_of,
    measured_in,
    need_kinds,
    needs_of,
    require_profile,
)
from sensorbench.catalog.choice_json import choice_summary
from sensorbench.catalog.profiles import profiles
from sensorbench.cli.chosen import print_choice, print_profiles
from sensorbench.cli.evidence import own_evidence
from sensorbench.cli.interview import interview
from sensorbench.cli.options import Evidence, Json
from sensorbench.cli.printing import check_page, open_page, print_json
from sensorbench.errors import UsageError
from sensorbench.progress import console


def choose(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FOLDER]...", help="Folders of your own results, to refer to.", show_default=False),
    ] = None,
    evidence: Evidence = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", help="Use case of the studies, with its needs; options override them.", show_default=False),
    ] = None,
    list_profiles: Annotated[bool, typer.Option("--profiles", help="List the use cases with what their studies advise.")] = False,
    ask: Annotated[bool, typer.Option("--interview", help="Prompt for the needs that are not given.")] = False,
    consistency: Annotated[
        str | None,
        typer.Option(
            "--consistency",
            help="Consistency that readers need: eventual, time-line, strong, row-locking, transactional.",
            show_default=False,
        ),
    ] = None,
    in_partition: Annotated[
        str | None,
        typer.Option(
            "--in-partition",
            help="Priority during a network partition: availability, consistency.",
            show_default=False,
        ),
    ] = None,
    query: Annotated[
        list[str] | None,
        typer.Option(
            "--query",
            help="Queries that the database must support: range, predicates, aggregate, join, batch. May be given several times.",
            show_default=False,
        ),
    ] = None,
    transactions: Annotated[
        str | None, typer.Option("--transactions", help="What is changed atomically: one (entity), several.", show_default=False)
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="Data model: fields, nested, relational, key-value.", show_default=False),
    ] = None,
    growth: Annotated[
        str | None, typer.Option("--growth", help="What grows during operation: readers, nodes.", show_default=False)
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", help="Amount of data: 200GB, 5TB; or memory, disk (of a machine), cluster.", show_default=False),
    ] = None,
    write_share: Annotated[
        str | None,
        typer.Option("--write-share", help="Share of the operations that write: 0.9; or mostly, few.", show_default=False),
    ] = None,
    large_values: Annotated[bool, typer.Option("--large-values", help="There are values of several MB.")] = False,
    durable: Annotated[bool, typer.Option("--durable", help="Data survive a power failure of all machines.")] = False,
    licence: Annotated[
        str | None, typer.Option("--licence", help="Acceptable licences: permissive, open-source.", show_default=False)
    ] = None,
    operations: Annotated[
        str | None,
        typer.Option("--operations", help="What you can operate: library (nothing), server (one kind).", show_default=False),
    ] = None,
    nodes_alike: Annotated[bool, typer.Option("--nodes-alike", help="All nodes of a cluster are alike.")] = False,
    maintained: Annotated[bool, typer.Option("--maintained", help="The database is still developed.")] = False,
    measurable: Annotated[
        str | None,
        typer.Option(
            "--measurable", help="sensorbench can measure it: here, by-url (also where you start it).", show_default=False
        ),
    ] = None,
    wish: Annotated[
        list[str] | None,
        typer.Option("--wish", help="Optional need: --wish licence. May be given several times.", show_default=False),
    ] = None,
    as_studied: Annotated[
        bool, typer.Option("--as-studied", help="Use what the studies found, in their versions, instead of today's facts.")
    ] = False,
    node_disk: Annotated[str, typer.Option("--node-disk", help="Disk of a machine, to judge --data by.")] = "1TB",
    node_memory: Annotated[str, typer.Option("--node-memory", help="Memory of a machine, likewise.")] = "64GB",
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write the choice as an HTML page.", show_default=False)
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the page in a browser.")] = False,
    json: Json = False,
) -> None:
    """Choose a database by needs: which databases meet them, why others do not, and, if none is left, the smallest sets of needs to drop. On a terminal,
    it prompts for needs if none are given.
    """
    if list_profiles:
        print_json([profile.model_dump(mode="json") for profile in profiles().values()]) if json else print_profiles()
        return
    if html is not None:
        check_page(html)
    case = require_profile(profile) if profile else None
    machine = Machine(bytes_of(node_disk, "--node-disk"), bytes_of(node_memory, "--node-memory"))
    given = _given(
        case,
        {
            "consistency": consistency,
            "in-partition": in_partition,
            "query": query,
            "transactions": transactions,
            "model": model,
            "growth": growth,
            "data": data,
            "write-share": write_share,
            "large-values": large_values,
            "durable": durable,
            "licence": licence,
            "operations": operations,
            "nodes-alike": nodes_alike,
            "maintained": maintained,
            "measurable": measurable,
        },
    )
    wishes = (*(case.wishes if case else ()), *(wish or ()))
    bundles = own_evidence(evidence)
    # What makes no sense is reported before anything is prompted for.
    needs_of(given, wishes, machine)
    if ask or (not given and sys.stdin.isatty()):
        answers = interview(given, machine)
        given, wishes = answers.given, (*wishes, *answers.wishes)
    if not given:
        raise UsageError(
            "say what you need, for example --query range --write-share 0.9; or a use case by --profile "
            f"({', '.join(profiles())}); or answer questions by --interview"
        )
    when: When = "studied" if as_studied else "today"
    works = measured_in(folders or ())
    chosen = choose_for(needs_of(given, wishes, machine), when, case, works, bundles, data_bytes_of(given))
    _print(chosen, html, no_open=no_open, as_json=json)


def _given(case: Profile | None, options: Mapping[str, str | bool | Sequence[str] | None]) -> dict[str, Sequence[str]]:
    """What was given for each need, in the order of needs; options replace what a profile says."""
    texts: dict[str, Sequence[str]] = dict(case.needs) if case else {}
    for name, value in options.items():
        if value:
            texts[name] = [YES] if value is True else [value] if isinstance(value, str) else value
    return {name: texts[name] for name in need_kinds() if name in texts}


def _print(chosen: Chosen, html: Path | None, *, no_open: bool, as_json: bool) -> None:
    summary = choice_summary(chosen)
    if as_json:
        print_json(summary)
    else:
        print_choice(summary)
    if html is None:
        return
    # The template library takes its time to import, which an answer in the terminal should not wait for.
    from sensorbench.report.catalog import write_choice

    page = write_choice(html, summary)
    if not as_json:
        console().print(f"page: {page}", highlight=False)
    open_page(page, no_open=no_open)
