"""`summary.json` of a work on elasticity: each transition with its measurements, its scores, what clients suffered and what was lost."""

from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sensorbench.analysis import guarantees
from sensorbench.analysis.dips import dip
from sensorbench.analysis.elasticity import LEAST_SETS, Sets, elasticity, scalability, stability
from sensorbench.analysis.request_sets import Requests, request_sets
from sensorbench.analysis.sample import Floats
from sensorbench.analysis.usl import LEAST_SIZES, fit_usl
from sensorbench.elasticity.changes import BEGIN, DONE, NOTICED
from sensorbench.elasticity.course import FAILED
from sensorbench.elasticity.wish import REQUESTS
from sensorbench.experiment.guaranteed import beside_promises
from sensorbench.results import RunResult
from sensorbench.results.elasticity import ElasticityResult
from sensorbench.results.history import HISTORY_FILE, read_history
from sensorbench.results.insight import insight
from sensorbench.stress.figures import counts_of

# The rules by which a cluster is stable again, and what they are called.
RULES = {"by_band": "by_band_at_s", "by_rule": "at_s", "in_band": "in_band_at_s"}


def summarise_elasticity(result: ElasticityResult) -> dict[str, Any]:
    """The summary. Times in s, areas in s²."""
    manifest = result.manifest
    transitions = [transition(run) for run in result.runs]
    return {
        **manifest.head(result.state),
        "dataset": manifest.dataset,
        "changes": manifest.changes,
        "load": result.load,
        "transitions": transitions,
        "scalability": _scalability(transitions),
        "law": _law(transitions),
        "errors": [error for run in result.runs if run.manifest.whole for error in run.manifest.whole.errors],
        "warnings": [warning for one in transitions for warning in one["warnings"]],
    }


def transition(run: RunResult) -> dict[str, Any]:
    """What became of one run with its change."""
    plan = run.manifest.plan
    events = _events(run)
    begun_at_s, done_at_s = _moment(events, BEGIN), _moment(events, DONE)
    sets = _sets(run)
    scored_from_s = _scored_from_s(sets, begun_at_s)
    is_quiet = plan["change"]["kind"] == "stay"
    failed = next((event["name"].removeprefix(f"{FAILED}: ") for event in events if event["name"].startswith(FAILED)), None)
    one: dict[str, Any] = {
        "number": run.manifest.repeat,
        "state": run.state,
        "reason": run.manifest.reason,
        "failed": failed,
        **{key: plan[key] for key in ("change", "nodes", "articles", "request_threads", "requests_per_set", "executions")},
        "sets": {
            "time_s": sets.times_s.tolist(),
            "duration_s": sets.durations_s.tolist(),
            "sd_s": sets.deviations_s.tolist(),
        },
        "events": events,
        "begun_at_s": begun_at_s,
        "scored_from_s": scored_from_s,
        "transfer_s": done_at_s - begun_at_s if begun_at_s is not None and done_at_s is not None else None,
        "noticed_s": _noticed_s(events, begun_at_s),
        "before": _level(sets, 0.0, scored_from_s),
        "scores": {} if is_quiet else _scores(run, sets, scored_from_s, begun_at_s, done_at_s),
        "dip": None if is_quiet else _dip(run, begun_at_s),
        "counts": _counts(run),
        "guarantees": _guarantees(run),
        "servers": _requests_per_node(run, begun_at_s, done_at_s),
    }
    return {**one, "warnings": _warnings(one)}


def _events(run: RunResult) -> list[dict[str, Any]]:
    """What happened, in its order, on the run's clock."""
    table = run.table("events")
    rows = table.sort_by("time_ns").to_pylist() if table is not None else []
    return [{"time_s": row["time_ns"] / 1e9, "name": row["name"]} for row in rows]


def _moment(events: list[dict[str, Any]], name: str) -> float | None:
    return next((event["time_s"] for event in events if event["name"] == name), None)


def _noticed_s(events: list[dict[str, Any]], begun_at_s: float | None) -> float | None:
    """After how long the other nodes knew that one does not answer; None where that is not known."""
    at_s = next((event["time_s"] for event in events if event["name"].endswith(NOTICED)), None)
    return None if at_s is None or begun_at_s is None else at_s - begun_at_s


def _sets(run: RunResult) -> Sets:
    """The measurements that count: those of the warm-up are left out."""
    plan = run.manifest.plan
    log = run.table("operations")
    if log is None:
        return Sets(*(np.empty(0) for _ in range(3)))
    kinds = [number for number, name in enumerate(run.manifest.operations) if name in REQUESTS]
    wanted = log.filter(pc.is_in(log["operation"], pa.array(kinds, log["operation"].type))).sort_by("k")
    requests = Requests(*(wanted[name].to_numpy().astype(np.int64) for name in ("scheduled_ns", "start_ns", "end_ns")))
    is_open_loop = plan["phases"][0]["pace"] is not None
    sets = request_sets(requests, plan["requests_per_set"], plan["executions"], plan["request_threads"] if is_open_loop else None)
    return sets.only(slice(plan["warm_up"], None))


def _scored_from_s(sets: Sets, begun_at_s: float | None) -> float | None:
    """The beginning of the measurement in which the change began: it is none of those before."""
    if begun_at_s is None:
        return None
    place = int(np.searchsorted(sets.times_s, begun_at_s, side="right")) - 1
    return float(sets.times_s[place]) if place >= 0 else begun_at_s


def _level(sets: Sets, from_s: float, to_s: float | None) -> dict[str, float] | None:
    """Mean and standard deviation of the set times of a stretch, and how many there are; None where there are fewer than two."""
    durations_s = sets.between(from_s, np.inf if to_s is None else to_s).durations_s
    if len(durations_s) < 2:
        return None
    return {"mean_s": float(durations_s.mean()), "sd_s": float(durations_s.std(ddof=1)), "sets": len(durations_s)}


def _scores(
    run: RunResult, sets: Sets, scored_from_s: float | None, begun_at_s: float | None, done_at_s: float | None
) -> dict[str, dict[str, Any]]:
    """By rule: when the cluster was stable again, after its data were where they belong, and the score with that."""
    if scored_from_s is None or begun_at_s is None or done_at_s is None:
        return {}
    try:
        found = stability(sets, scored_from_s, done_at_s)
    except ValueError:
        return {}
    per_thread = run.manifest.plan["requests_per_set"] / run.manifest.plan["request_threads"]
    scores: dict[str, dict[str, Any]] = {}
    for name, rule in RULES.items():
        stable_at_s = getattr(found, rule)
        if stable_at_s is None:
            scores[name] = {"stable_at_s": None}
            continue
        try:
            score = asdict(elasticity(sets, scored_from_s, stable_at_s, per_thread))
        except ValueError as error:
            scores[name] = {"stable_at_s": stable_at_s, "reason": str(error)}
            continue
        scores[name] = {
            **score,
            "additional_s": stable_at_s - done_at_s,
            "total_s": stable_at_s - begun_at_s,
            "after": _level(sets, stable_at_s, None),
        }
    return scores


def _dip(run: RunResult, begun_at_s: float | None) -> dict[str, Any] | None:
    """What clients suffered after the change began, second by second."""
    log = run.table("operations")
    if log is None or begun_at_s is None or not len(log):
        return None
    ends_s = log["end_ns"].to_numpy() / 1e9
    try:
        return asdict(dip(ends_s, pc.equal(log["outcome"], "ok").to_numpy(), begun_at_s, float(ends_s.max())))
    except ValueError:
        return None


def _counts(run: RunResult) -> dict[str, int] | None:
    """What became of all operations, those on registers included: offered = started + unstarted; started = all outcomes."""
    phases = run.manifest.whole.phases if run.manifest.whole else []
    if not phases:
        return None
    counts = counts_of(phases[0]).model_dump()
    return {"unstarted": counts.pop("dropped"), **counts}


def _guarantees(run: RunResult) -> dict[str, Any] | None:
    """What the checker found in the history of the run's registers, and what was promised."""
    file = run.folder / HISTORY_FILE
    if not file.exists():
        return None
    checked = guarantees.check(read_history(file))
    settings = run.manifest.description.get("settings", {})
    return {**checked.summary(), **beside_promises(checked, run.manifest.setting.promises, settings)}


def _requests_per_node(run: RunResult, begun_at_s: float | None, done_at_s: float | None) -> dict[str, dict[str, Any]]:
    """Requests that each node served before the change, while it went on, and afterwards, by its own count, and how many processors were busy
    with that, where the lab knows its processes; nodes that tell no requests are absent.
    """
    if begun_at_s is None or run.manifest.whole is None:
        return {}
    end_s = run.manifest.whole.duration_ns / 1e9
    edges = {"before": (0.0, begun_at_s), "during": (begun_at_s, done_at_s or end_s), "after": (done_at_s or end_s, end_s)}
    lengths_s = {name: to_s - from_s for name, (from_s, to_s) in edges.items()}
    served: dict[str, dict[str, Any]] = {}
    for node, said in insight(run, run.manifest.setting.database).nodes.items():
        if "requests" in said.series:
            busy_s = _growth(said.series["processor_s"], edges) if "processor_s" in said.series else {}
            processors = {name: grown / lengths_s[name] for name, grown in busy_s.items() if lengths_s[name] > 0.0}
            served[node] = {**_growth(said.series["requests"], edges), "processors": processors}
    return served


def _growth(series: tuple[Floats, Floats], edges: dict[str, tuple[float, float]]) -> dict[str, float]:
    """By how much a counter grew in each stretch."""
    grown = {name: np.interp(edge, *series) for name, edge in edges.items()}
    return {name: float(to - at) for name, (at, to) in grown.items()}


def _scalability(transitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Between transitions with more nodes, and data and load in proportion: how much longer sets take (7.4)."""
    found = []
    for one, other in pairwise(transitions):
        if other["nodes"] > one["nodes"] and _in_proportion(one, other) and one["before"] and other["before"]:
            score = scalability(one["before"]["mean_s"], other["before"]["mean_s"])
            found.append({"from_nodes": one["nodes"], "to_nodes": other["nodes"], "scalability": score})
    return found


def _in_proportion(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether data and load of two transitions are in the proportion of their nodes."""
    grown = other["nodes"] / one["nodes"]
    return bool(other["articles"] / one["articles"] == grown == other["requests_per_set"] / one["requests_per_set"])


def _law(transitions: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The universal scalability law of requests a second, where data and load were in proportion to three numbers of nodes or more."""
    if not transitions:
        return None
    first, measured = transitions[0], dict[int, list[float]]()
    for one in transitions:
        if one["before"] and _in_proportion(first, one):
            before_s = [
                duration_s
                for time_s, duration_s in zip(one["sets"]["time_s"], one["sets"]["duration_s"], strict=True)
                if one["scored_from_s"] is None or time_s < one["scored_from_s"]
            ]
            measured.setdefault(one["nodes"], []).extend(one["requests_per_set"] / duration_s for duration_s in before_s)
    if len(measured) < LEAST_SIZES:
        return None
    law = fit_usl({nodes: np.array(per_s) for nodes, per_s in measured.items()})
    reached = {str(nodes): float(np.mean(per_s)) for nodes, per_s in measured.items()}
    return {**asdict(law), "reached_per_s": reached}


def _warnings(one: dict[str, Any]) -> list[dict[str, str]]:
    """What to mind, each with what to do."""
    warnings = []

    def warn(kind: str, text: str, action: str) -> None:
        warnings.append({"kind": kind, "text": f"{one['number']}. {one['change']['title']}: {text}", "action": action})

    if one["failed"]:
        warn("change-failed", f"the change failed: {one['failed']}.", "Its figures are of the load alone; see the lab's log.")
    elif one["scores"] and one["scores"]["by_band"]["stable_at_s"] is None:
        warn(
            "not-stable",
            "no rule found the cluster stable again.",
            "Raise --at-most, or --before, so that the level is better known.",
        )
    between = one["scores"].get("by_band", {}).get("sets_between", LEAST_SETS)
    if between < LEAST_SETS:
        warn(
            "few-sets",
            f"{between} measurements between the change and stability.",
            "Make sets shorter by --requests or --executions.",
        )
    if one["guarantees"] and one["guarantees"]["broken"]:
        broken = ", ".join(one["guarantees"]["broken"]).replace("_", " ")
        warn("broken-promise", f"promised not to occur, and seen: {broken}.", "See the examples in summary.json.")
    return warnings
