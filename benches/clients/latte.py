"""latte, a client that measures Cassandra: where it is, and what an operation costs it."""

import json
import os
import shutil
import tempfile
from pathlib import Path

from benches.clients import tools
from benches.clients.measuring import KEYS, Cost, Loop

from sensorbench.errors import UsageError
from sensorbench.lab import Instance

MISSING = "no latte on the PATH, in ~/.cargo/bin or named by LATTE; get it by: cargo install latte-cli"
WORKLOAD = Path(__file__).with_name("latte.rn")


def find() -> Path | None:
    """The program named by LATTE, that on the path, or that which cargo has installed."""
    if named := os.environ.get("LATTE"):
        if not os.access(named, os.X_OK):
            raise UsageError(f"LATTE={named}: expected the program latte; get it by: cargo install latte-cli")
        return Path(named)
    found = shutil.which("latte", path=os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path.home() / ".cargo/bin")]))
    return Path(found) if found else None


def cost(program: Path, instance: Instance, function: str, loop: Loop, rate_per_s: int | None = None) -> Cost:
    """Processor time is what it counts itself: without its start, and without what it works out at its end."""
    node = instance.nodes[0]
    rate: tools.Words = ["--rate", rate_per_s] if rate_per_s else []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        command: tools.Words = [
            program, "--log-dir", folder, "run", WORKLOAD, f"{node.host}:{node.port}", "--quiet", "--output", file,
            "--functions", function, "-P", f"rows={KEYS}", "--duration", loop.operations, "--concurrency", loop.concurrency,
            "--connections", 1, "--threads", 1, "--retries", 0, *rate,
        ]  # fmt: skip
        tools.call(command)
        report = json.loads(file.read_text(encoding="utf-8"))
    result, p99 = report["result"], report["percentiles"].index(99.0)
    if result["request_count"] != loop.operations or result["errors"]:
        raise RuntimeError(f"latte {function}: {result['request_count']} requests, {result['errors']}")
    return Cost(
        result["cpu_time_s"] / loop.operations * 1e6,
        loop.operations / result["elapsed_time_s"],
        result["request_latency"]["percentiles"][p99]["value"],
    )
