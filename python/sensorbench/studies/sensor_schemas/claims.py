"""How the claims of the sensor-schema study (claims.toml) are judged.

Throughput is compared by the mean latency: with equally many operations in flight, one is the inverse of the other (Little's law).
Only the part about clients has different numbers in flight; there, throughput is counted.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from sensorbench.analysis.intervals import Interval, scaled
from sensorbench.analysis.verdicts import judge as verdict_of
from sensorbench.benchmarks.comparison import done_in_s
from sensorbench.claims import (
    Case,
    Evidence,
    Judge,
    Judgement,
    Word,
    about,
    all_of,
    at_least_one,
    greater_than_one,
    near_one,
    near_or_above_one,
    ratio_over_runs,
)
from sensorbench.results import RunResult

WRITE, READ, NEW_RANGE = "append_readings", "get_range", "get_new_range"
LENGTHS = {wanted: f"get_length.of_{wanted}" for wanted in (3_600, 10_000, 50_000, 100_000)}
# Batches by size; those of 150 are the ones of the layout with metadata in the same table.
BATCHES = {50: "BA b50", 100: "BA b100", 150: "BA M1", 200: "BA b200", 300: "BA b300"}
# The size that the source found to be best, beyond which it saw little gain.
BEST_BATCH = 150
TABLES = ("1 table", "5 tables", "10 tables", "50 tables", "100 tables")
WIDTHS = ("5MB", "7MB", "10MB", "13MB", "15MB", "20MB")
# "Much" more: at least twice.
MUCH = 2.0
# Rows of 20 MB are wider than those of 5 MB where the largest of them is at least this many times as large.
WIDER = 1.5
# A difference that is small beside another one is at most this share of it.
SMALL_SHARE = 0.5
# The source's 10,000 operations a second were this share of its 62,000.
SHARE_OF_SCHEMAS = 10_000 / 62_000


def slower(evidence: Evidence, name: str, other: str, operation: str) -> Interval | None:
    """How many times as long one role takes as another, which is how many times the throughput of the other one is."""
    return evidence.contrast([(name, operation, 1.0), (other, operation, -1.0)])


def _than(evidence: Evidence, name: str, other: str, operation: str) -> Case:
    """A cell that says that `one` has less throughput than `other`."""
    return Case(f"{other} over {name}", greater_than_one(slower(evidence, name, other, operation)))


def _much_greater(interval: Interval | None) -> Judgement:
    """Judges with a higher bar: not only above 1, but above MUCH."""
    judgement = greater_than_one(interval)
    if interval is None or interval.low is None or interval.high is None:
        return judgement
    rule = f"much means at least {MUCH:g} times"
    word: Word = "holds" if interval.low >= MUCH else "does not hold" if interval.high < MUCH else "inconclusive"
    return replace(judgement, word=word, reason=rule)


def _much_slower(evidence: Evidence, name: str, other: str, operation: str) -> Case:
    return Case(f"{other} over {name}", _much_greater(slower(evidence, name, other, operation)))


def _alike(
    evidence: Evidence, name: str, other: str, operation: str, rule: Callable[[Interval | None], Judgement] = near_one
) -> Case:
    return Case(f"{other} over {name}", rule(slower(evidence, name, other, operation)))


def _timed_out(evidence: Evidence, role: str, operation: str) -> float:
    """The share of operations that timed out."""
    counts = evidence.counts(role, operation)
    return counts["timeout"] / max(1, sum(counts.values()))


def _wide_rows(evidence: Evidence) -> Judgement:
    return all_of([_than(evidence, "W 10k", "W 100k", LENGTHS[wanted]) for wanted in (3_600, 10_000)])


def _long_ranges(evidence: Evidence) -> Judgement:
    """Time-outs are counted: none, or all that were asked, or some."""
    cells = [("W 10k", 50_000, True), ("W 10k", 100_000, True), ("W 100k", 100_000, True), ("W 100k", 50_000, False)]
    cases = []
    for role, length, expected in cells:
        share = _timed_out(evidence, role, LENGTHS[length])
        word: Word = "holds" if (share > 0.5) == expected else "does not hold"
        cases.append(Case(f"{role} at {length:,}: {share:.0%} timed out", Judgement(word, None, "most of them, or not")))
    return all_of(cases)


def _replication(evidence: Evidence) -> Judgement:
    first = greater_than_one(slower(evidence, "RF2 ack1", "RF1 ack1", WRITE))
    rates = [rate(evidence, role, WRITE) for role in ("RF1 ack1", "RF2 ack1", "RF3 ack1")]
    if first.word != "holds" or None in rates:
        return first
    single, two, three = (float(value) for value in rates if value is not None)
    is_small = abs(two - three) <= SMALL_SHARE * (single - two)
    reason = f"{single:,.0f}, {two:,.0f} and {three:,.0f} operations/s with 1, 2 and 3 replicas; little means at most {SMALL_SHARE:.0%} of the other difference"
    return Judgement("holds" if is_small else "does not hold", first.measured, reason)


def _one_acknowledgement(evidence: Evidence) -> Judgement:
    return all_of([_than(evidence, f"{replicas} ack2", f"{replicas} ack1", WRITE) for replicas in ("RF2", "RF3")])


def _tuned_write(evidence: Evidence) -> Judgement:
    """Both tunings are told: that of the source gives up durability, the other one does not."""
    judgement = greater_than_one(slower(evidence, "T1", "T2", WRITE))
    durable = slower(evidence, "T1", "T2 durable", WRITE) if "T2 durable" in evidence.roles else None
    reason = f"; with the commit log as by default × {durable.value:.2f}" if durable else ""
    return replace(
        judgement, reason=f"{judgement.reason}; the tuning syncs the commit log every 1,000 s, which is less durable{reason}"
    )


def _tuned_read(evidence: Evidence) -> Judgement:
    interval = slower(evidence, "T2", "T1", READ)
    judgement = greater_than_one(interval)
    words: dict[str, Word] = {"equivalent": "holds", "no difference seen": "no difference seen", "inconclusive": "inconclusive"}
    word = words.get(verdict_of(interval).word, "does not hold") if interval else judgement.word
    return Judgement(word, judgement.measured, f"{judgement.reason}; unchanged means equivalent")


def _client_and_server(evidence: Evidence) -> Judgement:
    """The median of the client beside the median that the server itself counts (its coordinator, latest sample of each run)."""
    ratios = []
    for run in evidence.runs("T2"):
        server_ms = _coordinator_write_ms(run)
        latencies = evidence.latencies(run, [WRITE])[0]
        if server_ms and len(latencies):
            ratios.append(float(np.median(latencies)) * 1e3 / server_ms)
    if not ratios:
        return Judgement("not tested here", None, "runs were shorter than the second after which the server is asked")
    return about(ratio_over_runs(ratios), 2.0)


def _coordinator_write_ms(run: RunResult) -> float | None:
    table = run.table("status")
    if table is None:
        return None
    found = [
        row["value"]
        for row in table.to_pylist()
        if row["name"].startswith("coordinator_write_latency.readings_") and row["name"].endswith(".p50th_ms")
    ]
    return float(np.median(found)) if found else None


def _more_asynchronous(evidence: Evidence) -> Judgement:
    ratios = [a / b for a, b in zip(rates(evidence, "asynchronous", WRITE), rates(evidence, "synchronous", WRITE), strict=False)]
    return greater_than_one(ratio_over_runs(ratios))


def _slower_asynchronous(evidence: Evidence) -> Judgement:
    return greater_than_one(slower(evidence, "asynchronous", "synchronous", WRITE))


def _tables(evidence: Evidence) -> Judgement:
    return all_of([_alike(evidence, TABLES[0], other, WRITE) for other in TABLES[1:]])


def _spread_of_tables(evidence: Evidence) -> Judgement:
    few, many = [[_spreads(evidence, role) for role in roles] for roles in (TABLES[:3], TABLES[3:])]
    runs = min(len(of_role) for of_role in [*few, *many])
    per_run = [max(group[run] for group in many) / float(np.mean([group[run] for group in few])) for run in range(runs)]
    return about(ratio_over_runs(per_run), 3.0)


def _spreads(evidence: Evidence, role: str) -> list[float]:
    """The standard deviation of the latencies of each run, in s."""
    return [float(np.std(evidence.latencies(run, [WRITE])[0])) for run in evidence.runs(role)]


def _metadata_write(evidence: Evidence) -> Judgement:
    return all_of(
        [
            _alike(evidence, "TV M1", "TV M0", WRITE, near_or_above_one),
            _alike(evidence, "TV M2", "TV M1", WRITE),
            _much_slower(evidence, "TV M3", "TV M1", WRITE),
            _much_slower(evidence, "TV M3", "TV M2", WRITE),
        ]
    )


def _metadata_read(evidence: Evidence) -> Judgement:
    cases = [
        _alike(evidence, "TV M2", "TV M1", READ, near_or_above_one),
        _much_slower(evidence, "TV M0", "TV M1", READ),
        _much_slower(evidence, "TV M0", "TV M2", READ),
    ]
    if "TV M3" in evidence.roles:
        share = _timed_out(evidence, "TV M3", READ)
        word: Word = "holds" if share > 0.5 else "does not hold"
        cases.append(Case(f"M3: {share:.0%} timed out", Judgement(word, None, "a majority")))
    return all_of(cases)


def _wider_writes_less(evidence: Evidence) -> Judgement:
    return greater_than_one(slower(evidence, "TV 15MB", "TV 5MB", WRITE))


def _wider_reads_more(evidence: Evidence) -> Judgement:
    return greater_than_one(slower(evidence, "TV 5MB", "TV 15MB", READ))


def _collapse(evidence: Evidence) -> Judgement:
    return _much_slower(evidence, "TV 20MB", "TV 15MB", NEW_RANGE).judgement


def _batch_sizes(evidence: Evidence) -> Judgement:
    """Operations fall from size to size, readings rise, and rise less for each reading more beyond 150 than before."""
    sizes = list(BATCHES)
    cases = []
    for small, large in pairwise(sizes):
        fewer = slower(evidence, BATCHES[large], BATCHES[small], WRITE)
        cases.append(Case(f"operations, {small} over {large}", greater_than_one(fewer)))
        more = slower(evidence, BATCHES[small], BATCHES[large], WRITE)
        rises = at_least_one if small >= BEST_BATCH else greater_than_one
        cases.append(Case(f"readings, {large} over {small}", rises(more and scaled(more, large / small))))
    per_second = {size: rate(evidence, role, WRITE) for size, role in BATCHES.items()}
    if all(value is not None for value in per_second.values()):
        readings_per_s = {size: size * float(value or 0.0) for size, value in per_second.items()}
        smallest, largest = sizes[0], sizes[-1]
        before = (readings_per_s[BEST_BATCH] - readings_per_s[smallest]) / (BEST_BATCH - smallest)
        beyond = (readings_per_s[largest] - readings_per_s[BEST_BATCH]) / (largest - BEST_BATCH)
        slopes = Judgement("holds" if beyond < before else "does not hold", None, "readings/s for each reading more in a batch")
        cases.append(Case(f"slope {before:,.0f} up to {BEST_BATCH}, {beyond:,.0f} beyond", slopes))
    return all_of(cases)


def _best_of(roles: Sequence[str], expected: str, operation: str) -> Judge:
    """Judges that a role is faster than each of the others."""

    def judge(evidence: Evidence) -> Judgement:
        return all_of([_than(evidence, other, expected, operation) for other in roles if other != expected])

    return judge


def _batched_reads(evidence: Evidence) -> Judgement:
    return all_of([_than(evidence, f"TV {metadata}", f"BA {metadata}", READ) for metadata in ("M1", "M2")])


def _batched_writes_later(evidence: Evidence) -> Judgement:
    return about(slower(evidence, "BA M1", "TV M1", WRITE), 2.5)


def _more_time_outs(evidence: Evidence) -> Judgement:
    counts = [
        sum(evidence.part(part).counts(role, operation)["timeout"] for part, operation in (("write", WRITE), ("read", READ)))
        for role in BATCHES.values()
    ]
    reason = f"time-outs of batches of {', '.join(map(str, BATCHES))}: {', '.join(map(str, counts))}"
    if not any(counts):
        return Judgement("no difference seen", None, reason)
    return Judgement("holds" if counts == sorted(counts) else "does not hold", None, reason)


def _metadata_of_batches(evidence: Evidence) -> Judgement:
    return all_of([_than(evidence, "BA M1", "BA M2", READ), _than(evidence, "BA M0", "BA M1", READ)])


def _index_halves(evidence: Evidence) -> Judgement:
    roles = ("BA M0", "BA M1", "BA M2")
    return all_of([Case(f"{role} over M3", about(slower(evidence, "BA M3", role, WRITE), 2.0)) for role in roles])


def _where_widths_differ(judge: Judge) -> Judge:
    """Judges only where wider rows are wider: a timeline that fits into the narrowest rows says nothing of the others."""

    def judge_widths(evidence: Evidence) -> Judgement:
        narrow, wide = evidence.largest_partition_bytes("BA 5MB"), evidence.largest_partition_bytes("BA 20MB")
        if narrow and wide and wide < WIDER * narrow:
            reason = (
                f"the largest row is {narrow:,} bytes in the narrowest layout and {wide:,} in the widest: no timeline is longer"
            )
            return Judgement("not tested here", None, reason)
        return judge(evidence)

    return judge_widths


def _widths_of_batches(evidence: Evidence) -> Judgement:
    return all_of([_alike(evidence, "BA 5MB", f"BA {width}", WRITE) for width in WIDTHS[1:]])


def _mixed_writes(evidence: Evidence) -> Judgement:
    def ratio(role: str) -> Interval | None:
        return evidence.contrast_of_parts([("mixed", role, WRITE, 1.0), ("write", role, WRITE, -1.0)])

    return all_of([Case("typed", greater_than_one(ratio("TV M1"))), Case("batched", near_one(ratio("BA M1")))])


def _all_schemas(evidence: Evidence) -> Judgement:
    known = {
        role: rate(evidence, role, WRITE)
        for role in evidence.roles
        if role.startswith(("TV M", "BA M")) and not role.endswith("M3")
    }
    rates_ = {role: value for role, value in known.items() if value is not None}
    if not rates_:
        return Judgement("not tested here", None, "nothing that it compares was measured")
    best, worst = max(rates_, key=lambda role: rates_[role]), min(rates_, key=lambda role: rates_[role])
    share = 1.0 - rates_[worst] / rates_[best]
    reason = f"{best} {rates_[best]:,.0f}/s, {worst} {rates_[worst]:,.0f}/s: {share:.0%} of the best; in the source 10,000 of 62,000, {SHARE_OF_SCHEMAS:.0%}"
    return Judgement("holds" if share <= SHARE_OF_SCHEMAS else "does not hold", None, reason)


def _recommended(role: str, *, writes: bool, reads: bool, at_once: bool) -> Judge:
    """Judges that a layout beats each other tested one for a profile: by written readings a second where many are written, by ranges
    a second where many are read, by the geometric mean of both where both. Where the newest readings are needed at once, only typed
    layouts qualify: a batch is written when it is full.
    """

    def judge(evidence: Evidence) -> Judgement:
        write, read = evidence.part("write"), evidence.part("read")
        others = [
            other
            for other in write.roles
            if other in read.roles
            and other != role
            and other.startswith(("TV ",) if at_once else ("TV ", "BA "))
            and other != "TV 150"
        ]
        cases = []
        for other in others:
            terms = [("write", WRITE)] * writes + [("read", READ)] * reads
            weight = 1.0 / len(terms)
            interval = evidence.contrast_of_parts(
                [
                    (part, name, operation, sign * weight)
                    for part, operation in terms
                    for name, sign in ((other, 1.0), (role, -1.0))
                ]
            )
            if interval is not None and writes:
                interval = scaled(interval, (readings(role) / readings(other)) ** weight)
            cases.append(Case(f"over {other}", greater_than_one(interval)))
        return all_of(cases)

    return judge


def readings(role: str) -> int:
    """How many readings an operation of a role writes."""
    if role.startswith("TV"):
        return 1
    return next((size for size, of_size in BATCHES.items() if of_size == role), 150)


def rates(evidence: Evidence, role: str, operation: str) -> list[float]:
    """Operations a second that succeeded, run by run."""
    return [done / elapsed_s for done, elapsed_s in done_in_s(evidence.runs(role), operation)]


def rate(evidence: Evidence, role: str, operation: str) -> float | None:
    """The mean of them; None when nothing was measured."""
    if role not in evidence.roles:
        return None
    known = rates(evidence, role, operation)
    return float(np.mean(known)) if known else None


JUDGES: dict[str, Judge] = {
    "SCH-1": _wide_rows,
    "SCH-2": _long_ranges,
    "SCH-3": _replication,
    "SCH-4": _one_acknowledgement,
    "SCH-5": _tuned_write,
    "SCH-6": _tuned_read,
    "SCH-8": _client_and_server,
    "SCH-9": _more_asynchronous,
    "SCH-10": _slower_asynchronous,
    "SCH-11": _tables,
    "SCH-12": _spread_of_tables,
    "SCH-13": _metadata_write,
    "SCH-14": _metadata_read,
    "SCH-15": _wider_writes_less,
    "SCH-16": _wider_reads_more,
    "SCH-17": _collapse,
    "SCH-18": _batch_sizes,
    "SCH-19": _best_of(list(BATCHES.values()), "BA M1", READ),
    "SCH-20": _batched_reads,
    "SCH-21": _batched_writes_later,
    "SCH-22": _more_time_outs,
    "SCH-23": _metadata_of_batches,
    "SCH-24": _index_halves,
    "SCH-25": _where_widths_differ(_best_of([f"BA {width}" for width in WIDTHS], "BA 13MB", READ)),
    "SCH-26": _where_widths_differ(_widths_of_batches),
    "SCH-27": _mixed_writes,
    "SCH-28": _all_schemas,
    "SCH-U1": _recommended("TV 15MB", writes=True, reads=True, at_once=True),
    "SCH-U2": _recommended("BA 10MB", writes=True, reads=True, at_once=False),
    "SCH-U3": _recommended("TV 5MB", writes=True, reads=False, at_once=True),
    "SCH-U4": _recommended("BA 20MB", writes=True, reads=False, at_once=False),
    "SCH-U5": _recommended("TV 15MB", writes=False, reads=True, at_once=True),
    "SCH-U6": _recommended("BA 13MB", writes=False, reads=True, at_once=False),
}
