"""Histories of reads and writes, in the form that Jepsen's users know: one JSON object a line.

Each operation has a line when it is invoked and one when it ends: `process`, `type` (`invoke`; then `ok`: it happened, `fail`: it
certainly did not happen, or `info`: nobody knows), `f` (`write` or `read`), `key`, `value` and `time` in nanoseconds. In memory a
history is a table with a row for each operation, in the order of their invocations, which `analysis.guarantees` checks:

process · f (write, read) · key · value (written or read; null: nothing was there, or the read gave no answer) ·
outcome (ok, fail, unknown) · invoked_ns · ended_ns (null: still open when the history ended)
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from numpy.typing import NDArray

from sensorbench.errors import UsageError
from sensorbench.results.files import write_result_lines
from sensorbench.results.stored import check_sound, is_stored, read_parquet

HISTORY_FILE = "history.jsonl"
# The same as the table that it is in memory, which is a fifth as long: bundles have it.
HISTORY_TABLE_FILE = "history.parquet"
TYPES = ["invoke", "ok", "fail", "info"]
FUNCTIONS = ["write", "read"]
OUTCOMES = ["ok", "fail", "unknown"]
_INVOKE, _OK = TYPES.index("invoke"), TYPES.index("ok")
_WRITE = FUNCTIONS.index("write")
_UNKNOWN = OUTCOMES.index("unknown")
_INTEGERS = range(-(2**63), 2**63)
_LINES_AT_ONCE = 100_000

Integers = NDArray[np.int64]


def read_history(path: Path) -> pa.Table:
    """The operations of a history. Raises UsageError with file and line when it is not one."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file; expected a history, one JSON object a line")
    check_sound(path)
    lines = _lines(path)
    process, time, key = lines["process"].to_numpy(), lines["time"].to_numpy(), lines["key"].indices.to_numpy()
    kind, function = lines["type"].to_numpy(), lines["f"].to_numpy()
    value, has_value = lines["value"].fill_null(0).to_numpy(), lines["value"].is_valid().to_numpy(zero_copy_only=False)
    _refuse_time_that_runs_backwards(path, time)

    is_invocation = kind == _INVOKE
    completion = _completions(path, process, is_invocation)
    invocations = np.flatnonzero(is_invocation)
    ends = completion[invocations]
    ended, end = ends >= 0, np.where(ends >= 0, ends, invocations)
    is_write = function[invocations] == _WRITE

    _refuse_first(path, is_write & ~has_value[invocations], invocations, "a write without a value; expected an integer")
    other = (function[end] != function[invocations]) | (key[end] != key[invocations])
    _refuse_first(path, other, end, "ends another operation than its process invoked; expected the same f and key")
    other = is_write & has_value[end] & (value[end] != value[invocations])
    _refuse_first(path, other, end, "ends a write with another value than was written")
    writes = invocations[is_write]
    _refuse_values_written_twice(path, key[writes], value[writes], writes)

    answered = ~is_write & ended & (kind[end] == _OK)
    source = np.where(is_write, invocations, end)
    return pa.table(
        {
            "process": process[invocations],
            "f": pa.DictionaryArray.from_arrays(function[invocations], FUNCTIONS),
            "key": lines["key"].take(invocations),
            "value": pa.array(value[source], mask=~(has_value[source] & (is_write | answered))),
            "outcome": pa.DictionaryArray.from_arrays(np.where(ended, kind[end] - _OK, _UNKNOWN), OUTCOMES),
            "invoked_ns": time[invocations],
            "ended_ns": pa.array(time[end], mask=~ended),
        }
    )


def history_in(folder: Path) -> pa.Table | None:
    """The history of a run in its folder, in either form; None if it has none. Raises UsageError, DamagedResultsError."""
    if is_stored(folder / HISTORY_TABLE_FILE):
        return read_parquet(folder / HISTORY_TABLE_FILE, ("process", "f", "key", "value", "outcome", "invoked_ns", "ended_ns"))
    return read_history(folder / HISTORY_FILE) if is_stored(folder / HISTORY_FILE) else None


def write_history(path: Path, operations: pa.Table) -> None:
    """Writes a history, all of it or nothing. The table is as `read_history` gives it."""
    write_result_lines(path, _text(operations))


def _lines(path: Path) -> dict[str, pa.Array]:
    """The fields of each line; `type` and `f` as places in their lists of words, `key` with a dictionary."""
    fields = [("process", pa.int64()), ("type", pa.string()), ("f", pa.string()), ("value", pa.int64()), ("time", pa.int64())]
    schema = pa.schema([*fields, ("key", _type_of_key(path))])
    options = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    try:
        table = pyarrow.json.read_json(path, parse_options=options)
    except pa.ArrowInvalid as error:
        _refuse_first_wrong_line(path)
        raise UsageError(f"{path}: {error}; expected one JSON object a line") from None
    lines = {name: table[name].combine_chunks() for name in schema.names}
    lines["type"] = pc.index_in(lines["type"], value_set=pa.array(TYPES))
    lines["f"] = pc.index_in(lines["f"], value_set=pa.array(FUNCTIONS))
    lines["key"] = lines["key"].dictionary_encode()
    if any(column.null_count for name, column in lines.items() if name != "value"):
        _refuse_first_wrong_line(path)
    return lines


def _type_of_key(path: Path) -> pa.DataType:
    """Keys are all strings or all integers; the first line says which."""
    for _, text in _numbered(path):
        return pa.int64() if _is_integer(_fields(text).get("key")) else pa.string()
    raise UsageError(f"{path}: the file is empty; expected a history, one JSON object a line")


def _completions(path: Path, process: Integers, is_invocation: NDArray[np.bool_]) -> Integers:
    """The line that ends the operation that a line invokes; -1 where there is none."""
    order = np.argsort(process, kind="stable")
    invokes, is_same = is_invocation[order], process[order][1:] == process[order][:-1]
    is_open = np.concatenate([[False], is_same & invokes[:-1]])
    wrong = order[invokes == is_open]
    if len(wrong):
        line, number = int(wrong.min()), process[int(wrong.min())]
        problem = (
            f"process {number} invokes an operation while its last one is open; end that one first (ok, fail or info)"
            if is_invocation[line]
            else f"process {number} has no operation open that could end here; expected its invoke before"
        )
        raise UsageError(f"{path}, line {_line_number(path, line)}: {problem}")
    completion = np.full(len(process), -1)
    ending = np.flatnonzero(~invokes)
    completion[order[ending - 1]] = order[ending]
    return completion


def _refuse_time_that_runs_backwards(path: Path, time: Integers) -> None:
    backwards = np.concatenate([[False], np.diff(time) < 0])
    _refuse_first(path, backwards, np.arange(len(time)), "its time is before that of the line above; sort the lines by time")


def _refuse_values_written_twice(path: Path, key: Integers, value: Integers, lines: Integers) -> None:
    """Whoever reads a value must know which write it came from."""
    order = np.lexsort((lines, value, key))
    again = np.flatnonzero((np.diff(key[order]) == 0) & (np.diff(value[order]) == 0))
    if len(again):
        first, second = (_line_number(path, int(lines[order[again[0] + step]])) for step in (0, 1))
        raise UsageError(
            f"{path}, line {second}: writes the value of line {first} again; "
            "each write of a key needs a value of its own, or what is read cannot be distinguished"
        )


def _refuse_first(path: Path, wrong: NDArray[np.bool_], lines: Integers, problem: str) -> None:
    if wrong.any():
        raise UsageError(f"{path}, line {_line_number(path, int(lines[wrong].min()))}: {problem}")


def _refuse_first_wrong_line(path: Path) -> None:
    """Looks at each line by itself: slow, and only done when it is known that something is wrong."""
    first_key: Any = None
    for number, text in _numbered(path):
        fields = _fields(text)
        if first_key is None:
            first_key = fields.get("key")
        problem = _problem(fields, first_key)
        if problem:
            raise UsageError(f"{path}, line {number}: {problem}")


def _problem(fields: dict[str, Any], first_key: Any) -> str | None:
    if not fields:
        return "expected a JSON object with process, type, f, key, value and time, and nothing else on the line"
    for name in ("process", "time"):
        if not _is_integer(fields.get(name)):
            return f"{name} is {fields.get(name)!r}; expected an integer"
    for name, words in (("type", TYPES), ("f", FUNCTIONS)):
        if fields.get(name) not in words:
            return f"{name} is {fields.get(name)!r}; expected one of {', '.join(words)}"
    key, value = fields.get("key"), fields.get("value")
    if not (isinstance(key, str) or _is_integer(key)) or isinstance(key, str) != isinstance(first_key, str):
        return f"key is {key!r}; expected strings alone, or integers alone, as in the first line"
    if value is not None and not _is_integer(value):
        return f"value is {value!r}; expected an integer, or null if nothing was there"
    return None


def _fields(text: str) -> dict[str, Any]:
    """A line's fields; none when it is not a JSON object."""
    try:
        fields = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in _INTEGERS


def _numbered(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that hold something, with their numbers."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, text in enumerate(file, 1):
            if text.strip():
                yield number, text


def _line_number(path: Path, line: int) -> int:
    """The number in the file of the line that is the n-th to hold something."""
    return next(number for place, (number, _) in enumerate(_numbered(path)) if place == line)


def _text(operations: pa.Table) -> Iterator[str]:
    """A history's lines in order of time, some at a time."""
    columns = {name: operations[name].combine_chunks() for name in operations.column_names}
    ended = columns["ended_ns"].is_valid().to_numpy(zero_copy_only=False)
    count, ends = len(operations), np.flatnonzero(ended)
    operation = np.concatenate([np.arange(count), ends])
    is_end = np.arange(len(operation)) >= count
    time = np.concatenate([columns["invoked_ns"].to_numpy(), columns["ended_ns"].filter(pa.array(ended)).to_numpy()])
    # At equal times a process's lines stay in its order: an operation is invoked, ends, and then the next is invoked.
    order = np.lexsort((is_end, operation, time))
    columns["end"] = pc.replace_substring(columns["outcome"].cast(pa.string()), "unknown", "info")
    keys = columns["key"].dictionary_encode() if not pa.types.is_dictionary(columns["key"].type) else columns["key"]
    columns["key"] = pa.array([json.dumps(key) for key in keys.dictionary.to_pylist()], pa.string()).take(keys.indices)
    for start in range(0, len(order), _LINES_AT_ONCE):
        part = order[start : start + _LINES_AT_ONCE]
        yield _joined(columns, operation[part], is_end[part], time[part])


def _joined(columns: dict[str, pa.Array], operation: Integers, is_end: NDArray[np.bool_], time: Integers) -> str:
    of = {name: columns[name].take(pa.array(operation)) for name in ("process", "f", "key", "value", "end")}
    is_write = pc.equal(of["f"].cast(pa.string()), "write")
    is_reported = pc.or_(is_write, pa.array(is_end))
    value = pc.if_else(is_reported, of["value"], pa.scalar(None, pa.int64()))
    lines = pc.binary_join_element_wise(
        '{"process": ',
        of["process"].cast(pa.string()),
        ', "type": "',
        pc.if_else(pa.array(is_end), of["end"], "invoke"),
        '", "f": "',
        of["f"].cast(pa.string()),
        '", "key": ',
        of["key"],
        ', "value": ',
        pc.fill_null(value.cast(pa.string()), "null"),
        ', "time": ',
        pa.array(time).cast(pa.string()),
        "}\n",
        "",
    )
    return "".join(lines.to_pylist())
