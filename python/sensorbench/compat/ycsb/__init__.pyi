from .core_workload import CoreWorkload, parse_core_workload
from .plan import Phase, driver_schema, operations_of_phase, plan_of, tables_of
from .properties import Property, overridden, read_all_properties
from .run import SCHEMA, YcsbSpec, carry_out
from .text import as_text

__all__ = [
    "SCHEMA",
    "CoreWorkload",
    "Phase",
    "Property",
    "YcsbSpec",
    "as_text",
    "carry_out",
    "driver_schema",
    "operations_of_phase",
    "overridden",
    "parse_core_workload",
    "plan_of",
    "read_all_properties",
    "tables_of",
]
