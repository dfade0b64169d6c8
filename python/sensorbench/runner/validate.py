"""What a comparison needs before it starts: everything is looked up and found to be sound; nothing is written."""

from dataclasses import replace as replace_fields

import duckdb

from sensorbench.errors import UsageError
from sensorbench.runner.comparison import Comparison, ConnectedComparison, ValidatedComparison
from sensorbench.runner.plan import build_plan, parameters_of, planned_operations
from sensorbench.runner.references import check_references
from sensorbench.runner.registers import with_registers
from sensorbench.runner.servers import Servers, check_resources
from sensorbench.runner.streams import accelerated, check_stream, checked_retention
from sensorbench.schemas.instances import mix_of_instances, with_instances
from sensorbench.schemas.time_buckets import SamplingInterval


def sampling_interval_of(workbench: duckdb.DuckDBPyConnection, scale: float) -> SamplingInterval:
    """The usual time between two readings of one sensor. Raises UsageError for a dataset that has no two."""
    step = workbench.execute("SELECT usual_step()").fetchall()[0][0]
    if step is None:
        raise UsageError("the dataset has no sensor with two readings, so that no length can be given in readings")
    return SamplingInterval(int(step), scale)


def validated(comparison: Comparison) -> ValidatedComparison:
    """The comparison with everything that was looked up for it. Raises UsageError for what cannot be right; writes nothing."""
    comparison = with_registers(comparison)
    for name in comparison.workload.mix:
        comparison.operations.require(name, "mix")
    unknown = [name for name in comparison.workload.choice if name not in comparison.operations.parameter_source]
    if unknown:
        raise UsageError(
            f"choice: there is no parameter source {unknown[0]!r}; expected one of {', '.join(comparison.operations.parameter_source)}"
        )
    _check_relations(comparison)
    check_resources(comparison.resources, [variant.target for variant in comparison.variants])
    workbench = comparison.dataset.connect()
    where = f"operations {comparison.operations_name}"
    operations = with_instances(comparison.operations, set(comparison.workload.mix), workbench, where)
    workload = comparison.workload.model_copy(update={"mix": mix_of_instances(comparison.workload.mix, operations)})
    comparison = accelerated(replace_fields(comparison, operations=operations, workload=workload))
    operations = comparison.operations
    names = planned_operations(operations, workload)
    parameters = parameters_of(operations, names, workbench, where)
    check_references(operations, names, workbench, where)
    comparison = _on_its_dataset(comparison, workbench)
    check_stream(comparison)
    columns, schemas = {}, {}
    for variant in comparison.variants:
        columns[variant.id] = variant.schema.loaded_columns(workbench)
        queried = [name for name in names if variant.answers(name)]
        more = checked_retention(comparison, variant)
        schemas[variant.id] = variant.schema.driver_schema(
            operations, queried, columns[variant.id], more, retains=workload.retention is not None
        )
        if queried:
            build_plan(operations, variant.schema, parameters, variant.workload(workload), 0)
    return ValidatedComparison(comparison, workbench, names, parameters, schemas, columns)


def _on_its_dataset(comparison: Comparison, workbench: duckdb.DuckDBPyConnection) -> Comparison:
    """The comparison with schemas that know how close together the dataset's readings are, where that matters."""
    if not any(variant.schema.needs_sampling_interval for variant in comparison.variants):
        return comparison
    sampling = sampling_interval_of(workbench, comparison.dataset.scale)
    variants = [replace_fields(variant, schema=variant.schema.on(sampling)) for variant in comparison.variants]
    return replace_fields(comparison, variants=variants)


def _check_relations(comparison: Comparison) -> None:
    """A dataset of logs is not a dataset of sensors."""
    known = comparison.dataset.describe().relations
    missing = [name for name in comparison.operations.relations if name not in known]
    if missing:
        raise UsageError(
            f"operations {comparison.operations_name} need the relation {missing[0]}, which dataset {comparison.dataset.name} does not have; "
            f"it has {', '.join(known)}. `sensorbench data list` says what each dataset is"
        )


def connect(sound: ValidatedComparison, started: Servers) -> ConnectedComparison:
    """A comparison with its variants at the URLs of servers that are up."""
    variants = started.at_their_urls(sound.comparison.variants)
    return ConnectedComparison(
        replace_fields(sound.comparison, variants=variants),
        sound.workbench,
        sound.names,
        sound.parameters,
        sound.schemas,
        sound.columns,
        {variant.id: variant.engine_target() for variant in variants if variant.url is not None},
        started,
    )
