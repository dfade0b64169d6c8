"""`summary.json` of changes of a cluster: each transition with its measurements, its scores, what clients suffered and what was lost."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sensorbench.analysis import guarantees
from sensorbench.analysis.dips import Windows, dip, windows
from sensorbench.analysis.elasticity import MIN_SETS, Sets, elasticity, scalability, stability
from sensorbench.analysis.request_sets import Requests, request_sets
from sensorbench.analysis.sample import Floats
from sensorbench.analysis.usl import MIN_SIZES, fit_usl
from sensorbench.benchmarks.elasticity.changes import BEGIN, DONE, NOTICED
from sensorbench.benchmarks.elasticity.moves import data_moves
from sensorbench.benchmarks.elasticity.scenario import FAILED
from sensorbench.benchmarks.elasticity.spec import REQUESTS
from sensorbench.benchmarks.stress import counts_of
from sensorbench.results import RunResult
from sensorbench.results.described import Environment
from sensorbench.results.elasticity import ElasticityResult
from sensorbench.results.history import history_in
from sensorbench.results.insight import Insight, insight
from sensorbench.results.planned import ClusterChange
from sensorbench.results.request_sums import EndedPerSecond, RequestSums
from sensorbench.results.summary.elasticity import (
    AroundChange,
    DataMoves,
    ElasticityFigures,
    ElasticityScore,
    ElasticitySummary,
    NodeLoad,
    RequestSets,
    RunEvent,
    Scalability,
    ScalabilityLaw,
    ScoreDefinitions,
    SetLevel,
    Stabilisation,
    StableAgain,
    ThroughputDip,
    Transition,
)
from sensorbench.results.summary.envelope import Caveat, Caveats, envelope, errors_of, fields_of_plan
from sensorbench.results.summary.guarantees import RegisterGuarantees
from sensorbench.results.summary.stress import OperationCounts
from sensorbench.verification import register_guarantees
from sensorbench.wording import counted

# How limits of memory that are kept say so.
_KEPT_BY = "cgroup"
# What is said in the place of scores where nodes joined and got nothing.
NOT_ELASTIC = "not elastic: no data moved"
_NOTHING = StableAgain(stable_at_s=None, reason=NOT_ELASTIC)
_NO_DATA_MOVED = Stabilisation(by_band=_NOTHING, by_rule=_NOTHING, in_band=_NOTHING)


def summarise_elasticity(result: ElasticityResult) -> ElasticitySummary:
    """The summary of results on disk."""
    manifest = result.manifest
    transitions = [transition(run) for run in result.runs]
    return ElasticitySummary(
        **envelope(manifest),
        warnings=_warnings(transitions, manifest.environment),
        result=ElasticityFigures(
            **fields_of_plan(manifest.plan, ElasticityFigures),
            load=result.load,
            transitions=transitions,
            scalability=_scalability(transitions),
            law=_law(transitions),
            errors=errors_of(run.manifest for run in result.runs),
        ),
    )


def transition(run: RunResult) -> Transition:
    """What became of one run with its change."""
    plan = run.manifest.plan
    events = _events(run)
    begun_at_s, done_at_s = _moment(events, BEGIN), _moment(events, DONE)
    sums = request_sums_of(run)
    sets = _measured_sets(run, sums)
    scored_from_s = _scored_from_s(sets, begun_at_s)
    kind = plan["change"]["kind"]
    is_quiet = kind == "stay"
    nodes = insight(run, run.manifest.variant.database).nodes
    moves = data_moves(nodes, begun_at_s, joins=kind == "join" and done_at_s is not None)
    return Transition(
        number=run.manifest.repetition,
        status=run.state,
        reason=run.manifest.reason,
        failed=next((event.name.removeprefix(f"{FAILED}: ") for event in events if event.name.startswith(FAILED)), None),
        change=ClusterChange.model_validate(plan["change"]),
        **{key: plan[key] for key in ("nodes", "articles", "request_threads", "requests_per_set", "executions")},
        sets=RequestSets(time_s=sets.times_s.tolist(), duration_s=sets.durations_s.tolist(), sd_s=sets.deviations_s.tolist()),
        events=events,
        begun_at_s=begun_at_s,
        scored_from_s=scored_from_s,
        transfer_s=done_at_s - begun_at_s if begun_at_s is not None and done_at_s is not None else None,
        noticed_s=_noticed_s(events, begun_at_s),
        before=_level(sets, 0.0, scored_from_s),
        stability=None if is_quiet else _stabilisation(run, sets, scored_from_s, begun_at_s, done_at_s, moves),
        dip=None if is_quiet else _dip(sums),
        counts=_counts(run),
        guarantees=_guarantees(run),
        servers=_requests_per_node(run, nodes, begun_at_s, done_at_s),
        data=moves,
    )


def _events(run: RunResult) -> list[RunEvent]:
    """What happened, in its order, on the run's clock."""
    table = run.table("events")
    rows = table.sort_by("time_ns").to_pylist() if table is not None else []
    return [RunEvent(time_s=row["time_ns"] / 1e9, name=row["name"]) for row in rows]


def _moment(events: Sequence[RunEvent], name: str) -> float | None:
    return next((event.time_s for event in events if event.name == name), None)


def _noticed_s(events: Sequence[RunEvent], begun_at_s: float | None) -> float | None:
    """After how long the other nodes knew that one does not answer; None if that is not known."""
    at_s = next((event.time_s for event in events if event.name.endswith(NOTICED)), None)
    return None if at_s is None or begun_at_s is None else at_s - begun_at_s


def request_sums_of(run: RunResult) -> RequestSums | None:
    """The measurements of a run and what ended in each second, of its log, or of what a bundle has in its place; None if nothing was logged.

    Raises DamagedResultsError.
    """
    if run.request_sums is not None:
        return run.request_sums
    log = run.table("operations")
    if log is None:
        return None
    sets = _all_sets(run, log)
    of_summary = RequestSets(time_s=sets.times_s.tolist(), duration_s=sets.durations_s.tolist(), sd_s=sets.deviations_s.tolist())
    begun_at_s = _moment(_events(run), BEGIN)
    return RequestSums(sets=of_summary, ended=_ended(log, begun_at_s) if begun_at_s is not None and len(log) else None)


def _all_sets(run: RunResult, log: pa.Table) -> Sets:
    plan = run.manifest.plan
    kinds = [number for number, name in enumerate(run.manifest.operations) if name in REQUESTS]
    wanted = log.filter(pc.is_in(log["operation"], pa.array(kinds, log["operation"].type))).sort_by("k")
    requests = Requests(*(wanted[name].to_numpy().astype(np.int64) for name in ("intended_start_ns", "start_ns", "end_ns")))
    is_open_loop = plan["phases"][0]["pace"] is not None
    return request_sets(requests, plan["requests_per_set"], plan["executions"], plan["request_threads"] if is_open_loop else None)


def _ended(log: pa.Table, begun_at_s: float) -> EndedPerSecond:
    ends_s = log["end_ns"].to_numpy() / 1e9
    ended = windows(ends_s, pc.equal(log["outcome"], "ok").to_numpy(), begun_at_s, float(ends_s.max()))
    return EndedPerSecond(
        begun_at_s=begun_at_s,
        **{name: getattr(ended, name).astype(np.int64).tolist() for name in ("before", "ok", "failed")},
        last_failed_s=ended.last_failed_s,
    )


def _measured_sets(run: RunResult, sums: RequestSums | None) -> Sets:
    """The measurements that count: those of the warm-up are left out."""
    plan = run.manifest.plan
    if sums is None:
        return Sets(*(np.empty(0) for _ in range(3)))
    sets = Sets(*(np.array(column) for column in (sums.sets.time_s, sums.sets.duration_s, sums.sets.sd_s)))
    # Earlier versions counted the measurements of the warm-up.
    return sets.only(slice(plan["warm_up"], None)) if "warm_up" in plan else sets.between(plan["warmup_s"], np.inf)


def _scored_from_s(sets: Sets, begun_at_s: float | None) -> float | None:
    """The beginning of the measurement in which the change began: it is none of those before."""
    if begun_at_s is None:
        return None
    place = int(np.searchsorted(sets.times_s, begun_at_s, side="right")) - 1
    return float(sets.times_s[place]) if place >= 0 else begun_at_s


def _level(sets: Sets, from_s: float, to_s: float | None) -> SetLevel | None:
    """Mean and standard deviation of the set times of a time window, and how many there are; None if there are fewer than two."""
    durations_s = sets.between(from_s, np.inf if to_s is None else to_s).durations_s
    if len(durations_s) < 2:
        return None
    return SetLevel(mean_s=float(durations_s.mean()), sd_s=float(durations_s.std(ddof=1)), sets=len(durations_s))


def _stabilisation(
    run: RunResult,
    sets: Sets,
    scored_from_s: float | None,
    begun_at_s: float | None,
    done_at_s: float | None,
    moves: DataMoves | None,
) -> Stabilisation | None:
    """When the cluster was stable again, after its data were where they belong; None if the change was not done."""
    if scored_from_s is None or begun_at_s is None or done_at_s is None:
        return None
    if moves is not None and moves.without_data:
        return _NO_DATA_MOVED
    try:
        found = stability(sets, scored_from_s, done_at_s)
    except ValueError:
        return None
    per_thread = run.manifest.plan["requests_per_set"] / run.manifest.plan["request_threads"]

    def by(stable_at_s: float | None) -> StableAgain:
        if stable_at_s is None:
            return StableAgain(stable_at_s=None)
        try:
            score = _score(sets, scored_from_s, stable_at_s, per_thread)
        except ValueError as error:
            return StableAgain(stable_at_s=stable_at_s, reason=str(error))
        return StableAgain(
            stable_at_s=stable_at_s,
            total_s=stable_at_s - begun_at_s,
            additional_s=stable_at_s - done_at_s,
            after=_level(sets, stable_at_s, None),
            score=score,
        )

    return Stabilisation(by_band=by(found.by_band_at_s), by_rule=by(found.at_s), in_band=by(found.in_band_at_s))


def _score(sets: Sets, scored_from_s: float, stable_at_s: float, requests_per_thread: float) -> ElasticityScore:
    """The score with one moment of stability. Raises ValueError if there is none."""
    found = asdict(elasticity(sets, scored_from_s, stable_at_s, requests_per_thread))
    return ElasticityScore(definitions=ScoreDefinitions(**found.pop("definitions")), **found)


def _dip(sums: RequestSums | None) -> ThroughputDip | None:
    """What clients suffered after the change began, second by second."""
    if sums is None or sums.ended is None:
        return None
    before, ok, failed = (np.array(column, dtype=np.float64) for column in (sums.ended.before, sums.ended.ok, sums.ended.failed))
    try:
        return ThroughputDip(**asdict(dip(Windows(before, ok, failed, sums.ended.last_failed_s))))
    except ValueError:
        return None


def _counts(run: RunResult) -> OperationCounts | None:
    """What became of all operations, those on registers included."""
    return next(map(counts_of, run.manifest.phase_figures), None)


def _guarantees(run: RunResult) -> RegisterGuarantees | None:
    """What the checker found in the history of the run's registers, and what was promised."""
    history = history_in(run.folder)
    if history is None:
        return None
    checked = guarantees.check(history)
    return register_guarantees(checked, run.manifest.variant.promises, run.manifest.description.get("settings", {}))


def _requests_per_node(
    run: RunResult, nodes: Mapping[str, Insight], begun_at_s: float | None, done_at_s: float | None
) -> dict[str, NodeLoad]:
    """Requests that each node served before the change, during it, and afterwards, by its own count, and how many CPUs were busy
    with that, where the lab knows its processes; nodes that report no requests are absent.
    """
    if begun_at_s is None or run.manifest.totals is None:
        return {}
    end_s = run.manifest.totals.duration_ns / 1e9
    edges = {"before": (0.0, begun_at_s), "during": (begun_at_s, done_at_s or end_s), "after": (done_at_s or end_s, end_s)}
    lengths_s = {name: to_s - from_s for name, (from_s, to_s) in edges.items()}
    served = {}
    for node, said in nodes.items():
        if "requests" in said.series:
            busy_s = _growth(said.series["processor_s"], edges) if "processor_s" in said.series else None
            cpus = {name: busy_s[name] / lengths_s[name] if lengths_s[name] > 0.0 else None for name in edges} if busy_s else None
            # Between two samples the counter is interpolated, but requests are whole.
            requests = AroundChange(**{name: round(grown) for name, grown in _growth(said.series["requests"], edges).items()})
            served[node] = NodeLoad(requests=requests, cpus=AroundChange(**cpus) if cpus else None)
    return served


def _growth(series: tuple[Floats, Floats], edges: dict[str, tuple[float, float]]) -> dict[str, float]:
    """By how much a counter grew in each stretch."""
    grown = {name: np.interp(edge, *series) for name, edge in edges.items()}
    return {name: float(to - at) for name, (at, to) in grown.items()}


def _scalability(transitions: Sequence[Transition]) -> list[Scalability]:
    """Between transitions with more nodes, and data and load in proportion: how much longer sets take (7.4)."""
    return [
        Scalability(from_nodes=pair.nodes, to_nodes=other.nodes, scalability=scalability(pair.before.mean_s, other.before.mean_s))
        for pair, other in pairwise(transitions)
        if other.nodes > pair.nodes and _in_proportion(pair, other) and pair.before and other.before
    ]


def _in_proportion(before: Transition, other: Transition) -> bool:
    """Whether data and load of two transitions are in the proportion of their nodes."""
    grown = other.nodes / before.nodes
    return other.articles / before.articles == grown == other.requests_per_set / before.requests_per_set


def _law(transitions: Sequence[Transition]) -> ScalabilityLaw | None:
    """The universal scalability law of requests per second, where data and load were in proportion to three numbers of nodes or more."""
    if not transitions:
        return None
    first, measured = transitions[0], dict[int, list[float]]()
    for change in transitions:
        if change.before and _in_proportion(first, change):
            before_s = [
                duration_s
                for time_s, duration_s in zip(change.sets.time_s, change.sets.duration_s, strict=True)
                if change.scored_from_s is None or time_s < change.scored_from_s
            ]
            measured.setdefault(change.nodes, []).extend(change.requests_per_set / duration_s for duration_s in before_s)
    if len(measured) < MIN_SIZES:
        return None
    law = fit_usl({nodes: np.array(per_s) for nodes, per_s in measured.items()})
    reached = {str(nodes): float(np.mean(per_s)) for nodes, per_s in measured.items()}
    return ScalabilityLaw.model_validate({**asdict(law), "reached_per_s": reached})


def keeps_memory(environment: Environment) -> bool:
    """Whether this machine keeps servers to the memory that they were given, as far as any were given some."""
    servers = environment.get("servers", {}).values()
    return all(_KEPT_BY in (server["memory_by"] or "") for server in servers if server["memory_bytes"])


def _warnings(transitions: Sequence[Transition], environment: Environment) -> list[Caveat]:
    """What to mind of each transition, with what to do."""
    caveats = Caveats()
    if not keeps_memory(environment):
        text = "This machine does not keep the servers to their memory: its cache of files has all that is left."
        caveats.add(
            "memory-not-kept", text, "Run where cgroups may be made; claims about data beyond memory count that of the machine."
        )
    for change in transitions:
        _add_caveats(caveats, change)
    return caveats


def _add_caveats(caveats: Caveats, change: Transition) -> None:
    about = f"{change.number}. {change.change.title}"
    by_band = change.stability.by_band if change.stability else None
    if change.failed:
        action = "Its figures are of the load alone; see the lab's log."
        caveats.add("change-failed", f"{about}: the change failed: {change.failed}.", action)
    elif change.moved_nothing and change.data:
        text = f"{about}: {NOT_ELASTIC} to {', '.join(change.data.without_data)}."
        caveats.add("no-data-moved", text, "Load more data, in more parts than there are nodes, and see the database's balancer.")
    elif by_band and by_band.stable_at_s is None:
        action = "Raise --at-most, or --before, so that the level is better known."
        caveats.add("not-stable", f"{about}: no rule found the cluster stable again.", action)
    if by_band and by_band.score and by_band.score.sets_between < MIN_SETS:
        text = f"{about}: {counted(by_band.score.sets_between, 'measurement')} between the change and stability."
        caveats.add("few-sets", text, "Make sets shorter by --requests or --executions.")
    if change.guarantees and change.guarantees.broken:
        broken = ", ".join(change.guarantees.broken).replace("_", " ")
        caveats.add("broken-promise", f"{about}: promised not to occur, and seen: {broken}.", "See the examples in summary.json.")
