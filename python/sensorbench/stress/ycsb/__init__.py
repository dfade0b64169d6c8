"""YCSB's core workloads, from its own properties files."""

from sensorbench.stress.ycsb.core_workload import CoreWorkload, core_workload
from sensorbench.stress.ycsb.plan import Phase, asked_in
from sensorbench.stress.ycsb.properties import overridden, read_all_properties, read_properties
from sensorbench.stress.ycsb.run import Wish, carry_out
from sensorbench.stress.ycsb.text import as_text

__all__ = [
    "CoreWorkload",
    "Phase",
    "Wish",
    "as_text",
    "asked_in",
    "carry_out",
    "core_workload",
    "overridden",
    "read_all_properties",
    "read_properties",
]
