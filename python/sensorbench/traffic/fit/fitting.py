"""Makes an experiment of a trace: fits it to the first half, compares what it sends with the second, and writes it."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sensorbench.errors import UsageError
from sensorbench.paths import check_is_free, remove_if_empty
from sensorbench.progress import ProgressReporter
from sensorbench.results.traffic_fit import FittedSchedule, TrafficFit
from sensorbench.runner import TargetSpec, Workload, databases, parse_target
from sensorbench.schemas import Operations, Schema
from sensorbench.schemas.schema_file import SchemaFile
from sensorbench.traffic.fit.data import Tables, read_tables
from sensorbench.traffic.fit.files import (
    DATA_FOLDER,
    operations_of,
    recorded_schema,
    schema_to_write,
    workload_of,
    write_dataset,
    write_experiment,
)
from sensorbench.traffic.fit.halves import Halves, halves_of
from sensorbench.traffic.fit.holdout import SentOperations, check_fit, rates_of
from sensorbench.traffic.fit.operations import MadeOperations, make_operations
from sensorbench.traffic.fit.schedule import Arrivals, finest_window_s, fit_schedule
from sensorbench.traffic.fit.statements import dialect_of
from sensorbench.wording import counted

FIT_FILE = "fit.json"
DEFAULT_COVERAGE = 0.98


@dataclass(frozen=True)
class FitOptions:
    """How an experiment is made of a trace.

    Args:
        data: a folder with TABLE.csv or TABLE.parquet for each table; without data no experiment is written.
        targets: other databases, for which statements are to be written.
        scale_rate: the rate of the experiment over that of the trace.
        coverage: the share of reads and writes from which on rarer templates are left out.

    """

    data: Path | None = None
    targets: Sequence[str] = ()
    scale_rate: float = 1.0
    coverage: float = DEFAULT_COVERAGE


def fit_trace(trace: Path, out: Path, options: FitOptions = FitOptions(), reporter: ProgressReporter | None = None) -> TrafficFit:
    """Makes an experiment of a trace.

    Args:
        trace: the folder of the trace.
        out: the folder of the experiment, which must be free; it is made.
        options: how it is made.
        reporter: reports progress, if given.

    Returns:
        What was fitted, and how what the experiment sends compares with the second half of the trace.

    Raises:
        UsageError: if the trace or the data cannot be read, or no operation can be made of it.

    """
    check_is_free(out)
    _check(options)
    reporter = reporter or ProgressReporter(quiet=True)
    others = [_target(target) for target in options.targets]
    with halves_of(trace) as halves:
        dialect = dialect_of(halves.trace.database)
        tables = read_tables(options.data, halves.workbench, dialect) if options.data else None
        with reporter.task("fitting the first half") as task:
            made = make_operations(halves, tables, options.coverage)
            if not made.operations:
                reasons = "; ".join(dict.fromkeys(f"{part.what}: {part.reason}" for part in made.left_out[:3]))
                raise UsageError(f"{trace}: no operation can be made of it ({reasons})")
            schedule = _schedule(halves, made)
            task.end(counted(len(made.operations), "operation"))
        operations = operations_of(made, tables)
        known = databases().get(halves.trace.database)
        schema = recorded_schema(made, tables, halves.trace.database, known.dialect if known else halves.trace.database)
        targets = _targets(halves.trace.database, schema, others, made, tables) if tables else []
        with reporter.task("comparing with the second half") as task:
            workload = workload_of(made, schedule, 1.0, 1)
            checks = check_fit(halves, made, _sent(halves, operations, schema, workload, schedule), schedule)
            task.end(", ".join(f"{check.name} {check.verdict}" for check in checks))
        files: list[str] = []
        to_write: list[str] = []
        if tables is not None:
            scaled = workload_of(made, schedule, options.scale_rate, 1 if len(targets) == 1 else 3)
            files = _write(halves, made, tables, out, targets, operations, scaled, trace.name)
            to_write = [f"{target.database.dialect}: {name}" for target, each in targets for name in each.to_write]
        else:
            out.mkdir(parents=True, exist_ok=True)
        fit = TrafficFit(
            database=halves.trace.database,
            trace=trace.name,
            statements=halves.statements,
            length_s=(halves.end_us - halves.start_us) / 1e6,
            scale_rate=options.scale_rate,
            operations=[operation.fitted for operation in made.operations],
            left_out=made.left_out,
            not_fitted=halves.not_fitted(),
            schedule=schedule,
            checks=checks,
            rates=rates_of(halves, made, schedule),
            files=files,
            to_write=to_write,
        )
        (out / FIT_FILE).write_text(fit.model_dump_json(indent=1) + "\n", encoding="utf-8")
        return fit


def _check(options: FitOptions) -> None:
    if not options.scale_rate > 0:
        raise UsageError(f"--scale-rate {options.scale_rate:g}: expected a factor above 0")
    if not 0 < options.coverage <= 1:
        raise UsageError(f"--coverage {options.coverage:g}: expected a share above 0 and at most 1")
    if options.targets and options.data is None:
        raise UsageError("--target: expected --data as well: an experiment is written where there are data to run it on")


def _target(text: str) -> TargetSpec:
    """A target as it may stand in a file."""
    if urlsplit(text).password:
        raise UsageError(
            "--target: the URL has a password, which would stand in the experiment; put it into a file: ?credentials=login.toml"
        )
    return parse_target(text)


def _schedule(halves: Halves, made: MadeOperations) -> FittedSchedule:
    window_s = finest_window_s(halves.half_s)
    counts = halves.arrivals(made.templates, window_s, second=False)
    return fit_schedule(Arrivals(counts, window_s, halves.half_s), halves.open_sessions)


def _sent(
    halves: Halves, operations: Operations, file: SchemaFile, workload: Workload, schedule: FittedSchedule
) -> SentOperations:
    schema = Schema(Path(f"{file.database}.toml"), file.database, file, {})
    return SentOperations(operations, schema, halves.workbench, workload, round(schedule.operations) or 1)


def _targets(
    database: str, schema: SchemaFile, others: list[TargetSpec], made: MadeOperations, tables: Tables
) -> list[tuple[TargetSpec, SchemaFile]]:
    """The targets of the experiment with their schemas. A server of the recorded database takes the recorded statements; where none is named,
    the lab starts one.
    """
    dialects = [target.database.dialect for target in others]
    recorded = [] if schema.database in dialects else [(parse_target(database), schema)]
    return recorded + [
        (target, schema if dialect == schema.database else schema_to_write(made, tables, dialect))
        for target, dialect in zip(others, dialects, strict=True)
    ]


def _write(
    halves: Halves,
    made: MadeOperations,
    tables: Tables,
    out: Path,
    targets: list[tuple[TargetSpec, SchemaFile]],
    operations: Operations,
    workload: Workload,
    trace: str,
) -> list[str]:
    """Writes the experiment; nothing is left where that fails."""
    out.mkdir(parents=True, exist_ok=True)
    try:
        write_dataset(halves, made, tables, out / DATA_FOLDER, trace)
        return write_experiment(out, f"Traffic of {trace}", operations, targets, workload)
    except BaseException:
        shutil.rmtree(out / DATA_FOLDER, ignore_errors=True)
        remove_if_empty(out)
        raise
