"""`sensorbench target`: what sensorbench left at your servers, and removing it."""

from typing import Annotated

import typer

from sensorbench.cli.confirm import Yes, confirm
from sensorbench.cli.options import Json
from sensorbench.cli.printing import new_table, print_json
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter, console
from sensorbench.report import formatting
from sensorbench.runner import OwnedNamespace, owned_namespaces

app = typer.Typer(help="List and remove what sensorbench left at a target.", no_args_is_help=True)

At = Annotated[str, typer.Argument(metavar="URL", help="URL of a target, or lab:NAME.")]


@app.command("list")
def list_namespaces(url: At, json: Json = False) -> None:
    """List the namespaces that sensorbench created at a target: when, by which results folder, and their size. Others are not listed."""
    found = owned_namespaces(url)
    if json:
        print_json([_as_json(namespace) for namespace in found])
        return
    if not found:
        console().print("sensorbench has no namespace there")
        return
    table = new_table("namespace", "created", "by the results folder", "size")
    for owned_namespace in found:
        created = f"{owned_namespace.created:%Y-%m-%d %H:%M} UTC" if owned_namespace.created else "not known"
        table.add_row(
            owned_namespace.name,
            created,
            owned_namespace.folder or "not known: an earlier version created it",
            _size(owned_namespace),
        )
    console().print(table)


@app.command("clean")
def clean(
    url: At,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace",
            help="Namespace to remove; all that sensorbench created if not given. May be given several times.",
            show_default=False,
        ),
    ] = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Remove namespaces that sensorbench created at a target, after asking. Nothing else is ever removed."""
    found = owned_namespaces(url)
    unknown = set(namespace or ()) - {owned.name for owned in found}
    if unknown:
        raise UsageError(
            f"--namespace {min(unknown)}: sensorbench created no such namespace there; `sensorbench target list` shows those that it did"
        )
    chosen = [owned for owned in found if not namespace or owned.name in namespace]
    if chosen:
        confirm(f"remove {', '.join(f'{owned.name} ({_size(owned)})' for owned in chosen)}", yes=yes)
    reporter = ProgressReporter(quiet=json)
    for owned in chosen:
        with reporter.task(f"removing {owned.name}") as task:
            owned.remove()
            task.end("removed")
    if json:
        print_json([_as_json(owned) for owned in chosen])
    elif not chosen:
        console().print("sensorbench has no namespace there; nothing is removed")


def _as_json(namespace: OwnedNamespace) -> dict[str, object]:
    created = namespace.created.isoformat() if namespace.created else None
    return {"namespace": namespace.name, "created": created, "folder": namespace.folder, "bytes": namespace.bytes}


def _size(namespace: OwnedNamespace) -> str:
    return "size not known" if namespace.bytes is None else formatting.size(namespace.bytes)
