"""Plans for the engine: every name becomes a number, every candidate a row."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from sensorbench.errors import UsageError
from sensorbench.results.engine_plan import (
    EnginePlan,
    OperationsPlan,
    ParameterOrigin,
    PlannedNumber,
    PlannedOperation,
    PlannedSource,
    PlannedSpan,
)
from sensorbench.runner.delivery import planned_delivery
from sensorbench.runner.lengths import seconds
from sensorbench.runner.workload import LOG_EVERY, LOGGED_WHOLE, Workload
from sensorbench.schemas import Operation, Operations, Schema
from sensorbench.schemas.arrow_types import canonical_table
from sensorbench.schemas.operations import ParameterSource, Span
from sensorbench.schemas.types import canonical_columns


@dataclass(frozen=True)
class Parameters:
    """What operations draw from, the same for all variants: in a fixed order, so that equal seeds draw equal parameters."""

    sources: list[str]
    tables: dict[str, pa.Table] = field(default_factory=dict)
    numbers: dict[str, dict[str, PlannedNumber]] = field(default_factory=dict)
    # Of parameter sources of what was written, the time bucket that ends with it.
    spans: dict[str, PlannedSpan] = field(default_factory=dict)

    def readers(self) -> list[pa.RecordBatchReader]:
        """The tables, for the engine."""
        return [table.to_reader() for table in self.tables.values()]


def parameters_of(operations: Operations, names: list[str], workbench: duckdb.DuckDBPyConnection, where: str) -> Parameters:
    """The candidates for the parameters of some operations. `where` says in errors which file asks for them."""
    used = _used_sources(operations, names)
    parameters = Parameters(used)
    for name in used:
        source = operations.parameter_source[name]
        try:
            if source.query is not None:
                parameters.tables[name] = _candidates(workbench, source.query)
            for column, number in source.numbers.items():
                parameters.numbers.setdefault(name, {})[column] = _number(workbench, number.start, number.step)
            if source.written and source.written.span:
                written = operations.operation[source.written.operation]
                parameters.spans[name] = _span(workbench, source.written.span, written)
        except (duckdb.Error, ValueError) as error:
            raise UsageError(f"{where}, parameter_source.{name}: {error}") from None
    return parameters


def _used_sources(operations: Operations, names: list[str]) -> list[str]:
    """The parameter sources of the operations and of the writes that they read, in the order of the file."""
    used: set[str] = set()
    pending = list(names)
    while pending:
        for name in operations.operation[pending.pop()].parameter_sources:
            if name not in used:
                source = operations.parameter_source[name]
                used |= {name, source.per or name}
                pending += [source.written.operation] if source.written else []
    return [name for name in operations.parameter_source if name in used]


def _candidates(workbench: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    table = canonical_table(workbench.sql(query)).combine_chunks()
    if table.num_rows == 0:
        raise ValueError("the query finds no candidates in this dataset")
    return table


def _number(workbench: duckdb.DuckDBPyConnection, start: str, step: str) -> PlannedNumber:
    """A column of numbers: type, first value and step, times in µs."""
    relation = workbench.sql(start)
    value_type = next(iter(canonical_columns(relation).values()))
    if value_type not in {"integer", "timestamp"}:
        raise ValueError(f"start must be an integer or a timestamp, not a {value_type}")
    first = canonical_table(relation).column(0).cast(pa.int64())[0].as_py()
    by = canonical_table(workbench.sql(step)).column(0).cast(pa.int64())[0].as_py()
    if first is None or by is None:
        raise ValueError("start and step must not be null")
    return {"type": value_type, "start": first, "step": by}


def _span(workbench: duckdb.DuckDBPyConnection, span: Span, written: Operation) -> PlannedSpan:
    """A time bucket that ends with a write, for the engine: unit in µs."""
    times = [name for name, value_type in written.parameters.items() if value_type == "timestamp"]
    if span.time not in times:
        raise ValueError(f"span.time is {span.time!r}; expected one of {', '.join(times)}")
    found = workbench.execute(f"SELECT epoch_us(({span.unit})), ({span.min}), ({span.max})").fetchall()[0]
    if None in found or found[0] <= 0 or not 0 < found[1] <= found[2]:
        raise ValueError(f"span: expected an interval and two numbers, all above zero and min not above max; found {found}")
    unit_us, low, high = (int(number) for number in found)
    return {"time": list(written.parameters).index(span.time), "unit_us": unit_us, "min": low, "max": high}


def plan_operations(operations: Operations, schema: Schema, parameters: Parameters, workload: Workload) -> OperationsPlan:
    """The part of a plan that says what is asked."""
    # Operations that only a parameter source names (a write that is read) are planned too, with no share of the mix.
    names = planned_operations(operations, workload)
    return {
        "seed": workload.seed,
        "operations": [_planned(operations, schema, parameters, name, workload) for name in names],
        "order": workload.order,
        "parameter_sources": [
            _planned_source(operations.parameter_source[name], name, names, parameters, workload) for name in parameters.sources
        ],
    }


def build_plan(operations: Operations, schema: Schema, parameters: Parameters, workload: Workload, run: int) -> EnginePlan:
    """The plan of one run of a workload on a variant."""
    return {
        **plan_operations(operations, schema, parameters, workload),
        "phases": workload.phases(run, workload.repetitions),
        "concurrency": workload.schedule.max_concurrency,
        "threads": workload.threads,
        "timeout_s": seconds(workload.timeout),
        "spin": workload.spin,
        "log_every": workload.log_every,
        "answers_every": LOG_EVERY if workload.answers == "all" else None,
        "answers_whole": LOGGED_WHOLE,
    }


def planned_operations(operations: Operations, workload: Workload) -> list[str]:
    """The operations of a mix in the order of their file, so that they have equal numbers whatever the mix is."""
    return [name for name in operations.operation if name in workload.mix]


def _planned(operations: Operations, schema: Schema, parameters: Parameters, name: str, workload: Workload) -> PlannedOperation:
    operation = operations.operation[name]
    sources = [_source(operations, parameters, name, parameter) for parameter in operation.parameters]
    planned = planned_operation(name, operation, schema, sources, workload.mix.get(name, 0.0))
    if workload.delivery is None:
        return planned
    delivery = planned_delivery(workload.delivery, name, operation, *columns_of(operation, parameters))
    return planned if delivery is None else {**planned, "delivery": delivery}


def columns_of(operation: Operation, parameters: Parameters) -> tuple[dict[str, pa.ChunkedArray], dict[str, PlannedNumber]]:
    """What the parameters of an operation are taken from, by column: candidates of rows, and numbers that are used once."""
    tables = [parameters.tables[source] for source in operation.parameter_sources if source in parameters.tables]
    numbers = [parameters.numbers[source] for source in operation.parameter_sources if source in parameters.numbers]
    candidates = {column: table[column] for table in tables for column in table.column_names}
    return candidates, {column: number for of_source in numbers for column, number in of_source.items()}


def planned_operation(
    name: str, operation: Operation, schema: Schema, sources: Sequence[ParameterOrigin], weight: float = 1.0
) -> PlannedOperation:
    """An operation as a plan has it: how a schema asks it, and where each of its parameters comes from."""
    return {
        "weight": weight,
        "operation": schema.driver_statement(name, operation),
        "parameters": sources,
        "client_steps": schema.work(name, operation),
    }


def _source(operations: Operations, parameters: Parameters, name: str, parameter: str) -> ParameterOrigin:
    """Number of the parameter source and of the column that a parameter comes from, and whether each reading of an operation has a row of its own."""
    for source in operations.operation[name].parameter_sources:
        columns = _source_columns(operations, parameters, source)
        if parameter in columns:
            origin: ParameterOrigin = {"source": parameters.sources.index(source), "column": columns.index(parameter)}
            return {**origin, "each": True} if source in operations.operation[name].each else origin
    sources = ", ".join(operations.operation[name].parameter_sources) or "none"
    raise UsageError(
        f"operation.{name}.parameters.{parameter}: none of its parameter sources ({sources}) has a column of this name"
    )


def _source_columns(operations: Operations, parameters: Parameters, source: str) -> list[str]:
    if source in parameters.tables:
        return list(parameters.tables[source].column_names)
    if source in parameters.numbers:
        return list(parameters.numbers[source])
    written = operations.parameter_source[source].written
    of_span = ["from", "to"] if source in parameters.spans else []
    return [*operations.operation[written.operation].parameters, *of_span] if written else []


def _planned_source(
    source: ParameterSource, name: str, names: list[str], parameters: Parameters, workload: Workload
) -> PlannedSource:
    if name in parameters.tables:
        choice = workload.choice.get(name, source.choice)
        chosen = choice if isinstance(choice, str) else choice.model_dump(exclude_none=True)
        return {"rows": {"table": list(parameters.tables).index(name), "choice": chosen}}
    if name in parameters.numbers:
        columns = list(parameters.numbers[name].values())
        return {"numbers": {"columns": columns, "per": None if source.per is None else parameters.sources.index(source.per)}}
    written = source.written
    if written is None or written.operation not in names:
        raise UsageError(
            f"parameter_source.{name}: it is of the operation {written.operation if written else '?'}, which the mix does not have"
        )
    return {
        "written": {
            "operation": names.index(written.operation),
            "window": written.window,
            "exponent": written.exponent,
            "span": parameters.spans.get(name),
        }
    }


def as_json(plan: EnginePlan) -> str:
    """The plan as the engine takes it."""
    return json.dumps(plan)
