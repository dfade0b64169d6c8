"""Writes a fitted experiment: the files that `validate`, `run` and `stress` take."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pydantic import JsonValue

from sensorbench.dataset.dataset import TRAFFIC, DatasetWriter, Description
from sensorbench.results.traffic_fit import FittedSchedule
from sensorbench.runner import Schedule, TargetSpec, Workload
from sensorbench.schemas import Operations
from sensorbench.schemas.operations import ParameterSource
from sensorbench.schemas.schema_file import CREATE, LoadQueryEntry, OperationText, SchemaFile
from sensorbench.traffic.fit.data import Tables, create_statements, index_statements, knows_types
from sensorbench.traffic.fit.halves import Halves
from sensorbench.traffic.fit.operations import MadeOperations
from sensorbench.traffic.fit.statements import dialect_of, schema_statement

EXPERIMENT_FILE, OPERATIONS_FILE, DATA_FOLDER = "experiment.toml", "operations.toml", "data"
_BATCH_ROWS = 65_536
# A longer list stands in several lines of a file.
_LONGEST_LIST = 100
_Keys = Mapping[str, JsonValue]


def operations_of(made: MadeOperations, tables: Tables | None) -> Operations:
    """The operation set of an experiment."""
    sources: dict[str, ParameterSource] = {
        source.name: source.source.model_copy(update={"summary": source.fitted.of})
        for operation in made.operations
        for source in operation.sources
    }
    used = _used_tables(made, tables)
    return Operations(
        relations=[TRAFFIC, *used] if tables else [],
        parameter_source=sources,
        operation={operation.name: operation.operation for operation in made.operations},
    )


def recorded_schema(made: MadeOperations, tables: Tables | None, database: str, dialect: str) -> SchemaFile:
    """The schema for the database that the traffic was recorded of: statements are as they were recorded."""
    recorded = dialect_of(database)
    statements = {
        operation.name: schema_statement(operation.template, operation.types, recorded)
        if recorded
        else operation.template.statement
        for operation in made.operations
    }
    return _schema(made, tables, dialect, {name: _text(statement) for name, statement in statements.items()}, {})


def schema_to_write(made: MadeOperations, tables: Tables | None, dialect: str) -> SchemaFile:
    """The schema for another database: what must be written is listed with what was recorded."""
    to_write = {operation.name: " ".join(operation.template.statement.split()) for operation in made.operations}
    if not knows_types(dialect):
        to_write = {CREATE: f"the tables {', '.join(_used_tables(made, tables))}", **to_write}
    return _schema(made, tables, dialect, {}, to_write)


def _schema(
    made: MadeOperations,
    tables: Tables | None,
    dialect: str,
    operations: dict[str, list[OperationText]],
    to_write: dict[str, str],
) -> SchemaFile:
    used = _used_tables(made, tables)
    create: list[str] = []
    settle: list[str] = []
    if tables and knows_types(dialect):
        of_user = tables.statements if not to_write else []
        kept = Tables({name: tables.columns[name] for name in used}, looked_up=tables.looked_up)
        create = of_user or create_statements(kept, dialect)
        settle = [] if of_user else index_statements(tables, dialect, used)
    return SchemaFile(
        database=dialect,
        summary="The tables of recorded traffic.",
        create={"statements": list(create)} if create else {},
        settle={"statements": list(settle)} if settle else {},
        load_query={
            name: [LoadQueryEntry(query=f'SELECT * FROM "{name}"')] for name in used if tables and name not in tables.empty
        },
        operation=operations,
        to_write=to_write,
    )


def _text(statement: str) -> list[OperationText]:
    return [OperationText.model_validate({"statement": statement})]


def _used_tables(made: MadeOperations, tables: Tables | None) -> list[str]:
    named = {name for operation in made.operations for name in operation.tables}
    return [name for name in tables.columns if name in named] if tables else []


def workload_of(made: MadeOperations, schedule: FittedSchedule, scale_rate: float, repetitions: int) -> Workload:
    """The workload of an experiment: the mix and the schedule, at this many times the rate."""
    segments = [{"from": round(step.rate_per_s * scale_rate, 4), "length": _length(step.length_s)} for step in schedule.steps]
    # The last one continues to the end, whatever rounding makes of the others.
    del segments[-1]["length"]
    concurrency = max(1, round(schedule.concurrency * max(1.0, scale_rate)))
    paced = {"segments": segments} if len(segments) > 1 else {"rate": segments[0]["from"]}
    return Workload(
        mix={operation.name: operation.fitted.statements for operation in made.operations},
        schedule=Schedule.model_validate({**paced, "arrival": schedule.arrival, "concurrency": concurrency}),
        duration=_length(schedule.length_s),
        repetitions=repetitions,
    )


def _length(length_s: float) -> str:
    return f"{f'{length_s:.6f}'.rstrip('0').rstrip('.')}s"


def write_dataset(halves: Halves, made: MadeOperations, tables: Tables, folder: Path, trace: str) -> None:
    """Writes the dataset of an experiment: the tables, the values that operations choose from, and what was recorded of each operation."""
    writer = DatasetWriter(folder)
    for name in _used_tables(made, tables):
        rows = halves.workbench.table(name).to_arrow_reader(_BATCH_ROWS)
        writer.add(name, rows.schema, rows)
    for operation in made.operations:
        for source in operation.sources:
            if source.relation is not None and source.rows is not None:
                writer.add_table(source.relation, source.rows)
    fitted = [operation.fitted for operation in made.operations]
    writer.add_table(
        TRAFFIC,
        pa.table(
            {
                "operation": pa.array(range(1, len(fitted) + 1), pa.int64()),
                "name": [operation.name for operation in fitted],
                "statement": [operation.statement for operation in fitted],
                "statements": pa.array([operation.statements for operation in fitted], pa.int64()),
            }
        ),
    )
    writer.finish(
        Description(
            name=folder.parent.name,
            title=f"Tables of the traffic {trace}",
            generated=False,
            source="the user's own tables, and parameters of recorded statements",
            license="the user's own",
            how_made="by sensorbench traffic fit",
        )
    )


def write_experiment(
    folder: Path,
    title: str,
    operations: Operations,
    targets: Sequence[tuple[TargetSpec, SchemaFile]],
    workload: Workload,
) -> list[str]:
    """Writes the files of an experiment.

    Args:
        folder: where they are to be.
        title: of the experiment.
        operations: the operation set.
        targets: each with its schema.
        workload: the mix and the schedule.

    Returns:
        Their names.

    """
    schemas = {_schema_file(target): schema for target, schema in targets}
    experiment: dict[str, JsonValue] = {
        "title": title,
        "dataset": DATA_FOLDER,
        "operations": OPERATIONS_FILE,
        "target": [{"url": target.text, "schema": _schema_file(target)} for target, _ in targets],
        "workload": workload.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude_none=True),
    }
    contents: dict[str, tuple[str, _Keys]] = {
        EXPERIMENT_FILE: ("Fitted to recorded traffic. Run it with\n#   sensorbench run experiment.toml", experiment),
        OPERATIONS_FILE: (
            "The operations, each a template of the trace. References are DuckDB's SQL over the dataset.",
            operations.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude_none=True),
        ),
        **{
            name: (_about(schema), schema.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude_none=True))
            for name, schema in schemas.items()
        },
    }
    for name, (about, keys) in contents.items():
        (folder / name).write_text(f"# {about}\n{as_toml(keys)}", encoding="utf-8")
    return [*contents, DATA_FOLDER]


def _about(schema: SchemaFile) -> str:
    if not schema.to_write:
        return "The tables, and each statement as it was recorded."
    return (
        "Write each statement of [to_write] for this database, as [operation.NAME] with the key statement, and take its line away.\n"
        "# Parameters are written :p1, :p2, … for $1, $2, …; answers must have the columns of operations.toml."
    )


def _schema_file(target: TargetSpec) -> str:
    return f"{target.database.dialect.replace('+', '-')}.toml"


def as_toml(keys: _Keys) -> str:
    """Keys as TOML: a table for each part of the file, and for each that has a name; what is in them stands in a line."""
    plain: list[str] = []
    tables: list[str] = []
    for key, value in keys.items():
        if isinstance(value, dict) and value and all(_is_of_tables(each) for each in value.values()):
            tables += [_table(f"[{key}.{name}]", each[0] if isinstance(each, list) else each) for name, each in value.items()]
        elif isinstance(value, dict):
            tables.append(_table(f"[{key}]", value))
        elif _is_of_tables(value) and isinstance(value, list):
            tables += [_table(f"[[{key}]]", each) for each in value]
        else:
            plain.append(f"{key} = {_value(value)}\n")
    return "".join([*plain, *tables])


def _is_of_tables(value: JsonValue) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value))


def _table(head: str, keys: JsonValue) -> str:
    lines = [f"{key} = {_value(value)}\n" for key, value in keys.items()] if isinstance(keys, dict) else []
    return f"\n{head}\n{''.join(lines)}"


def _value(value: JsonValue) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_value(inner)}' for key, inner in value.items())} }}" if value else "{}"
    if isinstance(value, list):
        parts = [_value(each) for each in value]
        text = ", ".join(parts)
        return f"[{text}]" if len(text) <= _LONGEST_LIST else "[\n" + "".join(f"    {part},\n" for part in parts) + "]"
    if isinstance(value, str) and '"' in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
