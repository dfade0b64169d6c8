"""Answers that must be equal: those computed by hand, and those that DuckDB computes from the dataset itself."""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from operator import itemgetter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from sensorbench import _engine, toml_file
from sensorbench.analysis.equality import Answer, Answers, Equality, difference
from sensorbench.dataset import Dataset
from sensorbench.errors import FailedError
from sensorbench.results.engine_plan import EnginePlan
from sensorbench.results.summary.comparison import AnswerChecks, AnswerComparison, AnswerMismatch, AnswerProblem
from sensorbench.runner import Parameters, as_json
from sensorbench.schemas import Operation, Operations, Schema
from sensorbench.schemas.arrow_types import ARROW_TYPES, arrow_schema, canonical_table
from sensorbench.verification.ask_each import ask_each

# Of each kind of operation this many answers are compared with the reference.
REFERENCE_SAMPLE = 25

# Relations up to this size are kept in memory while references are computed; larger ones are read from their files for each.
_MAX_ROWS_IN_MEMORY = 1_000_000
_MAX_BYTES_IN_MEMORY = 256 << 20
# What a relation is called whose place another takes that has written rows as well. No question asks it by this name.
ORIGINAL_PREFIX = "original_"
_LENGTHS = {"VARCHAR": "strlen", "BLOB": "octet_length"}


class KnownAnswer(toml_file.FileModel):
    """An answer that was computed by hand."""

    operation: str
    parameters: dict[str, Any] = {}
    rows: list[list[Any]]
    how: str


class KnownAnswers(toml_file.FileModel):
    """A file of them."""

    operations: str
    answer: list[KnownAnswer] = Field(min_length=1)


def applicable_known_answers(dataset: Dataset, operations_name: str, operations: Operations) -> list[KnownAnswer]:
    """The known answers about the part of the dataset that is there."""
    file = dataset.known_answers_file
    if file is None:
        return []
    known = toml_file.load(file, KnownAnswers)
    if known.operations != operations_name:
        return []
    last = dataset.describe().last_time
    return [answer for answer in known.answer if answer.operation in operations.operation and _is_inside(answer, last)]


def _is_inside(answer: KnownAnswer, last: datetime | None) -> bool:
    times = [value for value in answer.parameters.values() if isinstance(value, datetime)]
    return last is None or all(time.replace(tzinfo=None) <= last.replace(tzinfo=None) for time in times)


def check_dataset(workbench: duckdb.DuckDBPyConnection, operations: Operations, known: list[KnownAnswer]) -> None:
    """The reference query must give the known answers. Raises FailedError when it does not: dataset or query are wrong."""
    for answer in known:
        operation = operations.operation[answer.operation]
        problem = difference(
            reference_answer(workbench, answer.operation, operation, answer.parameters), _digest_of_known(answer, operation)
        )
        if problem:
            raise FailedError(
                f"the reference query of {answer.operation} does not give the answer computed by hand for {answer.parameters}: {problem}"
            )


def check_target(
    target: _engine.Target, operations: Operations, schema: Schema, known: list[KnownAnswer], mix: Sequence[str]
) -> AnswerChecks:
    """Asks a target for the known answers; returns which it gave."""
    problems = []
    queried = [answer for answer in known if answer.operation in mix]
    for answer in queried:
        operation = operations.operation[answer.operation]
        given = _ask(target, answer.operation, operation, schema, answer.parameters)
        problem = given if isinstance(given, str) else difference(given, _digest_of_known(answer, operation))
        if problem:
            problems.append(
                AnswerProblem(
                    operation=answer.operation,
                    parameters=shown(answer.parameters),
                    problem=problem,
                    answered=not isinstance(given, str),
                )
            )
    failed = sum(not problem.answered for problem in problems)
    return AnswerChecks(queried=len(queried) - failed, unanswered=failed, wrong=len(problems) - failed, problems=problems)


def reference_answer(
    workbench: duckdb.DuckDBPyConnection, name: str, operation: Operation, parameters: Mapping[str, Any]
) -> Answer:
    """The answer that DuckDB computes from the dataset. It need not use every parameter: some say the same in other words."""
    reference = operation.reference or ""
    used = workbench.extract_statements(reference)[0].named_parameters
    given = {name: value for name, value in parameters.items() if name in used}
    relation = workbench.sql(reference, params=given) if given else workbench.sql(reference)
    return _digest(canonical_table(relation), name, operation)


def _digest(table: pa.Table, name: str, operation: Operation) -> Answer:
    described = operation.driver_operation(name)
    # The reference is a set of rows; which order it comes in says nothing.
    rows, row_hash, _, computed = _engine.digest(table.to_reader(), json.dumps({**described, "order": []}))
    return Answer(rows, row_hash, None, tuple(computed))


def _digest_of_known(answer: KnownAnswer, operation: Operation) -> Answer:
    schema = arrow_schema({column.name: column.type for column in operation.columns})
    columns = [
        pa.array([row[number] for row in answer.rows], schema.field(number).type) for number in range(len(operation.columns))
    ]
    return _digest(pa.table(columns, schema=schema), answer.operation, operation)


def _ask(target: _engine.Target, name: str, operation: Operation, schema: Schema, parameters: Mapping[str, Any]) -> Answer | str:
    """The answer to one operation with given parameters, by the same engine as everything else; why none came where that failed."""
    values = {key: pa.array([parameters[key]], ARROW_TYPES[value_type]) for key, value_type in operation.parameters.items()}
    answered = ask_each(target, name, operation, schema, pa.table(values))
    answers = answers_by_operation(answered.answers)
    if 0 in answers and (answer := answers[0].find(0)) is not None:
        return answer
    errors = [f"{error['kind']}: {error['first_message']}" for error in answered.totals.errors]
    return f"no answer came ({'; '.join(errors)})" if errors else "no answer came within the time limit"


def answers_by_operation(table: pa.Table) -> dict[int, Answers]:
    """Answers as results keep them, by the number of the operation.

    Args:
        table: operation, k, rows, hash, in_order and computed of each answer, in any order.

    """
    numbers = table["operation"].to_numpy()
    return {int(number): _answers(table.filter(pa.array(numbers == number))) for number in np.unique(numbers)}


def _answers(table: pa.Table) -> Answers:
    numbers = table["k"].to_numpy()
    if len(numbers) > 1 and (numbers[1:] < numbers[:-1]).any():
        table = table.take(pa.array(np.argsort(numbers, kind="stable")))
    computed = table["computed"].combine_chunks()
    # A row without a list has no values.
    lengths = pc.fill_null(pc.list_value_length(computed), 0).to_numpy(zero_copy_only=False)
    values = computed.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
    in_order = pc.fill_null(table["in_order"].cast(pa.int8()), -1).to_numpy()
    k, rows, hashes = (table[name].to_numpy().astype(np.uint64) for name in ("k", "rows", "hash"))
    return Answers(k, rows, hashes, in_order, values, np.cumsum(lengths, dtype=np.int64))


def reference_table(
    workbench: duckdb.DuckDBPyConnection,
    operations: Operations,
    names: list[str],
    plan: EnginePlan,
    parameters: Parameters,
    phase: int,
    numbers_of: dict[int, list[int]],
    *,
    max_s: float | None = None,
    report: Callable[[int], None] = lambda _: None,
) -> pa.Table:
    """Reference answers to some operations of a plan.

    Args:
        workbench: has the relations of the dataset.
        operations: with the references.
        names: of the plan's operations.
        plan: which parameters operations have.
        parameters: that the plan draws from.
        phase: the number of the plan's phase.
        numbers_of: the numbers k by number of the operation.
        max_s: begins no other after this long (s). Operations are interleaved, so that each has as many.
        report: called with how many there are, after each.

    """
    rows: list[tuple[int, int, int, int, bool | None, list[float | None]]] = []
    questions: list[tuple[int, int, int, Mapping[str, Any]]] = []
    for number, numbers in numbers_of.items():
        of_each: Sequence[Mapping[str, Any]] = [{} for _ in numbers]
        if operations.operation[names[number]].parameters:
            of_each = _engine.parameters(as_json(plan), parameters.readers(), phase, number, numbers).to_pylist()
        questions += [(turn, number, k, values) for turn, (k, values) in enumerate(zip(numbers, of_each, strict=True))]
    end_s = math.inf if max_s is None else time.monotonic() + max_s
    with _small_relations_in_memory(workbench):
        for _, number, k, values in sorted(questions, key=itemgetter(0)):
            if time.monotonic() > end_s:
                break
            answer = reference_answer(workbench, names[number], operations.operation[names[number]], values)
            rows.append((number, k, answer.rows, answer.hash, None, list(answer.computed)))
            report(len(rows))
    columns = [[row[place] for row in rows] for place in range(len(REFERENCE_SCHEMA))]
    return pa.table(columns, schema=REFERENCE_SCHEMA)


@contextmanager
def _small_relations_in_memory(workbench: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Puts tables of the connection before its views of the same names: a view of a file reads the file for each of many questions."""
    kept: list[str] = []
    try:
        for name in _small_views(workbench):
            workbench.execute(f'CREATE TEMP TABLE "{name}" AS FROM "{name}"')
            kept.append(name)
        yield
    finally:
        for name in kept:
            workbench.execute(f'DROP TABLE temp."{name}"')


def _small_views(workbench: duckdb.DuckDBPyConnection) -> list[str]:
    found = workbench.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal AND NOT temporary ORDER BY view_name")
    names = [name for (name,) in found.fetchall() if not name.startswith(ORIGINAL_PREFIX)]
    return [name for name in names if _fits_in_memory(workbench, name)]


def _fits_in_memory(workbench: duckdb.DuckDBPyConnection, name: str) -> bool:
    ((rows,),) = workbench.execute(f'SELECT count(*) FROM "{name}"').fetchall()
    if rows > _MAX_ROWS_IN_MEMORY:
        return False
    columns = workbench.execute(f'SELECT column_name, column_type FROM (DESCRIBE "{name}")').fetchall()
    lengths = [f'coalesce(sum({_LENGTHS[type_]}("{column}")), 0)' for column, type_ in columns if type_ in _LENGTHS]
    sizes = [f"count(*) * {8 * len(columns)}", *lengths]
    ((size_bytes,),) = workbench.execute(f'SELECT {" + ".join(sizes)} FROM "{name}"').fetchall()
    return bool(size_bytes <= _MAX_BYTES_IN_MEMORY)


REFERENCE_SCHEMA = pa.schema(
    [
        ("operation", pa.uint16()),
        ("k", pa.uint64()),
        ("rows", pa.uint64()),
        ("hash", pa.uint64()),
        ("in_order", pa.bool_()),
        ("computed", pa.list_(pa.float64())),
    ]
)


def shown(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Parameters as results show them."""
    return {key: str(value) for key, value in parameters.items()}


def answer_comparison(equality: Equality) -> AnswerComparison:
    """What a summary says of how the answers to one kind of operation compare."""
    return AnswerComparison(
        compared=equality.compared,
        compared_with_reference=equality.compared_with_reference,
        mismatch_count=equality.mismatch_count,
        mismatches=[
            AnswerMismatch(k=mismatch.k, variant=mismatch.variant, other=mismatch.other, problem=mismatch.problem)
            for mismatch in equality.mismatches
        ],
        answered=equality.answered,
        equal=equality.equal,
    )
