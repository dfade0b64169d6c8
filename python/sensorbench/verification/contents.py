"""What lies in a database after runs that wrote: it is read again, sealed, and compared with the dataset and all acknowledged
writes together. Where the schema can ask for a single write, each is read back: acknowledged ones must be there, and of those
with an unknown outcome the ones that are there count as written.

After long runs, and of a slow database, that is a sample: MIN_READ_BACK to MAX_READ_BACK acknowledged writes are read back, evenly spread over the runs. Of more than
MAX_READINGS written readings only some are known here, so that questions are asked about the dataset's own readings alone.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sensorbench import _engine
from sensorbench.analysis.equality import Answers, compare_answers
from sensorbench.dataset import ARTICLES, Dataset
from sensorbench.results import RunResult
from sensorbench.results.engine_plan import EnginePlan, is_shared
from sensorbench.results.freshness import read_markers
from sensorbench.results.latencies import of_kind
from sensorbench.results.manifest import MEASURE
from sensorbench.results.summary.comparison import AnswerChecks, AnswerProblem
from sensorbench.runner import Parameters, Schedule, Workload, as_json, build_plan, is_of_registers, parameters_of, run_to_end
from sensorbench.schemas import Operations, Schema
from sensorbench.schemas.arrow_types import arrow_schema
from sensorbench.verification.answers import ORIGINAL_PREFIX, REFERENCE_SAMPLE, answers_by_operation, reference_table, shown
from sensorbench.verification.ask_each import ask_each

CONCURRENCY = 16


def reader_of(write: str, operations: Operations, schema: Schema) -> str | None:
    """The question that asks for what a write wrote, if the schema knows one."""
    # Of an operation with ranges, only the ranges are operations of a mix.
    known = (name for name in schema.file.operation if name in operations.operation)
    return next((name for name in known if _reads_only(operations, name, write)), None)


def _reads_only(operations: Operations, name: str, write: str) -> bool:
    sources = [operations.parameter_source[source].written for source in operations.operation[name].parameter_sources]
    return bool(sources) and all(written is not None and written.operation == write for written in sources)


def one_of_each(rows: pa.Table, readings: int) -> pa.Table:
    """Of the rows of each write, this many one after the other, one: of one write the first, of the next the second, and so on."""
    writes = np.arange(rows.num_rows // readings)
    return rows.take(pa.array(writes * readings + writes % readings)) if readings > 1 else rows


def are_there(target: _engine.Target, operations: Operations, schema: Schema, reader: str, rows: pa.Table) -> NDArray[np.bool_]:
    """For each written row, whether the question finds it."""
    if rows.num_rows == 0:
        return np.zeros(0, dtype=np.bool_)
    operation = operations.operation[reader]
    keys = _keys(operations, reader, rows)
    answers = ask_each(target, reader, operation, schema, keys, concurrency=CONCURRENCY).answers
    # An operation that failed has no answer: its row was not found.
    found = np.zeros(keys.num_rows, dtype=np.bool_)
    found[answers.filter(pc.greater(answers["rows"], 0))["k"].to_numpy()] = True
    return found


def _keys(operations: Operations, reader: str, rows: pa.Table) -> pa.Table:
    """The parameters with which the question asks for each row: where it asks for a time bucket, a millisecond from the row's
    time on, because not every database takes a shorter one.
    """
    operation = operations.operation[reader]
    for source in operation.parameter_sources:
        written = operations.parameter_source[source].written
        if written and written.span:
            time = rows[written.span.time]
            rows = rows.append_column("from", time).append_column("to", pc.add(time, pa.scalar(1000, pa.duration("us"))))
    return rows.select(list(operation.parameters))


MAX_READ_BACK = 20_000
# As many are read back in any case; more, as long as that takes about this long.
MIN_READ_BACK, READ_BACK_S = 1_000, 5.0
# A variant is asked the questions for this long, and references are computed for this long: what is answered until then is compared.
QUESTIONS_S, REFERENCES_S = 8, 15.0
# This many written readings are kept in memory, or articles.
MAX_READINGS = 1_000_000
MAX_ARTICLES = 10_000


@dataclass(frozen=True)
class WrittenRows:
    """The rows of each write: those that the database acknowledged, and those that may or may not be there. Not known where
    some failed, or load generators shared a run, and not every operation was logged. `every`: of how many writes one is among them.
    """

    acknowledged: dict[str, pa.Table]
    unknown: dict[str, pa.Table]
    acknowledged_count: int
    unknown_count: int
    known: bool
    every: int = 1
    # Operations that changed rows which were there: what these are now depends on how clients met, and is not known here.
    changed: list[str] = field(default_factory=list)


def written_rows(
    operations: Operations,
    names: list[str],
    runs: list[RunResult],
    plans: list[EnginePlan],
    parameters: Parameters,
    markers_by: str | None = None,
) -> WrittenRows:
    """The rows that the writes of some runs of one variant added; `markers_by`: the write by which their markers were made, if there were some."""
    every = _every(operations, names, runs, plans)
    acknowledged: dict[str, list[pa.RecordBatch]] = {}
    unknown: dict[str, list[pa.RecordBatch]] = {}
    acknowledged_count, unknown_count, known = 0, 0, True
    changed: set[str] = set()
    for run, plan in zip(runs, plans, strict=True):
        for phase_number, phase in enumerate(run.manifest.phase_figures):
            for number, name in enumerate(names):
                if operations.operation[name].writes is None or is_of_registers(name):
                    continue
                counts = phase.operations[name]["counts"]
                if operations.operation[name].changes:
                    changed.update([name] if any(counts.values()) else [])
                    continue
                failed = counts["error"] + counts["timeout"] + counts["cancelled"]
                acknowledged_count += counts["ok"]
                unknown_count += failed
                # Which writes failed, and how far each load generator came, only the log says.
                is_logged = failed or is_shared(run.manifest.plan)
                numbers = _numbers(run, phase_number, number) if is_logged else (None, [])
                if numbers is None:
                    known = False
                    continue
                for rows, wanted in zip((acknowledged, unknown), numbers, strict=True):
                    of_phase = _engine.parameters(
                        as_json(plan), parameters.readers(), phase_number, number, wanted, phase.started, every
                    )
                    rows.setdefault(name, []).append(of_phase)
    for markers in (found for run in runs if (found := read_markers(run.folder)) is not None):
        name = str(markers_by)
        is_ok = pc.equal(markers["outcome"], "ok")
        acknowledged_count += pc.sum(is_ok).as_py() or 0
        unknown_count += pc.sum(pc.invert(is_ok)).as_py() or 0
        for rows, wanted in ((acknowledged, is_ok), (unknown, pc.invert(is_ok))):
            of_markers = markers.filter(wanted).select(list(operations.operation[name].parameters))
            rows.setdefault(name, []).extend(of_markers.combine_chunks().to_batches())
    schemas = {name: arrow_schema(operation.parameters) for name, operation in operations.operation.items()}
    tables, unknown_tables = _tables(acknowledged, schemas), _tables(unknown, schemas)
    return WrittenRows(tables, unknown_tables, acknowledged_count, unknown_count, known, every, sorted(changed))


def _every(operations: Operations, names: list[str], runs: list[RunResult], plans: list[EnginePlan]) -> int:
    """Of how many writes one is looked at, so that they are not too many."""
    written = 0
    for run, plan in zip(runs, plans, strict=True):
        for phase in run.manifest.phase_figures:
            for number, name in enumerate(names):
                if operations.operation[name].writes is not None:
                    readings = plan["operations"][number]["client_steps"].get("readings", 1)
                    written += readings * sum(phase.operations[name]["counts"].values())
    max_read = MAX_ARTICLES if ARTICLES in operations.relations else MAX_READINGS
    return math.ceil(written / max_read) or 1


def _tables(batches: dict[str, list[pa.RecordBatch]], schemas: Mapping[str, pa.Schema]) -> dict[str, pa.Table]:
    return {name: pa.Table.from_batches(found, schemas[name]) for name, found in batches.items()}


def _numbers(run: RunResult, phase: int, operation: int) -> tuple[list[int], list[int]] | None:
    """The numbers of the writes that were acknowledged, and of the others; None when not every operation was logged."""
    table = run.table("operations")
    if run.manifest.plan["log_every"] != 1 or table is None:
        return None
    writes = of_kind(table, phase, operation)
    is_ok = pc.equal(writes["outcome"], "ok")
    return writes.filter(is_ok)["k"].to_pylist(), writes.filter(pc.invert(is_ok))["k"].to_pylist()


def check_contents(
    target: _engine.Target,
    dataset: Dataset,
    operations: Operations,
    schema: Schema,
    written: WrittenRows,
    seed: int,
    report: Callable[[int], None] = lambda _: None,
) -> AnswerChecks:
    """Asks the sealed database each question that its schema knows, over old and new rows, and compares with the reference. `report` is
    called with how many answers were compared, after each.
    """
    if written.changed:
        reason = f"{', '.join(written.changed)} changed rows that were there; which of several changes of one row came last is not known"
        return AnswerChecks(queried=0, unanswered=0, wrong=0, problems=[], not_checked=reason)
    if not written.known:
        unknown = (
            f"{written.unknown_count:,} writes have an unknown outcome"
            if written.unknown_count
            else "load generators shared the runs"
        )
        reason = f'{unknown} and not every operation was logged (log = "all")'
        return AnswerChecks(queried=0, unanswered=0, wrong=0, problems=[], not_checked=reason)
    target.show()
    back = _read_back(target, operations, schema, written)
    workbench = dataset.connect()
    with workbench:
        if written.every == 1:
            _add_rows(workbench, operations, back.there)
        names = [
            name
            for name, operation in operations.operation.items()
            if name in schema.file.operation and _is_question(operations, name)
        ]
        parameters = parameters_of(operations, names, workbench, "contents")
        workload = Workload(
            mix=dict.fromkeys(names, 1.0),
            operations=REFERENCE_SAMPLE * len(names),
            duration=f"{QUESTIONS_S}s",
            repetitions=1,
            schedule=Schedule(concurrency=1),
            timeout="10m",
            seed=seed,
        )
        plan = build_plan(operations, schema, parameters, workload, 0)
        given, failed = _answers(target, plan, parameters)
        numbers_of = {number: of_kind.numbers.tolist() for number, of_kind in given.items()}
        reference = reference_table(
            workbench, operations, names, plan, parameters, 0, numbers_of, max_s=REFERENCES_S, report=report
        )
    problems = [*back.problems, *_problems(names, given, reference)]
    return AnswerChecks(
        queried=reference.num_rows,
        # Questions that failed, such as those that take longer than a layout lets them.
        unanswered=failed,
        not_reached=REFERENCE_SAMPLE * len(names) - reference.num_rows - failed,
        wrong=len(problems),
        problems=problems,
        acknowledged_writes=written.acknowledged_count,
        one_write_in=written.every * back.one_in,
        read_back=back.checked,
        lost_writes=back.lost,
        unknown_writes=written.unknown_count,
        unknown_writes_found=back.found,
    )


@dataclass
class _ReadBack:
    """What became of the writes. `there`: the rows that are taken for written, by write."""

    there: dict[str, pa.Table]
    problems: list[AnswerProblem]
    checked: int = 0
    # Of how many writes known here one was read back.
    one_in: int = 1
    lost: int = 0
    found: int = 0


def _read_back(target: _engine.Target, operations: Operations, schema: Schema, written: WrittenRows) -> _ReadBack:
    back = _ReadBack(dict(written.acknowledged), [])
    for write, rows in written.acknowledged.items():
        reader = reader_of(write, operations, schema)
        if reader is None:
            continue
        readings = schema.readings_of(write, operations.operation[write])
        writes = one_of_each(rows, readings)
        start_s = time.monotonic()
        back.one_in, looked_for = _one_in(writes, MIN_READ_BACK)
        is_there = are_there(target, operations, schema, reader, looked_for)
        in_time = looked_for.num_rows / (time.monotonic() - start_s) * READ_BACK_S
        if back.one_in > 1 and in_time > 2 * looked_for.num_rows:
            back.one_in, looked_for = _one_in(writes, min(MAX_READ_BACK, int(in_time)))
            is_there = are_there(target, operations, schema, reader, looked_for)
        lost = int((~is_there).sum())
        back.checked += looked_for.num_rows
        back.lost += lost
        if lost:
            first = looked_for.take([int(is_there.argmin())]).to_pylist()[0]
            problem = f"{lost:,} of {looked_for.num_rows:,} acknowledged writes are not there; this is the first"
            back.problems.append(AnswerProblem(operation=write, parameters=shown(first), problem=problem))
        if write in written.unknown:
            unknown = written.unknown[write]
            was_found = are_there(target, operations, schema, reader, one_of_each(unknown, readings))
            found = unknown.filter(pa.array(np.repeat(was_found, readings)))
            back.found += int(was_found.sum())
            back.there[write] = pa.concat_tables([rows, found])
    return back


def _one_in(writes: pa.Table, wanted: int) -> tuple[int, pa.Table]:
    """A number of writes, evenly spread, and of how many each is one."""
    one_in = math.ceil(writes.num_rows / wanted) or 1
    return one_in, writes.take(pa.array(range(0, writes.num_rows, one_in)))


def _is_question(operations: Operations, name: str) -> bool:
    """Whether an operation reads, and can be asked without writing."""
    operation = operations.operation[name]
    return operation.writes is None and all(
        operations.parameter_source[source].written is None for source in operation.parameter_sources
    )


def _add_rows(workbench: duckdb.DuckDBPyConnection, operations: Operations, there: dict[str, pa.Table]) -> None:
    by_relation: dict[str, list[pa.Table]] = {}
    for write, rows in there.items():
        by_relation.setdefault(str(operations.operation[write].writes), []).append(rows)
    for relation, tables in by_relation.items():
        rows = pa.concat_tables(tables)
        workbench.register(f"written_{relation}", rows)
        # Parameters that are not columns of it say the same in other words.
        columns = ", ".join(f'"{name}"' for name in workbench.table(relation).columns if name in rows.column_names)
        original = f"{ORIGINAL_PREFIX}{relation}"
        workbench.execute(f"ALTER VIEW {relation} RENAME TO {original}")
        workbench.execute(
            f"CREATE VIEW {relation} AS SELECT {columns} FROM {original} UNION ALL SELECT {columns} FROM written_{relation}"
        )


def _answers(target: _engine.Target, plan: EnginePlan, parameters: Parameters) -> tuple[dict[int, Answers], int]:
    """The answers by operation and number, and how many questions failed. What was not asked within the time is neither."""
    recorded: list[pa.RecordBatch] = []
    _, totals = run_to_end(
        target, {**plan, "answers_every": 1}, parameters.readers(), lambda _, segment: recorded.append(segment["answers"])
    )
    counts = [operation["counts"] for phase in totals.phases for operation in phase.operations.values()]
    failed = sum(of_operation["error"] + of_operation["timeout"] for of_operation in counts)
    return answers_by_operation(pa.Table.from_batches(recorded)), failed


def _problems(names: list[str], given: dict[int, Answers], reference: pa.Table) -> list[AnswerProblem]:
    expected = answers_by_operation(reference)
    problems: list[AnswerProblem] = []
    for number, of_operation in given.items():
        equality = compare_answers(names[number], {"contents": of_operation}, expected.get(number, Answers.of({})))
        problems += [
            AnswerProblem(operation=names[number], parameters={"phase": MEASURE, "k": mismatch.k}, problem=mismatch.problem)
            for mismatch in equality.mismatches
        ]
    return problems
