"""Our client and loading against the databases' own tools: the same server, connections, operations in flight and pinning, in turn.

Prints figures and ratios, also those above 1; asserts nothing. Tools are downloaded into the lab's cache, not installed; latte
alone must be there already.
"""

import argparse
import os

from benches.clients import (
    cassandra,
    clickhouse,
    duckdb,
    influxdb,
    mariadb,
    postgresql,
    questdb,
    redis,
    tables,
    victoriametrics,
)
from benches.clients.loading import readings
from benches.processors import on_processor
from rich.console import Console

from sensorbench import lab
from sensorbench.errors import SensorbenchError

DATABASES = {"redis": redis, "postgresql": postgresql, "mariadb": mariadb, "cassandra": cassandra}
# What their clients cost is measured by the benches of their crates.
LOADED_ONLY = {"questdb": questdb, "influxdb": influxdb, "victoriametrics": victoriametrics, "clickhouse": clickhouse}
# Without a server: what their clients cost is measured by the benches of their crates.
EMBEDDED = {"duckdb": duckdb}


def main() -> None:
    """Starts each server on one processor, measures clients on another, prints."""
    parser = argparse.ArgumentParser(prog="benches.clients", description=__doc__.splitlines()[0])
    known = [*DATABASES, *LOADED_ONLY, *EMBEDDED]
    parser.add_argument("databases", nargs="*", metavar="DATABASE", help=f"of {', '.join(known)}; all if none is named")
    parser.add_argument("--quick", action="store_true", help="a tenth as much")
    arguments = parser.parse_args()
    if unknown := set(arguments.databases) - set(known):
        parser.error(f"{', '.join(sorted(unknown))}: expected {', '.join(known)}")
    share = 0.1 if arguments.quick else 1.0
    rows = readings(int(1_000_000 * share))
    cpus = sorted(os.sched_getaffinity(0))
    console = Console(width=200)
    for name in arguments.databases or known:
        if name in EMBEDDED:
            with on_processor(cpus[0]):
                console.print(tables.loads(EMBEDDED[name].loads(rows)))
            continue
        settings = DATABASES[name].SETTINGS if name in DATABASES else {}
        spec = lab.ServerSpec(name, name=f"bench-{name}", cpus=[cpus[-1]], settings=settings, stays=False)
        with lab.borrowed(spec) as instance, on_processor(cpus[0]):
            if name in DATABASES:
                console.print(tables.costs(DATABASES[name].costs(instance, share)))
            loads = (DATABASES[name] if name in DATABASES else LOADED_ONLY[name]).loads
            console.print(tables.loads(loads(instance, rows)))


if __name__ == "__main__":
    try:
        main()
    except SensorbenchError as error:
        raise SystemExit(f"{error}") from None
