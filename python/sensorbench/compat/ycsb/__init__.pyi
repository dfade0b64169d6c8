from .core_workload import CoreWorkload, parse_core_workload
from .estimate import estimate_ycsb
from .options import YcsbOptions, YcsbRunOptions
from .plan import Phase, driver_schema, operations_of_phase, plan_of, tables_of
from .properties import Property, overridden, read_all_properties
from .run import SCHEMA, YcsbBenchmark, plan_ycsb
from .summary import summarise_ycsb
from .text import as_text

__all__ = [
    "SCHEMA",
    "CoreWorkload",
    "Phase",
    "Property",
    "YcsbBenchmark",
    "YcsbOptions",
    "YcsbRunOptions",
    "as_text",
    "driver_schema",
    "estimate_ycsb",
    "operations_of_phase",
    "overridden",
    "parse_core_workload",
    "plan_of",
    "plan_ycsb",
    "read_all_properties",
    "summarise_ycsb",
    "tables_of",
]
