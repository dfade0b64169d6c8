"""`make bench`: what the client costs, beside the marks that others set. Prints figures; asserts nothing."""

import argparse
import json
import os
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from benches.own_history import ROOT, STORE, commit_of, keep_and_compare, own_result
from rich.console import Console
from rich.table import Table

from sensorbench import _engine, lab
from sensorbench.analysis.capacity import Search
from sensorbench.benchmarks.doctor.ceilings import TARGETS, measure, rss_growth_bytes
from sensorbench.benchmarks.stress.objective import Objective
from sensorbench.benchmarks.stress.records import RecordWork
from sensorbench.benchmarks.stress.run import CapacitySearch, Load, StressPlan, stress
from sensorbench.benchmarks.stress.summary import summarise_stress
from sensorbench.compat.ycsb import CoreWorkload
from sensorbench.progress import ProgressReporter
from sensorbench.report import formatting
from sensorbench.runner.variants import parse_target

AIMS = {
    "null_ops_per_s": "at least 8 million, aim 15 million",
    "open_loop_p99_us": "as small as the machine's timer allows",
    "stall_p999_error": "at most 2%",
    "generator_rows_per_s": "at least 20 million",
    "rss_growth_bytes": "flat",
    "first_operation_s": "at most 0.3 s",
    "capacity_error": "at most 5%",
}
# The lab starts them for their benches.
HTTP_SERVERS = ("influxdb", "victoriametrics", "prometheus", "opentsdb", "clickhouse", "iotdb")
# With what follows the address: the database that a hand-written loop asks for.
POSTGRESQL_WIRE_SERVERS = {"postgresql": "/postgres", "questdb": "/qdb"}


def first_operation_s() -> float:
    """From the engine call to when the first operation is seen to have started."""
    plan = {
        "seed": 1,
        "operations": [{"weight": 1.0, "operation": {"name": "nothing"}}],
        "concurrency": 1,
        "timeout_s": 60.0,
        "phases": [{"name": "measure", "operations": 10_000_000}],
    }
    target = _engine.Target("null:")
    start_s = time.perf_counter()
    run = target.run(json.dumps(plan), [])
    while json.loads(run.snapshot())["phases"][0]["started"] == 0:
        pass
    first_s = time.perf_counter() - start_s
    run.cancel()
    run.end()
    return first_s


WORKERS, SERVICE_S = 4, 0.005


def capacity_error(held_s: float) -> float:
    """How far the highest rate that is found for a database of known capacity is from arithmetic: `WORKERS` that take `SERVICE_S` each."""
    target = parse_target(f"null:?delay_ms={SERVICE_S * 1e3:g}&session=blocking")
    objective = Objective("p99", 0.02)
    wanted = CapacitySearch(objective, Search(100.0, precision=0.02), held_s, ramp_s=0.5)
    with tempfile.TemporaryDirectory(prefix="sensorbench-capacity-") as folder:
        work = RecordWork(target, CoreWorkload(recordcount=1), Path(folder) / "out", seed=1, replace=False)
        result = stress(StressPlan(work, Load(WORKERS, arrival="constant"), wanted), Path(folder) / "out", ProgressReporter())
        found = summarise_stress(result).result.capacity
    if found is None or found.met_per_s is None:
        raise AssertionError("a search begins far below what this database can do")
    return abs(found.met_per_s / (WORKERS / SERVICE_S) - 1.0)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth as long")
    parser.add_argument("--memory", action="store_true", help="also memory over a billion operations (minutes)")
    parser.add_argument("--overhead-only", action="store_true", help="only what drivers cost beside hand-written loops")
    parser.add_argument(
        "--server",
        action="append",
        choices=(*HTTP_SERVERS, *POSTGRESQL_WIRE_SERVERS),
        help="only what the driver of this server costs beside a hand-written loop; may be repeated",
    )
    parser.add_argument("--no-history", action="store_true", help="keep the figures in no history")
    arguments = parser.parse_args()
    if arguments.server:
        for name in arguments.server:
            _measure_server(name)
        return
    if not arguments.overhead_only:
        _measure_client(arguments)
    _measure_overhead()


def _measure_client(arguments: argparse.Namespace) -> None:
    figures = measure(ProgressReporter(), quick=arguments.quick)
    figures["first_operation_s"] = first_operation_s()
    figures["capacity_error"] = capacity_error(1.0 if arguments.quick else 10.0)
    if arguments.memory:
        figures["rss_growth_bytes over 1e9"] = rss_growth_bytes(1_000_000_000)

    table = Table(box=None)
    for column in ("what", "measured", "wanted", "marks of others"):
        table.add_column(column)
    for name, value in figures.items():
        for key, measured in value.items() if isinstance(value, dict) else [("", value)]:
            table.add_row(f"{name} {key}".strip(), _described(measured), AIMS.get(name, ""), TARGETS.get(name, ""))
    Console().print(table)
    if not arguments.no_history:
        print(f"\nBeside the last time on a machine of this type ({STORE.relative_to(ROOT)}):", flush=True)
        Console().print(keep_and_compare(own_result(figures, quick=arguments.quick, commit=commit_of())))
    print("\nByte-array batches, a reading (wanted to decode regular ones: packed 1 to 2 ns, gorilla about 10):", flush=True)
    _cargo_bench("sensorbench-dataset", "encodings")


def _measure_overhead() -> None:
    print("\nProcessor time of SQLite through the engine, against a hand-written loop (wanted: at most 1.15):", flush=True)
    _cargo_bench("sensorbench-driver-sqlite", "overhead")
    print(
        "\nCPU time of DuckDB through the engine, against a loop that calls the C API by hand (wanted: at most 1.1):",
        flush=True,
    )
    _cargo_bench("sensorbench-driver-duckdb", "overhead", library_variables())
    for name in (*HTTP_SERVERS, *POSTGRESQL_WIRE_SERVERS):
        _measure_server(name)


def _measure_server(name: str) -> None:
    """On a server of the lab, which is there for this alone."""
    if (database := POSTGRESQL_WIRE_SERVERS.get(name)) is not None:
        crate, library = "sensorbench-driver-postgresql", "tokio-postgres"
    else:
        crate, library = "sensorbench-driver-http", "hyper"
    print(
        f"\nCPU time of {name} through the engine, against a hand-written loop over {library} (wanted: at most 1.1):", flush=True
    )
    with lab.borrowed(lab.ServerSpec(name, name=f"bench-{name}", stays=False)) as server:
        _cargo_bench(crate, "overhead", {"SENSORBENCH_TEST_URL": f"{_url_with_password(server)}{database or ''}"})


def _url_with_password(server: lab.Instance) -> str:
    """Benches read no files of credentials, so the environment of theirs has the password."""
    node = server.nodes[0]
    user = "root" if server.database == "iotdb" else "sensorbench"
    login = f"{user}:{quote(server.password(), safe='')}@" if server.credentials.exists() else ""
    return f"{server.database}://{login}{node.host}:{node.port}"


def library_variables() -> dict[str, str]:
    """What shows the benches and tests of DuckDB's crate, which run in no Python, where its library is and that of the Python that it is for."""
    extension = find_spec("_duckdb")
    python = Path(sysconfig.get_config_var("LIBDIR")) / sysconfig.get_config_var("INSTSONAME")
    return {"SENSORBENCH_TEST_DUCKDB": str(extension and extension.origin), "SENSORBENCH_TEST_PYTHON": str(python)}


def _cargo_bench(package: str, bench: str, variables: Mapping[str, str] | None = None) -> None:
    command = ["cargo", "bench", "--quiet", "--package", package, "--bench", bench]
    subprocess.run(command, env={**os.environ, **(variables or {})}, check=True)


def _described(value: object) -> str:
    if isinstance(value, float) and abs(value) < 1.0:
        return f"{value:.4f}"
    return formatting.count(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


if __name__ == "__main__":
    main()
