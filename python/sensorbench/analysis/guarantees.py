"""What a database gave its clients while they read and wrote registers, and what its variant promises.

**Model.** A history has operations on keys, each an interval of time from invocation to end. Each key is a register: clients
write integers to it, each value once per key, and read them back. Meant is one writer per key; where several wrote, the order
of writes that overlap in time is not known, and nothing is found that depends on it. Before its first write a key holds its
initial version, read as null.

A write's outcome is *ok* (acknowledged), *fail* (certainly did not happen) or *unknown* (it may take effect at any time from
its invocation on, or never; operations still open at the end are unknown, too). "Before" is strictly before: equal times count
as the same time.

- A write is *settled* at the earliest of its acknowledgement and the end of the first read that returned its value: by then it
  has taken effect. The initial version is settled from the start. An unknown or failed write that nobody read is never settled.
- Version x is *certainly older* than write y of the same key when x was settled before y was invoked. In a linearizable
  register (Herlihy and Wing, "Linearizability: a correctness condition for concurrent objects", ACM TOPLAS 12(3), 1990) x then
  takes effect before y.

**Findings.** Reads are those that were answered (ok).

- `never_written`: the read returned a value that no write of the key, of whatever outcome, invoked before the read's end,
  wrote. Null is never among them.
- `failed_writes_seen`: it returned the value of a write that failed. Such a write did happen; from here on it is treated as one
  of unknown outcome.
- `stale_reads`: it returned a version certainly older than a write that was acknowledged before the read was invoked; null
  counts as the initial version. Its *age* is the time from the first acknowledgement of such a write to the read's invocation
  (Δ of Golab, Li and Shah, "Analyzing consistency properties for fun and profit", PODC 2011, and t-visibility of Bailis et al.,
  "Probabilistically bounded staleness for practical partial quorums", VLDB 2012), and it is *behind* by the number of such
  writes (k-staleness, ibid.).
- `possibly_stale_reads`: it is not stale, but would be if each write of unknown outcome that has an end had taken effect by
  then or never. A register may apply such a write late, on top of newer ones; whoever knows that a database cannot (newer
  timestamps win) may add these to the stale ones.
- `non_monotonic_reads`: the same process had read the key before (that read ended before this one was invoked) and then got a
  write that this read's version is certainly older than (monotonic reads of Terry et al., "Session guarantees for weakly
  consistent replicated data", PDIS 1994).
- `lost_writes`: the last acknowledged write of a key whose *final reads* are all stale. Reads of the end are those invoked
  after every ok or failed write of the key had ended and every unknown one was invoked; final are those of the end that end
  after the last of them was invoked (the last one, and what overlaps it). A key without any is not judged. One loss per key:
  writes before the last one were replaced, as their clients wanted; `behind` says how many acknowledged writes are newer than
  what was read last, `stale_reads_at_end` how often it was looked for in vain. A value that was rolled back and came back, or
  was replaced, is no loss: the reads in between are stale or non-monotonic. Nor is a failed, late or never written value at the
  end: that is a finding, or an effect, of its own.

All of these but the possibly stale reads are violations of linearizability, so that a linearizable register has none. They are
not all of them: two processes that see a write which is still under way and then do not see it are not found. That takes a
search over orders, as Knossos and Elle do it (Kingsbury and Alvaro, "Elle: inferring isolation anomalies from experimental
observations", VLDB 2020); here, sorting is enough.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NotRequired, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]
MAX_EXAMPLES = 100
NEVER = np.iinfo(np.int64).max
FROM_THE_START = np.iinfo(np.int64).min
NONE = -1
AGE_QUANTILES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


class ShownOperation(TypedDict):
    """An operation of a history, as examples show it."""

    process: int
    f: str
    key: str | int
    value: int | None
    outcome: str
    invoked_ns: int
    ended_ns: int | None


class Example(TypedDict, total=False):
    """A finding about one operation: where, who, when, and the operations that show it, as far as the kind of finding has them. Of reads,
    `behind` counts the acknowledged writes that are newer than what was read.
    """

    key: str | int
    process: int
    time_ns: int
    read: ShownOperation | None
    write: ShownOperation | None
    age_ns: int
    behind: int
    stale_reads_at_end: int
    returned_write: ShownOperation | None
    first_newer_write: ShownOperation | None
    earlier_read: ShownOperation | None
    newer_write: ShownOperation | None
    last_not_stale_read: ShownOperation | None
    first_stale_read: ShownOperation | None
    last_stale_read: ShownOperation | None


class FindingReport(TypedDict):
    """A finding as JSON has it."""

    count: int
    of: int
    share: float | None
    age_ns: NotRequired[dict[str, int]]
    examples: list[Example]


@dataclass(frozen=True)
class Finding:
    """One kind of finding: the true count, among how many that could have been one, and the first examples."""

    count: int
    of: int
    examples: tuple[Example, ...]
    ages_ns: dict[str, int] | None = None

    @property
    def share(self) -> float | None:
        """The count's share of those that could have been one; None when there were none."""
        return self.count / self.of if self.of else None


@dataclass(frozen=True)
class Checked:
    """What a history holds, and what was found in it, by name of the finding."""

    counts: dict[str, int]
    findings: dict[str, Finding] = field(repr=False)

    def summary(self) -> dict[str, int | FindingReport]:
        """As JSON has it: the counts at the top, then each finding."""
        return {**self.counts, **{name: _as_json(finding) for name, finding in self.findings.items()}}


def check(operations: pa.Table) -> Checked:
    """Checks a history: a table with a row for each operation (columns `process`, `f`, `key`, `value`, `outcome`, `invoked_ns`,
    `ended_ns`), in the order of their invocations. A process has one operation open at a time; the values written to a key differ.
    """
    history = _History(operations)
    stale = _Stale(history, history.settled)
    possibly_stale = _Stale(history, history.settled_if_in_time, but_not=stale)
    return Checked(
        history.counts(),
        {
            "lost_writes": _lost_writes(history, stale),
            "stale_reads": stale.finding(),
            "non_monotonic_reads": _non_monotonic_reads(history),
            "never_written": _never_written(history),
            "failed_writes_seen": _failed_writes_seen(history),
            "possibly_stale_reads": possibly_stale.finding(),
        },
    )


def widened(operations: pa.Table, bound_ns: int) -> pa.Table:
    """A history in which each operation may have begun earlier, and ended later, by a bound (ns): of clients whose clocks are known to within it. What is
    found then does not come from their clocks.
    """
    if not bound_ns:
        return operations
    names = operations.column_names
    invoked, ended = pc.subtract(operations["invoked_ns"], bound_ns), pc.add(operations["ended_ns"], bound_ns)
    with_invoked = operations.set_column(names.index("invoked_ns"), "invoked_ns", invoked)
    return with_invoked.set_column(names.index("ended_ns"), "ended_ns", ended)


class _History:
    """A history's columns. An operation is known by its row, a version by a number: first the initial ones, then the writes."""

    def __init__(self, operations: pa.Table) -> None:
        key = operations["key"].combine_chunks()
        key = key if pa.types.is_dictionary(key.type) else key.dictionary_encode()
        self.names: list[str | int] = key.dictionary.to_pylist()
        self.key = key.indices.to_numpy().astype(np.int64)
        self.process = operations["process"].to_numpy()
        self.has_value = operations["value"].is_valid().to_numpy()
        self.value = operations["value"].fill_null(0).to_numpy()
        self.invoked = operations["invoked_ns"].to_numpy()
        self.has_end = operations["ended_ns"].is_valid().to_numpy()
        self.ended = operations["ended_ns"].fill_null(NEVER).to_numpy()
        self.is_write = _is(operations["f"], "write")
        self.is_ok, self.is_failed = _is(operations["outcome"], "ok"), _is(operations["outcome"], "fail")
        self.writes = np.flatnonzero(self.is_write)
        self.reads = np.flatnonzero(~self.is_write & self.is_ok)
        self.acknowledged = np.flatnonzero(self.is_write & self.is_ok)

    @cached_property
    def key_of_version(self) -> Integers:
        return np.concatenate([np.arange(len(self.names)), self.key[self.writes]])

    @cached_property
    def write_of_version(self) -> Integers:
        return np.concatenate([np.full(len(self.names), NONE), self.writes])

    @cached_property
    def invoked_of_version(self) -> Integers:
        return np.concatenate([np.full(len(self.names), FROM_THE_START), self.invoked[self.writes]])

    @cached_property
    def version_read(self) -> Integers:
        """The version that each read returned; NONE where no write is known that could have written the value."""
        of_key = self.key[self.reads]
        if not len(self.writes):
            return np.where(self.has_value[self.reads], NONE, of_key)
        # Key and value become one number, values by their rank.
        values = np.unique(self.value[self.writes])
        written = self.key[self.writes] * len(values) + np.searchsorted(values, self.value[self.writes])
        rank = np.minimum(np.searchsorted(values, self.value[self.reads]), len(values) - 1)
        order = np.argsort(written)
        place = np.minimum(np.searchsorted(written, of_key * len(values) + rank, sorter=order), len(order) - 1)
        write = self.writes[order[place]]
        is_known = (self.key[write] == of_key) & (self.value[write] == self.value[self.reads])
        is_known &= self.invoked[write] <= self.ended[self.reads]
        version = np.where(is_known, len(self.names) + order[place], NONE)
        return np.where(self.has_value[self.reads], version, of_key)

    @cached_property
    def settled(self) -> Integers:
        """When each version had taken effect."""
        settled = np.concatenate([np.full(len(self.names), FROM_THE_START), np.where(self.is_ok, self.ended, NEVER)[self.writes]])
        known = self.version_read != NONE
        np.minimum.at(settled, self.version_read[known], self.ended[self.reads[known]])
        return settled

    @cached_property
    def settled_if_in_time(self) -> Integers:
        """The same, if a write of unknown outcome takes effect before its end or never."""
        settled = self.settled.copy()
        in_time = np.where(self.is_failed, NEVER, self.ended)[self.writes]
        settled[len(self.names) :] = np.minimum(settled[len(self.names) :], in_time)
        return settled

    def first_newer(self, settled: Integers) -> Integers:
        """Of the acknowledged writes that each version is certainly older than, the one acknowledged first; or NONE."""
        if not len(self.acknowledged):
            return np.full(len(settled), NONE)
        writes = self.acknowledged[np.lexsort((self.invoked[self.acknowledged], self.key[self.acknowledged]))]
        # Newer than a version are its key's writes from some place on: those invoked after it was settled.
        first_acknowledged = _running_best(-self.ended[writes][::-1], self.key[writes][::-1])
        first_acknowledged = writes[::-1][first_acknowledged][::-1]
        times = np.sort(self.invoked[writes])
        place = self.key[writes] * (len(writes) + 1) + np.searchsorted(times, self.invoked[writes], side="left")
        places = self.key_of_version * (len(writes) + 1) + np.searchsorted(times, settled, side="right")
        found = np.searchsorted(place, places)
        at = np.minimum(found, len(writes) - 1)
        is_found = (found < len(writes)) & (self.key[writes[at]] == self.key_of_version)
        return np.where(is_found, first_acknowledged[at], NONE)

    def behind(self, version: int, until: int, settled: Integers) -> int:
        """How many acknowledged writes, acknowledged before a time, a version is certainly older than."""
        of_key = self.acknowledged[self.key[self.acknowledged] == self.key_of_version[version]]
        return int(((self.invoked[of_key] > settled[version]) & (self.ended[of_key] < until)).sum())

    def counts(self) -> dict[str, int]:
        """How many there are of what."""
        writers = np.unique(np.stack([self.key[self.writes], self.process[self.writes]]), axis=1)[0]
        return {
            "operations": len(self.key),
            "reads": len(self.key) - len(self.writes),
            "writes": len(self.writes),
            "answered_reads": len(self.reads),
            "acknowledged_writes": len(self.acknowledged),
            "failed": int(self.is_failed.sum()),
            "unknown": int((~self.is_ok & ~self.is_failed).sum()),
            "processes": len(np.unique(self.process)),
            "keys": len(np.unique(self.key)),
            "keys_of_several_writers": int((np.bincount(writers) > 1).sum()),
        }

    def operation(self, row: int) -> ShownOperation | None:
        """An operation as it is shown; None for the write of an initial version."""
        if row == NONE:
            return None
        return {
            "process": int(self.process[row]),
            "f": "write" if self.is_write[row] else "read",
            "key": self.names[self.key[row]],
            "value": int(self.value[row]) if self.has_value[row] else None,
            "outcome": "ok" if self.is_ok[row] else "fail" if self.is_failed[row] else "unknown",
            "invoked_ns": int(self.invoked[row]),
            "ended_ns": int(self.ended[row]) if self.has_end[row] else None,
        }

    def example(self, row: int, time: int) -> Example:
        """A finding about one operation: where, who and when."""
        return {"key": self.names[self.key[row]], "process": int(self.process[row]), "time_ns": int(time)}

    def of_reads(self, found: Truths, more: Callable[[int], Example]) -> tuple[Example, ...]:
        """The first examples of reads; `more` says what else there is to say of one, by its place among the reads."""

        def example(place: int) -> Example:
            row = self.reads[place]
            shown = self.example(row, self.invoked[row])
            shown["read"] = self.operation(row)
            return {**shown, **more(place)}

        return tuple(example(place) for place in np.flatnonzero(found)[:MAX_EXAMPLES])


class _Stale:
    """The reads for which a newer write was acknowledged before they were invoked, by when versions are settled."""

    def __init__(self, history: _History, settled: Integers, but_not: "_Stale | None" = None) -> None:
        self._history, self._settled = history, settled
        version, invoked = history.version_read, history.invoked[history.reads]
        self.newer = np.where(version != NONE, history.first_newer(settled)[version], NONE)
        acknowledged = np.where(self.newer != NONE, history.ended[self.newer], NEVER)
        found = acknowledged < invoked
        self.reads: Truths = found & ~but_not.reads if but_not else found
        self.age = np.where(found, invoked - np.where(found, acknowledged, 0), 0)

    def finding(self) -> Finding:
        """All of them, with their ages."""
        examples = self._history.of_reads(self.reads, self._more)
        return Finding(int(self.reads.sum()), len(self.reads), examples, self._ages())

    def behind(self, place: int) -> int:
        """By how many acknowledged writes a read is behind."""
        until = int(self._history.invoked[self._history.reads[place]])
        return self._history.behind(int(self._history.version_read[place]), until, self._settled)

    def _more(self, place: int) -> Example:
        history = self._history
        return {
            "age_ns": int(self.age[place]),
            "behind": self.behind(place),
            "returned_write": history.operation(history.write_of_version[history.version_read[place]]),
            "first_newer_write": history.operation(self.newer[place]),
        }

    def _ages(self) -> dict[str, int] | None:
        """Quantiles that are ages of reads, none between two."""
        ages = self.age[self.reads]
        if not len(ages):
            return None
        return {name: int(np.quantile(ages, share, method="inverted_cdf")) for name, share in AGE_QUANTILES.items()}


def _lost_writes(history: _History, stale: _Stale) -> Finding:
    keys = len(history.names)
    last_end = np.full(keys, FROM_THE_START)
    is_known = history.is_ok | history.is_failed
    np.maximum.at(last_end, history.key[history.writes], np.where(is_known, history.ended, history.invoked)[history.writes])
    last_acknowledged = np.full(keys, NONE)
    by_end = history.acknowledged[np.argsort(history.ended[history.acknowledged], kind="stable")]
    last_acknowledged[history.key[by_end]] = by_end

    key_read, invoked = history.key[history.reads], history.invoked[history.reads]
    is_of_end = invoked > last_end[key_read]
    last_invoked = np.full(keys, FROM_THE_START)
    np.maximum.at(last_invoked, key_read[is_of_end], invoked[is_of_end])
    is_final = is_of_end & (history.ended[history.reads] >= last_invoked[key_read])
    final_reads = np.bincount(key_read[is_final], minlength=keys)
    stale_final_reads = np.bincount(key_read[is_final & stale.reads], minlength=keys)
    judged = (last_acknowledged != NONE) & (final_reads > 0)
    lost = np.sort(last_acknowledged[judged & (stale_final_reads == final_reads)])

    def example(row: int) -> Example:
        places = np.flatnonzero(is_of_end & (key_read == history.key[row]))
        others = places[~stale.reads[places]]
        in_vain = places[places > others[-1]] if len(others) else places
        more: Example = {
            "write": history.operation(row),
            "behind": stale.behind(int(places[-1])),
            "stale_reads_at_end": len(in_vain),
            "last_not_stale_read": history.operation(history.reads[others[-1]]) if len(others) else None,
            "first_stale_read": history.operation(history.reads[in_vain[0]]),
            "last_stale_read": history.operation(history.reads[in_vain[-1]]),
        }
        return {**history.example(row, history.ended[row]), **more}

    return Finding(len(lost), int(judged.sum()), tuple(example(row) for row in lost[:MAX_EXAMPLES]))


def _non_monotonic_reads(history: _History) -> Finding:
    known = np.flatnonzero(history.version_read != NONE)
    rows = history.reads[known]
    order = np.lexsort((rows, history.key[rows], history.process[rows]))
    known, rows = known[order], rows[order]
    found, earlier = np.zeros(len(history.reads), dtype=np.bool_), np.full(len(history.reads), NONE)
    if len(rows) > 1:
        is_other = (np.diff(history.process[rows]) != 0) | (np.diff(history.key[rows]) != 0)
        session = np.concatenate([[0], np.cumsum(is_other)])
        version = history.version_read[known]
        # The newest version of all that a process had got of a key, up to each of its reads.
        newest = _running_best(history.invoked_of_version[version], session)
        is_older = history.settled[version[1:]] < history.invoked_of_version[version[newest[:-1]]]
        found[known[1:]] = is_older & ~is_other
        earlier[known[1:]] = known[newest[:-1]]

    def more(place: int) -> Example:
        writes = history.write_of_version[history.version_read]
        return {
            "earlier_read": history.operation(history.reads[earlier[place]]),
            "returned_write": history.operation(writes[place]),
            "newer_write": history.operation(writes[earlier[place]]),
        }

    return Finding(int(found.sum()), len(history.reads), history.of_reads(found, more))


def _never_written(history: _History) -> Finding:
    found = history.version_read == NONE
    return Finding(int(found.sum()), len(history.reads), history.of_reads(found, lambda _: {}))


def _failed_writes_seen(history: _History) -> Finding:
    write = np.where(history.version_read != NONE, history.write_of_version[history.version_read], NONE)
    found = (write != NONE) & history.is_failed[write]
    examples = history.of_reads(found, lambda place: {"write": history.operation(write[place])})
    return Finding(int(found.sum()), len(history.reads), examples)


def _running_best(values: Integers, group: Integers) -> Integers:
    """The place of the greatest value so far in each one's group. Groups are stretches of neighbours."""
    by_value = np.argsort(values, kind="stable")
    rank = np.empty(len(values), dtype=np.int64)
    rank[by_value] = np.arange(len(values))
    group_number = np.concatenate([[0], np.cumsum(np.diff(group) != 0)]) if len(group) else group
    # Any rank of a later stretch is greater than all of an earlier one, so that the maximum starts over.
    best = np.maximum.accumulate(group_number * len(values) + rank)
    return by_value[best % len(values)] if len(values) else rank


def _is(column: pa.ChunkedArray, word: str) -> Truths:
    truths: Truths = pc.equal(column.cast(pa.string()), word).to_numpy()
    return truths


def _as_json(finding: Finding) -> FindingReport:
    report: FindingReport = {
        "count": finding.count,
        "of": finding.of,
        "share": finding.share,
        "examples": list(finding.examples),
    }
    if finding.ages_ns:
        report["age_ns"] = finding.ages_ns
    return report
