"""What servers say of themselves during a run, in the same words for every database."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Quantity:
    """A counter, which only grows while a server runs, or a gauge, which says how something is at a moment."""

    name: str
    title: str
    unit: str
    kind: Literal["counter", "gauge"]
    # What a server of several nodes has: all that its nodes have, or as much as one of them on average.
    nodes: Literal["sum", "mean"] = "sum"


QUANTITIES: dict[str, Quantity] = {
    quantity.name: quantity
    for quantity in (
        Quantity("requests", "requests that the server took", "requests", "counter"),
        Quantity("pending_flushes", "flushes of memtables that wait or are in progress", "flushes", "gauge"),
        Quantity("flushes", "flushes of memtables done", "flushes", "counter"),
        Quantity("pending_compactions", "compactions still to be done, as the server estimates", "compactions", "gauge"),
        Quantity("active_compactions", "compactions, and builds of indexes and views, in progress", "compactions", "gauge"),
        Quantity("compactions", "compactions done", "compactions", "counter"),
        Quantity("compacted_bytes_in", "bytes compacted: those that compactions which are done have read", "bytes", "counter"),
        Quantity("compacted_bytes_out", "bytes that compactions which are done have written", "bytes", "counter"),
        Quantity("sstables", "SSTables", "SSTables", "gauge"),
        Quantity("memtable_heap_bytes", "data in memtables on the heap", "bytes", "gauge"),
        Quantity("memtable_off_heap_bytes", "data in memtables off the heap", "bytes", "gauge"),
        Quantity("garbage_collection_s", "time in garbage collection", "s", "counter", nodes="mean"),
        Quantity("processor_s", "CPU time; for each second, the CPUs that are busy", "s", "counter"),
        Quantity("load_average", "load average of the server's machine, over a minute", "processes", "gauge", nodes="mean"),
        Quantity("memory_bytes", "memory of the server's processes", "bytes", "gauge"),
        Quantity("disk_read_bytes", "bytes that the system fetched from the disk for the server", "bytes", "counter"),
        Quantity("disk_written_bytes", "bytes that the system was given for the disk by the server", "bytes", "counter"),
        Quantity(
            "file_read_bytes", "bytes that the database read from its files, or the system's cache of them", "bytes", "counter"
        ),
        Quantity("file_written_bytes", "bytes that the database wrote to its files", "bytes", "counter"),
        Quantity("table_bytes", "tables and indexes on disk", "bytes", "gauge"),
        Quantity("data_parts", "parts of the data: regions or token ranges", "parts", "gauge"),
        Quantity("disk_bytes", "the server's folder of data on disk, logs for recovery included", "bytes", "gauge"),
    )
}
