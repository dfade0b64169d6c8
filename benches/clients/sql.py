"""Loading into tables of SQL databases."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from benches.clients.loading import LoadComparison, Loaded, ServerCpu, as_csv, our_load
from benches.clients.measuring import in_turn

from sensorbench import lab

TheirRate = Callable[[str, Path], float]
TABLES = {"without a key": "", "with the key": ", PRIMARY KEY (floor, zone, sensor, time)"}


def loads(
    instance: lab.Instance, what: str, columns: str, rows: pa.Table, tool: str, their_rate: TheirRate
) -> list[LoadComparison]:
    """Into a table without a key, and into one with. `their_rate` has a tool load a file into a table with these columns."""
    with as_csv(rows) as file:
        pairs = {kind: _loads(instance, columns + key, rows, file, their_rate) for kind, key in TABLES.items()}
    return [
        LoadComparison(
            f"{what} {kind}",
            tool,
            [load.per_s for load in ours],
            [load.per_s for load in theirs],
            our_server_us=[load.server_us for load in ours],
            their_server_us=[load.server_us for load in theirs],
        )
        for kind, (ours, theirs) in pairs.items()
    ]


def _loads(instance: lab.Instance, columns: str, rows: pa.Table, file: Path, their_rate: TheirRate) -> list[list[Loaded]]:
    create = {"statements": [f"CREATE TABLE readings ({columns})"]}
    url = f"{lab.url_of(instance)}&namespace=bench"

    def theirs() -> Loaded:
        cpu = ServerCpu(instance)
        return Loaded(their_rate(columns, file), cpu.us_since_start(rows.num_rows))

    return in_turn(lambda: our_load(instance, url, create, "readings", rows), theirs)
