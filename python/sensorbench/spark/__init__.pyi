from .generate import on_spark, write_on
from .session import Application, Driver, Master, driver, find_master

__all__ = ["Application", "Driver", "Master", "driver", "find_master", "on_spark", "write_on"]
