"""`sensorbench lab`: real servers on this machine or on hosts, without Docker."""

from collections.abc import Callable
from typing import Annotated

import typer

from sensorbench import lab
from sensorbench.cli.confirm import Yes, confirm
from sensorbench.cli.options import Json
from sensorbench.cli.printing import new_table, print_json
from sensorbench.errors import UsageError
from sensorbench.options import parse_settings
from sensorbench.progress import ProgressReporter, Task, console, error_console
from sensorbench.report import formatting

app = typer.Typer(help="Real servers on this machine or on hosts: private, without Docker.", no_args_is_help=True)

_PLACED = "hosts.toml, ssh://a,ssh://b or local:3"

Name = Annotated[str, typer.Argument(help="Name of an instance; see `lab list`.")]


@app.command("databases")
def list_databases(json: Json = False) -> None:
    """List what the lab can start, which versions, and what is missing here."""
    rows = lab.databases()
    if json:
        print_json(rows)
        return
    table = new_table("database", "what", "version", "can start here")
    for row in rows:
        for version in row["versions"]:
            can = (
                "yes, it is in the cache"
                if version["here"]
                else f"no: {version['missing']}"
                if version["missing"]
                else "yes, it is downloaded first"
            )
            table.add_row(row["database"], row["summary"], version["version"], can)
    console().print(table)


@app.command("list")
def list_instances(json: Json = False) -> None:
    """List the instances that run."""
    lab.sweep()
    rows = [lab.status(instance) for instance in lab.read_instances()]
    if json:
        print_json(rows)
        return
    table = new_table("name", "database", "version", "nodes", "state", "target")
    for row in rows:
        table.add_row(row["name"], row["database"], row["version"], str(len(row["nodes"])), row["state"], f"lab:{row['name']}")
    console().print(table if rows else "no instance is running; start one with: sensorbench lab up DATABASE")


@app.command("up")
def up(
    database: Annotated[str, typer.Argument(help="Database to start; see `lab databases`.")],
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the instance; the database's name if not given.", show_default=False)
    ] = None,
    version: Annotated[str | None, typer.Option("--version", help="Version of the server.", show_default=False)] = None,
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", help="Nodes of a cluster; masters, if these have replicas.", min=1, show_default=False),
    ] = None,
    replicas: Annotated[
        int, typer.Option("--replicas", help="Replicas of each master, if the database supports them.", min=0)
    ] = 0,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--server-setting",
            help="Server setting: shared_buffers=1GB. May be given several times.",
            show_default=False,
        ),
    ] = None,
    cpus: Annotated[str | None, typer.Option("--cpus", help="CPUs for the server: 1, 0,2 or 1-3.", show_default=False)] = None,
    memory: Annotated[str | None, typer.Option("--memory", help="Memory for the server: 512M, 2G.", show_default=False)] = None,
    hosts: Annotated[
        str | None,
        typer.Option(
            "--hosts",
            help=f"Hosts that get its nodes, round robin: {_PLACED}. Without it, they are on this machine.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Start a server or cluster; it stays until `lab down`."""
    spec = lab.ServerSpec(
        database=database,
        name=name,
        version=version,
        nodes=nodes,
        replicas=replicas,
        settings=parse_settings(changes or ()),
        cpus=lab.parse_cpus(cpus) if cpus else None,
        memory_bytes=lab.parse_memory(memory) if memory else None,
        hosts=hosts,
    )
    with ProgressReporter(quiet=json).task(f"starting {database}") as task:
        instance = lab.up(spec)
        task.end(f"{instance.version}, {len(instance.nodes)} nodes" if len(instance.nodes) > 1 else instance.version)
    shown = lab.status(instance)
    if json:
        print_json(shown)
        return
    for what in ("cpus", "memory"):
        limited = shown["limits"][f"{what}_by"]
        if limited != "not limited":
            ProgressReporter().say(f"  {what}: {limited}")
    console().print(f"{instance.name} is running; use it as {lab.used_as(instance)}", highlight=False)
    console().print(f"  {shown['url']}\n  log: {shown['log']}", highlight=False)


@app.command("status")
def status(name: Name, json: Json = False) -> None:
    """Show how an instance does."""
    lab.sweep()
    shown = lab.status(lab.find_instance(name), ask_servers=True)
    if json:
        print_json(shown)
        return
    console().print(
        f"{shown['name']}: {shown['database']} {shown['version']}, {shown['state']}\n  {shown['url']}\n  log: {shown['log']}",
        highlight=False,
    )
    servers = list(dict.fromkeys(column for node in shown["nodes"] for column in node.get("server", ())))
    on_hosts = ["host"] if any("host" in node for node in shown["nodes"]) else []
    table = new_table("node", *on_hosts, "address", "process", "memory", "CPU time", *servers)
    for node in (*([shown["coordinator"]] if "coordinator" in shown else []), *shown["nodes"]):
        columns = (
            (str(node["pid"]), formatting.size(node["memory_bytes"]), f"{node['cpu_s']:.1f} s")
            if node["runs"]
            else ("gone" if node["runs"] is False else "unknown", "", "")
        )
        said = (node.get("server", {}).get(column, "") for column in servers)
        on_host = [node.get("host", "") for _ in on_hosts]
        table.add_row(str(node["number"] or "coordinator"), *on_host, node["address"], *columns, *said)
    console().print(table)
    for why in dict.fromkeys(node["unknown"] for node in shown["nodes"] if "unknown" in node):
        error_console().print(why, highlight=False, markup=False)


@app.command("add-node")
def add_node(
    name: Name,
    hosts: Annotated[
        str | None,
        typer.Option(
            "--hosts",
            help=f"Hosts that may have its nodes from now on, if it was started on hosts: {_PLACED}. Those that have nodes must be among them.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Start one more node and make it part of the cluster."""
    _change_node(
        f"adding a node to {name}",
        lambda task: lab.add_node(name, lambda text: task.advance_to(0, text), hosts=hosts),
        _placed,
        as_json=json,
    )


@app.command("start-node")
def start_node(
    name: Name,
    node: Annotated[
        int | None,
        typer.Option("--node", help="Number of the node; the first one that is down if not given.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Start a node that is down, with the data that it has on disk."""
    _change_node(f"starting a node of {name}", lambda _: lab.start_node(name, node), _placed, as_json=json)


@app.command("remove-node")
def remove_node(
    name: Name,
    node: Annotated[
        int | None, typer.Option("--node", help="Number of the node; the last one if not given.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Take a node out of the cluster and end it."""
    _change_node(
        f"removing a node from {name}", lambda _: lab.remove_node(name, node), lambda node: f"node {node.number}", as_json=json
    )


def _change_node(what: str, change: Callable[[Task], lab.Node], described: Callable[[lab.Node], str], *, as_json: bool) -> None:
    """Reports a change to a cluster while it is made, and then the node that it was about."""
    with ProgressReporter(quiet=as_json).task(what) as task:
        node = change(task)
        task.end(described(node))
    if as_json:
        print_json(node)


def _placed(node: lab.Node) -> str:
    on = f" on {node.placed_on}" if node.placed_on else ""
    return f"node {node.number} at {node.host}:{node.port}{on}"


@app.command("down")
def down(
    name: Annotated[str | None, typer.Argument(help="Name of an instance.", show_default=False)] = None,
    all_: Annotated[bool, typer.Option("--all", help="All instances, of all users; prompts first.")] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """End an instance and remove everything of it, its data too."""
    if (name is None) != all_:
        raise UsageError("lab down: name an instance, or give --all")
    if name is not None:
        lab.down(name)
        _print_ended([name], as_json=json)
        return
    found = lab.sizes()
    for folder in lab.foreign():
        error_console().print(f"{folder} stays: it is not an instance of the lab", highlight=False, markup=False)
    if found:
        named = ", ".join(f"{name} ({formatting.size(size)})" for name, size in found.items())
        confirm(f"stop these instances and remove all their data: {named}", yes=yes)
    _print_ended(lab.down_all() if found else [], as_json=json)


def _print_ended(names: list[str], *, as_json: bool) -> None:
    if as_json:
        print_json({"ended": names})
    else:
        console().print(f"ended: {', '.join(names)}" if names else "nothing ran", highlight=False)
