"""What lies in a database after runs that wrote: it is read again, sealed, and compared with the dataset and all acknowledged
writes together.
"""

from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from sensorbench import _engine
from sensorbench.analysis.equality import Answer, compare_answers
from sensorbench.dataset import Dataset
from sensorbench.experiment.answers import REFERENCE_SAMPLE, answer_of_row, reference_table
from sensorbench.experiment.plan import Parameters, as_json, build_plan, draw_parameters
from sensorbench.experiment.workload import Schedule, Workload
from sensorbench.results import RunResult
from sensorbench.results.latencies import MEASURE
from sensorbench.schemas import Operations, Schema


@dataclass(frozen=True)
class WrittenRows:
    """Rows that a database acknowledged, by relation; and how many more may or may not be there."""

    tables: dict[str, pa.Table]
    unknown: int
    known: bool


def written_rows(
    operations: Operations, names: list[str], runs: list[RunResult], plans: list[dict[str, Any]], parameters: Parameters
) -> WrittenRows:
    """The rows that the writes of some runs of one setting added."""
    batches: dict[str, list[pa.RecordBatch]] = {}
    unknown, known = 0, True
    for run, plan in zip(runs, plans, strict=True):
        for phase_number, phase in enumerate(run.manifest.whole.phases if run.manifest.whole else []):
            for number, name in enumerate(names):
                relation = operations.operation[name].writes
                if relation is None:
                    continue
                counts = phase.operations[name]["counts"]
                of_phase = counts["error"] + counts["timeout"] + counts["cancelled"]
                unknown += of_phase
                numbers = _acknowledged(run, phase_number, number) if of_phase else None
                if of_phase and numbers is None:
                    known = False
                    continue
                rows = _engine.parameters(as_json(plan), parameters.readers(), phase_number, number, numbers, phase.started)
                batches.setdefault(relation, []).append(rows)
    return WrittenRows({relation: pa.Table.from_batches(found) for relation, found in batches.items()}, unknown, known)


def _acknowledged(run: RunResult, phase: int, operation: int) -> list[int] | None:
    """The numbers of the writes that were acknowledged; None when not every operation was logged."""
    table = run.table("operations")
    if run.manifest.plan["log_every"] != 1 or table is None:
        return None
    wanted = pc.and_(
        pc.and_(pc.equal(table["phase"], phase), pc.equal(table["operation"], operation)), pc.equal(table["outcome"], "ok")
    )
    numbers: list[int] = table.filter(wanted)["k"].to_pylist()
    return numbers


def check_contents(
    target: _engine.Target, dataset: Dataset, operations: Operations, schema: Schema, written: WrittenRows, seed: int
) -> dict[str, Any]:
    """Asks the sealed database each question that its schema knows, over old and new rows, and compares with the reference."""
    if not written.known:
        reason = f'{written.unknown:,} writes have an unknown outcome and not every operation was logged (log = "all")'
        return {"asked": 0, "wrong": 0, "problems": [], "not_checked": reason}
    workbench = dataset.connect()
    with workbench:
        _add_rows(workbench, written)
        names = [
            name
            for name, operation in operations.operation.items()
            if name in schema.file.operation and _is_question(operations, name)
        ]
        parameters = draw_parameters(operations, names, workbench, "contents")
        workload = Workload(
            mix=dict.fromkeys(names, 1.0),
            operations=REFERENCE_SAMPLE * len(names),
            repeat=1,
            schedule=Schedule(in_flight=1),
            timeout="10m",
            seed=seed,
        )
        plan = build_plan(operations, schema, parameters, workload, 0)
        given = _answers(target, plan, parameters)
        asked = {number: sorted(of_kind) for number, of_kind in given.items()}
        reference = reference_table(workbench, operations, names, plan, parameters, 0, asked)
    problems = _problems(names, given, reference)
    return {
        "asked": sum(len(numbers) for numbers in asked.values()),
        "wrong": len(problems),
        "problems": problems,
        "unknown_writes": written.unknown,
    }


def _is_question(operations: Operations, name: str) -> bool:
    """Whether an operation reads, and can be asked without writing."""
    operation = operations.operation[name]
    return operation.writes is None and all(operations.draw[draw].written is None for draw in operation.draws)


def _add_rows(workbench: duckdb.DuckDBPyConnection, written: WrittenRows) -> None:
    for relation, rows in written.tables.items():
        workbench.register(f"written_{relation}", rows)
        columns = ", ".join(f'"{name}"' for name in rows.column_names)
        workbench.execute(f"ALTER VIEW {relation} RENAME TO original_{relation}")
        workbench.execute(
            f"CREATE VIEW {relation} AS SELECT {columns} FROM original_{relation} UNION ALL SELECT {columns} FROM written_{relation}"
        )


def _answers(target: _engine.Target, plan: dict[str, Any], parameters: Parameters) -> dict[int, dict[int, Answer]]:
    run = target.run(as_json({**plan, "answers_every": 1}), parameters.readers())
    while not run.wait(0.25):
        pass
    segment, _ = run.end()
    found: dict[int, dict[int, Answer]] = {}
    for row in segment["answers"].to_pylist():
        found.setdefault(row["operation"], {})[row["k"]] = answer_of_row(row)
    return found


def _problems(names: list[str], given: dict[int, dict[int, Answer]], reference: pa.Table) -> list[dict[str, Any]]:
    expected: dict[int, dict[int, Answer]] = {}
    for row in reference.to_pylist():
        expected.setdefault(row["operation"], {})[row["k"]] = answer_of_row(row)
    problems = []
    for number, of_kind in given.items():
        equality = compare_answers(names[number], {"contents": of_kind}, expected.get(number, {}))
        problems += [
            {"operation": names[number], "parameters": {"phase": MEASURE, "k": mismatch.k}, "problem": mismatch.problem}
            for mismatch in equality.mismatches
        ]
    return problems
