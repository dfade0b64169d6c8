"""`sensorbench hosts`: whether the hosts of load generators and nodes are fit to measure."""

from typing import Annotated

import typer
from rich.text import Text

from sensorbench.app.hosts import CheckedHost, CheckedHosts, check_hosts
from sensorbench.cli.options import Json
from sensorbench.cli.printing import new_table, print_json
from sensorbench.errors import FailedError
from sensorbench.hosts.chosen import choose_hosts
from sensorbench.progress import ProgressReporter, console
from sensorbench.report import formatting

app = typer.Typer(help="Check hosts for load generators and nodes: are they fit to measure?", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command("check")
def check(
    hosts: Annotated[
        str,
        typer.Argument(
            metavar="HOSTS",
            help="Hosts, as for --hosts: a file (hosts.toml), local:N, ssh://USER@HOST:PORT (several with commas), or tls://HOST:PORT.",
        ),
    ],
    json: Json = False,
) -> None:
    """Check hosts: reached, of the same build, clocks, connections, disk, memory, fit to measure. Exit code 1 names what is wrong."""
    checked = check_hosts(choose_hosts(hosts), ProgressReporter(quiet=json))
    print_json(checked) if json else _print(checked)
    if checked.problems:
        raise FailedError("; ".join(checked.problems))


def _print(checked: CheckedHosts) -> None:
    screen = console()
    texts = {"host", "address", "roles", "version", "fit to measure"}
    table = new_table(
        "host",
        "address",
        "roles",
        "version",
        "time of day ahead by",
        "known to ±",
        "free disk",
        "free memory",
        "fit to measure",
        texts=texts,
        wide=True,
    )
    for host in checked.hosts:
        table.add_row(*_cells(host))
    screen.print(table)
    screen.print()
    links = new_table("from", "to", "round trip", "bandwidth", texts={"from", "to"}, wide=True)
    for link in checked.links:
        bandwidth = "–" if link.bytes_per_s is None else f"{formatting.size(link.bytes_per_s)}/s"
        links.add_row(link.source, link.to, formatting.duration(link.round_trip_s), bandwidth)
    screen.print(links)


def _cells(host: CheckedHost) -> list[str | Text]:
    verdict = Text("no", style="red") if host.problems else Text("yes", style="green")
    if not host.problems and host.diagnosis is not None:
        verdict.append(f": {host.diagnosis.verdict}", style="default")
    return [
        host.name,
        host.address or "–",
        ", ".join(host.roles),
        host.version or "–",
        formatting.signed_duration(host.wall_offset_s),
        formatting.duration(host.bound_s),
        "–" if host.free_disk_bytes is None else formatting.size(host.free_disk_bytes),
        "–" if host.free_memory_bytes is None else formatting.size(host.free_memory_bytes),
        verdict,
    ]
