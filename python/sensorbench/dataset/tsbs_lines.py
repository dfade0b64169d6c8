"""Metrics of servers and of trucks as line protocol, as TSBS's `tsbs_generate_data --format influx` writes them."""

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from sensorbench.dataset import tsbs_devops
from sensorbench.dataset.dataset import CPU, CPU_READINGS
from sensorbench.dataset.tsbs import HOST_TAGS, HOSTS
from sensorbench.dataset.tsbs_devops import OWN_TAGS, WITH_DECIMALS, own_tag
from sensorbench.dataset.tsbs_iot import ARRIVAL, FIELDS, TRUCK_NUMBERS, TRUCK_TEXTS, TRUCKS
from sensorbench.errors import UsageError

# In the order of TSBS's tags; its hostname is the name here.
_TAGS = ", ".join(f"',{'hostname' if tag == 'name' else tag}=', {tag}" for tag in HOST_TAGS)


def lines_of_hosts(connection: duckdb.DuckDBPyConnection, rows_a_batch: int) -> Iterator[bytes]:
    """Lines of the relation cpu in its order, some together: tags in TSBS's order, values as integers without those that are null, the time in ns.

    Args:
        connection: has the relations cpu and hosts.
        rows_a_batch: rows whose lines are made together.

    Raises:
        UsageError: for a value that is not a whole number, which TSBS does not have.

    """
    hosts = connection.sql(f"SELECT zone, concat('{CPU}', {_TAGS}, ' ') AS start FROM {HOSTS} ORDER BY zone").to_arrow_table()
    zones, starts = hosts["zone"].combine_chunks(), hosts["start"].combine_chunks()
    for batch in connection.table(CPU).to_arrow_reader(rows_a_batch):
        if batch.num_rows:
            yield _lines(batch, starts.take(pc.index_in(batch["zone"], zones)))


def _lines(batch: pa.RecordBatch, starts: pa.Array) -> bytes:
    """The lines of a batch; a row without any value has none."""
    try:
        names = [name for name in batch.schema.names if name not in CPU_READINGS.key]
        values = {name: batch[name].cast(pa.int64()).cast(pa.string()) for name in names}
    except pa.ArrowInvalid as error:
        raise UsageError(f"--format influx: a metric of {CPU} is not a whole number ({error}); expected csv or parquet") from None
    parts = [pc.binary_join_element_wise(f"{name}=", column, "i", "") for name, column in values.items()]
    fields = pc.binary_join_element_wise(*parts, ",", null_handling="skip")
    times = pc.multiply(batch["time"].cast(pa.timestamp("us")).cast(pa.int64()), 1000).cast(pa.string())
    lines = pc.binary_join_element_wise(starts, fields, " ", times, "\n", "")
    return "".join(lines.filter(pc.not_equal(fields, "")).to_pylist()).encode()


def lines_of_servers(connection: duckdb.DuckDBPyConnection, rows_a_batch: int) -> Iterator[bytes]:
    """Lines of all measurements of servers in TSBS's order, some together: interval by interval, in each measurement by measurement, and in each
    host by host; tags of the host, then those of the measurement; values as integers but for percentages, without those that are null.

    Args:
        connection: has the relations of the measurements, and hosts.
        rows_a_batch: rows whose lines are made together.

    Raises:
        UsageError: for a value that is not a whole number where TSBS has whole ones.

    """
    lines = " UNION ALL ".join(
        _lines_of_servers(number, measurement, fields) for number, (measurement, fields) in enumerate(tsbs_devops.FIELDS.items())
    )
    try:
        for batch in connection.sql(f"SELECT line FROM ({lines}) ORDER BY time, number, zone").to_arrow_reader(rows_a_batch):
            yield "".join(batch["line"].to_pylist()).encode()
    except duckdb.InvalidInputException as error:
        raise UsageError(f"--format influx: a metric is not a whole number ({error}); expected csv or parquet") from None


def _lines_of_servers(number: int, measurement: str, fields: tuple[str, ...]) -> str:
    """SQL of the lines of a measurement of servers, with its number."""
    own = "".join(f", ',{tag}=' || {own_tag(measurement, tag)}" for tag in OWN_TAGS.get(measurement, ()))
    values = ", ".join(f"'{name}=' || {_value(measurement, name)}" for name in fields)
    return (
        f"SELECT time, {number} AS number, zone, concat('{measurement}', {_TAGS}{own}, ' ', fields, ' ', epoch_us(time) * 1000, chr(10)) AS line "
        f"FROM (SELECT *, concat_ws(',', {values}) AS fields FROM {measurement}) JOIN {HOSTS} USING (site, zone) WHERE fields <> ''"
    )


def _value(measurement: str, field: str) -> str:
    """SQL of the text of a value."""
    if f"{measurement}.{field}" in WITH_DECIMALS:
        return field
    return f"CASE WHEN {field} = trunc({field}) THEN CAST({field} AS BIGINT) || 'i' ELSE error('{measurement}.{field} is ' || {field}) END"


# What TSBS writes as integers.
_WHOLE = frozenset({"status"})


def lines_of_trucks(connection: duckdb.DuckDBPyConnection, rows_a_batch: int) -> Iterator[bytes]:
    """Lines of both measurements of trucks in the order of arrival, some together: tags in TSBS's order, those that are numbers as the first fields,
    values without those that are null, the time in ns.

    Args:
        connection: has the relations readings, diagnostics and trucks.
        rows_a_batch: rows whose lines are made together.

    """
    lines = " UNION ALL ".join(_lines_of_measurement(measurement, fields) for measurement, fields in FIELDS.items())
    for batch in connection.sql(f"SELECT line FROM ({lines}) ORDER BY {ARRIVAL}").to_arrow_reader(rows_a_batch):
        yield "".join(batch["line"].to_pylist()).encode()


def _lines_of_measurement(measurement: str, fields: tuple[str, ...]) -> str:
    """SQL of the lines of a measurement, with their numbers."""
    tags = ", ".join(f"',{tag}=', {tag}" for tag in TRUCK_TEXTS)
    names = (*TRUCK_NUMBERS, *fields)
    values = [f"'{name}=' || CAST({name} AS BIGINT) || 'i'" if name in _WHOLE else f"'{name}=' || {name}" for name in names]
    return (
        f"SELECT {ARRIVAL}, concat('{measurement}', {tags}, ' ', concat_ws(',', {', '.join(values)}), ' ', epoch_us(time) * 1000, chr(10)) AS line "
        f"FROM {measurement} JOIN {TRUCKS} USING (site, zone)"
    )
