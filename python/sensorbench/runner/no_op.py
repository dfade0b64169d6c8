"""What the client can do on this machine at this time, on a database that does nothing: how fast, and how late its timer is."""

import math
import time
from collections.abc import Callable
from functools import lru_cache

from sensorbench import _engine
from sensorbench.results.described import DescribedClient
from sensorbench.results.engine_plan import EnginePlan, PlannedPhase
from sensorbench.results.engine_report import LatencyReport
from sensorbench.results.manifest import PhaseFigures
from sensorbench.runner.run import run_to_end

TIMER_RATE = 1000
# Long enough for figures by which one day is distinguished from another, short enough to come before every benchmark.
_TIMER_S, _RATE_S = 0.15, 0.05
# A process that makes many benchmarks measures again after this long.
_FRESH_S = 600.0


def client_figures() -> DescribedClient:
    """What manifests say of the client: the timer lag and the no-op rate of the doctor, measured for a moment, at most once in ten minutes of a
    process.
    """
    return _measured(int(time.monotonic() / _FRESH_S))


@lru_cache(maxsize=1)
def _measured(_: int) -> DescribedClient:
    phase = do_nothing({"name": "measure", "duration_s": _RATE_S})
    return {"timer_lag_s": timer_lag_s(_TIMER_S), "null_ops_per_s": phase.started / (phase.length_s or math.inf)}


def timer_lag_s(duration_s: float) -> float:
    """The p99 (s) of the response time at 1,000/s on a database that does nothing. Each operation waits for its intended start, so that all
    of it is the lateness of a client that has to be woken up.
    """
    return response_of(do_nothing(at_rate(TIMER_RATE, duration_s), concurrency=64))["p99"] / 1e9


def at_rate(per_s: float, duration_s: float) -> PlannedPhase:
    """A phase in which operations come at a rate."""
    return {"name": "measure", "duration_s": duration_s, "pace": {"segments": [{"from_per_s": per_s}]}}


def do_nothing(
    phase: PlannedPhase,
    url: str = "null:",
    *,
    concurrency: int = 1,
    spin: bool = False,
    on_segment: Callable[[_engine.Run, object], None] = lambda *_: None,
) -> PhaseFigures:
    """What became of a phase of operations that do nothing."""
    plan: EnginePlan = {
        "seed": 1,
        "operations": [{"weight": 1.0, "operation": {"name": "nothing"}}],
        "phases": [phase],
        "concurrency": concurrency,
        "timeout_s": 60.0,
        "spin": spin,
    }
    return run_to_end(_engine.Target(url), plan, on_segment=on_segment)[1].phases[0]


def response_of(phase: PhaseFigures) -> LatencyReport:
    """The response times (ns) of such a phase."""
    response = phase.operations["nothing"]["response_ns"]
    if response is None:
        raise AssertionError("a database that does nothing answers")
    return response
