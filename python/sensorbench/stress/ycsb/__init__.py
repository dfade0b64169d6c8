"""YCSB's core workloads, from its own properties files."""

from sensorbench.stress.ycsb.core_workload import CoreWorkload, core_workload
from sensorbench.stress.ycsb.properties import overridden, read_properties

__all__ = ["CoreWorkload", "core_workload", "overridden", "read_properties"]
