from .operations import Operation, Operations, load_operations
from .row_widths import RowWidth, Timelines
from .schema import Schema, load_schema
from .shipped import shipped_operations, shipped_schemas
from .time_buckets import SamplingInterval

__all__ = [
    "Operation",
    "Operations",
    "RowWidth",
    "SamplingInterval",
    "Schema",
    "Timelines",
    "load_operations",
    "load_schema",
    "shipped_operations",
    "shipped_schemas",
]
