"""The history of a run's registers: what each client wrote and read, when, and what is there at the end."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sensorbench import _engine
from sensorbench.errors import EngineError
from sensorbench.results import RunResult, read_run
from sensorbench.results.engine_plan import EnginePlan
from sensorbench.results.engine_report import EngineRun
from sensorbench.results.history import FUNCTIONS, HISTORY_FILE, OUTCOMES, write_history
from sensorbench.results.latencies import of_kind
from sensorbench.results.ownership import Owner, new_id
from sensorbench.runner import KEY, READ, VALUE, WRITE, ConnectedComparison, Parameters, Variant, as_json, is_of_registers
from sensorbench.verification.ask_each import ask_each

# At the end each key is read this many times, by this many clients.
FINAL_READS = 3
FINAL_CLIENTS = 16
# A cluster that has just lost a node may take this long to answer for all keys.
FINAL_WITHIN_S = 30.0
FINAL_TIMEOUT_S = 5.0
_COLUMNS = ("process", "f", "key", "value", "outcome", "invoked_ns", "ended_ns")


def keep_history(
    connected: ConnectedComparison,
    variant: Variant,
    folder: Path,
    run: EngineRun,
    plan: EnginePlan,
    parameters: Parameters,
    *,
    is_complete: bool,
) -> None:
    """Writes beside a run that has just ended what became of its registers, if it had some."""
    if not any(is_of_registers(name) for name in connected.names):
        return
    history = history_of(read_run(folder), plan, parameters)
    if is_complete:
        history = with_final_reads(history, run, connected, variant)
    if len(history):
        write_history(folder / HISTORY_FILE, history)


def history_of(run: RunResult, plan: EnginePlan, parameters: Parameters) -> pa.Table:
    """The history of a run, in the form of `results.history`, as far as the run came."""
    log, answers = run.table("operations"), run.table("answers")
    if log is None:
        return _in_order([])
    names = run.manifest.operations
    parts = []
    for phase in range(len(run.manifest.phases)):
        for name in (WRITE, READ):
            if name in names:
                wanted = of_kind(log, phase, names.index(name))
                parts.append(_operations(name, wanted, _answers(answers, phase, names.index(name)), plan, parameters, names))
    return _in_order(parts)


@dataclass(frozen=True)
class _Answers:
    """What reads were answered, by their numbers in order."""

    k: Any
    value: Any
    has_value: Any

    def of(self, k: Any) -> tuple[Any, Any, Any]:
        """For each number: whether there is an answer, the value, and whether there is one."""
        if not len(self.k):
            nothing = np.zeros(len(k), dtype=np.bool_)
            return nothing, np.zeros(len(k), dtype=np.int64), nothing
        place = np.minimum(np.searchsorted(self.k, k), len(self.k) - 1)
        is_there = self.k[place] == k
        return is_there, self.value[place], is_there & self.has_value[place]


def _answers(table: pa.Table | None, phase: int, number: int) -> _Answers:
    if table is None:
        return _Answers(*(np.zeros(0, dtype=kind) for kind in (np.int64, np.int64, np.bool_)))
    reads = of_kind(table, phase, number).sort_by("k")
    k, rows = reads["k"].to_numpy().astype(np.int64), reads["rows"].to_numpy()
    value = np.full(len(k), np.nan)
    found = reads.filter(pc.greater(reads["rows"], 0))
    if found.num_rows:
        value[rows > 0] = pc.list_element(found["computed"], 0).to_numpy()
    is_null = np.isnan(value)
    return _Answers(k, np.where(is_null, 0, value).astype(np.int64), ~is_null)


def _operations(
    name: str, log: pa.Table, answers: _Answers, plan: EnginePlan, parameters: Parameters, names: list[str]
) -> pa.Table:
    """The operations of one kind and phase. Only what was answered is known to have happened, and of nothing is it known that it
    did not: a database may have refused an operation, or lost the answer.
    """
    k = log["k"].to_numpy().astype(np.int64)
    if not len(k):
        return _in_order([])
    phase = log["phase"][0].as_py()
    drawn = _engine.parameters(as_json(plan), parameters.readers(), phase, names.index(name), k.tolist())
    is_ok = pc.equal(log["outcome"], "ok").to_numpy()
    if name == WRITE:
        value = pa.chunked_array([drawn[VALUE]])
    else:
        is_answered, read, has_value = answers.of(k)
        is_ok = is_ok & is_answered
        value = pa.chunked_array([pa.array(read, mask=~(has_value & is_ok))])
    return _table(
        process=log["slot"].cast(pa.int64()),
        f="write" if name == WRITE else "read",
        key=pa.chunked_array([drawn[KEY]]),
        value=value,
        is_ok=is_ok,
        invoked_ns=log["start_ns"].cast(pa.int64()),
        ended_ns=log["end_ns"].cast(pa.int64()),
    )


def _table(*, f: str, is_ok: Any, **columns: Any) -> pa.Table:
    places = np.where(is_ok, OUTCOMES.index("ok"), OUTCOMES.index("unknown"))
    words = {
        "f": pa.DictionaryArray.from_arrays(np.full(len(is_ok), FUNCTIONS.index(f)), FUNCTIONS),
        "outcome": pa.DictionaryArray.from_arrays(places, OUTCOMES),
    }
    return pa.table({**columns, **words}).select(_COLUMNS)


def _in_order(parts: list[pa.Table]) -> pa.Table:
    """The parts as one history, by the times of invocation; a process ends an operation before it invokes the next."""
    empty = np.zeros(0, dtype=np.int64)
    numbers = {name: empty for name in _COLUMNS if name not in {"f", "outcome"}}
    nothing = _table(f="read", is_ok=np.zeros(0, dtype=np.bool_), **numbers)
    return pa.concat_tables([nothing, *parts]).sort_by([("invoked_ns", "ascending"), ("ended_ns", "ascending")])


def with_final_reads(history: pa.Table, run: EngineRun, connected: ConnectedComparison, variant: Variant) -> pa.Table:
    """The history with reads of every key that was written, by other processes, when all else is over."""
    written = history.filter(pc.equal(history["f"].cast(pa.string()), "write"))
    keys = pc.unique(written["key"]).sort()
    if not len(keys):
        return history
    first_process = pc.max(history["process"]).as_py() + 1
    return _in_order([history, *_final_reads(run, connected, variant, keys, first_process)])


def _final_reads(
    run: EngineRun, connected: ConnectedComparison, variant: Variant, keys: pa.Array, first_process: int
) -> Iterator[pa.Table]:
    """Rounds over all keys, when what was acknowledged was made visible, until each was answered often enough, or nothing more is to be hoped for."""
    until_s, answered = time.monotonic() + FINAL_WITHIN_S, 0
    targets = _from_the_strongest(connected, variant)
    target = targets.pop(0)
    while answered < FINAL_READS and time.monotonic() < until_s:
        try:
            if not answered:
                target.show()
            found = _round(target, run, connected, variant, keys, first_process)
        except EngineError:
            found = None
        else:
            yield found
            first_process += FINAL_CLIENTS
        if found is not None and pc.all(pc.equal(found["outcome"].cast(pa.string()), "ok")).as_py():
            answered += 1
        elif targets and time.monotonic() > until_s - FINAL_WITHIN_S / 2:
            # Half of the time is over: the strongest reads need replicas that do not answer.
            target = targets.pop(0)
        else:
            time.sleep(0.5)


def _from_the_strongest(connected: ConnectedComparison, variant: Variant) -> list[_engine.Target]:
    """The target with the strongest reads that there are, then weaker ones; itself where nothing is stronger."""
    if variant.schema.file.promises != "quorums":
        return [connected.targets[variant.id]]
    return [variant.with_option("read_consistency", level).engine_target() for level in ("all", "quorum")]


def _round(
    target: _engine.Target, run: EngineRun, connected: ConnectedComparison, variant: Variant, keys: pa.Array, first_process: int
) -> pa.Table:
    """Each key read once. Times are on the clock of the run that is over."""
    if target is not connected.targets[variant.id]:
        # Another way to the namespace in which the run was.
        target.attach(json.dumps(connected.schemas[variant.id]), intent="attach", owner=Owner(new_id(), "").to_json())
    answered = ask_each(
        target,
        READ,
        connected.comparison.operations.operation[READ],
        variant.schema,
        pa.table({KEY: keys}),
        concurrency=FINAL_CLIENTS,
        timeout_s=FINAL_TIMEOUT_S,
        is_logged=True,
    )
    later_ns = run.now_ns() - answered.run.now_ns()
    found = _operations(READ, answered.operations, _answers(answered.answers, 0, 0), answered.plan, answered.parameters, [READ])
    more = {"process": first_process, "invoked_ns": later_ns, "ended_ns": later_ns}
    return pa.table({name: pc.add(found[name], more[name]) if name in more else found[name] for name in _COLUMNS})
