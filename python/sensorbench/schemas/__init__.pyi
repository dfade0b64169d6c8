from .operations import Operation, Operations, load_operations
from .schema import Schema, load_schema
from .shipped import shipped_operations, shipped_schemas

__all__ = ["Operation", "Operations", "Schema", "load_operations", "load_schema", "shipped_operations", "shipped_schemas"]
