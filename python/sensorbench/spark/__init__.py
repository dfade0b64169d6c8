"""Computation over whole datasets on Apache Spark, which an extra brings (`sensorbench[spark]`)."""

from sensorbench.spark.session import Application, Driver, Master, driver, find_master, session

__all__ = ["Application", "Driver", "Master", "driver", "find_master", "session"]
