"""How the claims of the study (claims.toml) are judged. Figures are compared round by round: cells of a round have the same operations."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from sensorbench.analysis.intervals import CONFIDENCE, MIN_RUNS, Interval
from sensorbench.benchmarks.factors import OBJECTIVE
from sensorbench.claims import NOT_MEASURED, Case, Judgement, all_of, greater_than_one, near_one, near_or_above_one, untested_for
from sensorbench.results.factors import FILLED, LAST, Where
from sensorbench.studies.factors import FactorEvidence, FactorJudge, difference

SIZES = ("92 MB", "200 MB", "500 MB", "700 MB", "1000 MB")
WRITERS = ("4", "8", "10")
THRESHOLDS = ("0.05", "0.11", "0.3", "0.5")
TYPES = ("heap buffers", "off-heap buffers", "off-heap objects")
# In a load that comes again after restarts: the highest rate at once, and later.
AT_ONCE, AGAIN = 2, 5
HIT, STEADY, SERVER_CPU = "hit_rate", "steady_s", "server_cpu"
READ, WRITTEN = "disk_read_per_s", "disk_written_per_s"
RATE, TOOK, TABLES, SSTABLES, MEMTABLES, COMPACTED = (
    "per_s",
    "took_s",
    "table_bytes",
    "sstables",
    "memtable_bytes",
    "compacted_per_s",
)
SAME_HIT_RATE = 0.02
NOTHING_READ = "servers read nothing from the disk: all that was asked for lay in this machine's memory"
NEVER_STEADY = "no hit rate became steady within a step: it takes 20 windows of 2 s, and an end without a trend (--duration 60s)"


def _above(evidence: FactorEvidence, load: str, part: str, levels: tuple[str, str], where: Where, figure: str) -> Case:
    """That the first level has more of a figure than the second."""
    ratio = evidence.ratio(load, part, levels, where, figure)
    return Case(f"{levels[0]} over {levels[1]}", greater_than_one(ratio))


def _increasing(evidence: FactorEvidence, load: str, part: str, levels: Sequence[str], where: Where, figure: str) -> list[Case]:
    """That a figure grows: the last level has more of it than the first, and none surely has less than the one before."""
    steps = [_above(evidence, load, part, (later, earlier), where, figure) for earlier, later in pairwise(levels)]
    falling = [case for case in steps if case.judgement.word == "does not hold"]
    return [_above(evidence, load, part, (levels[-1], levels[0]), where, figure), *falling]


def _decreasing(evidence: FactorEvidence, load: str, part: str, levels: Sequence[str], where: Where, figure: str) -> list[Case]:
    return _increasing(evidence, load, part, levels[::-1], where, figure)


def _near(evidence: FactorEvidence, load: str, part: str, levels: tuple[str, str], where: Where, figure: str) -> Case:
    return Case(f"{levels[0]} over {levels[1]}", near_one(evidence.ratio(load, part, levels, where, figure)))


def _by_size(figure: str, unless: str) -> FactorJudge:
    """A figure of reads at the highest rate grows with the key cache."""

    def judge(evidence: FactorEvidence) -> Judgement:
        return _or(all_of(_increasing(evidence, "read", "key-cache-size", SIZES, LAST, figure)), unless)

    return judge


def _or(judgement: Judgement, why_not: str) -> Judgement:
    """A judgement; where nothing could be compared, why that was so."""
    return untested_for(why_not) if judgement.word == "not tested here" else judgement


def _hardly_grows(evidence: FactorEvidence) -> Judgement:
    hits = [evidence.values("read", "key-cache-size", size, LAST, HIT) for size in ("500 MB", "700 MB", "1000 MB")]

    def of_round(number: int) -> float | None:
        if not all(number in hit for hit in hits):
            return None
        small, middle, large = (hit[number] for hit in hits)
        return (large - middle) - (middle - small)

    return difference(evidence.mean(of_round), below=0.0)


def _best_compromise(evidence: FactorEvidence) -> Judgement:
    others = [size for size in SIZES if size != "500 MB"]
    ratios = {size: evidence.ratio("read", "key-cache-size", (size, "500 MB"), LAST, OBJECTIVE) for size in others}
    return all_of([Case(f"{size} over 500 MB", near_or_above_one(ratio)) for size, ratio in ratios.items()])


def _shorter_start(evidence: FactorEvidence) -> Judgement:
    steps = range(len(evidence.result.manifest.plan.rates.get("restart", [])) * 2)
    cases = [_start(evidence, ("4 h", "5 h"), step) for step in steps]
    return _or(all_of(cases), NEVER_STEADY)


def _start(evidence: FactorEvidence, levels: tuple[str, str], step: int) -> Case:
    """That the hit rate becomes steady later at the first level than at the second."""
    case = _above(evidence, "restart", "key-cache-save-period", levels, step, STEADY)
    return Case(f"step {step + 1}, {case.name}", case.judgement)


def _worse_start(evidence: FactorEvidence) -> Judgement:
    return _or(all_of([_start(evidence, ("3 h", "4 h"), step) for step in (AT_ONCE, AGAIN)]), NEVER_STEADY)


def _same_hit_rate(evidence: FactorEvidence) -> Judgement:
    def case(step: int) -> Case:
        long, short = (evidence.values("restart", "key-cache-save-period", period, step, HIT) for period in ("5 h", "4 h"))
        apart = evidence.mean(lambda number: abs(long[number] - short[number]) if number in long and number in short else None)
        return Case("at once" if step == AT_ONCE else "after a restart", difference(apart, below=SAME_HIT_RATE))

    return all_of([case(AT_ONCE), case(AGAIN)], unit="Δ")


def _like_each_other(evidence: FactorEvidence) -> Judgement:
    pairs = [(TYPES[1], TYPES[0]), (TYPES[2], TYPES[0]), (TYPES[2], TYPES[1])]
    return all_of([_near(evidence, "write", "memtable-allocation", pair, FILLED, SERVER_CPU) for pair in pairs])


def _smallest(evidence: FactorEvidence) -> Judgement:
    return all_of(
        [
            _above(evidence, "write", "memtable-allocation", (other, TYPES[1]), FILLED, figure)
            for figure in (TABLES, MEMTABLES)
            for other in (TYPES[0], TYPES[2])
        ]
    )


def _written(part: str, levels: Sequence[str], figure: str, *, grows: bool) -> FactorJudge:
    """A figure of writing all records grows, or shrinks, from level to level."""
    steps = _increasing if grows else _decreasing
    return lambda evidence: all_of(steps(evidence, "write", part, levels, FILLED, figure))


def _less_work(evidence: FactorEvidence) -> Judgement:
    part = "flush-writers"
    return all_of(
        [
            *_decreasing(evidence, "write", part, WRITERS, FILLED, SERVER_CPU),
            *_decreasing(evidence, "write", part, WRITERS, FILLED, "mean_s"),
            *_increasing(evidence, "write", part, WRITERS, FILLED, COMPACTED),
        ]
    )


def _draft(load: str, where: Where, *above: str, below: Sequence[str] = (), near: Sequence[str] = ()) -> FactorJudge:
    """Of these figures, the draft has more than the default, less, or about as much."""

    def judge(evidence: FactorEvidence) -> Judgement:
        up, down = ("draft", "default"), ("default", "draft")
        cases = [
            *(_named(figure, _above(evidence, load, "draft", up, where, figure)) for figure in above),
            *(_named(figure, _above(evidence, load, "draft", down, where, figure)) for figure in below),
            *(_named(figure, _near(evidence, load, "draft", up, where, figure)) for figure in near),
        ]
        if READ in above and not _was_read(evidence, load):
            # What was not to be seen here is no evidence for or against the rest of the claim.
            judgement = all_of(cases)
            return Judgement("not tested here", None, f"{NOTHING_READ}; of the rest, {judgement.reason}")
        return _or(all_of(cases), NEVER_STEADY if STEADY in above else NOT_MEASURED)

    return judge


def _was_read(evidence: FactorEvidence, load: str) -> bool:
    return evidence.ratio(load, "draft", ("draft", "default"), LAST, READ) is not None


def _named(figure: str, case: Case) -> Case:
    name = figure.removesuffix("_per_s").removesuffix("_s").replace("_", " ").replace("cpu", "CPU")
    return Case(f"{name}, {case.name}", case.judgement)


def _grow_together(evidence: FactorEvidence) -> Judgement:
    """Spearman's rank correlation over all steps of all measurements, with the interval of Fisher's z and the variance of Bonett and
    Wright ("Sample size requirements for estimating Pearson, Kendall and Spearman correlations", Psychometrika 65, 2000).
    """
    steps = [step for found in evidence.result.measurements.values() for measurement in found for step in measurement.steps]
    pairs = [
        (step.server_cpu, step.disk_read_per_s + step.disk_written_per_s)
        for step in steps
        if step.server_cpu is not None and step.disk_read_per_s is not None and step.disk_written_per_s is not None
    ]
    if len(pairs) < 10:
        return untested_for(f"{len(pairs)} steps have figures of both; at least 10 are needed")
    from scipy import stats

    correlation = float(stats.spearmanr(*zip(*pairs, strict=True)).statistic)
    half = stats.norm.ppf(0.5 + CONFIDENCE / 2) * np.sqrt((1 + correlation**2 / 2) / (len(pairs) - 3))
    low, high = (float(np.tanh(np.arctanh(np.clip(correlation, -0.999999, 0.999999)) + side)) for side in (-half, half))
    found = Interval(correlation, low, high, CONFIDENCE, max(MIN_RUNS, len(pairs)), between_runs=True)
    judged = difference(_negated(found), below=0.0)
    return Judgement(judged.word, vars(found), f"rank correlation over {len(pairs)} steps; {CONFIDENCE:.0%} interval")


def _negated(of: Interval) -> Interval:
    low, high = (-end if end is not None else None for end in (of.high, of.low))
    return Interval(-of.value, low, high, of.confidence, of.runs, of.between_runs)


def _one(load: str, part: str, levels: tuple[str, str], where: Where, figure: str, *, near: bool = False) -> FactorJudge:
    """One level has more of a figure than another, or about as much."""
    compare = _near if near else _above
    return lambda evidence: all_of([compare(evidence, load, part, levels, where, figure)])


JUDGES: dict[str, FactorJudge] = {
    "TUN-1": _by_size(HIT, NOT_MEASURED),
    "TUN-2": _by_size(SERVER_CPU, NOT_MEASURED),
    "TUN-3": _by_size(READ, NOTHING_READ),
    "TUN-4": _by_size(STEADY, NEVER_STEADY),
    "TUN-5": _hardly_grows,
    "TUN-6": _best_compromise,
    "TUN-7": _shorter_start,
    "TUN-8": _same_hit_rate,
    "TUN-9": _worse_start,
    "TUN-10": _like_each_other,
    "TUN-11": _written("memtable-allocation", TYPES, RATE, grows=False),
    "TUN-12": _smallest,
    "TUN-13": _one("write", "flush-writers", ("10", "4"), FILLED, RATE),
    "TUN-14": _written("flush-writers", WRITERS, TOOK, grows=False),
    "TUN-15": _less_work,
    "TUN-16": _written("flush-writers", WRITERS, TABLES, grows=True),
    "TUN-17": _written("flush-writers", WRITERS, SSTABLES, grows=False),
    "TUN-18": _written("cleanup-threshold", THRESHOLDS, RATE, grows=False),
    "TUN-19": _written("cleanup-threshold", THRESHOLDS, TOOK, grows=False),
    "TUN-20": _written("cleanup-threshold", THRESHOLDS, SSTABLES, grows=True),
    "TUN-21": _written("cleanup-threshold", THRESHOLDS, SERVER_CPU, grows=False),
    "TUN-22": _one("write", "cleanup-threshold", ("0.05", "0.11"), FILLED, MEMTABLES),
    "TUN-23": _one(
        "mixed", "file-cache", ("half of the heap", "a quarter of the heap"), LAST, "by_operation.update.mean", near=True
    ),
    "TUN-24": _draft("read", LAST, HIT),
    "TUN-25": _draft("read", LAST, READ, SERVER_CPU),
    "TUN-26": _draft("read", LAST, STEADY),
    "TUN-27": _draft("write", FILLED, WRITTEN, below=[SERVER_CPU]),
    "TUN-28": _draft("write", FILLED, below=[TABLES]),
    "TUN-29": _draft("mixed", LAST, READ, WRITTEN, HIT, near=[SERVER_CPU]),
    "TUN-30": _draft("mixed", LAST, below=["disk_bytes"]),
    "TUN-31": _grow_together,
}
