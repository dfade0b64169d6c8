"""How the claims of the building-sensor study (claims.toml) are judged."""

import numpy as np

from sensorbench.analysis.sample import Floats
from sensorbench.claims import (
    Evidence,
    Judge,
    Judgement,
    about,
    at_least_one,
    greater_than_one,
    near_one,
    ratio_over_runs,
    single_ratio,
)
from sensorbench.results import RunResult
from sensorbench.results.latencies import logged_latencies

Q1, Q2, Q3, Q4 = "get_sensor_data", "get_peak_data", "get_available_data", "get_floor_zone_data"
QUESTIONS = (Q1, Q2, Q3, Q4)
FIRST_REQUESTS = 25
SPIKE = 3.0
# Guidance for partitions of Cassandra, as the source study quotes it.
MAX_PARTITION_BYTES = 100_000_000
LONGEST_MONTH_S = 31 * 86_400.0


def _ratio(slow: str, fast: str, operation: str) -> list[tuple[str, str, float]]:
    return [(slow, operation, 1.0), (fast, operation, -1.0)]


def _between_questions(role: str, numerator: str, denominator: str) -> list[tuple[str, str, float]]:
    return [(role, numerator, 1.0), (role, denominator, -1.0)]


def _loses_more(evidence: Evidence) -> Judgement:
    sql, nosql = _between_questions("sql", Q4, Q3), _between_questions("nosql", Q4, Q3)
    return greater_than_one(evidence.contrast([*sql, *((role, operation, -weight) for role, operation, weight in nosql)]))


def _fits_better(evidence: Evidence) -> Judgement:
    terms = [
        (role, operation, weight / len(QUESTIONS))
        for operation in QUESTIONS
        for role, operation, weight in _ratio("sql", "nosql", operation)
    ]
    return greater_than_one(evidence.contrast(terms))


def _normalised(evidence: Evidence, run: RunResult) -> list[Floats]:
    """Latencies of each question as multiples of the question's median, so that the mix does not matter."""
    return [latencies / np.median(latencies) for latencies in evidence.latencies(run, QUESTIONS) if len(latencies)]


def _variation(evidence: Evidence, run: RunResult) -> float:
    """The mean coefficient of variation of the questions."""
    normalised = _normalised(evidence, run)
    return float(np.mean([np.std(latencies) / np.mean(latencies) for latencies in normalised])) if normalised else float("nan")


def _is_steadier(evidence: Evidence) -> Judgement:
    sql, nosql = evidence.runs("sql"), evidence.runs("nosql")
    ratios = [_variation(evidence, a) / _variation(evidence, b) for a, b in zip(sql, nosql, strict=False)]
    judgement = greater_than_one(ratio_over_runs(ratios))
    late = [_share_of_late_spikes(evidence, run) for run in sql]
    known = [share for share in late if share is not None]
    spikes = (
        f"{np.mean(known):.0%} of the relational spikes above {SPIKE:g} × the median are in the last quarter of a run"
        if known
        else "there are no spikes"
    )
    return Judgement(judgement.word, judgement.measured, f"{judgement.reason}; {spikes}")


def _share_of_late_spikes(evidence: Evidence, run: RunResult) -> float | None:
    """Of latencies above three times the median, the share in the last quarter of their question's requests."""
    late = total = 0
    for latencies in _normalised(evidence, run):
        is_spike = latencies > SPIKE
        total += int(is_spike.sum())
        late += int(is_spike[3 * len(latencies) // 4 :].sum())
    return late / total if total else None


def _starts_cold(evidence: Evidence) -> Judgement:
    """Whether the first requests are slower, in every variant that was measured."""
    judgements = {}
    for variant in evidence.result.manifest.variants:
        of_variant = Evidence(evidence.result, {"one": variant.id}, evidence.metric)
        ratios = [_first_against_rest(run) for run in of_variant.runs("one")]
        judgements[variant.id] = greater_than_one(ratio_over_runs(ratios))
    words = {judgement.word for judgement in judgements.values()}
    parts = "; ".join(f"{variant}: {_factor(judgement)} ({judgement.word})" for variant, judgement in judgements.items())
    if evidence.result.manifest.plan.workload.get("warm_up"):
        return Judgement("not tested here", None, "the runs were warmed up before they were measured")
    return Judgement(
        words.pop() if len(words) == 1 else "inconclusive",
        None,
        f"mean of the first {FIRST_REQUESTS} requests over the mean of the rest: {parts}",
    )


def _factor(judgement: Judgement) -> str:
    return f"× {judgement.measured['value']:.2f}" if judgement.measured and judgement.measured["value"] else "unknown"


def _first_against_rest(run: RunResult) -> float:
    """The first requests of a run against the rest. Each latency counts as a multiple of its question's median."""
    normalised: list[tuple[float, float]] = []
    for operation in QUESTIONS:
        numbers, latencies = logged_latencies(run, operation)
        if len(latencies):
            normalised += zip(numbers, latencies / np.median(latencies), strict=True)
    values = np.array([value for _, value in sorted(normalised)])
    if len(values) <= FIRST_REQUESTS:
        return float("nan")
    return float(values[:FIRST_REQUESTS].mean() / values[FIRST_REQUESTS:].mean())


def _size_ratio(evidence: Evidence) -> Judgement:
    sql, nosql = evidence.size_bytes("sql"), evidence.size_bytes("nosql")
    return single_ratio(sql / nosql if sql and nosql else None, "bytes on disk after settling")


def _load_ratio(evidence: Evidence) -> Judgement:
    sql, nosql = evidence.loaded_s("sql"), evidence.loaded_s("nosql")
    return single_ratio(sql / nosql if sql and nosql else None, "time until loaded and settled")


def _uses_less(evidence: Evidence) -> Judgement:
    """Whether the relational servers used more of both, run by run."""
    judgements = {}
    for what in ("processors", "megabytes"):
        pairs = zip(evidence.server_means("sql", what), evidence.server_means("nosql", what), strict=False)
        judgements[what] = greater_than_one(ratio_over_runs([sql / nosql for sql, nosql in pairs if nosql > 0.0]))
    words = {judgement.word for judgement in judgements.values()}
    parts = "; ".join(f"{what}: {_factor(judgement)} ({judgement.word})" for what, judgement in judgements.items())
    both = words.pop() if len(words) == 1 else "does not hold" if "does not hold" in words else "inconclusive"
    return Judgement(both, None, f"relational over the other, mean over each run; {parts}")


def _partition_is_small(evidence: Evidence) -> Judgement:
    largest = evidence.largest_partition_bytes("nosql")
    if largest is None:
        return Judgement("not tested here", None, "the server's nodetool, which knows the sizes of partitions, was not there")
    reason = (
        f"the largest partition has {largest / 1e6:.1f} MB after compaction; the guidance is {MAX_PARTITION_BYTES / 1e6:g} MB"
    )
    return Judgement("holds" if largest < MAX_PARTITION_BYTES else "does not hold", None, reason)


def _month_buckets_are_slower(evidence: Evidence) -> Judgement:
    """Requests of both variants with equal numbers are equal questions; looked at are those that certainly span a month."""
    min_rows = LONGEST_MONTH_S / evidence.result.manifest.plan.dataset["interval_s"]
    ratios = []
    for plain, bucketed in zip(evidence.runs("nosql"), evidence.runs("nosql_month"), strict=False):
        long, also_long = (
            dict(zip(numbers, latencies, strict=True))
            for numbers, latencies in (logged_latencies(run, Q1, min_rows=min_rows) for run in (plain, bucketed))
        )
        both = sorted(long.keys() & also_long.keys())
        if both:
            ratios.append(float(np.exp(np.mean([np.log(also_long[number] / long[number]) for number in both]))))
    judgement = greater_than_one(ratio_over_runs(ratios))
    return Judgement(
        judgement.word, judgement.measured, f"{judgement.reason}; ranges of more than {min_rows:.0f} rows, pair by pair"
    )


JUDGES: dict[str, Judge] = {
    "IOT-1": lambda evidence: greater_than_one(evidence.contrast(_ratio("sql", "nosql", Q1))),
    "IOT-2": lambda evidence: greater_than_one(evidence.contrast(_ratio("sql", "nosql", Q2))),
    "IOT-3": lambda evidence: greater_than_one(evidence.contrast(_ratio("nosql", "sql", Q3))),
    "IOT-4": lambda evidence: greater_than_one(evidence.contrast(_ratio("nosql", "sql", Q4))),
    "IOT-5": lambda evidence: about(evidence.contrast(_between_questions("nosql", Q2, Q1)), 9.38),
    "IOT-6": lambda evidence: near_one(evidence.contrast(_between_questions("sql", Q2, Q1))),
    "IOT-7": lambda evidence: near_one(evidence.contrast(_between_questions("nosql", Q4, Q3))),
    "IOT-8": _loses_more,
    "IOT-9": lambda evidence: about(evidence.contrast(_between_questions("sql", Q1, Q3)), 2103.0),
    "IOT-10": _is_steadier,
    "IOT-11": _starts_cold,
    "IOT-12": _uses_less,
    "IOT-13": _size_ratio,
    "IOT-14": _load_ratio,
    "IOT-15": _partition_is_small,
    "IOT-16": _month_buckets_are_slower,
    "IOT-17": lambda evidence: greater_than_one(evidence.contrast(_ratio("nosql", "nosql_tables", Q2))),
    "IOT-18": lambda evidence: at_least_one(evidence.contrast(_ratio("sql", "nosql_tables", Q3))),
    "IOT-19": lambda evidence: greater_than_one(evidence.contrast(_ratio("sql_wide", "sql", Q3))),
    "IOT-20": _fits_better,
}
