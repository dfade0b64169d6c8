"""Operations and schemas, which are files: what is asked, and how a dataset lies in a database and is asked there."""

from sensorbench.schemas.operations import Operation, Operations, load_operations, shipped_operations
from sensorbench.schemas.schema import Schema, load_schema, shipped_schemas

__all__ = ["Operation", "Operations", "Schema", "load_operations", "load_schema", "shipped_operations", "shipped_schemas"]
