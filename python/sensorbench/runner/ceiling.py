"""What the client itself can do: how many operations per second when the database does as little as it can.

For an embedded database that is the driver alone; for a server it is the driver and the way there and back.
"""

import json
import math
import tempfile
from pathlib import Path

from sensorbench import _engine
from sensorbench.results.engine_plan import EnginePlan
from sensorbench.results.ownership import Owner, new_id
from sensorbench.runner.registered import Database
from sensorbench.runner.run import run_to_end
from sensorbench.runner.variants import Variant

# Long enough for a figure that is only there to be compared with much smaller ones.
SHORT_S = 0.25

NAMESPACE = "sensorbench_ceiling"


def driver_ceiling(database: Database, *, concurrency: int = 1, duration_s: float | None = None) -> float | None:
    """Operations per second through the whole engine and the driver, or None when only a server knows."""
    schema = _engine.no_op_schema(database.name)
    if schema is None or not database.embedded:
        return None
    with tempfile.TemporaryDirectory(prefix="sensorbench-ceiling-") as folder:
        return _ceiling(_engine.Target(f"{database.name}:{Path(folder) / 'empty'}"), schema, concurrency, duration_s or SHORT_S)


def server_ceiling(variant: Variant, *, concurrency: int = 1, duration_s: float | None = None) -> float | None:
    """The same at a server that is up, in a namespace that is removed again; None when the driver knows no such operation."""
    schema = _engine.no_op_schema(variant.target.database.name)
    if schema is None:
        return None
    return _ceiling(variant.beside(NAMESPACE).engine_target(), schema, concurrency, duration_s or SHORT_S)


def _ceiling(target: _engine.Target, schema: str, concurrency: int, duration_s: float) -> float:
    owner = Owner(new_id(), "of a measurement of the client's ceiling").to_json()
    target.create(schema, "", intent="replace", owner=owner)
    operation = json.loads(schema)["operations"][0]
    plan: EnginePlan = {
        "seed": 0,
        "operations": [{"weight": 1.0, "operation": operation}],
        "phases": [{"name": "measure", "duration_s": duration_s}],
        "concurrency": concurrency,
        "timeout_s": 10.0,
    }
    (phase,) = run_to_end(target, plan)[1].phases
    target.remove(owner=owner)
    return phase.operations[operation["name"]]["counts"]["ok"] / (phase.length_s or math.inf)
