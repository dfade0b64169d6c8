"""`summary.json` of a stress run: its steps, what the servers said during each, the capacity that was found, and what to mind."""

from dataclasses import asdict
from typing import Any

from sensorbench.analysis.capacity import Capacity, Search, Trial, capacity
from sensorbench.analysis.steady import LEAST_WINDOWS, time_to_steady
from sensorbench.results.insight import Insight, insight, over
from sensorbench.results.stress import StressResult
from sensorbench.stress.figures import begun_steps, ends_of, step_figures
from sensorbench.stress.objective import Objective

# Servers are asked once a second; a step has so many windows, but none is shorter than two questions.
WINDOWS, LEAST_WINDOW_S = 60, 2.0


def summarise_stress(result: StressResult) -> dict[str, Any]:
    """The summary. Times in s, rates in operations a second."""
    manifest = result.manifest
    steps = [{**step, "servers": of_servers} for step, of_servers in zip(step_figures(result), _servers(result), strict=True)]
    found = _capacity(result, steps)
    return {
        **manifest.head(result.state),
        "objective": manifest.objective,
        "search": manifest.search,
        "steps": steps,
        "capacity": found,
        "errors": [error for run in result.runs if run.manifest.whole for error in run.manifest.whole.errors],
        "warnings": _damaged(result) + _warnings(manifest.setting.embedded, steps, found),
    }


def _servers(result: StressResult) -> list[dict[str, Any]]:
    """What the servers said during each step that was begun, and after which time each cache's hit rate was steady in it."""
    found = []
    for run in (run for run in result.runs if run.manifest.whole):
        said = insight(run, result.manifest.setting.database)
        duration_ns = run.manifest.whole.duration_ns if run.manifest.whole else 0
        for phase in begun_steps(run):
            from_s, to_s = (time_ns / 1e9 for time_ns in ends_of(phase, duration_ns))
            found.append({**asdict(over(said, from_s, to_s)), "steady_after_s": _steady(said, from_s, to_s)})
    return found


def _steady(said: Insight, from_s: float, to_s: float) -> dict[str, float | None]:
    """For each cache that was asked, how long after the step began its hit rate was steady; None where it was not, or is not known."""
    window_s = max(LEAST_WINDOW_S, (to_s - from_s) / WINDOWS)
    steady = {}
    for name, (times_s, hits, requests) in said.caches.items():
        inside = (times_s >= from_s) & (times_s <= to_s)
        if inside.sum() > LEAST_WINDOWS and requests[inside][-1] > requests[inside][0]:
            steady[name] = time_to_steady(times_s[inside], hits[inside], requests[inside], window_s=window_s)
    return steady


def _capacity(result: StressResult, steps: list[dict[str, Any]]) -> dict[str, Any] | None:
    """What a search found; trials that were cut short say nothing."""
    objective, searched = result.manifest.objective, result.manifest.search
    if objective is None or searched is None:
        return None
    wanted = Objective(**objective)
    whole = [step for step in steps if "share_within" in step]
    for step in whole:
        step["met"] = wanted.is_met(step["share_within"])
    trials = [Trial(step["rate_per_s"], step["met"]) for step in whole]
    search = Search(**{key: value for key, value in searched.items() if key not in ("held_s", "ramp_s")})
    found: Capacity = capacity(trials, search)
    at_top = [step for step in steps if step.get("met") is False and step["rate_per_s"] == found.missed_per_s]
    return {
        **asdict(found),
        "trials": len(trials),
        "client_bound": next((step["client_bound"] for step in at_top if step["client_bound"]), None),
    }


def _damaged(result: StressResult) -> list[dict[str, str]]:
    """Files of the results that are damaged, and without which all else can be shown."""
    action = "Restore the file from a copy."
    return [{"kind": "damaged", "text": f"A file of the results is damaged: {text}.", "action": action} for text in result.damage]


def _warnings(embedded: bool, steps: list[dict[str, Any]], found: dict[str, Any] | None) -> list[dict[str, str]]:
    """What to mind, each with what to do."""
    warnings = []

    def warn(kind: str, text: str, action: str) -> None:
        warnings.append({"kind": kind, "text": text, "action": action})

    bound = [step for step in steps if step["client_bound"]]
    if bound:
        warn(
            "client-bound",
            f"At {_rates(bound)} the client was the limit; at the first of them, {bound[0]['client_bound']}.",
            "Read what these steps reached as a lower bound; use more --threads, or another machine for the client.",
        )
    full = [step for step in steps if step["all_in_flight"] and not step["client_bound"]]
    if full:
        warn(
            "all-in-flight",
            f"At {_rates(full)} all operations that may be in flight were, nearly all the time.",
            "The server is beyond its capacity, or would take more at once: raise --in-flight and see whether more is completed.",
        )
    steered = [step for step in steps if step["steered"]]
    if steered:
        warn("steered", f"At {_rates(steered)} the rate was changed by hand.", "Figures of these steps are of several rates.")
    failed = sum(step["error"] for step in steps)
    if failed:
        warn("errors", f"{failed:,} operations failed.", "Mend the cause: an operation that fails at once makes room for others.")
    if found and not found["is_confirmed"]:
        warn(
            "unconfirmed",
            "The search ended before both ends of the interval were confirmed.",
            "Search again with a longer --step.",
        )
    if embedded:
        warn(
            "embedded",
            "The database runs inside the client's process and shares its processors.",
            "Compare it with embedded databases only.",
        )
    return warnings


def _rates(steps: list[dict[str, Any]]) -> str:
    rates = [f"{step['rate_per_s']:,.0f}" if step["rate_per_s"] >= 10 else f"{step['rate_per_s']:g}" for step in steps]
    different = list(dict.fromkeys(rates))
    more = f" and {len(different) - 4} more rates" if len(different) > 4 else ""
    return f"{', '.join(different[:4])} operations/s{more}"
