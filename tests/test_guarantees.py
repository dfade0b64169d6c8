"""The checker of histories: each definition at its borders, simulated registers, and a slow checker that is obviously right."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorbench.analysis.guarantees import MAX_EXAMPLES, Checked, check
from sensorbench.errors import UsageError
from sensorbench.results.history import read_history, write_history
from tests.conftest import Cli


@dataclass(frozen=True)
class Op:
    """An operation of a history made by hand."""

    process: int
    f: str
    value: int | None
    start: int
    end: int | None
    outcome: str = "ok"
    key: str = "k"


def w(value: int, start: int, end: int | None, outcome: str = "ok", process: int = 0, key: str = "k") -> Op:
    return Op(process, "write", value, start, end, outcome, key)


def r(value: int | None, start: int, end: int, process: int = 1, key: str = "k") -> Op:
    return Op(process, "read", value, start, end, "ok", key)


def table(ops: Sequence[Op]) -> pa.Table:
    ops = sorted(ops, key=lambda op: op.start)
    return pa.table(
        {
            "process": pa.array([op.process for op in ops], pa.int64()),
            "f": pa.array([op.f for op in ops], pa.string()),
            "key": pa.array([op.key for op in ops], pa.string()),
            "value": pa.array([op.value for op in ops], pa.int64()),
            "outcome": pa.array([op.outcome for op in ops], pa.string()),
            "invoked_ns": pa.array([op.start for op in ops], pa.int64()),
            "ended_ns": pa.array([op.end for op in ops], pa.int64()),
        }
    )


def found(*ops: Op) -> dict[str, int]:
    """What is found, by name, without what is not."""
    return {name: finding.count for name, finding in check(table(ops)).findings.items() if finding.count}


# Reads of versions.


def test_what_was_acknowledged_is_read() -> None:
    assert found(w(1, 0, 1), r(1, 2, 3), w(2, 4, 5), r(2, 6, 7)) == {}


def test_nothing_is_found_where_nothing_is() -> None:
    assert found() == {}
    assert check(table([])).summary()["stale_reads"] == {"count": 0, "of": 0, "share": None, "examples": []}
    assert found(r(None, 0, 1)) == found(w(1, 0, 1)) == {}


def test_null_is_right_until_a_write_is_acknowledged() -> None:
    assert found(r(None, 0, 1), w(1, 2, 6), r(None, 3, 4), r(None, 5, 9, process=2), r(1, 10, 11)) == {}
    assert found(w(1, 0, 1), r(None, 2, 3), r(1, 4, 5)) == {"stale_reads": 1}


def test_a_read_that_is_concurrent_with_a_write_may_return_either() -> None:
    for value in (1, 2):
        assert found(w(1, 0, 1), w(2, 2, 5), r(value, 3, 4), r(2, 6, 7)) == {}
    # At the same time is not before.
    assert found(w(1, 0, 1), w(2, 2, 5), r(1, 5, 6), r(2, 7, 8)) == {}


def test_a_stale_read_has_an_age_and_is_behind() -> None:
    checked = check(table([w(1, 0, 1), w(2, 2, 3), w(3, 4, 6), w(4, 7, 20), r(1, 10, 11), r(4, 30, 31)]))
    finding = checked.findings["stale_reads"]
    assert (finding.count, finding.of, finding.share) == (1, 2, 0.5)
    assert finding.ages_ns == {"p50": 7, "p99": 7, "max": 7}
    (example,) = finding.examples
    assert (example["key"], example["process"], example["time_ns"]) == ("k", 1, 10)
    assert (example["age_ns"], example["behind"]) == (7, 2)
    assert example["returned_write"]["value"] == 1
    assert example["first_newer_write"] == {
        "process": 0,
        "f": "write",
        "key": "k",
        "value": 2,
        "outcome": "ok",
        "invoked_ns": 2,
        "ended_ns": 3,
    }


def test_values_from_nowhere_from_the_future_and_of_another_key() -> None:
    assert found(w(1, 0, 1), r(9, 2, 3), r(1, 4, 5)) == {"never_written": 1}
    assert found(w(1, 0, 1), r(2, 2, 3), w(2, 4, 5), r(2, 6, 7)) == {"never_written": 1}
    assert found(w(1, 0, 1, key="a"), r(1, 2, 3, key="b")) == {"never_written": 1}
    assert found(r(1, 0, 1)) == {"never_written": 1}


def test_a_value_may_be_read_before_its_write_ends() -> None:
    assert found(w(1, 0, 9), r(1, 2, 3)) == {}
    assert found(w(1, 0, None, "unknown"), r(1, 2, 3)) == {}


def test_only_answered_reads_count() -> None:
    no_answer = [replace(r(None, 2, 3), outcome="fail"), replace(r(None, 4, 5), outcome="unknown")]
    assert found(w(1, 0, 1), *no_answer) == {}


# Outcomes that are not known, and failed ones.


def test_an_unknown_write_may_have_happened_or_not() -> None:
    assert found(w(1, 0, 1), w(2, 2, 3, "unknown"), r(1, 4, 5), r(1, 6, 7)) == {}
    assert found(w(1, 0, 1), w(2, 2, 3, "unknown"), r(2, 4, 5)) == {}


def test_an_unknown_write_that_shows_up_late_is_told_apart() -> None:
    assert found(w(1, 0, 1, "unknown"), w(2, 2, 3), r(2, 4, 5), r(1, 6, 7)) == {"possibly_stale_reads": 1}
    # Its process never came back: it has no end, and may take effect whenever it likes.
    assert found(w(1, 0, None, "unknown"), w(2, 2, 3, process=2), r(2, 4, 5), r(1, 6, 7)) == {}


def test_an_unknown_write_that_was_read_has_happened() -> None:
    ops = [w(1, 0, 1, "unknown"), r(1, 2, 3), w(2, 4, 5), r(1, 6, 7, process=2)]
    assert found(*ops) == {"stale_reads": 1, "lost_writes": 1}


def test_an_unknown_write_that_was_read_and_is_gone_is_non_monotonic_and_no_loss() -> None:
    assert found(w(1, 0, 1), w(2, 2, 3, "unknown"), r(2, 4, 5), r(1, 6, 7)) == {"non_monotonic_reads": 1}


def test_a_failed_write_must_not_be_seen() -> None:
    checked = check(table([w(1, 0, 1), w(2, 2, 3, "fail"), r(2, 4, 5), r(1, 6, 7, process=2)]))
    finding = checked.findings["failed_writes_seen"]
    assert finding.count == 1
    assert finding.examples[0]["write"]["outcome"] == "fail"
    assert checked.findings["stale_reads"].count == checked.findings["lost_writes"].count == 0
    assert found(w(1, 0, 1), w(2, 2, 3, "fail"), r(1, 4, 5)) == {}


def test_a_failed_write_that_comes_back_later_is_stale_too() -> None:
    assert found(w(1, 0, 1, "fail"), r(1, 2, 3), w(2, 4, 5), r(1, 6, 7), r(2, 8, 9)) == {
        "failed_writes_seen": 2,
        "stale_reads": 1,
    }


# Sessions.


def test_a_process_must_not_go_back() -> None:
    ops = [w(1, 0, 1), w(2, 2, 20), r(2, 3, 4), r(1, 5, 6), r(2, 30, 31)]
    checked = check(table(ops))
    assert found(*ops) == {"non_monotonic_reads": 1}
    (example,) = checked.findings["non_monotonic_reads"].examples
    assert (example["read"]["value"], example["earlier_read"]["value"]) == (1, 2)
    assert (example["returned_write"]["value"], example["newer_write"]["value"]) == (1, 2)


def test_another_process_may_still_see_the_older_value_while_the_write_is_open() -> None:
    assert found(w(1, 0, 1), w(2, 2, 20), r(2, 3, 4), r(1, 5, 6, process=2), r(2, 30, 31)) == {}


def test_each_read_below_the_newest_seen_counts_and_null_is_the_oldest() -> None:
    assert found(w(1, 0, 1), w(2, 2, 90), r(2, 3, 4), r(1, 5, 6), r(1, 7, 8)) == {"non_monotonic_reads": 2}
    assert found(w(1, 0, 90), r(1, 3, 4), r(None, 5, 6)) == {"non_monotonic_reads": 1}


def test_sessions_are_of_one_key() -> None:
    assert found(w(1, 0, 90, key="a"), w(1, 0, 90, process=2, key="b"), r(1, 3, 4, key="a"), r(None, 5, 6, key="b")) == {}


# Losses.


def test_a_key_whose_final_reads_are_all_older_has_lost_its_last_write() -> None:
    ops = [w(1, 0, 1), w(2, 2, 3), w(3, 4, 5), r(1, 6, 7), r(None, 8, 9, process=2)]
    checked = check(table(ops))
    finding = checked.findings["lost_writes"]
    assert (finding.count, finding.of) == (1, 1)
    (example,) = finding.examples
    assert (example["key"], example["process"], example["time_ns"]) == ("k", 0, 5)
    assert (example["write"]["value"], example["behind"], example["stale_reads_at_end"]) == (3, 3, 2)
    assert (example["first_stale_read"]["value"], example["last_stale_read"]["value"]) == (1, None)
    assert example["last_not_stale_read"] is None


def test_a_value_that_was_read_and_is_gone_is_lost() -> None:
    ops = [w(1, 0, 1), w(2, 2, 3), r(2, 4, 5), r(1, 6, 7, process=2), r(1, 8, 9, process=2)]
    checked = check(table(ops))
    assert found(*ops) == {"lost_writes": 1, "stale_reads": 2}
    (example,) = checked.findings["lost_writes"].examples
    assert (example["write"]["value"], example["behind"], example["stale_reads_at_end"]) == (2, 1, 2)
    assert example["last_not_stale_read"]["value"] == 2


def test_rolled_back_and_repaired_is_no_loss() -> None:
    assert found(w(1, 0, 1), w(2, 2, 3), r(2, 4, 5), r(1, 6, 7), r(2, 8, 9)) == {"stale_reads": 1, "non_monotonic_reads": 1}


def test_rolled_back_and_replaced_is_no_loss() -> None:
    assert found(w(1, 0, 1), w(2, 2, 3), r(1, 4, 5), w(3, 6, 7), r(3, 8, 9)) == {"stale_reads": 1}


def test_one_final_reader_that_sees_the_value_is_enough() -> None:
    assert found(w(1, 0, 1), w(2, 2, 3), r(1, 4, 5), r(2, 6, 7, process=2)) == {"stale_reads": 1}
    # Of reads that overlap, none is the last.
    assert found(w(1, 0, 1), w(2, 2, 3), r(2, 4, 7), r(1, 6, 9, process=2)) == {"stale_reads": 1}
    assert found(w(1, 0, 1), w(2, 2, 3), r(2, 4, 6), r(1, 6, 9, process=2)) == {"stale_reads": 1}
    assert found(w(1, 0, 1), w(2, 2, 3), r(2, 4, 5), r(1, 6, 9, process=2)) == {"stale_reads": 1, "lost_writes": 1}


def test_without_a_final_read_nothing_is_known_of_a_loss() -> None:
    checked = check(table([w(1, 0, 1), w(2, 2, 3), r(1, 4, 8), w(3, 5, 9)]))
    assert checked.findings["stale_reads"].count == 1
    assert (checked.findings["lost_writes"].count, checked.findings["lost_writes"].of) == (0, 0)
    # A read is not final while a write may still be on its way: one that failed afterwards, one that was tried afterwards.
    assert "lost_writes" not in found(w(1, 0, 1), r(None, 3, 4), w(2, 2, 9, "fail", process=2))
    assert "lost_writes" not in found(w(1, 0, 1), r(None, 3, 4), w(2, 5, 6, "unknown"))


def test_an_unknown_write_does_not_excuse_a_loss_unless_it_is_what_is_there() -> None:
    assert found(w(1, 0, 1), w(2, 2, 3, "unknown"), r(None, 4, 5)) == {"stale_reads": 1, "lost_writes": 1}
    assert found(w(1, 0, 1, "unknown"), w(2, 2, 3), r(1, 4, 5)) == {"possibly_stale_reads": 1}


def test_what_nobody_wrote_at_the_end_is_no_loss() -> None:
    assert found(w(1, 0, 1), r(9, 2, 3)) == {"never_written": 1}


# Several writers.


def test_overlapping_writes_of_several_writers_have_no_order() -> None:
    for first, second in ((1, 2), (2, 1)):
        assert found(w(1, 0, 5), w(2, 1, 4, process=2), r(first, 6, 7), r(second, 8, 9)) == {}
    checked = check(table([w(1, 0, 5), w(2, 1, 4, process=2)]))
    assert checked.counts["keys_of_several_writers"] == 1


def test_ordered_writes_of_several_writers_have_one() -> None:
    assert found(w(1, 0, 1), w(2, 2, 3, process=2), r(1, 4, 5), r(2, 6, 7)) == {"stale_reads": 1}


def test_a_newer_write_may_be_acknowledged_before_an_older_one() -> None:
    checked = check(table([w(1, 0, 1), w(2, 2, 30, process=2), w(3, 4, 5, process=3), r(1, 8, 9), r(3, 40, 41)]))
    (example,) = checked.findings["stale_reads"].examples
    assert (example["age_ns"], example["behind"], example["first_newer_write"]["value"]) == (3, 1, 3)


# Counts.


def test_the_true_count_is_told_beside_the_first_examples() -> None:
    reads = [r(None, 10 * n, 10 * n + 1) for n in range(1, 251)]
    summary = check(table([w(1, 0, 1), *reads])).summary()
    assert summary["stale_reads"]["count"] == 250
    assert len(summary["stale_reads"]["examples"]) == MAX_EXAMPLES
    assert summary["stale_reads"]["age_ns"] == {"p50": 1249, "p99": 2479, "max": 2499}
    assert (summary["operations"], summary["reads"], summary["writes"], summary["unknown"]) == (251, 250, 1, 0)


# Simulated registers.


def register_history(
    seed: int, *, processes: int = 4, keys: int = 3, length: int = 60, several_writers: bool = False
) -> list[Op]:
    """A history of linearizable registers. An operation takes effect at a moment between its invocation and its end; a write of
    unknown outcome does so at any time after its invocation, or never; a failed one never.
    """
    chance = random.Random(seed)
    planned: list[tuple[float, Op]] = []
    for process in range(processes):
        time = chance.randint(0, 5)
        for number in range(length // processes):
            start, end = time, time + chance.randint(0, 12)
            time = end + chance.randint(1, 4)
            moment = chance.uniform(start, end)
            key = chance.randrange(keys)
            writes = chance.random() < 0.4 and (several_writers or key % processes == process)
            value = process * 1000 + number + 1 if writes else None
            outcome = chance.choices(["ok", "fail", "unknown"], [8, 1, 1])[0] if writes else "ok"
            if outcome == "unknown":
                moment = chance.choice([chance.uniform(start, start + 60), float("inf")])
            elif outcome == "fail":
                moment = float("inf")
            op = Op(process, "write" if writes else "read", value, start, end, outcome, f"key {key}")
            is_last = outcome == "unknown" and chance.random() < 0.2
            planned.append((moment, replace(op, end=None) if is_last else op))
            if is_last:
                break
    state: dict[str, int | None] = {}
    done = []
    for moment, op in sorted(planned, key=lambda pair: pair[0]):
        if op.f == "read":
            op = replace(op, value=state.get(op.key))
        elif moment != float("inf"):
            state[op.key] = op.value
        done.append(op)
    return sorted(done, key=lambda op: op.start)


@given(st.integers(0, 2**32), st.booleans())
def test_a_linearizable_register_has_no_findings(seed: int, several: bool) -> None:
    counts = found(*register_history(seed, several_writers=several))
    # A register may apply a write of unknown outcome late.
    counts.pop("possibly_stale_reads", None)
    assert counts == {}


FAULTS = ["lose", "roll back", "invent", "serve an older value once"]


@given(st.integers(0, 2**32), st.lists(st.sampled_from([*FAULTS, "none"]), min_size=1, max_size=12))
def test_injected_faults_are_found_exactly(seed: int, faults: list[str]) -> None:
    """Each key is written and read one after the other, then meets its fault, and is read again."""
    chance = random.Random(seed)
    clock, ops = 0, []
    expected = dict.fromkeys(["lost_writes", "stale_reads", "non_monotonic_reads", "never_written"], 0)

    def then(op: Op) -> None:
        nonlocal clock
        clock += chance.randint(1, 5)
        ops.append(replace(op, start=clock, end=(clock := clock + chance.randint(1, 5))))

    for number, fault in enumerate(faults):
        key, newest = f"key {number}", chance.randint(2, 5)
        for value in range(1, newest + 1):
            then(w(value, 0, 0, key=key))
            then(r(value, 0, 0, key=key))
        older = chance.randrange(1, newest)
        left = {"lose": None, "roll back": older}.get(fault, newest)
        if fault == "invent":
            then(r(77, 0, 0, key=key))
            expected["never_written"] += 1
        if fault == "serve an older value once":
            then(r(older, 0, 0, key=key, process=2))
            expected["stale_reads"] += 1
        readers = [chance.choice([1, 2]) for _ in range(chance.randint(1, 3))]
        for process in readers:
            then(r(left, 0, 0, key=key, process=process))
        if left != newest:
            expected["lost_writes"] += 1
            expected["stale_reads"] += len(readers)
            expected["non_monotonic_reads"] += readers.count(1)
    assert found(*ops) == {name: count for name, count in expected.items() if count}


# The slow checker: the definitions, word by word.


def slowly(ops: Sequence[Op]) -> dict[str, Any]:
    """Counts by name, and age and distance of each stale read."""
    ops = sorted(ops, key=lambda op: op.start)
    writes = [op for op in ops if op.f == "write"]
    reads = [op for op in ops if op.f == "read" and op.outcome == "ok"]
    written = {op.key: [x for x in writes if x.key == op.key] for op in ops}
    acknowledged = [op for op in writes if op.outcome == "ok"]

    def origin(read: Op) -> Op | None:
        return next((x for x in written[read.key] if x.value == read.value and x.start <= (read.end or 0)), None)

    def is_known(read: Op) -> bool:
        return read.value is None or origin(read) is not None

    def is_older(x: Op | None, y: Op, in_time: bool = False) -> bool:
        if x is None or x == y:
            return x is None
        ends = [x.end] if x.outcome == "ok" or (in_time and x.outcome == "unknown") else []
        ends += [read.end for read in reads if origin(read) == x and read.key == x.key]
        return any(end is not None and end < y.start for end in ends)

    def newer(read: Op, in_time: bool = False) -> list[Op]:
        same = [y for y in acknowledged if y.key == read.key and y.end < read.start]  # type: ignore[operator]
        return [y for y in same if is_known(read) and is_older(origin(read), y, in_time)]

    def went_back(place: int) -> bool:
        read = reads[place]
        before = [op for op in reads[:place] if (op.process, op.key) == (read.process, read.key)]
        return is_known(read) and any(y is not None and is_older(origin(read), y) for y in map(origin, before))

    def is_lost(key: str) -> bool:
        last = max(x.start if x.outcome == "unknown" else x.end for x in written[key])  # type: ignore[type-var]
        end = [read for read in reads if read.key == key and read.start > last]  # type: ignore[operator]
        final = [read for read in end if not any(other.start > read.end for other in end)]  # type: ignore[operator]
        return bool(final) and all(newer(read) for read in final)

    stale = [read for read in reads if newer(read)]
    return {
        "lost_writes": sum(is_lost(key) for key in {x.key for x in acknowledged}),
        "stale_reads": len(stale),
        "non_monotonic_reads": sum(went_back(place) for place in range(len(reads))),
        "never_written": sum(not is_known(read) for read in reads),
        "failed_writes_seen": sum((x := origin(read)) is not None and x.outcome == "fail" for read in reads),
        "possibly_stale_reads": sum(bool(newer(read, in_time=True)) and not newer(read) for read in reads),
        "stale": [(read.start - min(y.end for y in newer(read)), len(newer(read))) for read in stale],  # type: ignore[type-var]
    }


def fast(ops: Sequence[Op]) -> dict[str, Any]:
    checked: Checked = check(table(ops))
    stale = [(example["age_ns"], example["behind"]) for example in checked.findings["stale_reads"].examples]
    return {**{name: finding.count for name, finding in checked.findings.items()}, "stale": stale}


@given(st.integers(0, 2**32), st.booleans(), st.floats(0, 1))
def test_the_fast_checker_agrees_with_the_slow_one(seed: int, several: bool, wrong: float) -> None:
    """On histories whose reads were tampered with."""
    chance = random.Random(seed)
    ops = register_history(seed, keys=chance.randint(1, 3), length=chance.choice([8, 24, 40]), several_writers=several)
    values = {key: [op.value for op in ops if op.f == "write" and op.key == key] for key in {op.key for op in ops}}
    tampered = [
        replace(op, value=chance.choice([*values[op.key], None, 9999])) if op.f == "read" and chance.random() < wrong else op
        for op in ops
    ]
    assert fast(tampered) == slowly(tampered)


# Files.


def line(process: int, kind: str, f: str, value: int | None, time: int, key: object = "k") -> str:
    return json.dumps({"process": process, "type": kind, "f": f, "key": key, "value": value, "time": time, "index": 7})


GOOD = [
    line(0, "invoke", "write", 1, 0),
    line(1, "invoke", "read", None, 1),
    line(0, "ok", "write", 1, 2),
    line(1, "ok", "read", 1, 3),
    line(1, "invoke", "read", None, 4),
    line(1, "info", "read", None, 5),
    line(1, "invoke", "write", 2, 6),
    line(1, "fail", "write", None, 7),
    line(2, "invoke", "write", 3, 8),
]


def history_file(folder: Path, lines: Sequence[str]) -> Path:
    path = folder / "history.jsonl"
    path.write_text("".join(f"{name}\n" for name in lines), encoding="utf-8")
    return path


def test_a_history_is_read(tmp_path: Path) -> None:
    rows = read_history(history_file(tmp_path, GOOD)).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (0, "write", "k", 1, "ok", 0, 2),
        (1, "read", "k", 1, "ok", 1, 3),
        (1, "read", "k", None, "unknown", 4, 5),
        (1, "write", "k", 2, "fail", 6, 7),
        (2, "write", "k", 3, "unknown", 8, None),
    ]


@given(st.integers(0, 2**32), st.booleans())
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, seed: int, strings: bool) -> None:
    path = tmp_path_factory.mktemp("history") / "history.jsonl"
    operations = table(register_history(seed))
    if not strings:
        numbers = pa.array(range(len(operations)), pa.int64())
        operations = operations.set_column(operations.schema.get_field_index("key"), "key", numbers)
    write_history(path, operations)
    assert read_history(path).to_pylist() == operations.to_pylist()
    assert not list(path.parent.glob("*.unfinished"))


def test_keys_and_times_may_be_anything_json_has(tmp_path: Path) -> None:
    operations = table([w(-(2**63), -5, 2**62, key='a "key"\n\\ß'), r(None, -4, -3, key="")])
    write_history(tmp_path / "history.jsonl", operations)
    assert read_history(tmp_path / "history.jsonl").to_pylist() == operations.to_pylist()


BAD: list[tuple[str, Callable[[list[str]], list[str]], str]] = [
    ("no JSON", lambda good: [*good[:2], "{nonsense", *good[2:]], "line 3: expected a JSON object"),
    ("an array", lambda good: [*good[:2], "[1]", *good[2:]], "line 3: expected a JSON object"),
    ("after an empty line", lambda good: [*good[:2], "", "[1]"], "line 4: expected a JSON object"),
    ("no process", lambda good: [*good[:1], '{"type": "ok"}'], "line 2: process is None; expected an integer"),
    (
        "the nemesis",
        lambda good: [*good, good[0].replace(": 0, ", ': "nemesis", ', 1)],
        "process is 'nemesis'; expected an integer",
    ),
    ("a fraction", lambda good: [line(0, "invoke", "write", 1, 0).replace('time": 0', 'time": 0.5')], "line 1: time is 0.5"),
    (
        "a type",
        lambda good: [*good, line(5, "done", "read", 1, 9)],
        "line 10: type is 'done'; expected one of invoke, ok, fail, info",
    ),
    ("a function", lambda good: [*good, line(5, "invoke", "cas", 1, 9)], "line 10: f is 'cas'; expected one of write, read"),
    ("no key", lambda good: [*good, line(5, "invoke", "read", 1, 9, key=None)], "line 10: key is None"),
    (
        "two kinds of keys",
        lambda good: [*good, line(5, "invoke", "read", 1, 9, key=3)],
        "line 10: key is 3; expected strings alone",
    ),
    ("a value", lambda good: [*good, good[-1].replace('"value": 3', '"value": "x"')], "line 10: value is 'x'"),
    ("a huge value", lambda good: [line(0, "invoke", "write", 2**63, 0)], "line 1: value is 9223372036854775808"),
    ("no value", lambda good: [*good, line(5, "invoke", "write", None, 9)], "line 10: a write without a value"),
    ("no invocation", lambda good: [*good, line(5, "ok", "read", 1, 9)], "line 10: process 5 has no operation open"),
    ("two ends", lambda good: [*good[:3], good[2]], "line 4: process 0 has no operation open"),
    (
        "two invocations",
        lambda good: [*good, line(2, "invoke", "read", None, 9)],
        "line 10: process 2 invokes an operation while",
    ),
    ("another key", lambda good: [*good, line(2, "ok", "write", 3, 9, key="other")], "line 10: ends another operation"),
    ("another function", lambda good: [*good, line(2, "ok", "read", 3, 9)], "line 10: ends another operation"),
    ("another value", lambda good: [*good, line(2, "ok", "write", 4, 9)], "line 10: ends a write with another value"),
    ("time", lambda good: [*good, "", line(2, "ok", "write", 3, 7)], "line 11: its time is before that of the line above"),
    ("a value twice", lambda good: [*good, line(5, "invoke", "write", 1, 9)], "line 10: writes the value of line 1 again"),
    ("nothing", lambda good: [], "the file is empty"),
]


@pytest.mark.parametrize(("change", "message"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_a_bad_file_is_refused_with_its_line(tmp_path: Path, change: Callable[[list[str]], list[str]], message: str) -> None:
    path = history_file(tmp_path, change(list(GOOD)))
    with pytest.raises(UsageError) as refused:
        read_history(path)
    assert str(path) in str(refused.value)
    assert message in str(refused.value)


# The command.


def test_the_command_prints_json(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    write_history(path, table([w(1, 0, 1), w(2, 2, 3), r(2, 4, 5), r(1, 6, 7), r(9, 8, 9), r(1, 10, 11)]))
    ended = cli("consistency", "check", path, "--json")
    assert ended.exit_code == 0, ended.err
    names = ("lost_writes", "stale_reads", "non_monotonic_reads", "never_written", "failed_writes_seen")
    assert {name: ended.json[name]["count"] for name in names} == dict(zip(names, (1, 2, 2, 1, 0), strict=True))
    assert (ended.json["operations"], ended.json["reads"], ended.json["writes"], ended.json["unknown"]) == (6, 4, 2, 0)
    assert ended.json["never_written"]["examples"][0]["read"]["value"] == 9


def test_the_command_tells_people_what_when_and_where(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    ops = [
        w(1, 0, 1, key="gone"),
        r(None, 2, 3, key="gone"),
        w(5, 4, 5, "fail"),
        w(6, 6, 9),
        r(6, 7, 8),
        r(None, 10, 11),
        r(5, 12, 13),
    ]
    write_history(path, table([*ops, r(77, 14, 15), w(8, 16, None, "unknown", process=3)]))
    ended = cli("consistency", "check", path)
    assert ended.exit_code == 0, ended.err
    assert "9 operations of 3 processes on 2 keys" in ended.out
    assert (
        "lost writes: key 'gone': process 0 write 1 from 0 to 1 ns; older reads at the end: 1, the last: process 1 read null"
        in ended.out
    )
    assert "stale reads: key 'k': process 1 read null from 10 to 11 ns, 1.00 ns after a newer value was acknowledged" in ended.out
    assert "non-monotonic reads: key 'k': process 1 read null from 10 to 11 ns, after it had a newer one" in ended.out
    assert "values never written: key 'k': process 1 read 77 from 14 to 15 ns, which no client wrote" in ended.out
    assert "failed writes seen: key 'k': process 1 read 5 from 12 to 13 ns, of a write that failed" in ended.out
    assert "note: 1 of 2 keys have no acknowledged write, or were not read after" in ended.out


def test_the_command_refuses_what_is_no_history(cli: Cli, tmp_path: Path) -> None:
    assert cli("consistency", "check", tmp_path / "nothing.jsonl").exit_code == 2
    ended = cli("consistency", "check", history_file(tmp_path, ["{}"]))
    assert ended.exit_code == 2
    assert "line 1" in " ".join(ended.err.split())
