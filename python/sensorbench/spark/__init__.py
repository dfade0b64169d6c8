"""Computation over whole datasets on Apache Spark, which an extra brings (`sensorbench[spark]`)."""

from sensorbench.spark.generate import on_spark, write_on
from sensorbench.spark.session import Application, Driver, Master, driver, find_master, session

__all__ = ["Application", "Driver", "Master", "driver", "find_master", "on_spark", "session", "write_on"]
