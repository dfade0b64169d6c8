"""Metrics of hosts and of trucks as line protocol, as TSBS's `tsbs_generate_data --format influx` writes them."""

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from sensorbench.dataset.dataset import CPU
from sensorbench.dataset.tsbs import CPU_FIELDS, HOST_TAGS, HOSTS
from sensorbench.dataset.tsbs_iot import ARRIVAL, FIELDS, TRUCK_NUMBERS, TRUCK_TEXTS, TRUCKS
from sensorbench.errors import UsageError


def lines_of_hosts(connection: duckdb.DuckDBPyConnection, rows_a_batch: int) -> Iterator[bytes]:
    """Lines of the relation cpu in its order, some together: tags in TSBS's order, values as integers without those that are null, the time in ns.

    Args:
        connection: has the relations cpu and hosts.
        rows_a_batch: rows whose lines are made together.

    Raises:
        UsageError: for a value that is no whole number, which TSBS does not have.

    """
    # In the order of TSBS's tags; its hostname is the name here.
    tags = ", ".join(f"',{'hostname' if tag == 'name' else tag}=', {tag}" for tag in HOST_TAGS)
    hosts = connection.sql(f"SELECT zone, concat('{CPU}', {tags}, ' ') AS start FROM {HOSTS} ORDER BY zone").to_arrow_table()
    zones, starts = hosts["zone"].combine_chunks(), hosts["start"].combine_chunks()
    for batch in connection.table(CPU).to_arrow_reader(rows_a_batch):
        if batch.num_rows:
            yield _lines(batch, starts.take(pc.index_in(batch["zone"], zones)))


def _lines(batch: pa.RecordBatch, starts: pa.Array) -> bytes:
    """The lines of a batch; a row without any value has none."""
    try:
        values = {name: batch[name].cast(pa.int64()).cast(pa.string()) for name in CPU_FIELDS}
    except pa.ArrowInvalid as error:
        raise UsageError(f"--format influx: a metric of {CPU} is no whole number ({error}); expected csv or parquet") from None
    parts = [pc.binary_join_element_wise(f"{name}=", column, "i", "") for name, column in values.items()]
    fields = pc.binary_join_element_wise(*parts, ",", null_handling="skip")
    times = pc.multiply(batch["time"].cast(pa.timestamp("us")).cast(pa.int64()), 1000).cast(pa.string())
    lines = pc.binary_join_element_wise(starts, fields, " ", times, "\n", "")
    return "".join(lines.filter(pc.not_equal(fields, "")).to_pylist()).encode()


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
