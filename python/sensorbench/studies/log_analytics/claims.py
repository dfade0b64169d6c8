"""What the claims of the persistent-log study (claims.toml) speak of, and how those are judged that no rule fits."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from sensorbench.analysis.intervals import MIN_RUNS
from sensorbench.claims import (
    MIN_EFFECT,
    NOT_MEASURED,
    Cell,
    Equal,
    Evidence,
    Figure,
    Greater,
    Judge,
    Judgement,
    Quantity,
    RunValues,
    Verdict,
    all_of,
    decide,
    untested_for,
)
from sensorbench.studies.log_analytics.systems import (
    CLUSTERED,
    COUNT_RANGE,
    FETCH_RANGE,
    LEVELS,
    RANGES,
    RELATIONAL,
    role,
    size_of,
    variant_at,
    variants_for,
)

FETCH = tuple(f"{FETCH_RANGE}.{range_}" for range_ in RANGES)
COUNT = tuple(f"{COUNT_RANGE}.{range_}" for range_ in RANGES)
KEYED = LEVELS[1:]
# A record of the paper's log as text: 1 GB has 19.53 million, 4 GB have 74.55 million.
RAW_BYTES_A_RECORD = 54


def _over_ranges(operation: str) -> Quantity:
    """The geometric mean of an operation's latency over ranges: `quantity(role, first, last)`."""

    def quantity(evidence: Evidence, role: str, others: Sequence[str]) -> RunValues | None:
        first, last = (RANGES.index(name) for name in others)
        figures = [Figure("latency", (role, f"{operation}.{name}")) for name in RANGES[first : last + 1]]
        values = [evidence.values(figure) for figure in figures]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        runs = sorted(set.intersection(*(set(value.by_run) for value in known)))
        means = {run: math.exp(math.fsum(math.log(value.by_run[run]) for value in known) / len(known)) for run in runs}
        return RunValues(means, known[0].group)

    return quantity


def _loaded_share(evidence: Evidence, role: str, others: Sequence[str]) -> RunValues | None:
    """The share of the dataset's records that a variant holds."""
    del others
    load = evidence.result.loads.get(evidence.roles[role])
    return RunValues.exactly(load.readings / _records(evidence)) if load else None


def _records(evidence: Evidence) -> int:
    return int(evidence.result.manifest.plan.dataset["relations"]["log"]["rows"])


def _snapshot_bytes(evidence: Evidence, role: str, others: Sequence[str]) -> RunValues | None:
    """The size of the file in which a server keeps what it has in memory, where one was written."""
    del others
    size = evidence.result.snapshot_bytes(evidence.roles[role])
    return None if size is None else RunValues.exactly(float(size))


QUANTITIES: dict[str, Quantity] = {
    "fetch_latency": _over_ranges(FETCH_RANGE),
    "count_latency": _over_ranges(COUNT_RANGE),
    "raw_bytes": lambda evidence, role, others: RunValues.exactly(float(RAW_BYTES_A_RECORD * _records(evidence))),
    "loaded_share": _loaded_share,
    "snapshot_bytes": _snapshot_bytes,
}


def _ahead_then_behind(evidence: Evidence) -> Judgement:
    """LOG-2: at 6GB Redis did not fit, so that nothing is claimed of it."""
    pairs = {"1GB": ("Redis", "DB-O none"), "2GB": ("Redis", "DB-O none"), "4GB": ("DB-O none", "Redis")}
    size = size_of(evidence.result)
    if size not in pairs:
        return untested_for(f"it says nothing of {size}")
    slower, faster = pairs[size]
    rule = Greater(name=f"{slower} over {faster}", of=f"load_s({slower}) / load_s({faster})")
    return decide([rule], evidence)


def _fails(evidence: Evidence) -> Judgement:
    """LOG-26: of each cluster, at one level of indexes at least. A variant that was lost while it was queried counts, too, so that the
    roles of the claim need not be there.
    """
    return all_of([_fails_in(system, evidence) for system in CLUSTERED])


Outcome = Literal["failed", "answered", "undecided"]


def _fails_in(system: str, evidence: Evidence) -> Cell:
    result = evidence.result
    variants = [variant for level in KEYED if (variant := variant_at(variants_for(system, level), result)) is not None]
    of_variants = Evidence(result, {variant: variant for variant in variants}, evidence.metric)
    outcomes = {variant: _outcome(of_variants, variant) for variant in variants}
    known = {variant: outcome for variant, outcome in outcomes.items() if outcome is not None}
    if not known:
        return Cell(f"{system}, Q2 r1", "not tested", NOT_MEASURED)
    failed = [variant for variant, outcome in known.items() if outcome == "failed"]
    answered = [variant for variant, outcome in known.items() if outcome == "answered"]
    verdict: Verdict = "reproduced" if failed else "not reproduced" if len(answered) == len(known) else "inconclusive"
    causes = "; ".join(f"{variant}: {_cause(of_variants, variant)}" for variant in known if variant not in answered)
    reason = f"no execution succeeded in {len(failed)} of {len(known)} variants, each did in {len(answered)}"
    return Cell(f"{system}, Q2 r1", verdict, f"{reason} ({causes})" if causes else reason)


def _outcome(evidence: Evidence, variant: str) -> Outcome | None:
    """Whether fetching the narrowest range failed whenever it was tried, or never; None if it was not tried."""
    counts = evidence.counts(variant, FETCH[0])
    failed = counts["error"] + counts["timeout"]
    failure = evidence.result.failures.get(variant)
    if failure and failure.step == "running" and not counts["ok"]:
        return "failed"
    if not failed + counts["ok"]:
        return None
    if failed + counts["ok"] < MIN_RUNS or (failed and counts["ok"]):
        return "undecided"
    return "failed" if failed else "answered"


def _cause(evidence: Evidence, variant: str) -> str:
    failure = evidence.result.failures.get(variant)
    return evidence.first_error(variant, FETCH[0]) or (failure.cause if failure else "time limit")


def _never_scans(evidence: Evidence) -> Judgement:
    """LOG-31, of fetching: a count can be had from the index alone, so that leaving it would gain nothing. The plan says it; where
    there is none, the time does: that of a scan is that without the index.
    """
    return all_of([_no_scan(system, operation, evidence) for system in RELATIONAL for operation in FETCH[4:]])


def _no_scan(system: str, operation: str, evidence: Evidence) -> Cell:
    indexed, plain = role(system, "key+value"), role(system, "key")
    name = f"{indexed}, Q2 {operation.partition('.')[2]}"
    access = evidence.access(indexed, operation) if indexed in evidence.roles else None
    if access:
        verdict: Verdict = "reproduced" if access.startswith("index ") else "not reproduced"
        return Cell(f"{name}: {access}", verdict, "as planned by the database")
    same = Equal(of=f"latency({indexed}, {operation}) / latency({plain}, {operation})", margin=MIN_EFFECT - 1.0)
    (cell,) = decide([same], evidence).cells
    turned: dict[Verdict, Verdict] = {"reproduced": "not reproduced", "not reproduced": "reproduced"}
    takes = {"reproduced": "it takes as long as the scan", "not reproduced": "it does not take as long as the scan"}
    reason = f"no plan, by its time: {takes.get(cell.verdict, cell.reason)}"
    return replace(cell, name=name, verdict=turned.get(cell.verdict, cell.verdict), reason=reason, band=None)


JUDGES: dict[str, Judge] = {"LOG-2": _ahead_then_behind, "LOG-26": _fails, "LOG-31": _never_scans}
